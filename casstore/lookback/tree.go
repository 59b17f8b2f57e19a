package lookback

import (
	"context"
	"errors"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Name is the name of the directory, in the root.
const Name = ".carrel"

// Tree is a tree with the directory in its root. It implements vfs.Tree, and is to be closed before the tree below is.
// What is not below .carrel goes to that tree as it comes.
type Tree struct {
	vfs.Tree
	dir *directory
}

var (
	_ vfs.Tree         = (*Tree)(nil)
	_ vfs.Volatile     = (*Tree)(nil)
	_ vfs.WatchFlusher = (*Tree)(nil)
)

// New puts the directory into a tree.
func New(tree vfs.Tree, past Past) *Tree {
	return &Tree{tree, &directory{base: tree, past: past, made: past.Changed(), shelf: newShelf(past.Open)}}
}

// Over is New for a tree of a store. In one of which nothing else is known, rev is what Commit returns, and there are no
// snapshots.
func Over(tree vfs.Tree) *Tree {
	if h, ok := tree.(Historic); ok {
		return New(tree, PastOf(h, h.Commit))
	}
	return New(tree, unknown{tree})
}

// unknown is the past of a tree that has none.
type unknown struct{ tree vfs.Tree }

func (u unknown) Rev(ctx context.Context) (vfs.Rev, error) { return u.tree.Commit(ctx) }

func (unknown) Snapshots(context.Context) ([]casstore.Snapshot, error) { return nil, nil }

func (unknown) Snapshot(context.Context, string) (casstore.Snapshot, error) {
	return casstore.Snapshot{}, vfs.ErrNoRevision
}

func (unknown) Changed() vfs.Time { return 0 }

func (unknown) Open(context.Context, casstore.Snapshot) (Snapshot, error) {
	return nil, vfs.ErrNoRevision
}

// Close closes the snapshots that are open. The tree below stays open.
func (t *Tree) Close() error { return t.dir.shelf.close() }

// Volatile implements vfs.Volatile.
func (t *Tree) Volatile(ino vfs.Ino) bool { return ino == selfIno || ino == snapshotsIno }

// FlushWatch implements vfs.WatchFlusher.
func (t *Tree) FlushWatch(ctx context.Context) error { return vfs.FlushWatch(ctx, t.Tree) }

// taken reports whether a name in a directory is the one of .carrel, and not of an entry that the workspace has.
func (t *Tree) taken(ctx context.Context, dir vfs.Ino, name string) (bool, error) {
	if dir != vfs.RootIno || name != Name {
		return false, nil
	}
	_, err := t.Tree.Lookup(ctx, dir, name)
	if errors.Is(err, vfs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// refuse returns why an inode below .carrel cannot be changed.
func (t *Tree) refuse(ctx context.Context, ino vfs.Ino) error {
	if _, err := t.dir.stat(ctx, ino); err != nil {
		return err
	}
	return vfs.ErrReadOnly
}

// mayMake returns why a name cannot be made in a directory, or nil when the tree below is to say.
func (t *Tree) mayMake(ctx context.Context, dir vfs.Ino, name string) error {
	if isBelow(dir) {
		return t.refuse(ctx, dir)
	}
	taken, err := t.taken(ctx, dir, name)
	if taken {
		err = vfs.ErrExist
	}
	return err
}

// mayRemove is mayMake for a name that is to be removed, or to be put in the place of.
func (t *Tree) mayRemove(ctx context.Context, dir vfs.Ino, name string) error {
	if isBelow(dir) {
		return t.refuse(ctx, dir)
	}
	taken, err := t.taken(ctx, dir, name)
	if taken {
		err = vfs.ErrReadOnly
	}
	return err
}
