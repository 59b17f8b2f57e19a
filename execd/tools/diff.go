package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// DiffArgs says what is to be compared.
type DiffArgs struct {
	From    string   `json:"from,omitempty" jsonschema:"a snapshot, a revision or how long ago, like 2h; when left out, when this session began"`
	To      string   `json:"to,omitempty" jsonschema:"the same; now when left out"`
	Path    string   `json:"path,omitempty" jsonschema:"compare only what is at and below this path"`
	Exclude []string `json:"exclude,omitempty" jsonschema:"as in find"`
	Names   bool     `json:"names,omitempty" jsonschema:"only tell which files differ"`
	After   string   `json:"after,omitempty" jsonschema:"go on: next_after of the call before"`
}

// Changed is a path that differs.
type Changed struct {
	Path   string `json:"path"`
	Change string `json:"change"`           // added, deleted, modified, or mode when nothing but the mode differs
	Type   string `json:"type"`             // what it is now, or was when it is deleted
	Reason string `json:"reason,omitempty"` // why its lines are not compared
}

// DiffResult says what differs.
type DiffResult struct {
	From      string    `json:"from"`
	To        string    `json:"to"`
	Changed   []Changed `json:"changed"`
	Diff      string    `json:"diff"` // unified, of the text files
	Cut       bool      `json:"cut,omitempty"`
	NextAfter string    `json:"next_after,omitempty"`
}

// Diff compares the workspace with what it was, or two states that it had.
func (s *Set) Diff(ctx context.Context, a DiffArgs) (_ *DiffResult, err error) {
	if a.From == "" {
		a.From = s.Since
	}
	if a.From == "" || s.History == nil {
		return nil, fmt.Errorf("diff: there is no state to compare with: %w", vfs.ErrNoRevision)
	}
	match, err := newMatcher(a.Path, "", a.Exclude)
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	c := &comparison{args: a, match: match, result: DiffResult{From: a.From, To: "now", Changed: []Changed{}}}
	c.fs[1] = s.FS
	done, err := s.openPast(ctx, a.From, &c.fs[0])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if a.To != "" {
		c.result.To = a.To
		done, err := s.openPast(ctx, a.To, &c.fs[1])
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	if err := c.run(ctx); err != nil {
		return nil, fmt.Errorf("diff %q: %w", match.start, err)
	}
	c.result.Diff = c.diff.String()
	return &c.result, nil
}

// openPast gives the view of the set on the tree as it was.
func (s *Set) openPast(ctx context.Context, when string, fs *treepath.FS) (done func() error, err error) {
	tree, done, err := s.History.At(ctx, when)
	if err != nil {
		return nil, fmt.Errorf("diff with %q: %w", when, err)
	}
	*fs = s.FS
	fs.Tree = tree
	return done, nil
}

// comparison is one call of Diff.
type comparison struct {
	args   DiffArgs
	match  *matcher
	fs     [2]treepath.FS // before and after
	result DiffResult
	diff   strings.Builder
}

func (c *comparison) run(ctx context.Context) error {
	var start node
	for i, fs := range c.fs {
		w := treepath.Walker{Tree: fs.Tree, Root: fs.Root}
		n, err := w.FindNoFollow(ctx, fs.Abs(c.match.start))
		if errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrNotDir) {
			continue
		}
		if err != nil {
			return err
		}
		start[i] = &vfs.Dirent{Name: n.Name, Ino: n.Attr.Ino, Type: n.Attr.Type}
	}
	if start == (node{}) {
		return fmt.Errorf("neither before nor after: %w", vfs.ErrNotExist)
	}
	t := &tour{trees: [2]vfs.Tree{c.fs[0].Tree, c.fs[1].Tree}, skip: c.match.excluded, visit: c.node, left: maxVisits}
	if c.args.After == "" && c.match.start != "/" {
		if err := c.node(ctx, c.match.start, start); err != nil {
			return err
		}
	}
	after, err := parsePlace(c.args.After)
	if err != nil {
		return err
	}
	next, err := t.run(ctx, c.match.start, start, after)
	c.result.NextAfter = shownPlace(next)
	return err
}

