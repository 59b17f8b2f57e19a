package localpath

import (
	"context"
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// namesIn returns the names in a directory.
func namesIn(ctx context.Context, tree vfs.Tree, dir vfs.Ino) (names []string, err error) {
	err = tree.ReadDir(ctx, dir, 0, func(d vfs.Dirent) bool {
		names = append(names, d.Name)
		return true
	})
	return names, err
}

// walk calls f for a directory and each below it.
func walk(ctx context.Context, tree vfs.Tree, dir vfs.Ino, f func(dir vfs.Ino) error) error {
	if err := f(dir); err != nil {
		return err
	}
	var below []vfs.Ino
	err := tree.ReadDir(ctx, dir, 0, func(d vfs.Dirent) bool {
		if d.Type == vfs.TypeDir {
			below = append(below, d.Ino)
		}
		return true
	})
	for _, sub := range below {
		if err == nil {
			err = walk(ctx, tree, sub, f)
		}
	}
	return err
}

// removeAll removes a name and all below it. It is no error when there is none.
func removeAll(ctx context.Context, tree vfs.Tree, dir vfs.Ino, name string) error {
	a, err := tree.Lookup(ctx, dir, name)
	switch {
	case errors.Is(err, vfs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case a.Type != vfs.TypeDir:
		return tree.Unlink(ctx, dir, name)
	}
	names, err := namesIn(ctx, tree, a.Ino)
	if err != nil {
		return err
	}
	for _, below := range names {
		if err := removeAll(ctx, tree, a.Ino, below); err != nil {
			return err
		}
	}
	return tree.Rmdir(ctx, dir, name)
}
