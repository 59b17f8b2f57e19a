package casstore

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Lookup implements vfs.Tree.
func (w *Workspace) Lookup(ctx context.Context, dir vfs.Ino, name string) (attr vfs.Attr, err error) {
	if err := vfs.CheckName(name); err != nil {
		return vfs.Attr{}, wrap(err, "lookup", dir, name)
	}
	err = w.do(ctx, func() error {
		d, err := w.parent(dir)
		if err != nil {
			return err
		}
		n, err := w.child(d, name)
		if err == nil {
			attr = n.attr
		}
		return err
	})
	return attr, wrap(err, "lookup", dir, name)
}

// Create implements vfs.Tree.
func (w *Workspace) Create(ctx context.Context, dir vfs.Ino, name string, v vfs.NewNode) (vfs.Attr, error) {
	attr, err := w.make(ctx, dir, name, vfs.TypeRegular, v, "")
	return attr, wrap(err, "create", dir, name)
}

// Mkdir implements vfs.Tree.
func (w *Workspace) Mkdir(ctx context.Context, dir vfs.Ino, name string, v vfs.NewNode) (vfs.Attr, error) {
	attr, err := w.make(ctx, dir, name, vfs.TypeDir, v, "")
	return attr, wrap(err, "mkdir", dir, name)
}

// Mknod implements vfs.Tree.
func (w *Workspace) Mknod(ctx context.Context, dir vfs.Ino, name string, t vfs.Type, v vfs.NewNode) (vfs.Attr, error) {
	if !t.Valid() || t == vfs.TypeDir || t == vfs.TypeSymlink {
		return vfs.Attr{}, wrap(vfs.ErrInvalid, "mknod", dir, name)
	}
	attr, err := w.make(ctx, dir, name, t, v, "")
	return attr, wrap(err, "mknod", dir, name)
}

// Symlink implements vfs.Tree.
func (w *Workspace) Symlink(
	ctx context.Context, dir vfs.Ino, name, target string, v vfs.NewNode,
) (attr vfs.Attr, err error) {
	switch {
	case target == "":
		err = vfs.ErrInvalid
	case len(target) > vfs.MaxSymlinkLen:
		err = vfs.ErrNameTooLong
	default:
		attr, err = w.make(ctx, dir, name, vfs.TypeSymlink, v, target)
	}
	return attr, wrap(err, "symlink", dir, name)
}

// make makes a node and its first name.
func (w *Workspace) make(
	ctx context.Context, dir vfs.Ino, name string, t vfs.Type, v vfs.NewNode, target string,
) (attr vfs.Attr, err error) {
	if err := vfs.CheckName(name); err != nil {
		return vfs.Attr{}, err
	}
	err = w.change(ctx, 2*recordCost+len(target), func() error {
		d, err := w.vacant(dir, name)
		if err == nil {
			err = w.roomForInode()
		}
		if err == nil {
			err = w.needNumber()
		}
		if err != nil {
			return err
		}
		n := w.newInode(t, v, d)
		n.target = target
		n.attr.Size = uint64(len(target))
		w.touch(n)
		w.insertNew(n)
		w.touch(d)
		if t == vfs.TypeDir {
			d.attr.Nlink++
		}
		w.name(ctx, d, name, n)
		attr = n.attr
		return nil
	})
	return attr, err
}

// vacant returns a directory in which name is free.
func (w *Workspace) vacant(dir vfs.Ino, name string) (*inode, error) {
	d, err := w.parent(dir)
	if err != nil {
		return nil, err
	}
	e, err := w.entry(d, name)
	switch {
	case err != nil:
		return nil, err
	case e != nil:
		return nil, vfs.ErrExist
	}
	return d, nil
}

