package memtree

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Create implements [vfs.Tree].
func (t *Tree) Create(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	a, err := t.newNode(ctx, dir, name, vfs.TypeRegular, n, "")
	return a, nameError("create", dir, name, err)
}

// Mkdir implements [vfs.Tree].
func (t *Tree) Mkdir(ctx context.Context, dir vfs.Ino, name string, n vfs.NewNode) (vfs.Attr, error) {
	a, err := t.newNode(ctx, dir, name, vfs.TypeDir, n, "")
	return a, nameError("mkdir", dir, name, err)
}

// Mknod implements [vfs.Tree]. Any other type than those named there gives ErrInvalid.
func (t *Tree) Mknod(ctx context.Context, dir vfs.Ino, name string, typ vfs.Type, n vfs.NewNode) (vfs.Attr, error) {
	if !typ.Valid() || typ == vfs.TypeDir || typ == vfs.TypeSymlink {
		return vfs.Attr{}, nameError("mknod", dir, name, vfs.ErrInvalid)
	}
	a, err := t.newNode(ctx, dir, name, typ, n, "")
	return a, nameError("mknod", dir, name, err)
}

// Symlink implements [vfs.Tree]. A target that is too long gives ErrNameTooLong, an empty one ErrInvalid.
func (t *Tree) Symlink(ctx context.Context, dir vfs.Ino, name, target string, n vfs.NewNode) (vfs.Attr, error) {
	err := vfs.ErrInvalid
	var a vfs.Attr
	switch {
	case len(target) > vfs.MaxSymlinkLen:
		err = vfs.ErrNameTooLong
	case target != "":
		a, err = t.newNode(ctx, dir, name, vfs.TypeSymlink, n, target)
	}
	return a, nameError("symlink", dir, name, err)
}

func (t *Tree) newNode(
	ctx context.Context, dir vfs.Ino, name string, typ vfs.Type, n vfs.NewNode, target string,
) (vfs.Attr, error) {
	var a vfs.Attr
	if err := vfs.CheckName(name); err != nil {
		return a, err
	}
	err := t.change(ctx, func(e *edit) error {
		d, taken, err := t.entryLocked(dir, name)
		if err != nil {
			return err
		}
		if taken != nil {
			return vfs.ErrExist
		}
		a = e.add(d, name, typ, n, target).attr
		return nil
	})
	return a, err
}

// add makes a node and gives it a name that is free.
func (e *edit) add(d *node, name string, typ vfs.Type, nn vfs.NewNode, target string) *node {
	e.lastIno++
	n := &node{target: target, attr: vfs.Attr{
		Ino: e.lastIno, Type: typ, Mode: nn.Mode & vfs.ModeMask, Nlink: 1, UID: nn.UID, GID: nn.GID,
		Size: uint64(len(target)), Atime: e.now, Mtime: e.now, Ctime: e.now,
	}}
	if typ == vfs.TypeCharDev || typ == vfs.TypeBlockDev {
		n.attr.Rdev = nn.Rdev
	}
	if d.attr.Mode&vfs.ModeSetGID != 0 {
		n.attr.GID = d.attr.GID
	}
	if typ == vfs.TypeDir {
		n.entries = newDirectory()
		n.attr.Nlink, n.attr.Parent = 2, d.attr.Ino
		n.attr.Mode |= d.attr.Mode & vfs.ModeSetGID
		d.attr.Nlink++
	}
	e.nodes[n.attr.Ino] = n
	e.setName(d, name, n)
	return n
}

// setName makes name lead to n.
func (e *edit) setName(d *node, name string, n *node) {
	d.entries.set(name, n)
	e.emit(vfs.Change{Kind: vfs.ChangeEntry, Dir: d.attr.Ino, Name: name, Ino: n.attr.Ino})
	e.touchDir(d)
}

// clearName takes name away.
func (e *edit) clearName(d *node, name string) {
	d.entries.remove(name)
	e.emit(vfs.Change{Kind: vfs.ChangeEntry, Dir: d.attr.Ino, Name: name})
	e.touchDir(d)
}

func (e *edit) touchDir(d *node) {
	d.attr.Mtime, d.attr.Ctime = e.now, e.now
	e.emit(vfs.Change{Kind: vfs.ChangeAttr, Ino: d.attr.Ino})
}

// touchLinks follows a change of n's names.
func (e *edit) touchLinks(n *node) {
	n.attr.Ctime = e.now
	e.dropIfDeadLocked(n)
	if _, alive := e.nodes[n.attr.Ino]; alive {
		e.emit(vfs.Change{Kind: vfs.ChangeAttr, Ino: n.attr.Ino})
	}
}

// Link implements [vfs.Tree]. An inode that has lost its last name gives ErrNotExist, as linkat(2) does.
func (t *Tree) Link(ctx context.Context, ino vfs.Ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	var a vfs.Attr
	err := vfs.CheckName(name)
	if err == nil {
		err = t.change(ctx, func(e *edit) error {
			d, taken, err := t.entryLocked(dir, name)
			if err != nil {
				return err
			}
			n, err := t.nodeLocked(ino)
			if err != nil {
				return err
			}
			if err := checkLink(n, taken); err != nil {
				return err
			}
			n.attr.Nlink++
			e.setName(d, name, n)
			e.touchLinks(n)
			a = n.attr
			return nil
		})
	}
	return a, nameError("link", dir, name, err)
}

func checkLink(n, taken *node) error {
	switch {
	case taken != nil:
		return vfs.ErrExist
	case n.attr.Type == vfs.TypeDir:
		return vfs.ErrNotPermitted
	case n.attr.Nlink == 0:
		return vfs.ErrNotExist
	case n.attr.Nlink >= vfs.MaxLinks:
		return vfs.ErrTooManyLinks
	}
	return nil
}

// Unlink implements [vfs.Tree].
func (t *Tree) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	err := t.removeName(ctx, dir, name, func(n *node) error {
		if n.attr.Type == vfs.TypeDir {
			return vfs.ErrIsDir
		}
		return nil
	})
	return nameError("unlink", dir, name, err)
}

// Rmdir implements [vfs.Tree].
func (t *Tree) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	err := t.removeName(ctx, dir, name, func(n *node) error {
		switch {
		case n.attr.Type != vfs.TypeDir:
			return vfs.ErrNotDir
		case len(n.entries.byName) > 0:
			return vfs.ErrNotEmpty
		}
		return nil
	})
	return nameError("rmdir", dir, name, err)
}

func (t *Tree) removeName(ctx context.Context, dir vfs.Ino, name string, check func(*node) error) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	return t.change(ctx, func(e *edit) error {
		d, n, err := t.entryLocked(dir, name)
		if err != nil {
			return err
		}
		if n == nil {
			return vfs.ErrNotExist
		}
		if err := check(n); err != nil {
			return err
		}
		e.unlink(d, n)
		e.clearName(d, name)
		e.touchLinks(n)
		return nil
	})
}

// unlink counts one name of n in d less. A directory has one name and its own "." and goes whole.
func (e *edit) unlink(d, n *node) {
	if n.attr.Type != vfs.TypeDir {
		n.attr.Nlink--
		return
	}
	n.attr.Nlink = 0
	d.attr.Nlink--
}
