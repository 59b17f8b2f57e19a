package file

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var lsOptions = getopt.New("1aAbBcCdDfFgGhHiI:klLmnNopqQrRsStT:uUvw:xXZ", "all=a", "almost-all=A", "escape=b",
	"ignore-backups=B", "directory=d", "classify::=F", "file-type", "group-directories-first", "no-group=G",
	"human-readable=h", "si", "dereference=L", "dereference-command-line=H", "inode=i", "ignore:=I", "hide:", "kibibytes=k",
	"numeric-uid-gid=n", "literal=N", "hide-control-chars=q", "show-control-chars", "quote-name=Q", "reverse=r",
	"recursive=R", "size=s", "width:=w", "color::", "full-time", "format:", "sort:", "time:", "time-style:", "tabsize:=T",
	"author", "block-size:", "quoting-style:", "indicator-style:", "hyperlink::", "zero")

// lister is what one ls shows.
type lister struct {
	*tool.Call
	hidden             byte // a all, A all but . and .., 0 none
	format             byte // l long, C and x columns, m commas, 1 one a line
	sort               byte // n name, t time, S size, X extension, v version, U none
	time               byte // m, c, a
	reverse, recursive bool
	directory          bool
	classify           byte // F, p (slashes), t (no star)
	human              float64
	inode, blocks      bool
	size               tool.BlockSize // of --block-size; its Unit is 0 without
	owner, group       bool
	numeric            bool
	follow             byte
	quote              byte
	dirsFirst          bool
	color              bool
	style              string
	ignore             []string
	width              int
	end                string
	names              *tool.Accounts
	headings, printed  bool
}

// entry is one line of a listing.
type entry struct {
	name   string
	path   string
	attr   vfs.Attr
	target string   // of a symlink
	linked vfs.Attr // what it leads to; of no type when nowhere
}

