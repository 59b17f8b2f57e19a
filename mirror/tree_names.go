package mirror

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Create implements vfs.Tree.
func (t *Tree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayWrite(ctx); err != nil {
		return vfs.Attr{}, err
	}
	return t.Workspace.Create(ctx, dir, name, n)
}

// Mkdir implements vfs.Tree.
func (t *Tree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayWrite(ctx); err != nil {
		return vfs.Attr{}, err
	}
	return t.Workspace.Mkdir(ctx, dir, name, n)
}

// Mknod implements vfs.Tree.
func (t *Tree) Mknod(ctx context.Context, dir vfs.Ino, name string, typ vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayWrite(ctx); err != nil {
		return vfs.Attr{}, err
	}
	return t.Workspace.Mknod(ctx, dir, name, typ, n)
}

// Symlink implements vfs.Tree.
func (t *Tree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	if err := t.mayWrite(ctx); err != nil {
		return vfs.Attr{}, err
	}
	return t.Workspace.Symlink(ctx, dir, name, target, n)
}

// Link implements vfs.Tree.
func (t *Tree) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	if err := t.mayWrite(ctx); err != nil {
		return vfs.Attr{}, err
	}
	return t.Workspace.Link(ctx, ino, dir, name)
}

// Unlink implements vfs.Tree.
func (t *Tree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	if err := t.mayWrite(ctx); err != nil {
		return err
	}
	return t.Workspace.Unlink(ctx, dir, name)
}

// Rmdir implements vfs.Tree.
func (t *Tree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	if err := t.mayWrite(ctx); err != nil {
		return err
	}
	return t.Workspace.Rmdir(ctx, dir, name)
}

// Rename implements vfs.Tree.
func (t *Tree) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	if err := t.mayWrite(ctx); err != nil {
		return err
	}
	return t.Workspace.Rename(ctx, dir, name, newDir, newName, flags)
}

// SetXattr implements vfs.Tree.
func (t *Tree) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags vfs.XattrFlags) error {
	if err := t.mayWrite(ctx); err != nil {
		return err
	}
	return t.Workspace.SetXattr(ctx, ino, name, value, flags)
}

// RemoveXattr implements vfs.Tree.
func (t *Tree) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	if err := t.mayWrite(ctx); err != nil {
		return err
	}
	return t.Workspace.RemoveXattr(ctx, ino, name)
}
