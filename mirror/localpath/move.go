package localpath

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// stagePrefix begins the names of what is copied, until it is whole.
const stagePrefix = ".carrel-moving-"

// mover moves something from one tree to the other.
type mover struct {
	*Tree
	linked map[linkKey]vfs.Ino  // the copies of files with several names
	copied map[vfs.Ino]vfs.Time // what is copied, as presented, and its mtime at that time
}

// linkKey is a file and the tree that it is copied to: what is moved may go to both.
type linkKey struct {
	file  vfs.Ino
	local bool
}

// move renames an entry of a directory to a name of the other tree. All that it does is told to every watcher, also to the one on
// whose behalf it is done: what has the name now is another inode.
func (t *Tree) move(
	ctx context.Context, dir vfs.Ino, e entry, newDir vfs.Ino, to target, flags vfs.RenameFlags,
) error {
	ctx = vfs.WithOrigin(ctx, t)
	a, err := t.show(ctx, e.local, e.attr)
	if err != nil {
		return err
	}
	if err := t.checkLoop(ctx, a.Ino, newDir); err != nil {
		return err
	}
	var path []string // that it will have
	if !to.local && t.rules.anchored {
		if path, err = t.path(ctx, newDir); err != nil {
			return err
		}
	}
	m := &mover{Tree: t, linked: make(map[linkKey]vfs.Ino), copied: make(map[vfs.Ino]vfs.Time)}
	if err := m.place(ctx, a, append(path, to.name), to, flags); err != nil {
		return fmt.Errorf("move %d/%q to %d/%q: %w", dir, e.name, newDir, to.name, err)
	}
	if err := m.remove(context.WithoutCancel(ctx), dir, e.name); err != nil { // it is there twice
		return fmt.Errorf("move %d/%q to %d/%q, where it is now: remove: %w", dir, e.name, newDir, to.name, err)
	}
	return nil
}

// checkLoop returns ErrInvalid when a directory is to go into itself.
func (t *Tree) checkLoop(ctx context.Context, moved, dir vfs.Ino) error {
	for range maxDepth {
		if dir == moved {
			return fmt.Errorf("directory %d into itself: %w", moved, vfs.ErrInvalid)
		}
		if dir == vfs.RootIno {
			return nil
		}
		a, err := t.Stat(ctx, dir)
		if err != nil {
			return err
		}
		dir = a.Parent
	}
	return vfs.ErrInvalid
}

// place copies what is to be moved, and puts it in its place when it is whole. In the local tree it is copied out of sight; in the
// shared one there is no such place.
func (m *mover) place(ctx context.Context, a vfs.Attr, path []string, to target, flags vfs.RenameFlags) error {
	tree, stage := m.tree(to.local), target{local: to.local, dir: to.dir, name: stagePrefix + rand.Text()}
	if to.local {
		stage.dir = vfs.RootIno
	}
	err := m.copy(ctx, a, path, stage)
	if err == nil {
		err = tree.Rename(ctx, stage.dir, stage.name, to.dir, to.name, flags)
	}
	if err != nil {
		ctx := context.WithoutCancel(ctx)
		return errors.Join(err, m.sweepBoxes(ctx, stage), removeAll(ctx, tree, stage.dir, stage.name))
	}
	return nil
}

// sweepBoxes takes away the boxes of what has been copied in vain.
func (m *mover) sweepBoxes(ctx context.Context, stage target) error {
	if stage.local {
		return nil // there are none below
	}
	a, err := m.shared.Lookup(ctx, stage.dir, stage.name)
	if err != nil || a.Type != vfs.TypeDir {
		return nil
	}
	return walk(ctx, m.shared, a.Ino, func(dir vfs.Ino) error {
		box, boxed := m.box(dir)
		if !boxed {
			return nil
		}
		defer m.forget(dir, box)
		return removeAll(ctx, m.local, vfs.RootIno, boxName(dir))
	})
}

// copy copies a node as presented, and all that is in it, to where it belongs: what is moved to the shared tree may have local
// entries. path is the one that it will have.
func (m *mover) copy(ctx context.Context, a vfs.Attr, path []string, to target) error {
	tree, key := m.tree(to.local), linkKey{a.Ino, to.local}
	m.copied[a.Ino] = a.Mtime
	if file, ok := m.linked[key]; ok {
		_, err := tree.Link(ctx, file, to.dir, to.name)
		return err
	}
	made, err := m.makeLike(ctx, tree, a, to)
	if err != nil {
		return err
	}
	shown := made
	if to.local {
		shown |= localBit
	}
	switch {
	case a.Type == vfs.TypeDir:
		err = m.copyEntries(ctx, a, path, to.local, made)
	case a.Type == vfs.TypeRegular:
		err = m.copyBytes(ctx, a, shown)
	}
	if a.Type != vfs.TypeDir && a.Nlink > 1 {
		m.linked[key] = made
	}
	if err == nil {
		err = m.copyXattrs(ctx, a.Ino, shown)
	}
	if err != nil {
		return err
	}
	set := vfs.AttrSet{
		Mask: vfs.SetMode | vfs.SetUID | vfs.SetGID | vfs.SetAtime | vfs.SetMtime,
		Mode: a.Mode, UID: a.UID, GID: a.GID, Atime: a.Atime, Mtime: a.Mtime,
	}
	if a.Type == vfs.TypeSymlink {
		set.Mask &^= vfs.SetMode
	}
	_, err = m.SetAttr(ctx, shown, set)
	return err
}

