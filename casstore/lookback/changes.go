package lookback

import (
	"cmp"
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// SetAttr implements vfs.Tree.
func (t *Tree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	if isBelow(ino) {
		return vfs.Attr{}, t.refuse(ctx, ino)
	}
	return t.Tree.SetAttr(ctx, ino, set)
}

// Create implements vfs.Tree.
func (t *Tree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayMake(ctx, dir, name); err != nil {
		return vfs.Attr{}, err
	}
	return t.Tree.Create(ctx, dir, name, n)
}

// Mkdir implements vfs.Tree.
func (t *Tree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayMake(ctx, dir, name); err != nil {
		return vfs.Attr{}, err
	}
	return t.Tree.Mkdir(ctx, dir, name, n)
}

// Mknod implements vfs.Tree.
func (t *Tree) Mknod(ctx context.Context, dir vfs.Ino, name string, of vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayMake(ctx, dir, name); err != nil {
		return vfs.Attr{}, err
	}
	return t.Tree.Mknod(ctx, dir, name, of, n)
}

// Symlink implements vfs.Tree.
func (t *Tree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayMake(ctx, dir, name); err != nil {
		return vfs.Attr{}, err
	}
	return t.Tree.Symlink(ctx, dir, name, target, n)
}

// Link implements vfs.Tree. What is in a snapshot gets no name elsewhere: vfs.ErrNotPermitted, as on filesystems without hard
// links, which programs answer with a copy.
func (t *Tree) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	if err := t.mayMake(ctx, dir, name); err != nil {
		return vfs.Attr{}, err
	}
	if isBelow(ino) {
		_, err := t.dir.stat(ctx, ino)
		return vfs.Attr{}, cmp.Or(err, vfs.ErrNotPermitted)
	}
	return t.Tree.Link(ctx, ino, dir, name)
}

// Unlink implements vfs.Tree.
func (t *Tree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	if err := t.mayRemove(ctx, dir, name); err != nil {
		return err
	}
	return t.Tree.Unlink(ctx, dir, name)
}

// Rmdir implements vfs.Tree.
func (t *Tree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	if err := t.mayRemove(ctx, dir, name); err != nil {
		return err
	}
	return t.Tree.Rmdir(ctx, dir, name)
}

// Rename implements vfs.Tree.
func (t *Tree) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	if err := t.mayRemove(ctx, dir, name); err != nil {
		return err
	}
	if err := t.mayRemove(ctx, newDir, newName); err != nil {
		return err
	}
	return t.Tree.Rename(ctx, dir, name, newDir, newName, flags)
}

// WriteAt implements vfs.Tree.
func (t *Tree) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	if isBelow(ino) {
		return t.refuse(ctx, ino)
	}
	return t.Tree.WriteAt(ctx, ino, p, off, killPriv)
}

// Allocate implements vfs.Tree.
func (t *Tree) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, n uint64) error {
	if isBelow(ino) {
		return t.refuse(ctx, ino)
	}
	return t.Tree.Allocate(ctx, ino, mode, off, n)
}

// CopyRange implements vfs.Tree. Bytes of a snapshot are read and written: they become the chunks that are stored already.
func (t *Tree) CopyRange(ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64) (uint64, error) {
	switch {
	case isBelow(dst):
		return 0, t.refuse(ctx, dst)
	case isBelow(src):
		vfs.WillBlock(ctx)
		return vfs.CopyBytes(ctx, t, src, off, dst, dstOff, n)
	}
	return t.Tree.CopyRange(ctx, src, off, dst, dstOff, n)
}

// SetXattr implements vfs.Tree.
func (t *Tree) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags vfs.XattrFlags) error {
	if isBelow(ino) {
		return t.refuse(ctx, ino)
	}
	return t.Tree.SetXattr(ctx, ino, name, value, flags)
}

// RemoveXattr implements vfs.Tree.
func (t *Tree) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	if isBelow(ino) {
		return t.refuse(ctx, ino)
	}
	return t.Tree.RemoveXattr(ctx, ino, name)
}
