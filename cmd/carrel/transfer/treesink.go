package transfer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// TreeSink writes into a directory of a workspace, beside what is there.
type TreeSink struct {
	tree vfs.Tree
	walk treepath.Walker
	root vfs.Ino
	dirs map[string]vfs.Ino // by path: those that were put, and parents that were found
	late []lateDir          // in the order in which they came
	buf  []byte
}

// lateDir is a directory whose attributes wait for the last entry.
type lateDir struct {
	ino vfs.Ino
	set vfs.AttrSet
}

// NewTreeSink returns a sink whose root is the directory root of tree.
func NewTreeSink(tree vfs.Tree, root vfs.Ino) *TreeSink {
	return &TreeSink{
		tree: tree, walk: treepath.Walker{Tree: tree, Root: root}, root: root,
		dirs: map[string]vfs.Ino{"": root}, buf: make([]byte, pieceSize),
	}
}

// Put implements [Sink]. A directory that is there is kept and takes the entry's metadata; any other node that is there
// is replaced. Parents that never came are made, with mode 0755.
func (s *TreeSink) Put(ctx context.Context, e *Entry, content Content) error {
	if err := s.put(ctx, e, content); err != nil {
		return fmt.Errorf("write %q: %w", e.Path, err)
	}
	return nil
}

func (s *TreeSink) put(ctx context.Context, e *Entry, content Content) error {
	if e.Path == "" {
		return s.putRoot(ctx, e)
	}
	dirPath, name := parent(e.Path)
	dir, err := s.dir(ctx, dirPath)
	if err != nil {
		return err
	}
	if e.Type == vfs.TypeDir {
		return s.putDir(ctx, e, dir, name)
	}
	delete(s.dirs, e.Path) // a symlink there may have led to a directory
	return s.place(ctx, dir, name, func(name string) error { return s.node(ctx, e, content, dir, name) })
}

func (s *TreeSink) putRoot(ctx context.Context, e *Entry) error {
	if e.Type != vfs.TypeDir {
		return vfs.ErrNotDir
	}
	return s.dress(ctx, e, s.root)
}

func (s *TreeSink) putDir(ctx context.Context, e *Entry, dir vfs.Ino, name string) error {
	a, err := s.tree.Mkdir(ctx, dir, name, vfs.NewNode{Mode: e.Mode, UID: e.UID, GID: e.GID})
	if errors.Is(err, vfs.ErrExist) {
		if a, err = s.tree.Lookup(ctx, dir, name); err == nil && a.Type != vfs.TypeDir {
			return fmt.Errorf("something else is there: %w", vfs.ErrNotDir)
		}
	}
	if err != nil {
		return err
	}
	s.dirs[e.Path] = a.Ino
	return s.dress(ctx, e, a.Ino)
}

// dress gives a directory its extended attributes, and everything else later.
func (s *TreeSink) dress(ctx context.Context, e *Entry, ino vfs.Ino) error {
	s.late = append(s.late, lateDir{ino, attrs(e)})
	return s.xattrs(ctx, e, ino)
}

// attrs is all of an entry's attributes that are set after its content.
func attrs(e *Entry) vfs.AttrSet {
	set := vfs.AttrSet{
		Mask: vfs.SetMode | vfs.SetUID | vfs.SetGID | vfs.SetAtime | vfs.SetMtime,
		Mode: e.Mode, UID: e.UID, GID: e.GID, Atime: e.Atime, Mtime: e.Mtime,
	}
	if e.Type == vfs.TypeSymlink {
		set.Mask &^= vfs.SetMode // it has none of its own
	}
	return set
}

func (s *TreeSink) xattrs(ctx context.Context, e *Entry, ino vfs.Ino) error {
	for _, x := range e.Xattrs {
		if err := s.tree.SetXattr(ctx, ino, x.Name, x.Value, 0); err != nil {
			return fmt.Errorf("attribute %q: %w", x.Name, err)
		}
	}
	return nil
}

// dir finds the directory at a path, making it when it is not there. Symlinks are followed inside the sink's root.
func (s *TreeSink) dir(ctx context.Context, path string) (vfs.Ino, error) {
	if ino, ok := s.dirs[path]; ok {
		return ino, nil
	}
	n, err := s.walk.Find(ctx, path)
	switch {
	case errors.Is(err, vfs.ErrNotExist):
		return s.makeDir(ctx, path)
	case err != nil:
		return 0, err
	case n.Attr.Type != vfs.TypeDir:
		return 0, vfs.ErrNotDir
	}
	s.dirs[path] = n.Attr.Ino
	return n.Attr.Ino, nil
}

