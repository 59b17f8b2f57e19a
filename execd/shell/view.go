package shell

import (
	"context"
	"strconv"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// view is the tree as scripts see it: the workspace, with a /dev and a /tmp of the shell's own in its root. The nodes of
// /dev are in no tree, those of /tmp in one in memory; their numbers are far above those that stores give.
type view struct {
	tree vfs.Tree
	now  vfs.Time
	fifos
}

const (
	devBase vfs.Ino = 1<<63 | iota
	devDir
	devFDDir
	devFirst // devices, then symlinks, in the order of devNodes
)

// devFDs are the nodes of /dev/fd, by descriptor.
const devFDs vfs.Ino = devBase + 4096

// maxDevFD is how many descriptors have a node there.
const maxDevFD = 1024

type devNode struct {
	name   string
	target string // of a symlink
	rdev   uint32
}

var devNodes = []devNode{
	{name: "full", rdev: 1<<8 | 7}, {name: "null", rdev: 1<<8 | 3}, {name: "random", rdev: 1<<8 | 8},
	{name: "stderr", target: "fd/2"}, {name: "stdin", target: "fd/0"}, {name: "stdout", target: "fd/1"},
	{name: "tty", rdev: 5 << 8}, {name: "urandom", rdev: 1<<8 | 9}, {name: "zero", rdev: 1<<8 | 5},
}

func newView(s *session) *view {
	root := s.cfg.Root
	if root == 0 {
		root = vfs.RootIno
	}
	v := &view{now: vfs.TimeOf(s.start)}
	below := s.cfg.Tree
	if !s.cfg.KeepTmp {
		below = newTmpTree(below, root, max(s.limits.Memory, 0))
	}
	v.tree = &devTree{Tree: below, root: root, now: v.now}
	return v
}

// devTree adds /dev to a tree.
type devTree struct {
	vfs.Tree
	root vfs.Ino
	now  vfs.Time
}

func (t *devTree) attr(ino vfs.Ino) (vfs.Attr, bool) {
	a := vfs.Attr{Ino: ino, Mode: 0o666, Nlink: 1, Atime: t.now, Mtime: t.now, Ctime: t.now}
	switch {
	case ino == devDir || ino == devFDDir:
		a.Type, a.Mode, a.Nlink, a.Parent = vfs.TypeDir, 0o755, 2, t.root
		if ino == devFDDir {
			a.Parent = devDir
		}
	case ino >= devFDs && ino < devFDs+maxDevFD:
		a.Type, a.Rdev = vfs.TypeCharDev, fdRdev|uint32(ino-devFDs)
	case ino >= devFirst && ino < devFirst+vfs.Ino(len(devNodes)):
		n := devNodes[ino-devFirst]
		a.Type, a.Rdev = vfs.TypeCharDev, n.rdev
		if n.target != "" {
			a.Type, a.Mode, a.Size = vfs.TypeSymlink, 0o777, uint64(len(n.target))
		}
	default:
		return a, false
	}
	return a, true
}

func (t *devTree) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	switch {
	case dir == t.root && name == "dev":
		a, _ := t.attr(devDir)
		return a, nil
	case dir == devDir && name == "fd":
		a, _ := t.attr(devFDDir)
		return a, nil
	case dir == devDir:
		for i, n := range devNodes {
			if n.name == name {
				a, _ := t.attr(devFirst + vfs.Ino(i))
				return a, nil
			}
		}
		return vfs.Attr{}, vfs.ErrNotExist
	case dir == devFDDir:
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil || n >= maxDevFD {
			return vfs.Attr{}, vfs.ErrNotExist
		}
		a, _ := t.attr(devFDs + vfs.Ino(n))
		return a, nil
	}
	return t.Tree.Lookup(ctx, dir, name)
}

func (t *devTree) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	if a, ok := t.attr(ino); ok {
		return a, nil
	}
	return t.Tree.Stat(ctx, ino)
}

func (t *devTree) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	if a, ok := t.attr(ino); ok {
		if a.Type != vfs.TypeSymlink {
			return "", vfs.ErrInvalid
		}
		return devNodes[ino-devFirst].target, nil
	}
	return t.Tree.Readlink(ctx, ino)
}

func (t *devTree) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	if dir == devFDDir {
		return nil
	}
	if dir != devDir {
		return t.Tree.ReadDir(ctx, dir, after, yield)
	}
	for i, n := range devNodes {
		offset := vfs.FirstOffset + vfs.Offset(i)
		a, _ := t.attr(devFirst + vfs.Ino(i))
		if offset > after && !yield(vfs.Dirent{Name: n.name, Ino: a.Ino, Type: a.Type, Offset: offset}) {
			break
		}
	}
	return nil
}

func (t *devTree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	if a, ok := t.attr(ino); ok {
		return a, vfs.ErrNotPermitted
	}
	return t.Tree.SetAttr(ctx, ino, set)
}

func (t *devTree) Hold(ino vfs.Ino) {
	if ino < devBase {
		t.Tree.Hold(ino)
	}
}

func (t *devTree) Release(ino vfs.Ino, n uint64) {
	if ino < devBase {
		t.Tree.Release(ino, n)
	}
}

// inDev reports whether a directory is one of the shell's own, in which nothing can be changed.
func inDev(dir vfs.Ino) bool { return dir >= devBase }

func (t *devTree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if inDev(dir) {
		return vfs.Attr{}, vfs.ErrNotPermitted
	}
	return t.Tree.Create(ctx, dir, name, n)
}

func (t *devTree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	if inDev(dir) {
		return vfs.Attr{}, vfs.ErrNotPermitted
	}
	return t.Tree.Mkdir(ctx, dir, name, n)
}

func (t *devTree) Mknod(ctx context.Context, dir vfs.Ino, name string, kind vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	if inDev(dir) {
		return vfs.Attr{}, vfs.ErrNotPermitted
	}
	return t.Tree.Mknod(ctx, dir, name, kind, n)
}

func (t *devTree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	if inDev(dir) {
		return vfs.Attr{}, vfs.ErrNotPermitted
	}
	return t.Tree.Symlink(ctx, dir, name, target, n)
}

func (t *devTree) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	if inDev(dir) || inDev(ino) {
		return vfs.Attr{}, vfs.ErrNotPermitted
	}
	return t.Tree.Link(ctx, ino, dir, name)
}

func (t *devTree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	if inDev(dir) {
		return vfs.ErrNotPermitted
	}
	return t.Tree.Unlink(ctx, dir, name)
}

func (t *devTree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	if inDev(dir) {
		return vfs.ErrNotPermitted
	}
	return t.Tree.Rmdir(ctx, dir, name)
}

func (t *devTree) Rename(ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags) error {
	if inDev(dir) || inDev(newDir) {
		return vfs.ErrNotPermitted
	}
	return t.Tree.Rename(ctx, dir, name, newDir, newName, flags)
}
