package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

func (p *program) lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list a directory of a workspace",
		ArgsUsage: "WORKSPACE[:/PATH]...",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.BoolFlag{Name: "long", Aliases: []string{"l"}, Usage: "show type, mode, links, owner, size and time"},
			&cli.BoolFlag{Name: "directory", Aliases: []string{"d"}, Usage: "show the node itself, not what is in it"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"},
		},
		Action: p.ls,
	}
}

func (p *program) ls(c *cli.Context) error {
	args, err := arguments(c, 1, -1)
	if err != nil {
		return err
	}
	for _, arg := range args {
		at, err := parseAddress(c, arg)
		if err != nil {
			return err
		}
		err = p.withWorkspace(c, at.workspace, func(w control.Workspace) error {
			l := lister{p, w, c.Bool("long"), c.Bool("json")}
			return l.list(c.Context, at.path, c.Bool("directory"))
		})
		if err != nil {
			return fmt.Errorf("ls %s: %w", at, err)
		}
	}
	return nil
}

type lister struct {
	*program
	tree vfs.Tree
	long bool
	json bool
}

func (l *lister) list(ctx context.Context, path string, itself bool) error {
	walker := treepath.Walker{Tree: l.tree}
	find := walker.Find
	if itself || l.long && !strings.HasSuffix(path, "/") {
		find = walker.FindNoFollow
	}
	n, err := find(ctx, path)
	if err != nil {
		return err
	}
	path = "/" + strings.Trim(path, "/")
	if itself || n.Attr.Type != vfs.TypeDir {
		return l.print(ctx, path, path, n.Attr)
	}
	entries, err := readDir(ctx, l.tree, n.Attr.Ino)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := l.entry(ctx, path, e); err != nil {
			return err
		}
	}
	return nil
}

// entry prints one name of a directory. Its attributes are read only when they are shown.
func (l *lister) entry(ctx context.Context, dir string, e vfs.Dirent) error {
	var a vfs.Attr
	if l.long || l.json {
		var err error
		if a, err = l.tree.Stat(ctx, e.Ino); err != nil {
			return err
		}
	}
	return l.print(ctx, e.Name, strings.TrimSuffix(dir, "/")+"/"+e.Name, a)
}

func (l *lister) print(ctx context.Context, name, path string, a vfs.Attr) error {
	target := ""
	if a.Type == vfs.TypeSymlink {
		var err error
		if target, err = l.tree.Readlink(ctx, a.Ino); err != nil {
			return err
		}
	}
	if l.json {
		return l.printJSON(jsonOf(path, a, target))
	}
	line := l.shown(name)
	if l.long {
		line = l.longLine(line, a)
		if target != "" {
			line += " -> " + l.shown(target)
		}
	}
	_, err := fmt.Fprintln(l.stdout, line)
	return err
}

func (l *lister) longLine(name string, a vfs.Attr) string {
	size := fmt.Sprint(a.Size)
	if a.Type == vfs.TypeCharDev || a.Type == vfs.TypeBlockDev {
		size = fmt.Sprintf("%d, %d", unix.Major(uint64(a.Rdev)), unix.Minor(uint64(a.Rdev)))
	}
	when := a.Mtime.Go().Local().Format("2006-01-02 15:04:05")
	return fmt.Sprintf("%s %3d %5d %5d %12s %s %s", modeString(a), a.Nlink, a.UID, a.GID, size, when, name)
}

// readDir returns the entries of a directory by name.
func readDir(ctx context.Context, tree vfs.Tree, dir vfs.Ino) ([]vfs.Dirent, error) {
	var entries []vfs.Dirent
	err := tree.ReadDir(ctx, dir, 0, func(d vfs.Dirent) bool {
		entries = append(entries, d)
		return true
	})
	slices.SortFunc(entries, func(a, b vfs.Dirent) int { return strings.Compare(a.Name, b.Name) })
	return entries, err
}
