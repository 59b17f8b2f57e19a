package treepath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// FS is a tree as one program sees it: by path, from a directory, as somebody. It is a value that holds no state of
// its own: copying it is how a program gets another directory or umask, and it is safe for concurrent use.
//
// A path is absolute or relative to Dir. Errors wrap the sentinels of vfs, ErrLoop and ErrAccess, and name the
// operation and the path as it was given.
type FS struct {
	Tree  vfs.Tree
	Root  vfs.Ino // what "/" is, and which ".." does not leave; zero for the tree's root
	Dir   string  // absolute; where a relative path starts; empty for the root
	Cred  Cred
	Umask uint32

	// Device opens what is no regular file, directory or symlink: FIFOs and devices. Nil for refusing them. The path is
	// the one that was opened, made absolute.
	Device func(ctx context.Context, path string, a vfs.Attr, flag Flag) (Device, error)
}

// Device is what an FS's owner gives in place of the bytes of a FIFO or a device.
type Device interface {
	io.Reader
	io.Writer
	io.Closer
}

// At returns the same view from another directory, which may be relative to the present one. Whether it is there shows
// when it is used.
func (f FS) At(dir string) FS {
	f.Dir = f.Abs(dir)
	return f
}

// Abs makes a path absolute. It does not clean it: ".." after a symlink is the business of a walk.
func (f FS) Abs(p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	if f.Dir == "" || f.Dir == "/" {
		return "/" + p
	}
	return f.Dir + "/" + p
}

func (f FS) walker() Walker {
	w := Walker{Tree: f.Tree, Root: f.Root}
	if f.Cred.UID != 0 {
		w.search = func(a vfs.Attr) error { return f.Cred.May(a, AccessExec) }
	}
	return w
}

// find is a walk from Dir. An empty path leads nowhere (path_resolution(7)), unlike in Walker.
func (f FS) find(ctx context.Context, op, p string, follow bool) (Node, error) {
	if p == "" {
		return Node{}, opError(op, p, vfs.ErrNotExist)
	}
	w := f.walker()
	walk := w.FindNoFollow
	if follow {
		walk = w.Find
	}
	n, err := walk(ctx, f.Abs(p))
	return n, opError(op, p, err)
}

// place is the directory and the name of what is to be made or removed there, checked for the right to do so.
func (f FS) place(ctx context.Context, op, p string) (Place, error) {
	if p == "" {
		return Place{}, opError(op, p, vfs.ErrNotExist)
	}
	at, err := f.walker().Place(ctx, f.Abs(p))
	if err != nil {
		return Place{}, opError(op, p, err)
	}
	if f.Cred.UID == 0 {
		return at, nil
	}
	dir, err := f.Tree.Stat(ctx, at.Dir)
	if err == nil {
		err = f.Cred.May(dir, AccessWrite|AccessExec)
	}
	return at, opError(op, p, err)
}

// opError names the operation and the path once: a walk's own error names it too, so only its cause is kept.
func opError(op, p string, err error) error {
	if err == nil {
		return nil
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		err = cause
	}
	return fmt.Errorf("%s %q: %w", op, p, err)
}

// Stat returns the attributes of what path leads to, through a symlink at its end.
func (f FS) Stat(ctx context.Context, path string) (vfs.Attr, error) {
	n, err := f.find(ctx, "stat", path, true)
	return n.Attr, err
}

// Lstat returns the attributes of what path leads to, a symlink's own when that is what it is.
func (f FS) Lstat(ctx context.Context, path string) (vfs.Attr, error) {
	n, err := f.find(ctx, "lstat", path, false)
	return n.Attr, err
}

// Access returns nil when the caller may read, write or execute (bits of want, as in access(2)) what path leads to.
func (f FS) Access(ctx context.Context, path string, want uint32) error {
	n, err := f.find(ctx, "access", path, true)
	if err != nil {
		return err
	}
	return opError("access", path, f.Cred.May(n.Attr, want))
}

