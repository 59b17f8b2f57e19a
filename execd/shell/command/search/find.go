package search

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// finder is what one find does.
type finder struct {
	*tool.Call
	ctx      context.Context
	expr     predicate
	follow   byte // L, H or P
	depth    bool // the directory after what is in it
	min, max int
	now      time.Time
	zone     *time.Location
	names    *tool.Accounts
	syntax   string // of -regex
	acts     bool   // an action prints or runs something: no -print is added
	batches  []*batch
	pruned   bool
	stat     bool // the expression asks for more than names and types
	quit     bool
	sinks    map[string]sink // of -fprint and its like, by name
}

var findOptions = getopt.New("")

// found is a node that a walk came to.
type found struct {
	path  string
	start string // the operand below which it is
	attr  vfs.Attr
	depth int
}

// predicate is an expression that is true of a node or not, and does something about it perhaps.
type predicate func(f *found) (bool, error)

func find(ctx context.Context, c *tool.Call) error {
	f := &finder{Call: c, ctx: ctx, follow: 'P', max: 1 << 30, now: c.Now(), zone: c.Zone(ctx), names: c.Accounts(ctx), syntax: "emacs"}
	for _, a := range c.Args[1:] {
		switch a {
		case "-help", "--help":
			return c.About(findOptions, getopt.ErrHelp)
		case "-version", "--version":
			return c.About(findOptions, getopt.ErrVersion)
		}
	}
	args := f.leading(c.Args[1:])
	var starts []string
	for len(args) > 0 && !startsExpression(args[0]) {
		starts, args = append(starts, args[0]), args[1:]
	}
	err := f.parse(args)
	if err == nil {
		err = f.search(starts)
	}
	return errors.Join(err, f.closeSinks())
}

