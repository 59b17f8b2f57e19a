package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ListArgs says what is to be listed.
type ListArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"a directory; the root when left out"`
	After string `json:"after,omitempty" jsonschema:"go on: next_after of the call before"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many entries at most, 200 when left out"`
}

// Entry is a name in a directory.
type Entry struct {
	Name   string    `json:"name"`
	Type   string    `json:"type"`
	Size   uint64    `json:"size,omitempty"`
	Mode   string    `json:"mode"`
	Mtime  time.Time `json:"mtime"`
	Target string    `json:"target,omitempty"` // of a symlink
}

// ListResult is a part of a directory, in bytewise order of the names.
type ListResult struct {
	Path      string  `json:"path"`
	Entries   []Entry `json:"entries"`
	NextAfter string  `json:"next_after,omitempty"`
}

// List lists a directory. It holds memory for the entries that it returns, however many there are.
func (s *Set) List(ctx context.Context, a ListArgs) (*ListResult, error) {
	dirents, next, err := s.Dirents(ctx, a)
	if err != nil {
		return nil, err
	}
	result := &ListResult{Path: clean(a.Path), Entries: []Entry{}, NextAfter: next}
	for _, d := range dirents {
		e, err := s.entry(ctx, d)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ls %q: %w", a.Path, err)
		}
		result.Entries = append(result.Entries, e)
	}
	return result, nil
}

// Dirents is List for programs, which want names as they are. next is to be given back in ListArgs.After; it is empty at the
// end.
func (s *Set) Dirents(ctx context.Context, a ListArgs) (dirents []vfs.Dirent, next string, err error) {
	limit, err := within(a.Limit, DefaultEntries, MaxEntries)
	if err != nil {
		return nil, "", err
	}
	after, err := parsePlace(a.After)
	if err != nil {
		return nil, "", fmt.Errorf("ls %q: %w", a.Path, err)
	}
	if a.Path == "" {
		a.Path = "/"
	}
	dir, err := s.FS.Stat(ctx, a.Path)
	if err != nil {
		return nil, "", err
	}
	if dir.Type != vfs.TypeDir {
		return nil, "", fmt.Errorf("ls %q: it is a %s: %w", a.Path, typeName(dir.Type), vfs.ErrNotDir)
	}
	dirents, more, err := s.smallest(ctx, dir.Ino, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("ls %q: %w", a.Path, err)
	}
	if more {
		next = shownPlace(dirents[len(dirents)-1].Name)
	}
	return dirents, next, nil
}

// smallest returns the first entries of a directory after a name. A directory is listed in another order, so all of it
// is looked at, but no more than twice as many as are wanted are kept.
func (s *Set) smallest(ctx context.Context, dir vfs.Ino, after string, limit int) (first []vfs.Dirent, more bool, err error) {
	shrink := func() {
		slices.SortFunc(first, func(a, b vfs.Dirent) int { return strings.Compare(a.Name, b.Name) })
		if len(first) > limit {
			first, more = first[:limit], true
		}
	}
	err = s.FS.Tree.ReadDir(ctx, dir, 0, func(d vfs.Dirent) bool {
		if d.Name > after {
			first = append(first, d)
		}
		if len(first) > 2*limit {
			shrink()
		}
		return true
	})
	shrink()
	return first, more, err
}

func (s *Set) entry(ctx context.Context, d vfs.Dirent) (Entry, error) {
	attr, err := s.FS.Tree.Stat(ctx, d.Ino)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: readable(d.Name), Type: typeName(attr.Type), Mode: fmt.Sprintf("%04o", attr.Mode),
		Mtime: attr.Mtime.Go().UTC()}
	switch attr.Type {
	case vfs.TypeRegular:
		e.Size = attr.Size
	case vfs.TypeSymlink:
		target, err := s.FS.Tree.Readlink(ctx, d.Ino)
		if err != nil {
			return Entry{}, err
		}
		e.Target = readable(target)
	}
	return e, nil
}