// name makes name lead to n, or nowhere when n is nil, and sets the directory's times.
func (w *Workspace) name(ctx context.Context, d *inode, name string, n *inode) {
	var ino vfs.Ino
	var typ vfs.Type
	if n != nil {
		ino, typ = n.attr.Ino, n.attr.Type
	}
	w.setDirent(d.dir, name, ino, typ)
	w.touch(d)
	d.touchTimes(w.now())
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeEntry, Ino: ino, Dir: d.attr.Ino, Name: name})
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: d.attr.Ino})
}

// Link implements vfs.Tree.
func (w *Workspace) Link(ctx context.Context, ino, dir vfs.Ino, name string) (attr vfs.Attr, err error) {
	if err := vfs.CheckName(name); err != nil {
		return vfs.Attr{}, wrap(err, "link", dir, name)
	}
	err = w.change(ctx, 2*recordCost, func() error {
		n, err := w.inode(ino)
		if err != nil {
			return err
		}
		d, err := w.vacant(dir, name)
		switch {
		case err != nil:
			return err
		case n.dir != nil:
			return vfs.ErrNotPermitted
		case n.gone:
			return vfs.ErrNotExist
		case n.attr.Nlink >= vfs.MaxLinks:
			return vfs.ErrTooManyLinks
		}
		w.touch(n)
		n.attr.Nlink++
		n.attr.Ctime = w.now()
		w.name(ctx, d, name, n)
		w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: ino})
		attr = n.attr
		return nil
	})
	return attr, wrap(err, "link", dir, name)
}

// Unlink implements vfs.Tree.
func (w *Workspace) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	return w.remove(ctx, "unlink", dir, name, func(n *inode) error {
		if n.dir != nil {
			return vfs.ErrIsDir
		}
		return nil
	})
}

// Rmdir implements vfs.Tree.
func (w *Workspace) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	return w.remove(ctx, "rmdir", dir, name, func(n *inode) error {
		if n.dir == nil {
			return vfs.ErrNotDir
		}
		return w.empty(n)
	})
}

// remove takes away a name of a node that may lose it.
func (w *Workspace) remove(ctx context.Context, op string, dir vfs.Ino, name string, may func(*inode) error) error {
	if err := vfs.CheckName(name); err != nil {
		return wrap(err, op, dir, name)
	}
	err := w.change(ctx, 0, func() error {
		d, err := w.parent(dir)
		if err != nil {
			return err
		}
		n, err := w.child(d, name)
		if err != nil {
			return err
		}
		if err := may(n); err != nil {
			return err
		}
		if err := w.mayLoseName(n); err != nil {
			return err
		}
		w.name(ctx, d, name, nil)
		w.unname(ctx, d, n)
		return nil
	})
	return wrap(err, op, dir, name)
}

// mayLoseName makes sure that an inode which loses its last name is whole in memory: it may live on for those who hold
// it, but its records go.
func (w *Workspace) mayLoseName(n *inode) error {
	if n.xattrs == nil && (n.dir != nil || n.attr.Nlink == 1) {
		return &miss{ino: n.attr.Ino, xattrs: true}
	}
	return nil
}

// unname is called when a name in d no longer leads to n.
func (w *Workspace) unname(ctx context.Context, d, n *inode) {
	w.touch(n)
	n.attr.Ctime = w.now()
	if n.dir != nil {
		w.touch(d)
		d.attr.Nlink--
		n.attr.Nlink = 0
	} else {
		n.attr.Nlink--
	}
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: n.attr.Ino})
	if n.attr.Nlink == 0 {
		w.lostName(n)
	}
}

// Rename implements vfs.Tree.
func (w *Workspace) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	err := vfs.CheckName(name)
	if err == nil {
		err = vfs.CheckName(newName)
	}
	if both := vfs.RenameNoReplace | vfs.RenameExchange; err == nil && (flags&^both != 0 || flags == both) {
		err = vfs.ErrInvalid
	}
	if err == nil {
		err = w.change(ctx, 2*recordCost, func() error {
			m, err := w.planMove(dir, name, newDir, newName, flags)
			if err != nil {
				return err
			}
			w.carryOut(ctx, m)
			return nil
		})
	}
	return wrap(err, "rename", dir, name)
}

