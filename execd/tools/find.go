package tools

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// FindArgs says what is to be found.
type FindArgs struct {
	Path    string   `json:"path,omitempty" jsonschema:"the directory to look in; the root when left out"`
	Glob    string   `json:"glob,omitempty" jsonschema:"pattern with * ? [a-z] {a,b} and **: of names when it has no slash, else of paths below path"`
	Type    string   `json:"type,omitempty" jsonschema:"only file, dir or symlink"`
	Exclude []string `json:"exclude,omitempty" jsonschema:"patterns of names not to look at nor into; .git and node_modules when left out, [] for none"`
	After   string   `json:"after,omitempty" jsonschema:"go on: next_after of the call before"`
	Limit   int      `json:"limit,omitempty" jsonschema:"how many paths at most, 200 when left out"`
}

// FindResult has the paths that were found, in the order of a walk. Directories end with a slash.
type FindResult struct {
	Paths     []string `json:"paths"`
	NextAfter string   `json:"next_after,omitempty"`
}

// usualExcludes is what nobody means who does not say so.
var usualExcludes = []string{".git", "node_modules"}

// Find lists the paths below a directory that match.
func (s *Set) Find(ctx context.Context, a FindArgs) (*FindResult, error) {
	found, next, err := s.Locate(ctx, a)
	if err != nil {
		return nil, err
	}
	result := &FindResult{Paths: make([]string, len(found)), NextAfter: next}
	for i, f := range found {
		if f.Type == vfs.TypeDir {
			f.Path += "/"
		}
		result.Paths[i] = readable(f.Path)
	}
	return result, nil
}

// Found is a path that was found.
type Found struct {
	Path string // its bytes as they are
	Type vfs.Type
}

// Locate is Find for programs, which want paths as they are. next is to be given back in FindArgs.After; it is empty at the end.
func (s *Set) Locate(ctx context.Context, a FindArgs) (found []Found, next string, err error) {
	limit, err := within(a.Limit, DefaultEntries, MaxEntries)
	if err != nil {
		return nil, "", err
	}
	match, err := newMatcher(a.Path, a.Glob, a.Exclude)
	if err != nil {
		return nil, "", fmt.Errorf("find: %w", err)
	}
	size := 0
	next, err = s.tour(ctx, match, a.After, func(p string, d vfs.Dirent) error {
		if a.Type != "" && a.Type != typeName(d.Type) {
			return nil
		}
		if len(found) == limit || size+len(p) > MaxFound {
			return errFull
		}
		size += len(p)
		found = append(found, Found{p, d.Type})
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("find in %q: %w", match.start, err)
	}
	return found, next, nil
}

// matcher says which paths are meant.
type matcher struct {
	start   string
	glob    string
	exclude []string
}

func newMatcher(start, glob string, exclude []string) (*matcher, error) {
	if exclude == nil {
		exclude = usualExcludes
	}
	for _, p := range append([]string{glob}, exclude...) {
		if !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("pattern %q: %w", p, vfs.ErrInvalid)
		}
	}
	return &matcher{clean(start), strings.TrimPrefix(glob, "/"), exclude}, nil
}

func (m *matcher) excluded(name string) bool {
	for _, p := range m.exclude {
		if doublestar.MatchUnvalidated(p, name) {
			return true
		}
	}
	return false
}

func (m *matcher) match(p string) bool {
	switch {
	case m.glob == "":
		return true
	case !strings.Contains(m.glob, "/"):
		return doublestar.MatchUnvalidated(m.glob, path.Base(p))
	}
	below := strings.TrimPrefix(strings.TrimPrefix(p, strings.TrimSuffix(m.start, "/")), "/")
	return doublestar.MatchUnvalidated(m.glob, below)
}

// tour visits what matches below the matcher's start.
func (s *Set) tour(ctx context.Context, m *matcher, after string, visit func(p string, d vfs.Dirent) error) (string, error) {
	place, err := parsePlace(after)
	if err != nil {
		return "", err
	}
	line, last := splitPlace(place)
	start, err := s.dirent(ctx, m.start)
	if err != nil {
		return "", err
	}
	t := &tour{trees: [2]vfs.Tree{s.FS.Tree}, skip: m.excluded, left: maxVisits, again: line > 0}
	t.visit = func(_ context.Context, p string, n node) error {
		d := *n[0]
		if !m.match(p) {
			return nil
		}
		return visit(p, d)
	}
	if start.Type != vfs.TypeDir {
		return "", visit(m.start, start)
	}
	next, err := t.run(ctx, m.start, node{&start}, last)
	return shownPlace(next), err
}

func (s *Set) dirent(ctx context.Context, p string) (vfs.Dirent, error) {
	w := treepath.Walker{Tree: s.FS.Tree, Root: s.FS.Root}
	n, err := w.Find(ctx, s.FS.Abs(p))
	return vfs.Dirent{Name: n.Name, Ino: n.Attr.Ino, Type: n.Attr.Type}, err
}
