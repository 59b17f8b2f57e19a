package localpath

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// entry is a name, and what it leads to, in the tree that it is of.
type entry struct {
	local bool
	dir   vfs.Ino
	name  string
	attr  vfs.Attr
}

func (e *entry) isDir() bool { return e.attr.Type == vfs.TypeDir }

// find returns what a name leads to.
func (t *Tree) find(ctx context.Context, dir vfs.Ino, name string) (e entry, err error) {
	e = entry{local: true, dir: dir &^ localBit, name: name}
	box, boxed := t.box(dir)
	if dir&localBit != 0 || boxed {
		if boxed {
			e.dir = box
		}
		e.attr, err = t.local.Lookup(ctx, e.dir, name)
		if !boxed || !errors.Is(err, vfs.ErrNotExist) {
			return e, err
		}
	}
	e.local, e.dir = false, dir
	if e.attr, err = t.shared.Lookup(ctx, dir, name); err != nil {
		return e, err
	}
	hidden, err := t.matches(ctx, dir, name, e.isDir())
	switch {
	case err != nil:
		return e, err
	case hidden:
		return e, fmt.Errorf("lookup %d/%q: %w", dir, name, vfs.ErrNotExist)
	}
	if e.isDir() {
		t.remember(e.attr.Ino, place{dir, name})
	}
	return e, nil
}

// where returns the tree in which a name is to be made, and the directory there.
func (t *Tree) where(ctx context.Context, dir vfs.Ino, name string, isDir bool) (local bool, at vfs.Ino, err error) {
	if err := vfs.CheckName(name); err != nil {
		return false, 0, err
	}
	if dir&localBit != 0 {
		return true, dir &^ localBit, nil
	}
	if local, err = t.matches(ctx, dir, name, isDir); err != nil || !local {
		return false, dir, err
	}
	at, err = t.needBox(ctx, dir)
	return true, at, err
}

// inherit gives what is to be made in the box of a shared directory what it has from the directory: in one with the set-group-ID bit its
// group, and if it is a directory the bit (inode(7)). The box itself has neither.
func (t *Tree) inherit(ctx context.Context, dir vfs.Ino, n vfs.NewNode, isDir bool) (vfs.NewNode, error) {
	a, err := t.shared.Stat(ctx, dir)
	if err == nil && a.Mode&vfs.ModeSetGID != 0 {
		n.GID = a.GID
		if isDir {
			n.Mode |= vfs.ModeSetGID
		}
	}
	return n, err
}

// maker makes a node in a directory of one of the trees.
type maker func(tree vfs.Tree, dir vfs.Ino, n vfs.NewNode) (vfs.Attr, error)

// make makes what f makes in a directory of one of the trees. ErrExist when the name is taken in the other one.
func (t *Tree) make(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode, isDir bool, f maker) (vfs.Attr, error) {
	local, at, err := t.where(ctx, dir, name, isDir)
	if err != nil {
		return vfs.Attr{}, fmt.Errorf("make %d/%q: %w", dir, name, err)
	}
	if e, err := t.find(ctx, dir, name); err == nil && e.local != local {
		return vfs.Attr{}, fmt.Errorf("make %d/%q: %w", dir, name, vfs.ErrExist)
	}
	if local && dir&localBit == 0 {
		if n, err = t.inherit(ctx, dir, n, isDir); err != nil {
			return vfs.Attr{}, fmt.Errorf("make %d/%q: %w", dir, name, err)
		}
	}
	a, err := f(t.tree(local), at, n)
	if err != nil {
		return vfs.Attr{}, err
	}
	if isDir && !local {
		t.remember(a.Ino, place{dir, name})
	}
	return t.show(ctx, local, a)
}

// Lookup implements vfs.Tree.
func (t *Tree) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	e, err := t.find(ctx, dir, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	return t.show(ctx, e.local, e.attr)
}

// Create implements vfs.Tree.
func (t *Tree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	return t.make(ctx, dir, name, n, false, func(tree vfs.Tree, dir vfs.Ino, n vfs.NewNode) (vfs.Attr, error) {
		return tree.Create(ctx, dir, name, n)
	})
}

// Mkdir implements vfs.Tree.
func (t *Tree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	return t.make(ctx, dir, name, n, true, func(tree vfs.Tree, dir vfs.Ino, n vfs.NewNode) (vfs.Attr, error) {
		return tree.Mkdir(ctx, dir, name, n)
	})
}

// Mknod implements vfs.Tree.
func (t *Tree) Mknod(ctx context.Context, dir vfs.Ino, name string, typ vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	return t.make(ctx, dir, name, n, false, func(tree vfs.Tree, dir vfs.Ino, n vfs.NewNode) (vfs.Attr, error) {
		return tree.Mknod(ctx, dir, name, typ, n)
	})
}

// Symlink implements vfs.Tree.
func (t *Tree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	return t.make(ctx, dir, name, n, false, func(tree vfs.Tree, dir vfs.Ino, n vfs.NewNode) (vfs.Attr, error) {
		return tree.Symlink(ctx, dir, name, target, n)
	})
}

// Link implements vfs.Tree. ErrNotPermitted also when the name is of the other tree than the file.
func (t *Tree) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	from, file := t.side(ino)
	return t.make(ctx, dir, name, vfs.NewNode{}, false, func(tree vfs.Tree, dir vfs.Ino, _ vfs.NewNode) (vfs.Attr, error) {
		if tree != from {
			if _, err := from.Stat(ctx, file); err != nil {
				return vfs.Attr{}, err
			}
			return vfs.Attr{}, fmt.Errorf("link %d to %q, of which one is local: %w", ino, name, vfs.ErrNotPermitted)
		}
		return tree.Link(ctx, file, dir, name)
	})
}

