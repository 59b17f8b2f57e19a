package treepath

import (
	"context"
	"errors"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// SkipDir, returned by a Walk's visit, leaves out what is below the directory visited.
var SkipDir = errors.New("skip this directory")

// Walk visits path and all below it, a directory before its entries and those in bytewise order, without following
// symlinks. visit gets the path as path/…, the attributes, and an error when the directory could not be read or the
// node not be looked at; what it returns other than nil and SkipDir ends the walk.
func (f FS) Walk(ctx context.Context, path string, visit func(path string, a vfs.Attr, err error) error) error {
	a, err := f.Lstat(ctx, path)
	err = f.visit(ctx, path, a, err, visit)
	if errors.Is(err, SkipDir) {
		return nil
	}
	return err
}

func (f FS) visit(ctx context.Context, path string, a vfs.Attr, err error,
	visit func(string, vfs.Attr, error) error) error {
	if ctx.Err() != nil {
		return opError("walk", path, vfs.ErrInterrupted)
	}
	if err := visit(path, a, err); err != nil || a.Type != vfs.TypeDir {
		return err
	}
	entries, err := f.ReadDir(ctx, path)
	if err != nil {
		return visit(path, a, err)
	}
	for _, e := range entries {
		below := strings.TrimSuffix(path, "/") + "/" + e.Name
		// By inode, not by path: a deep tree would cost the square of its depth.
		a, err := f.Tree.Stat(ctx, e.Ino)
		err = f.visit(ctx, below, a, opError("walk", below, err), visit)
		if err != nil && !errors.Is(err, SkipDir) {
			return err
		}
	}
	return nil
}
