package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

func (p *program) rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove files of a workspace",
		ArgsUsage: "WORKSPACE:/PATH...",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.BoolFlag{Name: "recursive", Aliases: []string{"r"}, Usage: "remove directories with all that is in them"},
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "it is no error when there is nothing to remove"},
		},
		Action: p.rm,
	}
}

func (p *program) rm(c *cli.Context) error {
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
			return remove(c.Context, w, at.path, c.Bool("recursive"))
		})
		if c.Bool("force") && errors.Is(err, vfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("rm %s: %w", at, err)
		}
	}
	return nil
}

func remove(ctx context.Context, tree vfs.Tree, path string, recursive bool) error {
	at, err := treepath.Walker{Tree: tree}.Place(ctx, path)
	if errors.Is(err, vfs.ErrInvalid) {
		return told(err, "Name something inside of the workspace. 'carrel ws rm WORKSPACE' removes all of it.")
	}
	if err != nil {
		return err
	}
	a, err := tree.Lookup(ctx, at.Dir, at.Name)
	if err != nil {
		return err
	}
	if a.Type == vfs.TypeDir && !recursive {
		return told(vfs.ErrIsDir, "Use --recursive to remove it with all that is in it.")
	}
	if err := removeNode(ctx, tree, at.Dir, at.Name, a.Ino, a.Type); err != nil {
		return err
	}
	return tree.Sync(ctx)
}

// removeBatch is how many names are read before they are removed: it bounds the memory for a large directory.
const removeBatch = 1000

func removeNode(ctx context.Context, tree vfs.Tree, dir vfs.Ino, name string, ino vfs.Ino, t vfs.Type) error {
	if t != vfs.TypeDir {
		return tree.Unlink(ctx, dir, name)
	}
	for {
		var batch []vfs.Dirent
		err := tree.ReadDir(ctx, ino, 0, func(d vfs.Dirent) bool {
			batch = append(batch, d)
			return len(batch) < removeBatch
		})
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return tree.Rmdir(ctx, dir, name)
		}
		for _, d := range batch {
			if err := removeNode(ctx, tree, ino, d.Name, d.Ino, d.Type); err != nil {
				return err
			}
		}
	}
}