// Unlink implements vfs.Tree.
func (t *Tree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	e, err := t.find(ctx, dir, name)
	if err != nil {
		return err
	}
	return t.tree(e.local).Unlink(ctx, e.dir, name)
}

// Rmdir implements vfs.Tree. A directory in which something is hidden is not empty.
func (t *Tree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	e, err := t.find(ctx, dir, name)
	if err != nil {
		return err
	}
	if !e.local && e.isDir() {
		if err := t.dropBox(ctx, e.attr.Ino); err != nil {
			return err
		}
	}
	return t.tree(e.local).Rmdir(ctx, e.dir, name)
}

// Rename implements vfs.Tree. ErrInvalid also when two names are to be exchanged and one of them is local.
func (t *Tree) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	if both := vfs.RenameNoReplace | vfs.RenameExchange; flags&^both != 0 || flags == both {
		return fmt.Errorf("rename with flags %d: %w", flags, vfs.ErrInvalid)
	}
	if dir&newDir&localBit != 0 {
		return t.local.Rename(ctx, dir&^localBit, name, newDir&^localBit, newName, flags)
	}
	e, err := t.find(ctx, dir, name)
	if err != nil {
		return err
	}
	if flags&vfs.RenameExchange != 0 {
		return t.exchange(ctx, e, dir, newDir, newName, flags)
	}
	old, err := t.find(ctx, newDir, newName)
	exists := err == nil
	if !exists && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	to := target{local: old.local, dir: old.dir, name: newName}
	if !exists || old.isDir() != e.isDir() {
		if to.local, to.dir, err = t.where(ctx, newDir, newName, e.isDir()); err != nil {
			return fmt.Errorf("rename to %d/%q: %w", newDir, newName, err)
		}
	}
	if exists {
		if err := t.makeWay(ctx, e, old, to.local, flags); err != nil {
			return fmt.Errorf("rename to %d/%q: %w", newDir, newName, err)
		}
	}
	if e.local != to.local {
		return t.move(ctx, dir, e, newDir, to, flags)
	}
	return t.tree(e.local).Rename(ctx, e.dir, name, to.dir, newName, flags)
}

// target is where something is to get a name, in the tree that it is of.
type target struct {
	local bool
	dir   vfs.Ino
	name  string
}

// makeWay returns an error when old, which has the new name of e, cannot be replaced by it, as far as the tree that e goes to does
// not see that by itself.
func (t *Tree) makeWay(ctx context.Context, e, old entry, local bool, flags vfs.RenameFlags) error {
	same := e.local == old.local && e.attr.Ino == old.attr.Ino
	switch {
	case old.local == local && (local || !old.isDir() || same):
		return nil
	case flags&vfs.RenameNoReplace != 0:
		return vfs.ErrExist
	case e.isDir() && !old.isDir():
		return vfs.ErrNotDir
	case !e.isDir():
		return vfs.ErrIsDir
	}
	return t.dropBox(ctx, old.attr.Ino)
}

// exchange swaps two names of one tree that stay in it.
func (t *Tree) exchange(
	ctx context.Context, e entry, dir, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	other, err := t.find(ctx, newDir, newName)
	if err != nil {
		return err
	}
	there, _, err := t.where(ctx, newDir, newName, e.isDir())
	if err != nil {
		return err
	}
	here, _, err := t.where(ctx, dir, e.name, other.isDir())
	if err != nil {
		return err
	}
	if e.local != other.local || e.local != there || e.local != here {
		return fmt.Errorf("exchange %d/%q with %q, of which one is local: %w", dir, e.name, newName, vfs.ErrInvalid)
	}
	return t.tree(e.local).Rename(ctx, e.dir, e.name, other.dir, newName, flags)
}

// ReadDir implements vfs.Tree.
func (t *Tree) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	if dir&localBit != 0 {
		return t.local.ReadDir(ctx, dir&^localBit, after, func(d vfs.Dirent) bool {
			d.Ino |= localBit
			return yield(d)
		})
	}
	box, boxed := t.box(dir)
	if !boxed {
		return t.readShared(ctx, dir, after, yield)
	}
	return t.readBoth(ctx, dir, box, after, yield)
}

// readShared yields what a shared directory has and is not hidden.
func (t *Tree) readShared(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	var failed error
	err := t.shared.ReadDir(ctx, dir, after, func(d vfs.Dirent) bool {
		hidden, err := t.matches(ctx, dir, d.Name, d.Type == vfs.TypeDir)
		if err != nil {
			failed = err
			return false
		}
		return hidden || yield(d)
	})
	return errors.Join(err, failed)
}

// readBoth yields what a shared directory and its box have, in the order of their offsets.
func (t *Tree) readBoth(ctx context.Context, dir, box vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	var failed error
	next, stop := iter.Pull(func(yield func(vfs.Dirent) bool) { failed = t.local.ReadDir(ctx, box, after, yield) })
	defer stop()
	mine, ok := next()
	goOn := true
	upTo := func(at vfs.Offset) {
		for goOn && ok && mine.Offset <= at {
			mine.Ino |= localBit
			goOn = yield(mine)
			mine, ok = next()
		}
	}
	err := t.readShared(ctx, dir, after, func(d vfs.Dirent) bool {
		if upTo(d.Offset); !goOn {
			return false
		}
		if _, err := t.local.Lookup(ctx, box, d.Name); err == nil {
			return true // the local one has the name
		}
		goOn = yield(d)
		return goOn
	})
	if err == nil {
		upTo(1 << 63)
	}
	if errors.Is(failed, vfs.ErrStale) {
		failed = nil // the box has just gone
	}
	return errors.Join(err, failed)
}
