package treepath

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// maxSymlinks is how many symlinks one walk follows: the kernel's own limit (path_resolution(7)).
const maxSymlinks = 40

// ErrLoop says that a walk met more symlinks than it follows.
var ErrLoop = errors.New("too many levels of symbolic links")

// Node is where a walk arrived.
type Node struct {
	Attr vfs.Attr
	Dir  vfs.Ino // the directory that Name is in; for the root, itself
	Name string  // empty for the root and after a final ".."
}

// Place is a name in a directory, whether something is there or not.
type Place struct {
	Dir  vfs.Ino
	Name string // checked with vfs.CheckName
}

// Walker resolves paths in one tree. It holds no state and is safe for concurrent use.
type Walker struct {
	Tree vfs.Tree
	Root vfs.Ino // where every path starts and which ".." does not leave; zero for the tree's root

	search func(vfs.Attr) error // may refuse to look a name up in a directory; nil for anything goes
}

// Find resolves path, following a symlink at its end. Slashes at the start mean nothing, one at the end asks for a
// directory. Errors wrap vfs's and ErrLoop, and name the path as far as the walk went.
func (w Walker) Find(ctx context.Context, path string) (Node, error) {
	return w.walk(ctx, path, true)
}

// FindNoFollow resolves path; a symlink at its end is itself the answer, unless a slash follows it.
func (w Walker) FindNoFollow(ctx context.Context, path string) (Node, error) {
	return w.walk(ctx, path, strings.HasSuffix(path, "/"))
}

// Place resolves all of path but its last name. vfs.ErrInvalid for the root and for a path that ends in "." or "..".
func (w Walker) Place(ctx context.Context, path string) (Place, error) {
	dir, name := split(path)
	if err := vfs.CheckName(name); err != nil {
		return Place{}, fail(path, err)
	}
	node, err := w.walk(ctx, dir, true)
	if err != nil {
		return Place{}, err
	}
	if node.Attr.Type != vfs.TypeDir {
		return Place{}, fmt.Errorf("%q: %w", dir, vfs.ErrNotDir)
	}
	return Place{node.Attr.Ino, name}, nil
}

// split cuts path before its last name, which is without slashes.
func split(path string) (dir, name string) {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/') + 1
	return path[:i], path[i:]
}

func (w Walker) root() vfs.Ino {
	if w.Root == 0 {
		return vfs.RootIno
	}
	return w.Root
}

// walk keeps what is still to be resolved as one string: a symlink's target is put in front of it.
func (w Walker) walk(ctx context.Context, path string, follow bool) (Node, error) {
	at, err := w.start(ctx)
	if err != nil {
		return Node{}, fail(path, err)
	}
	rest, links := path, 0
	for {
		name, after, more := next(rest)
		if name == "" {
			return at, nil
		}
		if at.Attr.Type != vfs.TypeDir {
			return Node{}, fmt.Errorf("%q: %w", path, vfs.ErrNotDir)
		}
		if w.search != nil {
			if err := w.search(at.Attr); err != nil {
				return Node{}, fail(path, err)
			}
		}
		to, err := w.step(ctx, at, name)
		if err != nil {
			return Node{}, fail(path, err)
		}
		if to.Attr.Type == vfs.TypeSymlink && (more || follow) {
			if links++; links > maxSymlinks {
				return Node{}, fmt.Errorf("%q: %w", path, ErrLoop)
			}
			target, err := w.Tree.Readlink(ctx, to.Attr.Ino)
			if err != nil {
				return Node{}, fail(path, err)
			}
			if strings.HasPrefix(target, "/") {
				if at, err = w.start(ctx); err != nil {
					return Node{}, fail(path, err)
				}
			}
			rest = target + after
			continue
		}
		if after != "" && to.Attr.Type != vfs.TypeDir {
			return Node{}, fmt.Errorf("%q: %w", path, vfs.ErrNotDir)
		}
		at, rest = to, after
	}
}

// next cuts the first name off. after keeps its slashes, so that "name/" is told from "name"; more says that a name
// follows.
func next(path string) (name, after string, more bool) {
	path = strings.TrimLeft(path, "/")
	i := strings.IndexByte(path, '/')
	if i < 0 {
		return path, "", false
	}
	return path[:i], path[i:], strings.Trim(path[i:], "/") != ""
}

// fail names the path. What a tree says of a name it cannot find speaks of inode numbers, which tell a person nothing.
func fail(path string, err error) error {
	for _, plain := range []error{vfs.ErrNotExist, vfs.ErrNotDir, vfs.ErrNameTooLong, vfs.ErrInvalid} {
		if errors.Is(err, plain) {
			err = plain
		}
	}
	return fmt.Errorf("%q: %w", path, err)
}

func (w Walker) start(ctx context.Context) (Node, error) {
	a, err := w.Tree.Stat(ctx, w.root())
	return Node{Attr: a, Dir: w.root()}, err
}

func (w Walker) step(ctx context.Context, at Node, name string) (Node, error) {
	switch {
	case name == ".":
		return at, nil
	case name == ".." && at.Attr.Ino == w.root():
		return at, nil
	case name == "..":
		a, err := w.Tree.Stat(ctx, at.Attr.Parent)
		return Node{Attr: a, Dir: a.Parent}, err
	}
	a, err := w.Tree.Lookup(ctx, at.Attr.Ino, name)
	return Node{Attr: a, Dir: at.Attr.Ino, Name: name}, err
}
