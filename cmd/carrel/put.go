package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

func (p *program) putCommand() *cli.Command {
	return &cli.Command{
		Name:      "put",
		Usage:     "copy files and directories into a workspace",
		ArgsUsage: "FILE|DIR|-... WORKSPACE:/PATH",
		Description: "Copies into PATH when that is a directory, else to PATH itself. Metadata is kept. - is stdin, as a file\n" +
			"of mode 0644. A file that is there is replaced when the new one is whole.",
		Flags:  []cli.Flag{storeFlag()},
		Action: p.put,
	}
}

func (p *program) put(c *cli.Context) error {
	args, err := arguments(c, 2, -1)
	if err != nil {
		return err
	}
	sources := args[:len(args)-1]
	to, err := parseAddress(c, args[len(args)-1])
	if err != nil {
		return err
	}
	err = p.withWorkspace(c, to.workspace, func(w control.Workspace) error {
		for _, from := range sources {
			if err := p.putOne(c.Context, w, from, to.path, len(sources) > 1); err != nil {
				return fmt.Errorf("put %s to %s: %w", from, to, err)
			}
		}
		return w.Sync(c.Context)
	})
	return err
}

// putOne copies to a path, or into the directory there, which several need.
func (p *program) putOne(ctx context.Context, tree vfs.Tree, from, path string, several bool) error {
	walker := treepath.Walker{Tree: tree}
	at, err := walker.Find(ctx, path)
	var place treepath.Place
	switch {
	case err == nil && at.Attr.Type == vfs.TypeDir:
		if place, err = placeIn(at.Attr.Ino, from); err != nil {
			return err
		}
	case several || strings.HasSuffix(path, "/"):
		return told(fmt.Errorf("%q: %w", path, notDir(err)), "Several files, or a path with a slash at its end, need a "+
			"directory that is there.")
	default:
		if place, err = walker.Place(ctx, path); err != nil {
			return err
		}
	}
	sink := transfer.NewTreeSink(tree, place.Dir)
	if from == "-" {
		n := ownNode(0o644)
		return sink.PutStream(ctx, &transfer.Entry{Path: place.Name, Mode: n.Mode, UID: n.UID, GID: n.GID}, p.stdin)
	}
	_, err = p.transfer(ctx, &transfer.HostSource{Path: from, As: place.Name, Warn: p.warn}, sink, -1)
	return err
}

func notDir(err error) error {
	if err != nil {
		return err
	}
	return vfs.ErrNotDir
}

func placeIn(dir vfs.Ino, from string) (treepath.Place, error) {
	if from == "-" {
		return treepath.Place{}, told(vfs.ErrIsDir, "stdin has no name: give the path of a file.")
	}
	abs, err := filepath.Abs(from)
	if err != nil {
		return treepath.Place{}, err
	}
	name := filepath.Base(abs)
	return treepath.Place{Dir: dir, Name: name}, vfs.CheckName(name)
}
