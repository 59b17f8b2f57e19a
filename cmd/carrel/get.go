package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

func (p *program) getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "copy files and directories out of a workspace",
		ArgsUsage: "WORKSPACE:/PATH... DEST",
		Description: "Copies into DEST when that is a directory, else to DEST itself. Metadata is kept, owners only as root.\n" +
			"A file that is there is replaced when the new one is whole.",
		Flags:  []cli.Flag{storeFlag()},
		Action: p.get,
	}
}

func (p *program) get(c *cli.Context) error {
	args, err := arguments(c, 2, -1)
	if err != nil {
		return err
	}
	sources, to := args[:len(args)-1], args[len(args)-1]
	for _, arg := range sources {
		from, err := parseAddress(c, arg)
		if err != nil {
			return err
		}
		err = p.withWorkspace(c, from.workspace, func(w control.Workspace) error {
			return p.getOne(c.Context, w, from, to, len(sources) > 1)
		})
		if err != nil {
			return fmt.Errorf("get %s to %s: %w", from, to, err)
		}
	}
	return nil
}

func (p *program) getOne(ctx context.Context, tree vfs.Tree, from address, to string, several bool) error {
	n, err := treepath.Walker{Tree: tree}.Find(ctx, from.path)
	if err != nil {
		return err
	}
	dir, name, err := hostPlace(to, several)
	if err != nil {
		return err
	}
	if name == "" {
		name = n.Name
	}
	if name == "" { // the root, or a path that ends in ".."
		name = from.workspace
	}
	sink, err := transfer.NewHostSink(dir, p.warn)
	if err != nil {
		return err
	}
	_, err = p.transfer(ctx, &transfer.TreeSource{Tree: tree, Root: n.Attr.Ino, As: name}, sink, -1)
	return errors.Join(err, sink.Close())
}

// hostPlace returns the directory to write into, and the name there, which is empty when to is that directory.
func hostPlace(to string, several bool) (dir, name string, err error) {
	info, err := os.Stat(to)
	switch {
	case err == nil && info.IsDir():
		return to, "", nil
	case err == nil && (several || strings.HasSuffix(to, "/")):
		return "", "", told(fmt.Errorf("%s: %w", to, vfs.ErrNotDir), "Several files need a directory that is there.")
	case errors.Is(err, os.ErrNotExist) && (several || strings.HasSuffix(to, "/")):
		return "", "", told(fmt.Errorf("%s: %w", to, vfs.ErrNotExist), "Make the directory first.")
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", "", err
	}
	return filepath.Dir(to), filepath.Base(to), nil
}