// search goes through what is below the starting points.
func (f *finder) search(starts []string) error {
	if len(starts) == 0 {
		starts = []string{"."}
	}
	for _, start := range starts {
		if err := f.start(start); err != nil {
			return err
		}
		if f.quit {
			break
		}
	}
	for _, b := range f.batches {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return nil
}

// leading reads the options before the starting points.
func (f *finder) leading(args []string) []string {
	for len(args) > 0 {
		switch {
		case args[0] == "-L" || args[0] == "-H" || args[0] == "-P":
			f.follow = args[0][1]
		case strings.HasPrefix(args[0], "-O") && len(args[0]) > 2:
		case args[0] == "-D" && len(args) > 1:
			args = args[1:]
		default:
			return args
		}
		args = args[1:]
	}
	return args
}

func startsExpression(arg string) bool {
	return arg == "(" || arg == ")" || arg == "!" || arg == "," || len(arg) > 1 && arg[0] == '-'
}

func (f *finder) start(start string) error {
	look := f.FS.Lstat
	if f.follow != 'P' {
		look = f.FS.Stat
	}
	a, err := look(f.ctx, start)
	if err != nil && f.follow != 'P' {
		a, err = f.FS.Lstat(f.ctx, start)
	}
	if err != nil {
		return f.FaultAt(f.ctx, "'"+start+"'", err)
	}
	return f.visit(&found{path: start, start: start, attr: a})
}

// visit evaluates the expression for a node and all below it.
func (f *finder) visit(n *found) error {
	if err := f.Step(f.ctx, 1); err != nil {
		return err
	}
	f.pruned = false
	if !f.depth {
		if err := f.evaluate(n); err != nil || f.quit {
			return err
		}
	}
	if n.attr.Type == vfs.TypeDir && n.depth < f.max && !f.pruned {
		if err := f.descend(n); err != nil || f.quit {
			return err
		}
	}
	if f.depth {
		return f.evaluate(n)
	}
	return nil
}

func (f *finder) evaluate(n *found) error {
	if n.depth < f.min || n.depth > f.max {
		return nil
	}
	_, err := f.expr(n)
	if errors.Is(err, errQuit) {
		f.quit, err = true, nil
	}
	return err
}

// errQuit is that -quit was come to: nothing more is evaluated.
var errQuit = errors.New("quit")

func (f *finder) descend(n *found) error {
	entries, err := f.FS.ReadDir(f.ctx, n.path)
	if err != nil {
		if errors.Is(err, vfs.ErrNotExist) && n.depth > 0 {
			return nil // removed by an action
		}
		return f.FaultAt(f.ctx, "'"+n.path+"'", err)
	}
	for _, e := range entries {
		sub := &found{path: join(n.path, e.Name), start: n.start, depth: n.depth + 1}
		if !f.stat && f.follow != 'L' {
			sub.attr = vfs.Attr{Ino: e.Ino, Type: e.Type}
		} else if sub.attr, err = f.look(sub.path); err != nil {
			if errors.Is(err, vfs.ErrNotExist) {
				continue
			}
			if err := f.FaultAt(f.ctx, "'"+sub.path+"'", err); err != nil {
				return err
			}
			continue
		}
		if f.loops(n, sub) {
			continue
		}
		if err := f.visit(sub); err != nil || f.quit {
			return err
		}
	}
	return nil
}

func (f *finder) look(path string) (vfs.Attr, error) {
	if f.follow == 'L' {
		if a, err := f.FS.Stat(f.ctx, path); err == nil {
			return a, nil
		}
	}
	return f.FS.Lstat(f.ctx, path)
}

// loops says whether a followed symlink leads back to a directory above it.
func (f *finder) loops(above, n *found) bool {
	if f.follow != 'L' || n.attr.Type != vfs.TypeDir {
		return false
	}
	for p := path.Dir(n.path); len(p) >= len(n.start) && p != "/"; p = path.Dir(p) {
		if a, err := f.FS.Stat(f.ctx, p); err == nil && a.Ino == n.attr.Ino {
			f.Fault("File system loop detected; '%s' is part of the same file system loop as '%s'.", n.path, p)
			return true
		}
		if p == "." {
			break
		}
	}
	return false
}

// batch collects names for -exec {} +.
type batch struct {
	*finder
	args  []string // of the command, before the names
	dir   string   // of -execdir
	names []string
	size  int
}

func (b *batch) add(name string) error {
	b.names, b.size = append(b.names, name), b.size+len(name)+1
	if b.size < maxChars {
		return nil
	}
	return b.flush()
}

func (b *batch) flush() error {
	if len(b.names) == 0 {
		return nil
	}
	args := append(append([]string(nil), b.args...), b.names...)
	b.names, b.size = nil, 0
	ok, err := b.run(args, b.dir)
	if !ok {
		b.Status = 1
	}
	return err
}

// run runs a command and reports whether it gave 0.
func (f *finder) run(args []string, dir string) (bool, error) {
	if err := f.Out.Flush(); err != nil {
		return false, err
	}
	p := *f.Process
	p.Args, p.Refused = args, "find: '%s': %s"
	if dir != "" {
		p.FS = f.FS.At(dir)
		p.Dir = p.FS.Dir
	}
	status := f.Run(f.ctx, &p)
	if f.ctx.Err() != nil {
		return false, f.ctx.Err()
	}
	return status == 0, nil
}

func (f *finder) syntaxError(format string, args ...any) error { return f.Die(1, format, args...) }

var errNumber = errors.New("number")

// comparison is +N, -N or N.
type comparison struct {
	sign byte
	n    int64
}

func parseComparison(text string) (comparison, error) {
	c := comparison{}
	if text != "" && (text[0] == '+' || text[0] == '-') {
		c.sign, text = text[0], text[1:]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return c, errNumber
	}
	c.n = n
	return c, nil
}

func (c comparison) holds(v int64) bool {
	switch c.sign {
	case '+':
		return v > c.n
	case '-':
		return v < c.n
	}
	return v == c.n
}