// move is a rename that may be done.
type move struct {
	from, to         *inode
	name, newName    string
	moved, displaced *inode // displaced is nil when the new name is free
	exchange         bool
}

// planMove looks up what a rename needs and checks that it may be done.
func (w *Workspace) planMove(
	dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) (m move, err error) {
	m = move{name: name, newName: newName, exchange: flags&vfs.RenameExchange != 0}
	if m.from, err = w.parent(dir); err != nil {
		return m, err
	}
	if m.to, err = w.parent(newDir); err != nil {
		return m, err
	}
	if m.moved, err = w.child(m.from, name); err != nil {
		return m, err
	}
	e, err := w.entry(m.to, newName)
	if err != nil {
		return m, err
	}
	if e != nil {
		if m.displaced, err = w.inode(e.ino); err != nil {
			return m, err
		}
	}
	return m, w.mayMove(m, flags)
}

func (w *Workspace) mayMove(m move, flags vfs.RenameFlags) error {
	switch {
	case m.displaced == nil && m.exchange:
		return vfs.ErrNotExist
	case m.displaced != nil && flags&vfs.RenameNoReplace != 0:
		return vfs.ErrExist
	}
	if err := w.noLoop(m.moved, m.to); err != nil {
		return err
	}
	switch {
	case m.displaced == nil || m.displaced == m.moved:
		return nil
	case m.exchange:
		return w.noLoop(m.displaced, m.from)
	case m.moved.dir == nil && m.displaced.dir != nil:
		return vfs.ErrIsDir
	case m.moved.dir != nil && m.displaced.dir == nil:
		return vfs.ErrNotDir
	case m.displaced.dir != nil:
		if err := w.empty(m.displaced); err != nil {
			return err
		}
	}
	return w.mayLoseName(m.displaced)
}

// noLoop fails when a directory would be moved into itself or below.
func (w *Workspace) noLoop(moved, to *inode) error {
	if moved.dir == nil {
		return nil
	}
	for d := to; ; {
		if d == moved {
			return vfs.ErrInvalid
		}
		if d.attr.Ino == vfs.RootIno {
			return nil
		}
		up, err := w.inode(d.attr.Parent)
		if err != nil {
			return err
		}
		d = up
	}
}

func (w *Workspace) carryOut(ctx context.Context, m move) {
	if m.displaced == m.moved {
		return // two names of one inode stay as they are
	}
	if m.exchange {
		w.name(ctx, m.from, m.name, m.displaced)
		w.arrive(ctx, m.displaced, m.to, m.from)
	} else {
		w.name(ctx, m.from, m.name, nil)
		if m.displaced != nil {
			w.unname(ctx, m.to, m.displaced)
		}
	}
	w.name(ctx, m.to, m.newName, m.moved)
	w.arrive(ctx, m.moved, m.from, m.to)
}

// arrive sets in n what changes when it has moved from one directory to another.
func (w *Workspace) arrive(ctx context.Context, n, from, to *inode) {
	w.touch(n)
	n.attr.Ctime = w.now()
	n.urgent = n.regular()
	if n.dir != nil && from != to {
		w.touch(from)
		w.touch(to)
		n.attr.Parent = to.attr.Ino
		from.attr.Nlink--
		to.attr.Nlink++
	}
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: n.attr.Ino})
}

// Readlink implements vfs.Tree.
func (w *Workspace) Readlink(ctx context.Context, ino vfs.Ino) (target string, err error) {
	err = w.do(ctx, func() error {
		n, err := w.inode(ino)
		switch {
		case err != nil:
			return err
		case n.attr.Type != vfs.TypeSymlink:
			return vfs.ErrInvalid
		}
		target = n.target
		return nil
	})
	return target, wrap(err, "readlink", ino, "")
}