// side is a node of one of the two trees.
type side struct {
	there bool
	attr  vfs.Attr
}

// node compares one node and tells when it differs.
func (c *comparison) node(ctx context.Context, path string, n node) error {
	var s [2]side
	for i, d := range n {
		if d == nil {
			continue
		}
		attr, err := c.fs[i].Tree.Stat(ctx, d.Ino)
		if gone(err) {
			continue
		}
		if err != nil {
			return err
		}
		s[i] = side{true, attr}
	}
	change := changeOf(s)
	if change.Change == "" {
		return nil
	}
	if len(c.result.Changed) == MaxChanged || c.result.Cut {
		return errFull
	}
	change.Path = readable(path)
	if same, err := c.lines(ctx, path, s, &change); err != nil || same {
		return err
	}
	c.result.Changed = append(c.result.Changed, change)
	return nil
}

// changeOf says what differs, as far as attributes tell. Within one store an inode whose times are the same has not been
// written: every write sets its ctime, which nobody can set.
func changeOf(s [2]side) Changed {
	a, b := s[0].attr, s[1].attr
	switch {
	case !s[0].there && !s[1].there:
	case !s[0].there:
		return Changed{Change: "added", Type: typeName(b.Type)}
	case !s[1].there:
		return Changed{Change: "deleted", Type: typeName(a.Type)}
	case a.Type == vfs.TypeDir && b.Type == vfs.TypeDir:
		if a.Mode != b.Mode {
			return Changed{Change: "mode", Type: typeName(b.Type)}
		}
	case a.Ino != b.Ino || a.Ctime != b.Ctime || a.Size != b.Size:
		return Changed{Change: "modified", Type: typeName(b.Type)}
	}
	return Changed{}
}

// lines adds how the lines of a file differ. same says that nothing that is shown does.
func (c *comparison) lines(ctx context.Context, path string, s [2]side, change *Changed) (same bool, err error) {
	if change.Type == "dir" {
		return false, nil
	}
	var texts [2][]byte
	for i := range s {
		if !s[i].there || s[i].attr.Type == vfs.TypeDir {
			continue
		}
		if s[i].attr.Size > MaxEdit {
			change.Reason = fmt.Sprintf("%d bytes", s[i].attr.Size)
			return false, nil
		}
		if texts[i], err = c.text(ctx, i, s[i].attr); err != nil {
			return false, err
		}
	}
	if change.Change == "modified" && s[0].attr.Type == s[1].attr.Type && string(texts[0]) == string(texts[1]) {
		change.Change = "mode"
		return s[0].attr.Mode == s[1].attr.Mode, nil
	}
	if isBinary(texts[0]) || isBinary(texts[1]) {
		change.Reason = ErrBinary.Error()
		return false, nil
	}
	if !c.args.Names {
		c.add(path, s, texts)
	}
	return false, nil
}

func (c *comparison) add(path string, s [2]side, texts [2][]byte) {
	names := [2]string{"/dev/null", "/dev/null"}
	for i, letter := range []string{"a", "b"} {
		if s[i].there {
			names[i] = letter + path
		}
	}
	text, was := cut(unified(names[0], names[1], texts[0], texts[1]), MaxDiff-c.diff.Len())
	c.diff.WriteString(text)
	c.result.Cut = c.result.Cut || was
}

// text is what a node holds: bytes, or where a symlink leads.
func (c *comparison) text(ctx context.Context, i int, attr vfs.Attr) ([]byte, error) {
	tree := c.fs[i].Tree
	switch attr.Type {
	case vfs.TypeSymlink:
		target, err := tree.Readlink(ctx, attr.Ino)
		return []byte(target), err
	case vfs.TypeRegular:
		b := make([]byte, attr.Size)
		n, err := tree.ReadAt(ctx, attr.Ino, b, 0)
		return b[:n], err
	}
	return nil, nil
}
