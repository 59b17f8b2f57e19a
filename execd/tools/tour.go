package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// node is what a path leads to in one or two trees; nil where there is nothing.
type node [2]*vfs.Dirent

// tour visits all that is below a directory of a tree, or of two trees side by side, a directory before what is in it and
// names in bytewise order, without following symlinks. It can stop anywhere and go on after a path. It holds the listings
// of the directories on the way to where it is.
type tour struct {
	trees [2]vfs.Tree            // the second may be nil
	skip  func(name string) bool // says what not to visit, nor what is below it
	visit func(ctx context.Context, path string, n node) error
	left  int    // how many more nodes may be visited
	last  string // the last that was
	again bool   // visit also the path that it goes on after: it was not done with
}

// errFull, returned by a visit, stops before this node.
var errFull = errors.New("no room for more")

// run visits what is below start after a path, all of it when that is empty, and returns the path to go on after, empty at
// the end.
func (t *tour) run(ctx context.Context, start string, n node, after string) (next string, err error) {
	var names []string
	if after != "" {
		rest, ok := strings.CutPrefix(after, strings.TrimSuffix(start, "/")+"/")
		if !ok {
			return "", fmt.Errorf("%q is not below %q: %w", after, start, vfs.ErrInvalid)
		}
		names = strings.Split(rest, "/")
	}
	t.last = after
	err = t.below(ctx, strings.TrimSuffix(start, "/"), n, names)
	if errors.Is(err, errFull) {
		return t.last, nil
	}
	return "", err
}

// below visits the entries of a directory after a path in it.
func (t *tour) below(ctx context.Context, path string, n node, after []string) error {
	entries, err := t.entries(ctx, n)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(entries))
	for _, name := range names {
		in := after
		switch {
		case t.skip(name):
			continue
		case len(after) == 0 || name > after[0]:
			in = nil
		case name < after[0]:
			continue
		}
		if err := t.node(ctx, path+"/"+name, entries[name], in); err != nil {
			return err
		}
	}
	return nil
}

// node visits a node, unless it is on the way to the path to go on after, and what is below it.
func (t *tour) node(ctx context.Context, path string, n node, after []string) error {
	if len(after) == 0 || len(after) == 1 && t.again {
		if t.left--; t.left < 0 {
			return errFull
		}
		if err := t.visit(ctx, path, n); err != nil {
			return err
		}
		t.last = path
	}
	if len(after) > 0 {
		after = after[1:]
	}
	return t.below(ctx, path, n, after)
}

// entries reads what is in a directory of either tree; what is no directory has nothing in it.
func (t *tour) entries(ctx context.Context, n node) (map[string]node, error) {
	all := map[string]node{}
	for i, d := range n {
		if d == nil || d.Type != vfs.TypeDir {
			continue
		}
		err := t.trees[i].ReadDir(ctx, d.Ino, 0, func(e vfs.Dirent) bool {
			at := all[e.Name]
			at[i] = &e
			all[e.Name] = at
			return true
		})
		if err != nil && !gone(err) {
			return nil, err
		}
	}
	return all, nil
}

// gone reports whether something was removed since it was listed.
func gone(err error) bool { return errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNotExist) }
