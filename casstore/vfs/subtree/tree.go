package subtree

import (
	"context"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Tree is a directory of another tree. Revisions, durability and the disk are those of the whole.
type Tree struct {
	whole vfs.Tree
	root  vfs.Ino
}

var (
	_ vfs.Tree         = (*Tree)(nil)
	_ vfs.WatchFlusher = (*Tree)(nil)
)

// Open returns the tree below a path, whose names are parted by '/': the whole one for its root. ErrNotExist when there is no such
// directory, ErrNotDir when it is none. Symlinks are not followed.
func Open(ctx context.Context, whole vfs.Tree, path string) (vfs.Tree, error) {
	dir := vfs.RootIno
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' }) {
		a, err := whole.Lookup(ctx, dir, name)
		if err == nil && a.Type != vfs.TypeDir {
			err = vfs.ErrNotDir
		}
		if err != nil {
			return nil, fmt.Errorf("subtree %q: %w", path, err)
		}
		dir = a.Ino
	}
	if dir == vfs.RootIno {
		return whole, nil
	}
	return &Tree{whole: whole, root: dir}, nil
}

// in is the number of an inode in the whole tree. That of the whole tree's root, which is none of ours, stands for our root.
func (t *Tree) in(ino vfs.Ino) vfs.Ino {
	if ino == vfs.RootIno {
		return t.root
	}
	return ino
}

// out is the inverse.
func (t *Tree) out(ino vfs.Ino) vfs.Ino {
	if ino == t.root {
		return vfs.RootIno
	}
	return ino
}

// shown is what is said of an inode.
func (t *Tree) shown(a vfs.Attr, err error) (vfs.Attr, error) {
	a.Ino, a.Parent = t.out(a.Ino), t.out(a.Parent)
	if a.Ino == vfs.RootIno {
		a.Parent = vfs.RootIno
	}
	return a, err
}

// Lookup implements vfs.Tree.
func (t *Tree) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	return t.shown(t.whole.Lookup(ctx, t.in(dir), name))
}

// Stat implements vfs.Tree.
func (t *Tree) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	return t.shown(t.whole.Stat(ctx, t.in(ino)))
}

// SetAttr implements vfs.Tree.
func (t *Tree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	return t.shown(t.whole.SetAttr(ctx, t.in(ino), set))
}

// ReadDir implements vfs.Tree.
func (t *Tree) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	return t.whole.ReadDir(ctx, t.in(dir), after, yield)
}

// Create implements vfs.Tree.
func (t *Tree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	return t.shown(t.whole.Create(ctx, t.in(dir), name, n))
}

// Mkdir implements vfs.Tree.
func (t *Tree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	return t.shown(t.whole.Mkdir(ctx, t.in(dir), name, n))
}

// Mknod implements vfs.Tree.
func (t *Tree) Mknod(ctx context.Context, dir vfs.Ino, name string, typ vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	return t.shown(t.whole.Mknod(ctx, t.in(dir), name, typ, n))
}

// Symlink implements vfs.Tree.
func (t *Tree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	return t.shown(t.whole.Symlink(ctx, t.in(dir), name, target, n))
}

// Link implements vfs.Tree.
func (t *Tree) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	return t.shown(t.whole.Link(ctx, t.in(ino), t.in(dir), name))
}

// Unlink implements vfs.Tree.
func (t *Tree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	return t.whole.Unlink(ctx, t.in(dir), name)
}

// Rmdir implements vfs.Tree.
func (t *Tree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	return t.whole.Rmdir(ctx, t.in(dir), name)
}

// Rename implements vfs.Tree.
func (t *Tree) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	return t.whole.Rename(ctx, t.in(dir), name, t.in(newDir), newName, flags)
}

// Readlink implements vfs.Tree.
func (t *Tree) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	return t.whole.Readlink(ctx, t.in(ino))
}

// ReadAt implements vfs.Tree.
func (t *Tree) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	return t.whole.ReadAt(ctx, t.in(ino), p, off)
}

// WriteAt implements vfs.Tree.
func (t *Tree) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	return t.whole.WriteAt(ctx, t.in(ino), p, off, killPriv)
}

// Allocate implements vfs.Tree.
func (t *Tree) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, n uint64) error {
	return t.whole.Allocate(ctx, t.in(ino), mode, off, n)
}

// CopyRange implements vfs.Tree.
func (t *Tree) CopyRange(ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64) (uint64, error) {
	return t.whole.CopyRange(ctx, t.in(src), off, t.in(dst), dstOff, n)
}

// Seek implements vfs.Tree.
func (t *Tree) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	return t.whole.Seek(ctx, t.in(ino), off, whence)
}

// GetXattr implements vfs.Tree.
func (t *Tree) GetXattr(ctx context.Context, ino vfs.Ino, name string) ([]byte, error) {
	return t.whole.GetXattr(ctx, t.in(ino), name)
}

// SetXattr implements vfs.Tree.
func (t *Tree) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags vfs.XattrFlags) error {
	return t.whole.SetXattr(ctx, t.in(ino), name, value, flags)
}

// ListXattr implements vfs.Tree.
func (t *Tree) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	return t.whole.ListXattr(ctx, t.in(ino))
}

// RemoveXattr implements vfs.Tree.
func (t *Tree) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	return t.whole.RemoveXattr(ctx, t.in(ino), name)
}

// Fsync implements vfs.Tree.
func (t *Tree) Fsync(ctx context.Context, ino vfs.Ino) error { return t.whole.Fsync(ctx, t.in(ino)) }

// Sync implements vfs.Tree.
func (t *Tree) Sync(ctx context.Context) error { return t.whole.Sync(ctx) }

// Commit implements vfs.Tree.
func (t *Tree) Commit(ctx context.Context) (vfs.Rev, error) { return t.whole.Commit(ctx) }

// StatFS implements vfs.Tree.
func (t *Tree) StatFS(ctx context.Context) (vfs.StatFS, error) { return t.whole.StatFS(ctx) }

// Hold implements vfs.Tree.
func (t *Tree) Hold(ino vfs.Ino) { t.whole.Hold(t.in(ino)) }

// Release implements vfs.Tree.
func (t *Tree) Release(ino vfs.Ino, n uint64) { t.whole.Release(t.in(ino), n) }

// Watch implements vfs.Tree. It tells of changes outside too, of inodes that nobody here has heard of: who could say of each where it
// is? But not of those of the whole tree's root, which has the number of ours.
func (t *Tree) Watch(skip any, f func(vfs.Change)) (stop func()) {
	return t.whole.Watch(skip, func(c vfs.Change) {
		if c.Dir == vfs.RootIno || c.Ino == vfs.RootIno {
			return
		}
		c.Dir, c.Ino = t.out(c.Dir), t.out(c.Ino)
		f(c)
	})
}

// FlushWatch implements vfs.WatchFlusher.
func (t *Tree) FlushWatch(ctx context.Context) error { return vfs.FlushWatch(ctx, t.whole) }
