package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Recorded is a conflict as whoever keeps the tree remembers it, until it is resolved.
type Recorded struct {
	Number uint64
	Time   vfs.Time
	Conflict
}

// Listed is a conflict for people.
type Listed struct {
	Number uint64    `json:"number"`
	Kind   string    `json:"kind"`
	Time   time.Time `json:"time"`
	Path   string    `json:"path"`
	Copy   string    `json:"copy,omitempty"`
	Name   string    `json:"attribute,omitempty"`
	Value  []byte    `json:"value,omitempty"`
}

// List says of conflicts what people want to know, with the paths as they are now.
func List(ctx context.Context, tree vfs.Tree, recorded []Recorded) (list []Listed, err error) {
	for _, r := range recorded {
		path := func(p Place) string {
			if p == (Place{}) || err != nil {
				return ""
			}
			found, failed := PathOf(ctx, tree, p)
			if errors.Is(failed, vfs.ErrStale) || errors.Is(failed, vfs.ErrNotExist) {
				return p.Name // in a directory that has been removed since
			}
			err = failed
			return found
		}
		list = append(list, r.Listed(path))
	}
	return list, err
}

// Listed is a conflict for people, with paths of what it is about.
func (r *Recorded) Listed(path func(Place) string) Listed {
	return Listed{
		Number: r.Number, Kind: string(r.Kind), Time: r.Time.Go(), Name: r.Name, Value: r.Value, Path: path(r.Place),
		Copy: path(r.Copy),
	}
}

// Resolution says what becomes of a conflict.
type Resolution string

// Resolutions.
const (
	KeepBoth   Resolution = "both"   // it is only taken off the list
	KeepTheirs Resolution = "theirs" // the copy is removed; when that is theirs, it takes the name
	KeepMine   Resolution = "mine"   // the copy takes the name; when that is theirs, it is removed
)

// Valid reports whether there is such a resolution.
func (how Resolution) Valid() bool { return how == KeepBoth || how == KeepTheirs || how == KeepMine }

// Resolve does to a tree what a resolution says. ErrNotExist when there is no copy to keep or to remove: what has its name
// now may be the copy of a later conflict.
func Resolve(ctx context.Context, tree vfs.Tree, c Conflict, how Resolution) error {
	switch {
	case how == KeepBoth:
		return nil
	case c.Copy == Place{} || c.Kind == ConflictMoved:
		return fmt.Errorf("there is no copy: %w", vfs.ErrNotExist)
	}
	switch is, err := tree.Lookup(ctx, c.Copy.Dir, c.Copy.Name); {
	case err != nil:
		return err
	case is.Ino != c.Other:
		return fmt.Errorf("the copy has been moved away or removed, and %q is another file: %w", c.Copy.Name, vfs.ErrNotExist)
	case (how == KeepMine) != c.Theirs: // what is kept is the copy
		return tree.Rename(ctx, c.Copy.Dir, c.Copy.Name, c.Place.Dir, c.Place.Name, 0)
	}
	return tree.Unlink(ctx, c.Copy.Dir, c.Copy.Name)
}

// PathOf returns the path of a place, from the root on, as it is now. ErrNotExist when its directory is gone.
func PathOf(ctx context.Context, tree vfs.Tree, p Place) (string, error) {
	path := "/" + p.Name
	for dir := p.Dir; dir != vfs.RootIno; {
		a, err := tree.Stat(ctx, dir)
		if err != nil {
			return "", err
		}
		name := ""
		err = tree.ReadDir(ctx, a.Parent, 0, func(d vfs.Dirent) bool {
			if d.Ino == dir {
				name = d.Name
			}
			return name == ""
		})
		if err == nil && name == "" {
			err = vfs.ErrNotExist
		}
		if err != nil {
			return "", fmt.Errorf("path of inode %d: %w", dir, err)
		}
		path, dir = "/"+name+path, a.Parent
	}
	return path, nil
}
