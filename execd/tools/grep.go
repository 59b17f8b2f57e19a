package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// GrepArgs says what is to be searched for.
type GrepArgs struct {
	Pattern    string   `json:"pattern" jsonschema:"a regular expression as RE2 has it"`
	Fixed      bool     `json:"fixed,omitempty" jsonschema:"pattern is plain text"`
	IgnoreCase bool     `json:"ignore_case,omitempty" jsonschema:"letters match in either case"`
	Path       string   `json:"path,omitempty" jsonschema:"the file or directory to search; the root when left out"`
	Glob       string   `json:"glob,omitempty" jsonschema:"only files that match, as in find"`
	Exclude    []string `json:"exclude,omitempty" jsonschema:"as in find"`
	Context    int      `json:"context,omitempty" jsonschema:"how many lines around each match, at most 10"`
	Files      bool     `json:"files,omitempty" jsonschema:"only tell which files match"`
	After      string   `json:"after,omitempty" jsonschema:"go on: next_after of the call before"`
	Limit      int      `json:"limit,omitempty" jsonschema:"how many matching lines at most, 100 when left out"`
}

// Match is a line that matches, or one around it.
type Match struct {
	Path    string `json:"path"`
	RawPath string `json:"-"` // its bytes as they are, for programs
	Line    int    `json:"line,omitempty"`
	Text    string `json:"text,omitempty"`
	Context bool   `json:"context,omitempty"` // it does not match itself
	Cut     bool   `json:"cut,omitempty"`     // it is longer; the part shown has the first match
}

// GrepResult has the lines that match, by file and line.
type GrepResult struct {
	Matches   []Match `json:"matches"`
	Binary    int     `json:"binary,omitempty"` // so many files that are not text were left out
	NextAfter string  `json:"next_after,omitempty"`
}

// Grep searches files for lines that match. Files that are not text are left out.
func (s *Set) Grep(ctx context.Context, a GrepArgs) (*GrepResult, error) {
	g, err := newSearch(s, a)
	if err != nil {
		return nil, err
	}
	match, err := newMatcher(a.Path, a.Glob, a.Exclude)
	if err != nil {
		return nil, fmt.Errorf("grep: %w", err)
	}
	place, err := parsePlace(a.After)
	if err != nil {
		return nil, fmt.Errorf("grep: %w", err)
	}
	line, file := splitPlace(place)
	next, err := s.tour(ctx, match, a.After, func(p string, d vfs.Dirent) error {
		if d.Type != vfs.TypeRegular {
			return nil
		}
		from := 0
		if p == file {
			from = line
		}
		return g.file(ctx, p, d.Ino, from)
	})
	switch {
	case errors.Is(err, errFull), err == nil && g.stopped != "":
		next = g.stopped
	case err != nil:
		return nil, fmt.Errorf("grep in %q: %w", match.start, err)
	}
	g.result.NextAfter = next
	return &g.result, nil
}

// search is one call of Grep.
type search struct {
	set     *Set
	pattern *regexp.Regexp
	args    GrepArgs
	limit   int
	lines   *bufio.Reader
	result  GrepResult
	matches int
	size    int
	scanned uint64
	stopped string // the place within a file where there was no room for more

	path   string // of the file that is searched
	number int
	before []Match // lines that may become context
	after  int     // so many more lines are context
}

func newSearch(s *Set, a GrepArgs) (*search, error) {
	expr := a.Pattern
	if a.Fixed {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	pattern, err := regexp.Compile(expr)
	if err != nil || a.Pattern == "" {
		return nil, fmt.Errorf("grep for %q: %w (%v)", a.Pattern, vfs.ErrInvalid, err)
	}
	g := &search{set: s, pattern: pattern, args: a, lines: bufio.NewReaderSize(nil, scanBuffer)}
	g.result.Matches = []Match{}
	if g.limit, err = within(a.Limit, DefaultMatches, MaxMatches); err != nil {
		return nil, err
	}
	g.args.Context, err = within(a.Context, 0, MaxContext)
	return g, err
}

// file searches a file after a line.
func (g *search) file(ctx context.Context, path string, ino vfs.Ino, from int) error {
	if g.scanned > maxScan {
		return errFull
	}
	g.path, g.number, g.before, g.after = path, 0, nil, 0
	r := &inodeReader{ctx: ctx, tree: g.set.FS.Tree, ino: ino}
	g.lines.Reset(r)
	defer func() { g.scanned += r.off }()
	head, err := g.lines.Peek(sniffed)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !gone(err):
		return err
	case isBinary(head):
		g.result.Binary++
		return nil
	}
	for {
		line, err := g.line()
		if errors.Is(err, io.EOF) || gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if g.number <= from {
			continue
		}
		if done, err := g.look(line); done || err != nil {
			return err
		}
	}
}

// line returns the next line, of one that the buffer does not hold the first part that matches.
func (g *search) line() ([]byte, error) {
	line, err := g.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = g.longLine(bytes.Clone(line))
	}
	if len(line) > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	g.number++
	return bytes.TrimRight(line, crlf), err
}

func (g *search) longLine(line []byte) ([]byte, error) {
	for found := g.pattern.Match(line); ; {
		part, err := g.lines.ReadSlice('\n')
		if !found && g.pattern.Match(part) {
			line, found = bytes.Clone(part), true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// look adds a line when it matches or is near one that does. done says that no other line of the file is wanted.
func (g *search) look(line []byte) (done bool, err error) {
	at := g.pattern.FindIndex(line)
	switch {
	case at == nil && g.after > 0:
		g.after--
		g.add(g.match(line, nil))
		return false, nil
	case at == nil:
		g.remember(line)
		return false, nil
	case g.matches == g.limit || g.size > MaxFound:
		if g.number > 1 {
			g.stopped = shownPlace(fmt.Sprintf("%d:%s", g.number-1, g.path))
		}
		return true, errFull
	}
	g.matches++
	if g.args.Files {
		g.add(Match{Path: readable(g.path), RawPath: g.path})
		return true, nil
	}
	for _, m := range g.before {
		g.add(m)
	}
	g.before, g.after = nil, g.args.Context
	g.add(g.match(line, at))
	return false, nil
}

func (g *search) remember(line []byte) {
	if g.args.Context == 0 {
		return
	}
	if len(g.before) == g.args.Context {
		g.before = g.before[1:]
	}
	g.before = append(g.before, g.match(line, nil))
}

// match shows a line, at most MaxLine bytes around where it matches.
func (g *search) match(line []byte, at []int) Match {
	m := Match{Path: readable(g.path), RawPath: g.path, Line: g.number, Context: at == nil, Cut: len(line) > MaxLine}
	if m.Cut && at != nil && at[1] > MaxLine {
		line = line[max(0, min(at[0], at[1]-MaxLine/2)-MaxLine/4):]
	}
	text, _ := cut(readable(string(line)), MaxLine)
	m.Text = text
	return m
}

func (g *search) add(m Match) {
	g.size += len(m.Path) + len(m.Text)
	g.result.Matches = append(g.result.Matches, m)
}

// inodeReader reads a regular file of a tree from its start.
type inodeReader struct {
	ctx  context.Context // of the call: io.Reader takes none
	tree vfs.Tree
	ino  vfs.Ino
	off  uint64
}

func (r *inodeReader) Read(p []byte) (int, error) {
	n, err := r.tree.ReadAt(r.ctx, r.ino, p, r.off)
	r.off += uint64(n)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}
