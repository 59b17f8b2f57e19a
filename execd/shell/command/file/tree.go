package file

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/mode"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var treeOptions = getopt.New("aCdDfFghI:iL:lnP:pqrstuUvxX", "noreport", "dirsfirst", "prune", "sort::", "charset:",
	"filelimit:", "matchdirs", "gitignore")

// drawer is what one tree does.
type drawer struct {
	*tool.Call
	all, dirsOnly, full, flat, sizes, human, perms, classify bool
	report, dirsFirst, reverse, byTime                       bool
	depth                                                    int
	only, ignore                                             []string
	dirs, files                                              int
}

func tree(ctx context.Context, c *tool.Call) error {
	options, names, err := c.Options(treeOptions, 1)
	if err != nil {
		return err
	}
	d := &drawer{Call: c, report: true, depth: 1 << 30}
	for _, o := range options {
		if err := d.set(o); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	for _, name := range names {
		if err := d.draw(ctx, name); err != nil {
			return err
		}
	}
	if !d.report {
		return nil
	}
	fmt.Fprintf(c.Out, "\n%d %s", d.dirs, plural(d.dirs, "directory", "directories"))
	if !d.dirsOnly {
		fmt.Fprintf(c.Out, ", %d %s", d.files, plural(d.files, "file", "files"))
	}
	_, err = c.Out.WriteString("\n")
	return err
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func (d *drawer) set(o getopt.Option) error {
	switch o.Name {
	case "a":
		d.all = true
	case "d":
		d.dirsOnly = true
	case "f":
		d.full = true
	case "F":
		d.classify = true
	case "i":
		d.flat = true
	case "s":
		d.sizes = true
	case "h":
		d.sizes, d.human = true, true
	case "p":
		d.perms = true
	case "r":
		d.reverse = true
	case "t":
		d.byTime = true
	case "L":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 1 {
			return d.Die(1, "Invalid level, must be greater than 0.")
		}
		d.depth = n
	case "P":
		d.only = append(d.only, strings.Split(o.Value, "|")...)
	case "I":
		d.ignore = append(d.ignore, strings.Split(o.Value, "|")...)
	case "noreport":
		d.report = false
	case "dirsfirst":
		d.dirsFirst = true
	}
	return nil
}

func (d *drawer) draw(ctx context.Context, name string) error {
	a, err := d.FS.Stat(ctx, name)
	if err != nil || a.Type != vfs.TypeDir {
		fmt.Fprintf(d.Out, "%s  [error opening dir]\n", name)
		d.Status = 2
		return nil
	}
	d.dirs++
	slash := map[bool]string{true: "/"}[d.classify && !strings.HasSuffix(name, "/")]
	_, _ = d.Out.WriteString(d.attributes(a) + name + slash + "\n")
	return d.children(ctx, name, "", 1)
}

func (d *drawer) attributes(a vfs.Attr) string {
	var parts []string
	if d.perms {
		parts = append(parts, mode.String(a))
	}
	if d.sizes {
		text := fmt.Sprintf("%11d", a.Size)
		if d.human {
			text = fmt.Sprintf("%4s", tool.Human(a.Size, 1024))
		}
		parts = append(parts, text)
	}
	if parts == nil {
		return ""
	}
	return "[" + strings.Join(parts, " ") + "]  "
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return tool.Glob(p, name, false) })
}

func (d *drawer) entries(ctx context.Context, dir string) ([]entry, error) {
	listed, err := d.FS.ReadDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := d.Step(ctx, 1+len(listed)); err != nil {
		return nil, err
	}
	var entries []entry
	for _, e := range listed {
		switch {
		case strings.HasPrefix(e.Name, ".") && !d.all, d.dirsOnly && e.Type != vfs.TypeDir, matchesAny(d.ignore, e.Name),
			d.only != nil && e.Type != vfs.TypeDir && !matchesAny(d.only, e.Name):
			continue
		}
		a, err := d.FS.Lstat(ctx, joinPath(dir, e.Name))
		if err == nil {
			entries = append(entries, entry{name: e.Name, path: joinPath(dir, e.Name), attr: a})
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		order := strings.Compare(a.name, b.name)
		if d.byTime {
			order = cmp.Or(cmp.Compare(a.attr.Mtime, b.attr.Mtime), order)
		}
		if d.reverse {
			order = -order
		}
		if x, y := a.isDir(), b.isDir(); d.dirsFirst && x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return order
	})
	return entries, nil
}

func (d *drawer) children(ctx context.Context, dir, indent string, depth int) error {
	entries, err := d.entries(ctx, dir)
	if err != nil {
		if tool.Ends(ctx, err) {
			return err
		}
		d.Fault("%s: %s", dir, command.Reason(err))
		return nil
	}
	for i, e := range entries {
		branch, below := "├── ", "│\u00a0\u00a0 "
		if i == len(entries)-1 {
			branch, below = "└── ", "    "
		}
		name := e.name
		if d.full {
			name = e.path
		}
		if d.flat {
			branch, below = "", ""
		}
		if e.attr.Type == vfs.TypeSymlink {
			target, _ := d.FS.Readlink(ctx, e.path)
			name += " -> " + target
		}
		if d.classify {
			l := lister{classify: 'F'}
			name += l.indicator(e.attr)
		}
		if _, err := d.Out.WriteString(indent + branch + d.attributes(e.attr) + name + "\n"); err != nil {
			return err
		}
		if e.attr.Type != vfs.TypeDir {
			d.files++
			continue
		}
		d.dirs++
		if depth < d.depth {
			if err := d.children(ctx, e.path, indent+below, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