// makeLike makes a node of the same type, without anything in it.
func (m *mover) makeLike(ctx context.Context, tree vfs.Tree, a vfs.Attr, to target) (vfs.Ino, error) {
	n := vfs.NewNode{Mode: a.Mode, UID: a.UID, GID: a.GID, Rdev: a.Rdev}
	var made vfs.Attr
	var err error
	switch a.Type {
	case vfs.TypeDir:
		made, err = tree.Mkdir(ctx, to.dir, to.name, n)
	case vfs.TypeRegular:
		made, err = tree.Create(ctx, to.dir, to.name, n)
	case vfs.TypeSymlink:
		var text string
		if text, err = m.Readlink(ctx, a.Ino); err == nil {
			made, err = tree.Symlink(ctx, to.dir, to.name, text, n)
		}
	default:
		made, err = tree.Mknod(ctx, to.dir, to.name, a.Type, n)
	}
	return made.Ino, err
}

// copyEntries copies what is in a directory. ErrNotEmpty when something is hidden in it: it could not be removed afterwards.
func (m *mover) copyEntries(ctx context.Context, dir vfs.Attr, path []string, local bool, made vfs.Ino) error {
	if dir.Ino&localBit == 0 {
		if err := m.nothingHidden(ctx, dir.Ino); err != nil {
			return err
		}
	}
	names, err := namesIn(ctx, m.Tree, dir.Ino)
	if err != nil {
		return err
	}
	for _, name := range names {
		a, err := m.Lookup(ctx, dir.Ino, name)
		if errors.Is(err, vfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		below := append(path[:len(path):len(path)], name)
		to := target{local: local, dir: made, name: name}
		if !local && m.rules.match(below, a.Type == vfs.TypeDir) {
			to.local = true
			if to.dir, err = m.needBox(ctx, made); err != nil {
				return err
			}
		}
		if err := m.copy(ctx, a, below, to); err != nil {
			return err
		}
	}
	return nil
}

// nothingHidden returns ErrNotEmpty when a shared directory has entries that are not presented.
func (m *mover) nothingHidden(ctx context.Context, dir vfs.Ino) error {
	names, err := namesIn(ctx, m.shared, dir)
	for _, name := range names {
		if err != nil {
			break
		}
		e, findErr := m.find(ctx, dir, name)
		if e.local || errors.Is(findErr, vfs.ErrNotExist) {
			err = fmt.Errorf("%q in directory %d is others' and not shown: %w", name, dir, vfs.ErrNotEmpty)
		}
	}
	return err
}

// copyBytes copies the bytes of a file, but for its holes.
func (m *mover) copyBytes(ctx context.Context, a vfs.Attr, to vfs.Ino) error {
	for off := uint64(0); off < a.Size; {
		start, err := m.Seek(ctx, a.Ino, off, vfs.SeekData)
		if errors.Is(err, vfs.ErrNoData) {
			break
		}
		if err != nil {
			return err
		}
		end, err := m.Seek(ctx, a.Ino, start, vfs.SeekHole)
		if err != nil {
			return err
		}
		if _, err := m.CopyRange(ctx, a.Ino, start, to, start, end-start); err != nil {
			return err
		}
		off = end
	}
	_, err := m.SetAttr(ctx, to, vfs.AttrSet{Mask: vfs.SetSize, Size: a.Size})
	return err
}

func (m *mover) copyXattrs(ctx context.Context, from, to vfs.Ino) error {
	names, err := m.ListXattr(ctx, from)
	if err != nil {
		return err
	}
	for _, name := range names {
		value, err := m.GetXattr(ctx, from, name)
		if err == nil {
			err = m.SetXattr(ctx, to, name, value, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes what has been copied. What has been changed since, or come in, stays where it is: ErrBusy.
func (m *mover) remove(ctx context.Context, dir vfs.Ino, name string) error {
	a, err := m.Lookup(ctx, dir, name)
	if err != nil {
		return err
	}
	mtime, copied := m.copied[a.Ino]
	if !copied || a.Type != vfs.TypeDir && a.Mtime != mtime {
		return fmt.Errorf("%q in directory %d has changed meanwhile: %w", name, dir, vfs.ErrBusy)
	}
	if a.Type != vfs.TypeDir {
		return m.Unlink(ctx, dir, name)
	}
	names, err := namesIn(ctx, m.Tree, a.Ino)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.remove(ctx, a.Ino, name); err != nil {
			return err
		}
	}
	return m.Rmdir(ctx, dir, name)
}
