package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TreeSource reads a workspace's tree from one of its nodes. What others change meanwhile may be in or not; a node that
// goes before its turn is left out.
type TreeSource struct {
	Tree vfs.Tree
	Root vfs.Ino
	As   string // the path that the root has as an entry; empty for the transfer's root
}

// Walk implements [Source].
func (s *TreeSource) Walk(ctx context.Context, visit func(*Entry, Content) error) error {
	return (&treeWalk{s.Tree, visit, linked[vfs.Ino]{}}).node(ctx, s.Root, s.As)
}

type treeWalk struct {
	tree   vfs.Tree
	visit  func(*Entry, Content) error
	linked linked[vfs.Ino]
}

func (w *treeWalk) node(ctx context.Context, ino vfs.Ino, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e, nlink, err := w.entry(ctx, ino, path)
	if errors.Is(err, vfs.ErrStale) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %q: %w", path, err)
	}
	if e.Type != vfs.TypeDir && nlink > 1 {
		first, err := w.linked.seen(ino, path)
		if err != nil {
			return err
		}
		if first != "" {
			return w.visit(&Entry{Path: path, Type: e.Type, Link: first}, nil)
		}
	}
	switch e.Type {
	case vfs.TypeRegular:
		return w.visit(e, &treeContent{ctx: ctx, tree: w.tree, ino: ino, size: e.Size})
	case vfs.TypeDir:
		if err := w.visit(e, nil); err != nil {
			return err
		}
		return w.children(ctx, ino, path)
	}
	return w.visit(e, nil)
}

func (w *treeWalk) entry(ctx context.Context, ino vfs.Ino, path string) (*Entry, uint32, error) {
	a, err := w.tree.Stat(ctx, ino)
	if err != nil {
		return nil, 0, err
	}
	e := &Entry{
		Path: path, Type: a.Type, Mode: a.Mode, UID: a.UID, GID: a.GID, Rdev: a.Rdev, Size: a.Size, Atime: a.Atime,
		Mtime: a.Mtime,
	}
	if a.Type == vfs.TypeSymlink {
		if e.Target, err = w.tree.Readlink(ctx, ino); err != nil {
			return nil, 0, err
		}
	}
	names, err := w.tree.ListXattr(ctx, ino)
	for _, name := range names {
		value, err := w.tree.GetXattr(ctx, ino, name)
		if errors.Is(err, vfs.ErrNoXattr) {
			continue // removed since
		}
		if err != nil {
			return nil, 0, err
		}
		e.Xattrs = append(e.Xattrs, Xattr{name, value})
	}
	return e, a.Nlink, err
}

func (w *treeWalk) children(ctx context.Context, dir vfs.Ino, path string) error {
	var inside error
	err := w.tree.ReadDir(ctx, dir, 0, func(d vfs.Dirent) bool {
		inside = w.node(ctx, d.Ino, join(path, d.Name))
		return inside == nil
	})
	if inside != nil {
		return inside
	}
	if err != nil {
		return fmt.Errorf("list %q: %w", path, err)
	}
	return nil
}

// treeContent is a file of a tree.
type treeContent struct {
	ctx    context.Context // of the walk: io.Reader takes none
	tree   vfs.Tree
	ino    vfs.Ino
	size   uint64
	reader *runReader
}

func (c *treeContent) Runs(ctx context.Context) ([]Run, bool, error) {
	next := func(off uint64) (uint64, bool, error) {
		data, err := c.tree.Seek(ctx, c.ino, off, vfs.SeekData)
		if errors.Is(err, vfs.ErrNoData) {
			return 0, false, nil
		}
		return data, err == nil, err
	}
	hole := func(off uint64) (uint64, error) {
		end, err := c.tree.Seek(ctx, c.ino, off, vfs.SeekHole)
		if errors.Is(err, vfs.ErrNoData) {
			return off, nil // cut since; the read will say so
		}
		return end, err
	}
	runs, err := findRuns(c.size, next, hole)
	c.reader = &runReader{runs: append([]Run(nil), runs...), readAt: func(p []byte, off uint64) (int, error) {
		return c.tree.ReadAt(c.ctx, c.ino, p, off)
	}}
	return runs, true, err
}

func (c *treeContent) Read(p []byte) (int, error) { return c.reader.Read(p) }
