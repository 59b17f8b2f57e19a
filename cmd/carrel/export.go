package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/cmd/carrel/transfer"
)

func (p *program) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "copy a workspace to a directory or a tar stream",
		ArgsUsage: "WORKSPACE[:/PATH] DIR|FILE.tar|-",
		Description: "Copies what is in the directory at PATH to DIR, or as a tar stream to FILE.tar or to stdout, and keeps\n" +
			"all metadata: modes, owners by number (into a directory only as root), times, hard links, symlinks,\n" +
			"attributes, devices, holes. DIR must be empty or not be there. FILE.tar appears when it is whole.",
		Flags: []cli.Flag{
			storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print what was copied as a JSON object; not with -"},
		},
		Action: p.exportTree,
	}
}

func (p *program) exportTree(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	from, err := parseAddress(c, args[0])
	if err != nil {
		return err
	}
	to := args[1]
	if to == "-" && c.Bool("json") {
		return &usageError{c, "--json and a tar stream cannot both go to stdout"}
	}
	if to == "-" && p.screen {
		return &usageError{c, "a tar stream would spoil the terminal: redirect stdout, or name a file"}
	}
	err = p.withWorkspace(c, from.workspace, func(w control.Workspace) error { return p.exportFrom(c, w, from.path, to) })
	if err != nil {
		return fmt.Errorf("export %s to %s: %w", from, to, err)
	}
	return nil
}

func (p *program) exportFrom(c *cli.Context, w control.Workspace, path, to string) error {
	n, err := treepath.Walker{Tree: w}.Find(c.Context, path)
	if err != nil {
		return err
	}
	if n.Attr.Type != vfs.TypeDir {
		return told(fmt.Errorf("%q: %w", path, vfs.ErrNotDir), "'carrel get' copies a single file.")
	}
	source := &transfer.TreeSource{Tree: w, Root: n.Attr.Ino}
	var r transfer.Report
	switch {
	case to == "-":
		r, err = p.exportTar(c.Context, source, p.stdout)
		err = errors.Join(err, p.stdout.Flush())
	case strings.HasSuffix(to, ".tar"):
		r, err = p.exportFile(c.Context, source, to)
	default:
		r, err = p.exportDir(c.Context, source, to)
	}
	if err != nil {
		return err
	}
	return p.printReport(c, r)
}

func (p *program) exportTar(ctx context.Context, from transfer.Source, to io.Writer) (transfer.Report, error) {
	return p.transfer(ctx, from, transfer.NewTarSink(to, p.warn), -1)
}

// exportFile writes a tar file beside its name and renames it when it is whole and durable.
func (p *program) exportFile(ctx context.Context, from transfer.Source, to string) (transfer.Report, error) {
	f, err := renameio.NewPendingFile(to, renameio.WithPermissions(0o644), renameio.WithTempDir(filepath.Dir(to)))
	if err != nil {
		return transfer.Report{}, err
	}
	defer f.Cleanup()
	w := bufio.NewWriterSize(f, 1<<20)
	r, err := p.exportTar(ctx, from, w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	return r, err
}

func (p *program) exportDir(ctx context.Context, from transfer.Source, to string) (transfer.Report, error) {
	if err := makeEmptyDir(to); err != nil {
		return transfer.Report{}, err
	}
	sink, err := transfer.NewHostSink(to, p.warn)
	if err != nil {
		return transfer.Report{}, err
	}
	r, err := p.transfer(ctx, from, sink, -1)
	return r, errors.Join(err, sink.Close())
}

// makeEmptyDir makes a directory whose parent is there, or takes one that is empty.
func makeEmptyDir(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return told(fmt.Errorf("%s: %w", dir, vfs.ErrNotEmpty), "Name a directory that is not there, or one that is empty.")
	}
	return nil
}

// parentPath is all of a path but its last name.
func parentPath(path string) string {
	return filepath.Dir(strings.TrimRight("/"+path, "/"))
}