func ls(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(lsOptions, 2)
	if err != nil {
		return err
	}
	l := &lister{Call: c, format: '1', sort: 'n', time: 'm', owner: true, group: true, width: 80, end: "\n", names: c.Accounts(ctx)}
	for _, o := range options {
		if err := l.set(o); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	files, dirs, err := l.operands(ctx, names)
	if err != nil {
		return err
	}
	l.headings = len(names) > 1 || l.recursive
	if len(files) > 0 {
		if err := l.print(ctx, files, false); err != nil {
			return err
		}
		l.printed = true
	}
	for _, d := range dirs {
		if err := l.list(ctx, d.path, true); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) set(o getopt.Option) error {
	switch o.Name {
	case "a", "A":
		l.hidden = o.Name[0]
	case "f":
		l.hidden, l.sort = 'a', 'U'
	case "l", "C", "x", "m", "1":
		if o.Name != "1" || l.format != 'l' {
			l.format = o.Name[0]
		}
	case "g":
		l.format, l.owner = 'l', false
	case "o":
		l.format, l.group = 'l', false
	case "G":
		l.group = false
	case "n":
		l.format, l.numeric = 'l', true
	case "t", "S", "X", "v", "U":
		l.sort = o.Name[0]
	case "c", "u":
		l.time = map[string]byte{"c": 'c', "u": 'a'}[o.Name]
		if l.format != 'l' && l.sort == 'n' {
			l.sort = 't'
		}
	case "r":
		l.reverse = true
	case "R":
		l.recursive = true
	case "d":
		l.directory = true
	case "F", "p":
		l.classify = o.Name[0]
		if o.Value == "never" {
			l.classify = 0
		}
	case "file-type":
		l.classify = 't'
	case "h":
		l.human = 1024
	case "si":
		l.human = 1000
	case "i":
		l.inode = true
	case "s":
		l.blocks = true
	case "L", "H":
		l.follow = o.Name[0]
	case "Q", "b", "N":
		l.quote = o.Name[0]
	case "B":
		l.ignore = append(l.ignore, "*~")
	case "I", "hide":
		l.ignore = append(l.ignore, o.Value)
	case "zero":
		l.end = "\x00"
	default:
		return l.setLong(o)
	}
	return nil
}

func (l *lister) setLong(o getopt.Option) error {
	if o.Name == "block-size" {
		size, err := l.BlockSize(o)
		l.human, l.size = size.Human, size
		if err != nil {
			return tool.Exit(2)
		}
		return nil
	}
	choose := func(to *byte, names map[string]byte) error {
		letter, ok := names[o.Value]
		if !ok {
			return l.Usage(2, "invalid argument '%s' for '--%s'", o.Value, o.Name)
		}
		*to = letter
		return nil
	}
	switch o.Name {
	case "group-directories-first":
		l.dirsFirst = true
	case "color":
		l.color = o.Value == "always" || o.Value == "yes" || o.Value == "force" || !o.Given
	case "full-time":
		l.format, l.style = 'l', "full-iso"
	case "time-style":
		l.style = strings.TrimPrefix(o.Value, "posix-")
	case "w":
		_, err := fmt.Sscan(o.Value, &l.width)
		if err != nil {
			return l.Die(2, "invalid line width: '%s'", o.Value)
		}
	case "format":
		return choose(&l.format, map[string]byte{"long": 'l', "verbose": 'l', "single-column": '1', "commas": 'm', "across": 'x',
			"horizontal": 'x', "vertical": 'C'})
	case "sort":
		return choose(&l.sort, map[string]byte{"none": 'U', "size": 'S', "time": 't', "version": 'v', "extension": 'X', "name": 'n'})
	case "time":
		return choose(&l.time, map[string]byte{"atime": 'a', "access": 'a', "use": 'a', "ctime": 'c', "status": 'c', "mtime": 'm',
			"modification": 'm', "birth": 'c', "creation": 'c'})
	case "indicator-style":
		return choose(&l.classify, map[string]byte{"none": 0, "slash": 'p', "file-type": 't', "classify": 'F'})
	}
	return nil
}

// operands looks at what was named, and tells the directories that are to be listed from the rest.
func (l *lister) operands(ctx context.Context, names []string) (files, dirs []entry, err error) {
	for _, name := range names {
		look := l.FS.Stat
		if l.follow == 0 && (l.format == 'l' || l.directory || l.classify == 'F') {
			look = l.FS.Lstat
		}
		a, err := look(ctx, name)
		if err != nil && l.follow == 0 {
			a, err = l.FS.Lstat(ctx, name)
		}
		if err != nil {
			if err = l.FaultAt(ctx, "cannot access '"+name+"'", err); err != nil {
				return nil, nil, err
			}
			l.Status = 2
			continue
		}
		e := entry{name: name, path: name, attr: a}
		if a.Type == vfs.TypeDir && !l.directory {
			dirs = append(dirs, e)
		} else {
			l.complete(ctx, &e)
			files = append(files, e)
		}
	}
	l.order(files)
	l.order(dirs)
	return files, dirs, nil
}

// complete finds out where a symlink leads, if that is shown.
func (l *lister) complete(ctx context.Context, e *entry) {
	if e.attr.Type != vfs.TypeSymlink {
		return
	}
	e.target, _ = l.FS.Readlink(ctx, e.path) // gone meanwhile: shown without
	e.linked, _ = l.FS.Stat(ctx, e.path)
}

func (l *lister) list(ctx context.Context, dir string, operand bool) error {
	entries, err := l.read(ctx, dir)
	if err != nil {
		if err = l.FaultAt(ctx, "cannot open directory '"+dir+"'", err); err == nil {
			if l.Status = 1; operand {
				l.Status = 2
			}
		}
		return err
	}
	if l.printed {
		_, _ = l.Out.WriteString(l.end)
	}
	l.printed = true
	if l.headings {
		fmt.Fprintf(l.Out, "%s:%s", dir, l.end)
	}
	if err := l.print(ctx, entries, true); err != nil || !l.recursive {
		return err
	}
	for _, e := range entries {
		if e.attr.Type == vfs.TypeDir && e.name != "." && e.name != ".." {
			if err := l.list(ctx, joinPath(dir, e.name), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// needsAttr says whether the listing shows or sorts by more than names and types.
func (l *lister) needsAttr() bool {
	return l.format == 'l' || l.blocks || l.classify == 'F' || l.color || l.follow == 'L' || strings.IndexByte("tS", l.sort) >= 0
}

func (l *lister) read(ctx context.Context, dir string) ([]entry, error) {
	listed, err := l.FS.ReadDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := l.Step(ctx, 1+len(listed)); err != nil {
		return nil, err
	}
	var entries []entry
	if l.hidden == 'a' {
		for _, name := range []string{".", ".."} {
			a, err := l.FS.Stat(ctx, joinPath(dir, name))
			if err == nil {
				entries = append(entries, entry{name: name, path: joinPath(dir, name), attr: a})
			}
		}
	}
	for _, d := range listed {
		if l.hidden == 0 && strings.HasPrefix(d.Name, ".") || l.ignored(d.Name) {
			continue
		}
		e := entry{name: d.Name, path: joinPath(dir, d.Name), attr: vfs.Attr{Ino: d.Ino, Type: d.Type}}
		if l.needsAttr() {
			look := l.FS.Lstat
			if l.follow == 'L' {
				look = l.FS.Stat
			}
			if e.attr, err = look(ctx, e.path); err != nil {
				continue // gone since the directory was read
			}
			l.complete(ctx, &e)
		}
		entries = append(entries, e)
	}
	l.order(entries)
	return entries, nil
}

func (l *lister) ignored(name string) bool {
	for _, pattern := range l.ignore {
		if tool.Glob(pattern, name, false) {
			return true
		}
	}
	return false
}

func (l *lister) order(entries []entry) {
	if l.sort == 'U' {
		return
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		order := l.compare(a, b)
		if l.reverse {
			order = -order
		}
		if l.dirsFirst {
			x, y := a.isDir(), b.isDir()
			if x != y {
				return map[bool]int{true: -1, false: 1}[x]
			}
		}
		return order
	})
}

func (e entry) isDir() bool { return e.attr.Type == vfs.TypeDir || e.linked.Type == vfs.TypeDir }

func (l *lister) compare(a, b entry) int {
	order := 0
	switch l.sort {
	case 't':
		order = cmp.Compare(l.when(b.attr), l.when(a.attr))
	case 'S':
		order = cmp.Compare(b.attr.Size, a.attr.Size)
	case 'X':
		order = strings.Compare(extension(a.name), extension(b.name))
	case 'v':
		order = tool.CompareVersions(a.name, b.name)
	}
	return cmp.Or(order, strings.Compare(a.name, b.name))
}

func extension(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return ""
	}
	return name[i:]
}

func (l *lister) when(a vfs.Attr) vfs.Time {
	switch l.time {
	case 'c':
		return a.Ctime
	case 'a':
		return a.Atime
	}
	return a.Mtime
}
