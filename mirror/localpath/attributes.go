package localpath

import (
	"context"
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Stat implements vfs.Tree.
func (t *Tree) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	tree, n := t.side(ino)
	a, err := tree.Stat(ctx, n)
	if err != nil {
		return vfs.Attr{}, err
	}
	return t.show(ctx, tree == t.local, a)
}

// SetAttr implements vfs.Tree. The times of a shared directory are those of its box too.
func (t *Tree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	tree, n := t.side(ino)
	a, err := tree.SetAttr(ctx, n, set)
	if err != nil {
		return vfs.Attr{}, err
	}
	times := vfs.AttrSet{Mask: set.Mask & (vfs.SetMtime | vfs.SetMtimeNow), Mtime: set.Mtime}
	if box, ok := t.box(ino); ok && times.Mask != 0 {
		if _, err := t.local.SetAttr(ctx, box, times); err != nil && !errors.Is(err, vfs.ErrStale) {
			return vfs.Attr{}, err
		}
	}
	return t.show(ctx, tree == t.local, a)
}

// Readlink implements vfs.Tree.
func (t *Tree) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	tree, n := t.side(ino)
	return tree.Readlink(ctx, n)
}

// GetXattr implements vfs.Tree.
func (t *Tree) GetXattr(ctx context.Context, ino vfs.Ino, name string) ([]byte, error) {
	tree, n := t.side(ino)
	return tree.GetXattr(ctx, n, name)
}

// SetXattr implements vfs.Tree.
func (t *Tree) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags vfs.XattrFlags) error {
	tree, n := t.side(ino)
	return tree.SetXattr(ctx, n, name, value, flags)
}

// ListXattr implements vfs.Tree.
func (t *Tree) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	tree, n := t.side(ino)
	return tree.ListXattr(ctx, n)
}

// RemoveXattr implements vfs.Tree.
func (t *Tree) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	tree, n := t.side(ino)
	return tree.RemoveXattr(ctx, n, name)
}
