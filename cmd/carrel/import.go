package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "copy a directory or a tar stream into a workspace",
		ArgsUsage: "DIR|FILE.tar|- WORKSPACE[:/PATH]",
		Description: "Copies what is in DIR, or in the tar stream of FILE or of stdin, into the directory at PATH, and keeps\n" +
			"all metadata: modes, owners by number, times, hard links, symlinks, attributes, devices, holes. The\n" +
			"workspace and the directory are made when they are not there. Directories that are there are merged into,\n" +
			"files are replaced by whole ones. When it fails in the middle, what came in before stays, and nothing\n" +
			"that was there is lost.",
		Flags:  []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print what was copied as a JSON object"}},
		Action: p.importTree,
	}
}

func (p *program) importTree(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	to, err := parseAddress(c, args[1])
	if err != nil {
		return err
	}
	from, closeFrom, total, err := p.openSource(args[0])
	if err != nil {
		return err
	}
	err = p.withStore(c, true, func(s *opened) error {
		w, err := openOrCreate(c.Context, s, to.workspace)
		if err != nil {
			return err
		}
		return errors.Join(p.importInto(c, from, w, to.path, total), w.Close())
	})
	if err = errors.Join(err, closeFrom()); err != nil {
		return fmt.Errorf("import %s to %s: %w", args[0], to, err)
	}
	return nil
}

// openSource opens what import reads. total is how many bytes it has, -1 when that is not known.
func (p *program) openSource(name string) (from transfer.Source, closeFrom func() error, total int64, err error) {
	nothing := func() error { return nil }
	if name == "-" {
		return &transfer.TarSource{Reader: p.stdin, Warn: p.warn}, nothing, -1, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("import: %w", err)
	}
	if info.IsDir() {
		return &transfer.HostSource{Path: name + "/.", Warn: p.warn}, nothing, -1, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("import: %w", err)
	}
	return &transfer.TarSource{Reader: f, Warn: p.warn}, f.Close, info.Size(), nil
}

func openOrCreate(ctx context.Context, s control.Store, name string) (control.Workspace, error) {
	w, err := s.OpenWorkspace(ctx, name)
	if !errors.Is(err, vfs.ErrNoWorkspace) {
		return w, err
	}
	if _, err := s.CreateWorkspace(ctx, name); err != nil && !errors.Is(err, vfs.ErrExist) {
		return nil, err
	}
	return s.OpenWorkspace(ctx, name)
}

func (p *program) importInto(
	c *cli.Context, from transfer.Source, w control.Workspace, path string, total int64,
) error {
	ctx := c.Context
	dir, err := makePath(ctx, w, path)
	if err != nil {
		return err
	}
	r, err := p.transfer(ctx, from, transfer.NewTreeSink(w, dir), total)
	if err == nil {
		_, err = w.Commit(ctx)
	}
	if err != nil {
		if r.Entries > 0 {
			p.say("%d entries were copied before the error, and stay", r.Entries)
		}
		return err
	}
	return p.printReport(c, r)
}

func (p *program) transfer(
	ctx context.Context, from transfer.Source, to transfer.Sink, total int64,
) (transfer.Report, error) {
	b := p.newBar("", total, true)
	defer b.close()
	return transfer.Copy(ctx, from, to, b.transfer)
}

func (p *program) printReport(c *cli.Context, r transfer.Report) error {
	if c.Bool("json") {
		return p.printJSON(r)
	}
	if p.talk {
		p.say("%d entries, %d files, %d bytes", r.Entries, r.Files, r.Bytes)
	}
	return nil
}

// makePath finds a directory of a workspace, making it and its parents where they are not there, with mode 0755.
func makePath(ctx context.Context, tree vfs.Tree, path string) (vfs.Ino, error) {
	walker := treepath.Walker{Tree: tree}
	n, err := walker.Find(ctx, path)
	switch {
	case err == nil && n.Attr.Type != vfs.TypeDir:
		return 0, fmt.Errorf("%q: %w", path, vfs.ErrNotDir)
	case err == nil:
		return n.Attr.Ino, nil
	case !errors.Is(err, vfs.ErrNotExist):
		return 0, err
	}
	at, placeErr := walker.Place(ctx, path)
	if errors.Is(placeErr, vfs.ErrNotExist) {
		if _, err := makePath(ctx, tree, parentPath(path)); err != nil {
			return 0, err
		}
		at, placeErr = walker.Place(ctx, path)
	}
	if placeErr != nil {
		return 0, placeErr
	}
	a, err := tree.Mkdir(ctx, at.Dir, at.Name, ownNode(0o755))
	if err != nil {
		return 0, fmt.Errorf("make directory %q: %w", path, err)
	}
	return a.Ino, nil
}

// ownNode is a node that belongs to whoever runs the command.
func ownNode(mode uint32) vfs.NewNode {
	return vfs.NewNode{Mode: mode, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}
