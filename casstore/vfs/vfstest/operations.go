package vfstest

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// operation is one method of a tree, cut down to the arguments that the tests of arguments vary.
type operation[F any] struct {
	name    string
	changes bool // the tree
	call    F
}

// onName is an operation on a name in a directory; source is the name of a file in the directory work, for operations
// that need one beside.
type onName func(ctx context.Context, tree vfs.Tree, dir vfs.Ino, name string, work vfs.Ino, source string) error

// onInode is an operation on an inode, which succeeds on a regular file that holds bytes and has the attribute
// "user.present".
type onInode func(ctx context.Context, tree vfs.Tree, ino vfs.Ino) error

var nameOperations = []operation[onName]{
	{"Lookup", false, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, _ vfs.Ino, _ string) error {
		_, err := t.Lookup(ctx, dir, name)
		return err
	}},
	{"Create", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, _ vfs.Ino, _ string) error {
		_, err := t.Create(ctx, dir, name, fileNode)
		return err
	}},
	{"Mkdir", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, _ vfs.Ino, _ string) error {
		_, err := t.Mkdir(ctx, dir, name, dirNode)
		return err
	}},
	{"Mknod", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, _ vfs.Ino, _ string) error {
		_, err := t.Mknod(ctx, dir, name, vfs.TypeFIFO, fileNode)
		return err
	}},
	{"Symlink", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, _ vfs.Ino, _ string) error {
		_, err := t.Symlink(ctx, dir, name, "target", fileNode)
		return err
	}},
	{"Link", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, work vfs.Ino, source string) error {
		a, err := t.Lookup(ctx, work, source)
		if err != nil {
			return err
		}
		_, err = t.Link(ctx, a.Ino, dir, name)
		return err
	}},
	{"Unlink", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, _ vfs.Ino, _ string) error {
		return t.Unlink(ctx, dir, name)
	}},
	{"Rmdir", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, _ vfs.Ino, _ string) error {
		return t.Rmdir(ctx, dir, name)
	}},
	{"RenameFrom", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, work vfs.Ino, _ string) error {
		return t.Rename(ctx, dir, name, work, "renamed", 0)
	}},
	{"RenameTo", true, func(ctx context.Context, t vfs.Tree, dir vfs.Ino, name string, work vfs.Ino, source string) error {
		return t.Rename(ctx, work, source, dir, name, 0)
	}},
}

var inodeOperations = []operation[onInode]{
	{"Stat", false, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.Stat(ctx, ino)
		return err
	}},
	{"SetAttr", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.SetAttr(ctx, ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o600})
		return err
	}},
	{"Truncate", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.SetAttr(ctx, ino, vfs.AttrSet{Mask: vfs.SetSize, Size: 1})
		return err
	}},
	{"ReadAt", false, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.ReadAt(ctx, ino, make([]byte, 1), 0)
		return err
	}},
	{"WriteAt", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		return t.WriteAt(ctx, ino, []byte("overwritten"), 0, true)
	}},
	{"Allocate", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		return t.Allocate(ctx, ino, 0, 0, 1<<20)
	}},
	{"PunchHole", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		return t.Allocate(ctx, ino, vfs.AllocPunchHole, 0, 1)
	}},
	{"Seek", false, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.Seek(ctx, ino, 0, vfs.SeekHole)
		return err
	}},
	{"GetXattr", false, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.GetXattr(ctx, ino, "user.present")
		return err
	}},
	{"SetXattr", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		return t.SetXattr(ctx, ino, "user.new", []byte("value"), 0)
	}},
	{"ListXattr", false, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.ListXattr(ctx, ino)
		return err
	}},
	{"RemoveXattr", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		return t.RemoveXattr(ctx, ino, "user.present")
	}},
	{"Fsync", false, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		return t.Fsync(ctx, ino)
	}},
	{"LinkFrom", true, func(ctx context.Context, t vfs.Tree, ino vfs.Ino) error {
		_, err := t.Link(ctx, ino, vfs.RootIno, "linked")
		return err
	}},
}

// treeOperations take no operand.
var treeOperations = []operation[func(ctx context.Context, tree vfs.Tree) error]{
	{"Sync", false, func(ctx context.Context, t vfs.Tree) error { return t.Sync(ctx) }},
	{"Commit", false, func(ctx context.Context, t vfs.Tree) error {
		_, err := t.Commit(ctx)
		return err
	}},
	{"StatFS", false, func(ctx context.Context, t vfs.Tree) error {
		_, err := t.StatFS(ctx)
		return err
	}},
}
