package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

func (p *program) findCommand() *cli.Command {
	return &cli.Command{
		Name:      "find",
		Usage:     "list all that is below a directory of a workspace",
		ArgsUsage: "WORKSPACE[:/PATH]",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.StringFlag{Name: "name", Usage: "only names that match `PATTERN`; * ? and [a-z] mean what they do in a shell"},
			&cli.StringFlag{Name: "type", Usage: "only type `LETTER`, of f (file), d (dir), l (symlink), p, s, c, b"},
			&cli.IntFlag{Name: "max-depth", Usage: "not deeper than `N` below the start", Value: -1, DefaultText: "any depth"},
			&cli.BoolFlag{Name: "print0", Aliases: []string{"0"}, Usage: "end each path with NUL, for xargs -0"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"},
		},
		Action: p.find,
	}
}

func (p *program) find(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	at, err := parseAddress(c, args[0])
	if err != nil {
		return err
	}
	match, err := parseFilter(c)
	if err != nil {
		return err
	}
	err = p.withWorkspace(c, at.workspace, func(w control.Workspace) error {
		return walkTree(c.Context, w, at.path, c.Int("max-depth"), func(path string, d vfs.Dirent) error {
			if !match(d) {
				return nil
			}
			return p.printFound(c, w, path, d)
		})
	})
	if err != nil {
		return fmt.Errorf("find %s: %w", at, err)
	}
	return nil
}

func parseFilter(c *cli.Context) (func(vfs.Dirent) bool, error) {
	pattern, letter := c.String("name"), c.String("type")
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, &usageError{c, fmt.Sprintf("pattern %q: %v", pattern, err)}
	}
	known := letter == ""
	for _, w := range typeWords {
		known = known || w.letter == letter
	}
	if !known {
		return nil, &usageError{c, fmt.Sprintf("type %q is none of f, d, l, p, s, c, b", letter)}
	}
	return func(d vfs.Dirent) bool {
		if letter != "" && typeWords[d.Type].letter != letter {
			return false
		}
		ok, _ := path.Match(pattern, d.Name) // the pattern is known to be good
		return ok || pattern == ""
	}, nil
}

func (p *program) printFound(c *cli.Context, tree vfs.Tree, path string, d vfs.Dirent) error {
	switch {
	case c.Bool("json"):
		a, err := tree.Stat(c.Context, d.Ino)
		if errors.Is(err, vfs.ErrStale) {
			return nil // removed since it was listed
		}
		if err != nil {
			return err
		}
		l := lister{program: p, tree: tree, json: true}
		return l.print(c.Context, path, path, a)
	case c.Bool("print0"):
		_, err := p.stdout.WriteString(path + "\x00")
		return err
	}
	_, err := p.stdout.WriteString(p.shown(path) + "\n")
	return err
}

// walkTree visits the node at a path and all that is below it, parents first, symlinks not followed. Paths are absolute
// in the workspace. maxDepth counts from the start; negative is any.
func walkTree(
	ctx context.Context, tree vfs.Tree, start string, maxDepth int, visit func(path string, d vfs.Dirent) error,
) error {
	n, err := treepath.Walker{Tree: tree}.Find(ctx, start)
	if err != nil {
		return err
	}
	w := treeWalk{tree, maxDepth, visit}
	return w.node(ctx, "/"+strings.Trim(start, "/"), vfs.Dirent{Name: n.Name, Ino: n.Attr.Ino, Type: n.Attr.Type}, 0)
}

type treeWalk struct {
	tree     vfs.Tree
	maxDepth int
	visit    func(path string, d vfs.Dirent) error
}

func (w *treeWalk) node(ctx context.Context, path string, d vfs.Dirent, depth int) error {
	if err := w.visit(path, d); err != nil {
		return err
	}
	if d.Type != vfs.TypeDir || depth == w.maxDepth {
		return nil
	}
	var inside error
	err := w.tree.ReadDir(ctx, d.Ino, 0, func(child vfs.Dirent) bool {
		inside = w.node(ctx, strings.TrimSuffix(path, "/")+"/"+child.Name, child, depth+1)
		return inside == nil
	})
	if errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNotExist) {
		err = nil // removed since it was listed
	}
	return errors.Join(inside, err)
}
