package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

func (p *program) catCommand() *cli.Command {
	return &cli.Command{
		Name:      "cat",
		Usage:     "print files of a workspace",
		ArgsUsage: "WORKSPACE:/PATH...",
		Flags:     []cli.Flag{storeFlag()},
		Action:    p.cat,
	}
}

func (p *program) cat(c *cli.Context) error {
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
			return catFile(c.Context, w, at.path, p.stdout)
		})
		if err != nil {
			return fmt.Errorf("cat %s: %w", at, err)
		}
	}
	return nil
}

func catFile(ctx context.Context, tree vfs.Tree, path string, to io.Writer) error {
	n, err := treepath.Walker{Tree: tree}.Find(ctx, path)
	if err != nil {
		return err
	}
	r, err := newFileReader(ctx, tree, n.Attr)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, r, make([]byte, control.MaxTransfer))
	return err
}

// fileReader reads a regular file of a tree from its start.
type fileReader struct {
	ctx  context.Context // of the command: io.Reader takes none
	tree vfs.Tree
	ino  vfs.Ino
	off  uint64
}

// newFileReader returns vfs.ErrIsDir for a directory, and vfs.ErrInvalid for anything else that has no bytes.
func newFileReader(ctx context.Context, tree vfs.Tree, a vfs.Attr) (*fileReader, error) {
	switch a.Type {
	case vfs.TypeRegular:
		return &fileReader{ctx: ctx, tree: tree, ino: a.Ino}, nil
	case vfs.TypeDir:
		return nil, vfs.ErrIsDir
	}
	return nil, fmt.Errorf("it is a %s, which has no bytes in a workspace: %w", typeWords[a.Type].word, vfs.ErrInvalid)
}

func (r *fileReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.tree.ReadAt(r.ctx, r.ino, p, r.off)
	r.off += uint64(n)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}
