package memtree

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// move is a Rename with its operands found.
type move struct {
	dir, newDir   *node
	name, newName string
	n             *node // what name leads to
	old           *node // what newName leads to, or nil
	flags         vfs.RenameFlags
}

// Rename implements [vfs.Tree]. Where several errors apply, the one that renameat2(2) gives on Linux wins.
func (t *Tree) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	err := t.rename(ctx, dir, name, newDir, newName, flags)
	if err != nil {
		return fmt.Errorf("rename %d/%q to %d/%q: %w", dir, name, newDir, newName, err)
	}
	return nil
}

func (t *Tree) rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	if err := vfs.CheckName(newName); err != nil {
		return err
	}
	if flags > vfs.RenameExchange { // both, or one there is not
		return vfs.ErrInvalid
	}
	return t.change(ctx, func(e *edit) (err error) {
		m := move{name: name, newName: newName, flags: flags}
		if m.dir, m.n, err = t.entryLocked(dir, name); err != nil {
			return err
		}
		if m.newDir, m.old, err = t.entryLocked(newDir, newName); err != nil {
			return err
		}
		if err := t.checkMoveLocked(&m); err != nil {
			return err
		}
		switch {
		case m.n == m.old: // two names of one inode, or one name
		case flags&vfs.RenameExchange != 0:
			e.exchange(&m)
		default:
			e.move(&m)
		}
		return nil
	})
}

func (t *Tree) checkMoveLocked(m *move) error {
	exchange := m.flags&vfs.RenameExchange != 0
	switch {
	case m.n == nil:
		return vfs.ErrNotExist
	case m.old != nil && m.flags&vfs.RenameNoReplace != 0:
		return vfs.ErrExist
	case m.old == nil && exchange:
		return vfs.ErrNotExist
	case t.isWithinLocked(m.newDir, m.n):
		return vfs.ErrInvalid
	case m.old == nil || m.old == m.n:
		return nil
	case exchange && t.isWithinLocked(m.dir, m.old):
		return vfs.ErrInvalid
	case exchange:
		return nil
	}
	return checkReplace(m.n, m.old)
}

// isWithinLocked reports whether dir is top or lies below it.
func (t *Tree) isWithinLocked(dir, top *node) bool {
	for dir != top {
		if dir.attr.Ino == vfs.RootIno {
			return false
		}
		dir = t.nodes[dir.attr.Parent]
	}
	return true
}

// checkReplace says whether n may take the place of old.
func checkReplace(n, old *node) error {
	isDir, oldIsDir := n.attr.Type == vfs.TypeDir, old.attr.Type == vfs.TypeDir
	switch {
	case isDir && !oldIsDir:
		return vfs.ErrNotDir
	case !isDir && oldIsDir:
		return vfs.ErrIsDir
	case oldIsDir && len(old.entries.byName) > 0:
		return vfs.ErrNotEmpty
	}
	return nil
}

// move gives m.n its new name, in the place of m.old where there is one.
func (e *edit) move(m *move) {
	if m.old != nil {
		e.unlink(m.newDir, m.old)
	}
	e.reparent(m.n, m.dir, m.newDir)
	e.clearName(m.dir, m.name)
	e.setName(m.newDir, m.newName, m.n)
	e.touchLinks(m.n)
	if m.old != nil {
		e.touchLinks(m.old)
	}
}

func (e *edit) exchange(m *move) {
	e.reparent(m.n, m.dir, m.newDir)
	e.reparent(m.old, m.newDir, m.dir)
	e.setName(m.dir, m.name, m.old)
	e.setName(m.newDir, m.newName, m.n)
	e.touchLinks(m.n)
	e.touchLinks(m.old)
}

// reparent follows the ".." of a directory that moves.
func (e *edit) reparent(n, from, to *node) {
	if n.attr.Type != vfs.TypeDir {
		return
	}
	from.attr.Nlink--
	to.attr.Nlink++
	n.attr.Parent = to.attr.Ino
}
