package shell

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/memtree"
)

// tmpName is the directory in the root that is not the workspace's: what a script leaves there is gone with it.
const tmpName = "tmp"

// tmpBit marks the inodes of the tree that is below /tmp, whose own root is the directory.
const tmpBit vfs.Ino = 1 << 62

const tmpRoot = tmpBit | vfs.RootIno

// tmpTree puts a tree in memory under /tmp of another. An operation that is about both gives ErrNotSupported, as a link
// or rename between filesystems gives EXDEV.
type tmpTree struct {
	vfs.Tree
	root vfs.Ino
	tmp  *memtree.Tree
}

func newTmpTree(t vfs.Tree, root vfs.Ino, bytes int64) *tmpTree {
	var options []memtree.Option
	if bytes > 0 {
		options = append(options, memtree.WithCapacity(uint64(bytes)))
	}
	tmp := memtree.NewTree(options...)
	mode := vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o777 | vfs.ModeSticky}
	_, _ = tmp.SetAttr(context.Background(), vfs.RootIno, mode) // a tree of our own in memory refuses nothing
	return &tmpTree{t, root, tmp}
}

// of returns the tree of an inode and the number that the inode has there.
func (t *tmpTree) of(ino vfs.Ino) (vfs.Tree, vfs.Ino) {
	if ino&tmpBit != 0 && ino&(1<<63) == 0 {
		return t.tmp, ino &^ tmpBit
	}
	return t.Tree, ino
}

// attr gives attributes the number that they have here.
func (t *tmpTree) attr(from vfs.Tree, a vfs.Attr, err error) (vfs.Attr, error) {
	if from == vfs.Tree(t.tmp) && err == nil {
		a.Ino |= tmpBit
		switch {
		case a.Ino == tmpRoot:
			a.Parent = t.root
		case a.Parent != 0:
			a.Parent |= tmpBit
		}
	}
	return a, err
}

// isTmp reports whether a name is the directory itself, which nobody can remove or replace.
func (t *tmpTree) isTmp(dir vfs.Ino, name string) bool { return dir == t.root && name == tmpName }

func (t *tmpTree) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	if t.isTmp(dir, name) {
		return t.Stat(ctx, tmpRoot)
	}
	in, ino := t.of(dir)
	a, err := in.Lookup(ctx, ino, name)
	return t.attr(in, a, err)
}

func (t *tmpTree) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	in, n := t.of(ino)
	a, err := in.Stat(ctx, n)
	return t.attr(in, a, err)
}

func (t *tmpTree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	in, n := t.of(ino)
	a, err := in.SetAttr(ctx, n, set)
	return t.attr(in, a, err)
}

func (t *tmpTree) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	in, n := t.of(dir)
	return in.ReadDir(ctx, n, after, func(d vfs.Dirent) bool {
		switch {
		case n != dir:
			d.Ino |= tmpBit
		case t.isTmp(dir, d.Name):
			d.Ino, d.Type = tmpRoot, vfs.TypeDir
		}
		return yield(d)
	})
}

func (t *tmpTree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if t.isTmp(dir, name) {
		return vfs.Attr{}, vfs.ErrExist
	}
	in, ino := t.of(dir)
	a, err := in.Create(ctx, ino, name, n)
	return t.attr(in, a, err)
}

func (t *tmpTree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if t.isTmp(dir, name) {
		return vfs.Attr{}, vfs.ErrExist
	}
	in, ino := t.of(dir)
	a, err := in.Mkdir(ctx, ino, name, n)
	return t.attr(in, a, err)
}

func (t *tmpTree) Mknod(ctx context.Context, dir vfs.Ino, name string, kind vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	if t.isTmp(dir, name) {
		return vfs.Attr{}, vfs.ErrExist
	}
	in, ino := t.of(dir)
	a, err := in.Mknod(ctx, ino, name, kind, n)
	return t.attr(in, a, err)
}

func (t *tmpTree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	if t.isTmp(dir, name) {
		return vfs.Attr{}, vfs.ErrExist
	}
	in, ino := t.of(dir)
	a, err := in.Symlink(ctx, ino, name, target, n)
	return t.attr(in, a, err)
}

func (t *tmpTree) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	from, n := t.of(ino)
	in, d := t.of(dir)
	switch {
	case t.isTmp(dir, name):
		return vfs.Attr{}, vfs.ErrExist
	case from != in:
		return vfs.Attr{}, vfs.ErrNotSupported
	}
	a, err := in.Link(ctx, n, d, name)
	return t.attr(in, a, err)
}

func (t *tmpTree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	if t.isTmp(dir, name) {
		return vfs.ErrIsDir
	}
	in, ino := t.of(dir)
	return in.Unlink(ctx, ino, name)
}

func (t *tmpTree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	if t.isTmp(dir, name) {
		return vfs.ErrBusy
	}
	in, ino := t.of(dir)
	return in.Rmdir(ctx, ino, name)
}

func (t *tmpTree) Rename(ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags) error {
	from, a := t.of(dir)
	to, b := t.of(newDir)
	switch {
	case t.isTmp(dir, name) || t.isTmp(newDir, newName):
		return vfs.ErrBusy
	case from != to:
		return vfs.ErrNotSupported
	}
	return from.Rename(ctx, a, name, b, newName, flags)
}

func (t *tmpTree) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	in, n := t.of(ino)
	return in.Readlink(ctx, n)
}

func (t *tmpTree) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	in, n := t.of(ino)
	return in.ReadAt(ctx, n, p, off)
}

func (t *tmpTree) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	in, n := t.of(ino)
	return in.WriteAt(ctx, n, p, off, killPriv)
}

func (t *tmpTree) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, size uint64) error {
	in, n := t.of(ino)
	return in.Allocate(ctx, n, mode, off, size)
}

func (t *tmpTree) CopyRange(ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, size uint64) (uint64, error) {
	from, a := t.of(src)
	to, b := t.of(dst)
	if from != to {
		return vfs.CopyBytes(ctx, t, src, off, dst, dstOff, size)
	}
	return from.CopyRange(ctx, a, off, b, dstOff, size)
}

func (t *tmpTree) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	in, n := t.of(ino)
	return in.Seek(ctx, n, off, whence)
}

func (t *tmpTree) GetXattr(ctx context.Context, ino vfs.Ino, name string) ([]byte, error) {
	in, n := t.of(ino)
	return in.GetXattr(ctx, n, name)
}

func (t *tmpTree) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags vfs.XattrFlags) error {
	in, n := t.of(ino)
	return in.SetXattr(ctx, n, name, value, flags)
}

func (t *tmpTree) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	in, n := t.of(ino)
	return in.ListXattr(ctx, n)
}

func (t *tmpTree) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	in, n := t.of(ino)
	return in.RemoveXattr(ctx, n, name)
}

func (t *tmpTree) Fsync(ctx context.Context, ino vfs.Ino) error {
	in, n := t.of(ino)
	return in.Fsync(ctx, n)
}

func (t *tmpTree) Hold(ino vfs.Ino) {
	in, n := t.of(ino)
	in.Hold(n)
}

func (t *tmpTree) Release(ino vfs.Ino, count uint64) {
	in, n := t.of(ino)
	in.Release(n, count)
}
