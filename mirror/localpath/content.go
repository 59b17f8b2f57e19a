package localpath

import (
	"context"
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ReadAt implements vfs.Tree.
func (t *Tree) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	tree, n := t.side(ino)
	return tree.ReadAt(ctx, n, p, off)
}

// WriteAt implements vfs.Tree.
func (t *Tree) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	tree, n := t.side(ino)
	return tree.WriteAt(ctx, n, p, off, killPriv)
}

// Allocate implements vfs.Tree.
func (t *Tree) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, n uint64) error {
	tree, file := t.side(ino)
	return tree.Allocate(ctx, file, mode, off, n)
}

// CopyRange implements vfs.Tree. From one tree to the other bytes are read and written.
func (t *Tree) CopyRange(ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64) (uint64, error) {
	from, a := t.side(src)
	to, b := t.side(dst)
	if from != to {
		return vfs.CopyBytes(ctx, t, src, off, dst, dstOff, n)
	}
	return from.CopyRange(ctx, a, off, b, dstOff, n)
}

// Seek implements vfs.Tree.
func (t *Tree) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	tree, n := t.side(ino)
	return tree.Seek(ctx, n, off, whence)
}

// Fsync implements vfs.Tree. What a shared directory is to hold is in its box too.
func (t *Tree) Fsync(ctx context.Context, ino vfs.Ino) error {
	tree, n := t.side(ino)
	err := tree.Fsync(ctx, n)
	if box, ok := t.box(ino); ok && err == nil {
		if err = t.local.Fsync(ctx, box); errors.Is(err, vfs.ErrStale) {
			err = nil // it has just gone
		}
	}
	return err
}

// Sync implements vfs.Tree.
func (t *Tree) Sync(ctx context.Context) error {
	_, err := t.Commit(ctx)
	return err
}

// Commit implements vfs.Tree. Its revision is one of neither tree, but of both: it grows when one of theirs does.
func (t *Tree) Commit(ctx context.Context) (vfs.Rev, error) {
	local, err := t.local.Commit(ctx)
	if err != nil {
		return 0, err
	}
	shared, err := t.shared.Commit(ctx)
	return local + shared, err
}

// StatFS implements vfs.Tree: both are on one disk, and what there is of quotas is the shared tree's.
func (t *Tree) StatFS(ctx context.Context) (vfs.StatFS, error) { return t.shared.StatFS(ctx) }

// Hold implements vfs.Tree.
func (t *Tree) Hold(ino vfs.Ino) {
	tree, n := t.side(ino)
	tree.Hold(n)
}

// Release implements vfs.Tree.
func (t *Tree) Release(ino vfs.Ino, n uint64) {
	tree, file := t.side(ino)
	tree.Release(file, n)
}