func (s *TreeSink) makeDir(ctx context.Context, path string) (vfs.Ino, error) {
	dirPath, name := parent(path)
	dir, err := s.dir(ctx, dirPath)
	if err != nil {
		return 0, err
	}
	a, err := s.tree.Mkdir(ctx, dir, name, vfs.NewNode{Mode: 0o755})
	if err != nil {
		return 0, err
	}
	s.dirs[path] = a.Ino
	return a.Ino, nil
}

// place makes a node at a name that is free, or beside it and then in its place.
func (s *TreeSink) place(ctx context.Context, dir vfs.Ino, name string, node func(name string) error) error {
	err := node(name)
	if !errors.Is(err, vfs.ErrExist) {
		return err
	}
	temp := tempName()
	if err := node(temp); err != nil {
		return err
	}
	if err := s.tree.Rename(ctx, dir, temp, dir, name, 0); err != nil {
		return errors.Join(err, s.remove(dir, temp))
	}
	// Two names of one inode are left as they are by a rename.
	if err := s.remove(dir, temp); !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	return nil
}

// remove takes away what was made for nothing, also when the transfer has been given up.
func (s *TreeSink) remove(dir vfs.Ino, name string) error {
	return s.tree.Unlink(context.Background(), dir, name)
}

func tempName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return ".carrel-" + hex.EncodeToString(b[:])
}

// node makes a node that is no directory. It leaves nothing behind when it fails.
func (s *TreeSink) node(ctx context.Context, e *Entry, content Content, dir vfs.Ino, name string) error {
	if e.Link != "" {
		return s.link(ctx, e, dir, name)
	}
	ino, err := s.make(ctx, e, dir, name)
	if err != nil {
		return err
	}
	if err := s.fill(ctx, e, content, ino); err != nil {
		return errors.Join(err, s.remove(dir, name))
	}
	return nil
}

func (s *TreeSink) make(ctx context.Context, e *Entry, dir vfs.Ino, name string) (vfs.Ino, error) {
	n := vfs.NewNode{Mode: e.Mode, UID: e.UID, GID: e.GID, Rdev: e.Rdev}
	var a vfs.Attr
	var err error
	switch e.Type {
	case vfs.TypeRegular:
		if e.Size > vfs.MaxFileSize {
			return 0, fmt.Errorf("%d bytes: %w", e.Size, vfs.ErrTooBig)
		}
		a, err = s.tree.Create(ctx, dir, name, n)
	case vfs.TypeSymlink:
		n.Mode = 0o777
		a, err = s.tree.Symlink(ctx, dir, name, e.Target, n)
	default:
		a, err = s.tree.Mknod(ctx, dir, name, e.Type, n)
	}
	return a.Ino, err
}

func (s *TreeSink) fill(ctx context.Context, e *Entry, content Content, ino vfs.Ino) error {
	set := attrs(e)
	if content != nil {
		put := func(off uint64, p []byte) error { return s.tree.WriteAt(ctx, ino, p, off, false) }
		if err := eachPiece(ctx, content, s.buf, put); err != nil {
			return err
		}
		set.Mask, set.Size = set.Mask|vfs.SetSize, e.Size // a hole at the end
	}
	if err := s.xattrs(ctx, e, ino); err != nil {
		return err
	}
	_, err := s.tree.SetAttr(ctx, ino, set)
	return err
}

func (s *TreeSink) link(ctx context.Context, e *Entry, dir vfs.Ino, name string) error {
	n, err := s.walk.FindNoFollow(ctx, e.Link)
	if err != nil {
		return fmt.Errorf("link to: %w", err)
	}
	_, err = s.tree.Link(ctx, n.Attr.Ino, dir, name)
	return err
}

// Finish implements [Sink]: directories get their attributes, the innermost first.
func (s *TreeSink) Finish(ctx context.Context) error {
	for i := len(s.late) - 1; i >= 0; i-- {
		if _, err := s.tree.SetAttr(ctx, s.late[i].ino, s.late[i].set); err != nil {
			return fmt.Errorf("set the attributes of directory %d: %w", s.late[i].ino, err)
		}
	}
	s.late = nil
	return nil
}
