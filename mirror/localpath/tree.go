package localpath

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// localBit is set in the numbers of local inodes: not the highest bit, which those of snapshots have that a mount shows.
const localBit vfs.Ino = 1 << 62

// Tree is a shared tree with local paths in it.
type Tree struct {
	shared, local vfs.Tree
	rules         *Rules

	mu     sync.RWMutex
	boxes  map[vfs.Ino]vfs.Ino // of shared directories
	owners map[vfs.Ino]vfs.Ino // the inverse
	places map[vfs.Ino]place   // where shared directories were last
}

var (
	_ vfs.Tree         = (*Tree)(nil)
	_ vfs.WatchFlusher = (*Tree)(nil)
)

// Open presents two trees as one. The local one must be its own, and is what an earlier Open has left of it. Nothing is asked of
// the shared one.
func Open(ctx context.Context, shared, local vfs.Tree, rules *Rules) (*Tree, error) {
	t := &Tree{
		shared: shared, local: local, rules: rules,
		boxes: make(map[vfs.Ino]vfs.Ino), owners: make(map[vfs.Ino]vfs.Ino), places: make(map[vfs.Ino]place),
	}
	var stages []string
	err := local.ReadDir(ctx, vfs.RootIno, 0, func(d vfs.Dirent) bool {
		if strings.HasPrefix(d.Name, stagePrefix) {
			stages = append(stages, d.Name)
		} else if owner, err := strconv.ParseUint(d.Name, 10, 64); err == nil {
			t.boxes[vfs.Ino(owner)], t.owners[d.Ino] = d.Ino, vfs.Ino(owner)
		}
		return true
	})
	for _, name := range stages { // of moves that a crash has ended
		if err == nil {
			err = removeAll(ctx, local, vfs.RootIno, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open local paths: %w", err)
	}
	return t, nil
}

// Sweep removes the local entries of directories that are not there any more. It asks the shared tree for each directory that has
// some.
func (t *Tree) Sweep(ctx context.Context) error {
	t.mu.RLock()
	owners := make(map[vfs.Ino]vfs.Ino, len(t.owners))
	for box, owner := range t.owners {
		owners[box] = owner
	}
	t.mu.RUnlock()
	for box, owner := range owners {
		a, err := t.shared.Stat(ctx, owner)
		if err == nil && a.Type == vfs.TypeDir {
			continue
		}
		if err != nil && !errors.Is(err, vfs.ErrStale) {
			return fmt.Errorf("sweep: %w", err)
		}
		if err := removeAll(ctx, t.local, vfs.RootIno, boxName(owner)); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		t.forget(owner, box)
	}
	return nil
}

func boxName(owner vfs.Ino) string { return strconv.FormatUint(uint64(owner), 10) }

// box returns the box of a shared directory, if it has one.
func (t *Tree) box(dir vfs.Ino) (vfs.Ino, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	box, ok := t.boxes[dir]
	return box, ok
}

// needBox returns the box of a shared directory, which gets one if need be.
func (t *Tree) needBox(ctx context.Context, dir vfs.Ino) (vfs.Ino, error) {
	a, err := t.shared.Stat(ctx, dir)
	switch {
	case err != nil:
		return 0, err
	case a.Type != vfs.TypeDir:
		return 0, vfs.ErrNotDir
	case a.Nlink == 0:
		return 0, vfs.ErrNotExist
	}
	if box, ok := t.box(dir); ok {
		return box, nil
	}
	made, err := t.local.Mkdir(ctx, vfs.RootIno, boxName(dir), vfs.NewNode{Mode: 0o700})
	if errors.Is(err, vfs.ErrExist) {
		made, err = t.local.Lookup(ctx, vfs.RootIno, boxName(dir))
	}
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.boxes[dir], t.owners[made.Ino] = made.Ino, dir
	return made.Ino, nil
}

// dropBox takes the box of a shared directory away, which is to be removed. ErrNotEmpty when there is something in it.
func (t *Tree) dropBox(ctx context.Context, dir vfs.Ino) error {
	box, ok := t.box(dir)
	if !ok {
		return nil
	}
	if err := t.local.Rmdir(ctx, vfs.RootIno, boxName(dir)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	t.forget(dir, box)
	return nil
}

func (t *Tree) forget(dir, box vfs.Ino) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.boxes, dir)
	delete(t.owners, box)
}

// side returns the tree that an inode is of, and its number there.
func (t *Tree) side(ino vfs.Ino) (vfs.Tree, vfs.Ino) {
	if ino&localBit != 0 {
		return t.local, ino &^ localBit
	}
	return t.shared, ino
}

// tree returns one of the two.
func (t *Tree) tree(local bool) vfs.Tree {
	if local {
		return t.local
	}
	return t.shared
}

// shown is the number of a local inode as it is presented: a box is the directory that it belongs to.
func (t *Tree) shown(ino vfs.Ino) vfs.Ino {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if owner, ok := t.owners[ino]; ok {
		return owner
	}
	return ino | localBit
}

// show returns attributes as they are presented. A shared directory has the local directories in it among its links, and has changed
// when its box has.
func (t *Tree) show(ctx context.Context, local bool, a vfs.Attr) (vfs.Attr, error) {
	if local {
		a.Ino |= localBit
		if a.Type == vfs.TypeDir {
			a.Parent = t.shown(a.Parent)
		}
		return a, nil
	}
	if a.Type != vfs.TypeDir {
		return a, nil
	}
	box, ok := t.box(a.Ino)
	if !ok {
		return a, nil
	}
	b, err := t.local.Stat(ctx, box)
	if errors.Is(err, vfs.ErrStale) {
		return a, nil // it has just gone
	}
	if a.Nlink > 0 && b.Nlink > 2 {
		a.Nlink += b.Nlink - 2
	}
	a.Mtime, a.Ctime = max(a.Mtime, b.Mtime), max(a.Ctime, b.Ctime)
	return a, err
}
