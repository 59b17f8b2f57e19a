package localpath

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// place is a name of a shared directory.
type place struct {
	dir  vfs.Ino
	name string
}

const (
	// maxPlaces bounds how many places are remembered. When they are full, all are forgotten.
	maxPlaces = 1 << 16
	// maxDepth is how deep a directory may be for its path to be looked for. Deeper there is none that a path could name
	// (PATH_MAX), or it is being moved about all the time.
	maxDepth = 4096
	// placeTries is how often a directory is looked for that is moved meanwhile.
	placeTries = 100
)

// matches reports whether a name in a shared directory is local.
func (t *Tree) matches(ctx context.Context, dir vfs.Ino, name string, isDir bool) (bool, error) {
	if !t.rules.anchored {
		return t.rules.match([]string{name}, isDir), nil
	}
	path, err := t.path(ctx, dir)
	if err != nil {
		return false, err
	}
	return t.rules.match(append(path, name), isDir), nil
}

// path returns the names that lead to a shared directory.
func (t *Tree) path(ctx context.Context, dir vfs.Ino) (names []string, err error) {
	for dir != vfs.RootIno {
		if len(names) == maxDepth {
			return nil, fmt.Errorf("directory %d is nowhere: %w", dir, vfs.ErrNotExist)
		}
		p, err := t.placeOf(ctx, dir)
		if err != nil {
			return nil, err
		}
		names, dir = append(names, p.name), p.dir
	}
	slices.Reverse(names)
	return names, nil
}

// placeOf returns the name of a shared directory: the one that it had last, if it still has, or else it is looked for.
func (t *Tree) placeOf(ctx context.Context, dir vfs.Ino) (place, error) {
	t.mu.RLock()
	p, known := t.places[dir]
	t.mu.RUnlock()
	if known {
		if a, err := t.shared.Lookup(ctx, p.dir, p.name); err == nil && a.Ino == dir {
			return p, nil
		}
	}
	for range placeTries {
		a, err := t.shared.Stat(ctx, dir)
		switch {
		case err != nil:
			return place{}, err
		case a.Type != vfs.TypeDir:
			return place{}, vfs.ErrNotDir
		case a.Nlink == 0:
			return place{}, vfs.ErrNotExist
		}
		p = place{dir: a.Parent}
		err = t.shared.ReadDir(ctx, a.Parent, 0, func(d vfs.Dirent) bool {
			if d.Ino == dir {
				p.name = d.Name
			}
			return p.name == ""
		})
		switch {
		case err != nil && !errors.Is(err, vfs.ErrStale):
			return place{}, err
		case p.name != "":
			t.remember(dir, p)
			return p, nil
		}
	}
	return place{}, fmt.Errorf("directory %d is moved all the time: %w", dir, vfs.ErrBusy)
}

// remember notes where a shared directory is.
func (t *Tree) remember(dir vfs.Ino, p place) {
	if !t.rules.anchored {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.places) == maxPlaces {
		clear(t.places)
	}
	t.places[dir] = p
}
