package casstore

import (
	"context"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// xattrs are all extended attributes of an inode; one without a value has been removed and is kept until that is
// committed.
type xattrs struct {
	m      map[string]*xattr
	listed int // bytes that a list of the names takes
}

type xattr struct {
	stamp
	owner     *inode
	name      string
	value     []byte
	present   bool
	persisted bool
}

func newXattrs() *xattrs { return &xattrs{} }

func (x *xattr) capture(c *cut) {
	there := x.present && !x.owner.gone
	if !there && !x.persisted {
		return
	}
	key := keyOfXattr(c.tree.id, x.owner.attr.Ino, x.name)
	c.records++
	if !there {
		c.kvs = append(c.kvs, kv{key: key})
		return
	}
	x.persisted = true
	c.kvs = append(c.kvs, kv{key: key, value: x.value})
}

func (x *xattr) committed(_ *Workspace, clean bool) {
	if clean && !x.present {
		delete(x.owner.xattrs.m, x.name)
	}
}

func (xs *xattrs) get(name string) *xattr {
	if x := xs.m[name]; x != nil && x.present {
		return x
	}
	return nil
}

// names returns the names in bytewise order.
func (xs *xattrs) names() (names []string) {
	for name, x := range xs.m {
		if x.present {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// put gives an attribute of these a value, which it keeps, or takes it away.
func (xs *xattrs) put(x *xattr, value []byte, present bool) {
	if x.present {
		xs.listed -= len(x.name) + 1
	}
	if present {
		xs.listed += len(x.name) + 1
	}
	x.value, x.present = value, present
}

func (xs *xattrs) add(owner *inode, name string) *xattr {
	x := xs.m[name]
	if x == nil {
		if xs.m == nil {
			xs.m = make(map[string]*xattr)
		}
		x = &xattr{owner: owner, name: name}
		xs.m[name] = x
	}
	return x
}

// GetXattr implements vfs.Tree.
func (w *Workspace) GetXattr(ctx context.Context, ino vfs.Ino, name string) (value []byte, err error) {
	err = w.do(ctx, func() error {
		_, xs, err := w.xattrsOf(ino)
		if err != nil {
			return err
		}
		x := xs.get(name)
		if x == nil {
			return vfs.ErrNoXattr
		}
		value = slices.Clone(x.value)
		return nil
	})
	return value, wrap(err, "getxattr", ino, name)
}

// ListXattr implements vfs.Tree.
func (w *Workspace) ListXattr(ctx context.Context, ino vfs.Ino) (names []string, err error) {
	err = w.do(ctx, func() error {
		_, xs, err := w.xattrsOf(ino)
		if err != nil {
			return err
		}
		names = xs.names()
		return nil
	})
	return names, wrap(err, "listxattr", ino, "")
}

// SetXattr implements vfs.Tree.
func (w *Workspace) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags vfs.XattrFlags) error {
	switch {
	case name == "" || len(name) > vfs.MaxXattrName || strings.Contains(name, "\x00"),
		flags&^(vfs.XattrCreate|vfs.XattrReplace) != 0 || flags == vfs.XattrCreate|vfs.XattrReplace:
		return wrap(vfs.ErrInvalid, "setxattr", ino, name)
	case len(value) > vfs.MaxXattrSize:
		return wrap(vfs.ErrXattrTooBig, "setxattr", ino, name)
	}
	err := w.change(ctx, recordCost+len(value), func() error {
		n, xs, err := w.xattrsOf(ino)
		if err != nil {
			return err
		}
		old := xs.get(name)
		switch {
		case old != nil && flags&vfs.XattrCreate != 0:
			return vfs.ErrExist
		case old == nil && flags&vfs.XattrReplace != 0:
			return vfs.ErrNoXattr
		case old == nil && xs.listed+len(name)+1 > vfs.MaxXattrList:
			return vfs.ErrNoSpace
		}
		w.touch(n)
		x := xs.add(n, name)
		w.touch(x)
		xs.put(x, append([]byte{}, value...), true) // not nil, which would remove it
		if old == nil {
			n.nxattrs++
		}
		w.xattrChanged(ctx, n)
		return nil
	})
	return wrap(err, "setxattr", ino, name)
}

// RemoveXattr implements vfs.Tree.
func (w *Workspace) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	err := w.change(ctx, 0, func() error {
		n, xs, err := w.xattrsOf(ino)
		if err != nil {
			return err
		}
		x := xs.get(name)
		if x == nil {
			return vfs.ErrNoXattr
		}
		w.touch(n)
		w.touch(x)
		xs.put(x, nil, false)
		n.nxattrs--
		w.xattrChanged(ctx, n)
		return nil
	})
	return wrap(err, "removexattr", ino, name)
}

// xattrChanged is called after a change of attributes of an inode that has been touched before it.
func (w *Workspace) xattrChanged(ctx context.Context, n *inode) {
	n.attr.Ctime = w.now()
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: n.attr.Ino})
}

// xattrsOf returns an inode and its attributes, which must all be in memory.
func (w *Workspace) xattrsOf(ino vfs.Ino) (*inode, *xattrs, error) {
	n, err := w.inode(ino)
	if err != nil {
		return nil, nil, err
	}
	if n.xattrs == nil {
		return nil, nil, &miss{ino: ino, xattrs: true}
	}
	return n, n.xattrs, nil
}

// xattrsOf makes the attributes of an inode of what the store has.
func xattrsOf(n *inode, values map[string][]byte) *xattrs {
	xs := newXattrs()
	for name, value := range values {
		x := xs.add(n, name)
		xs.put(x, value, true)
		x.persisted = true
	}
	return xs
}

func (xs *xattrs) idle() bool {
	for _, x := range xs.m {
		if x.gen != 0 {
			return false
		}
	}
	return true
}