// ReadDir returns the entries of a directory in bytewise order of their names, without "." and "..".
func (f FS) ReadDir(ctx context.Context, path string) ([]vfs.Dirent, error) {
	return f.ReadDirMost(ctx, path, math.MaxInt)
}

// ReadDirMost is ReadDir for who cannot do with more than most entries: vfs.ErrTooBig when there are more, of which no more are
// held in memory.
func (f FS) ReadDirMost(ctx context.Context, path string, most int) ([]vfs.Dirent, error) {
	n, err := f.find(ctx, "readdir", path, true)
	if err != nil {
		return nil, err
	}
	if n.Attr.Type != vfs.TypeDir {
		return nil, opError("readdir", path, vfs.ErrNotDir)
	}
	if err := f.Cred.May(n.Attr, AccessRead); err != nil {
		return nil, opError("readdir", path, err)
	}
	var all []vfs.Dirent
	more := false
	err = f.Tree.ReadDir(ctx, n.Attr.Ino, 0, func(d vfs.Dirent) bool {
		if more = len(all) == most; !more {
			all = append(all, d)
		}
		return !more
	})
	if err == nil && more {
		return nil, fmt.Errorf("readdir %q: more than %d entries: %w", path, most, vfs.ErrTooBig)
	}
	slices.SortFunc(all, func(a, b vfs.Dirent) int { return strings.Compare(a.Name, b.Name) })
	return all, opError("readdir", path, err)
}

// Readlink returns the target of a symlink: vfs.ErrInvalid for anything else.
func (f FS) Readlink(ctx context.Context, path string) (string, error) {
	n, err := f.find(ctx, "readlink", path, false)
	if err != nil {
		return "", err
	}
	target, err := f.Tree.Readlink(ctx, n.Attr.Ino)
	return target, opError("readlink", path, err)
}

// RealPath returns the absolute path of what path leads to, without symlinks, "." or "..": vfs.ErrNotExist when
// something of it is missing. It costs a look at every directory above.
func (f FS) RealPath(ctx context.Context, p string) (string, error) {
	n, err := f.find(ctx, "realpath", p, true)
	if err != nil {
		return "", err
	}
	var names []string
	if n.Attr.Type != vfs.TypeDir {
		names = append(names, n.Name)
		if n.Attr, err = f.Tree.Stat(ctx, n.Dir); err != nil {
			return "", opError("realpath", p, err)
		}
	}
	for root := f.walker().root(); n.Attr.Ino != root; {
		up, err := f.Tree.Stat(ctx, n.Attr.Parent)
		if err != nil {
			return "", opError("realpath", p, err)
		}
		name, err := f.nameOf(ctx, up.Ino, n.Attr.Ino)
		if is(err, vfs.ErrNotExist) {
			name, err = f.unlistedName(ctx, p, up.Ino, n.Attr.Ino)
		}
		if err != nil {
			return "", opError("realpath", p, err)
		}
		names, n.Attr = append(names, name), up
	}
	slices.Reverse(names)
	return "/" + path.Join(names...), nil
}

// nameOf looks for the name by which dir leads to a directory; there is only one.
func (f FS) nameOf(ctx context.Context, dir, ino vfs.Ino) (name string, err error) {
	err = f.Tree.ReadDir(ctx, dir, 0, func(d vfs.Dirent) bool {
		if d.Ino == ino {
			name = d.Name
		}
		return name == ""
	})
	if err == nil && name == "" {
		err = vfs.ErrNotExist
	}
	return name, err
}

// unlistedName looks among the names of a path for the one by which dir leads to a directory that it does not list, as
// some trees do with what they only seem to hold.
func (f FS) unlistedName(ctx context.Context, p string, dir, ino vfs.Ino) (string, error) {
	for _, name := range strings.Split(f.Abs(p), "/") {
		if a, err := f.Tree.Lookup(ctx, dir, name); err == nil && a.Ino == ino {
			return name, nil
		}
	}
	return "", vfs.ErrNotExist
}
