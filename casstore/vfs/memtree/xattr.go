package memtree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// GetXattr implements [vfs.Tree].
func (t *Tree) GetXattr(ctx context.Context, ino vfs.Ino, name string) ([]byte, error) {
	var value []byte
	err := t.view(ctx, func() error {
		n, err := t.nodeLocked(ino)
		if err != nil {
			return err
		}
		v, ok := n.xattrs[name]
		if !ok {
			return vfs.ErrNoXattr
		}
		value = append([]byte{}, v...)
		return nil
	})
	return value, xattrError("get", ino, name, err)
}

// SetXattr implements [vfs.Tree]. A name that is too long gives ErrNameTooLong; ErrInvalid an empty one or one with NUL.
func (t *Tree) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags vfs.XattrFlags) error {
	err := checkXattr(name, value, flags)
	if err == nil {
		err = t.change(ctx, func(e *edit) error {
			n, err := t.nodeLocked(ino)
			if err != nil {
				return err
			}
			_, there := n.xattrs[name]
			switch {
			case there && flags&vfs.XattrCreate != 0:
				return vfs.ErrExist
			case !there && flags&vfs.XattrReplace != 0:
				return vfs.ErrNoXattr
			case !there && n.xattrListLen()+len(name)+1 > vfs.MaxXattrList:
				return vfs.ErrNoSpace
			}
			if n.xattrs == nil {
				n.xattrs = make(map[string][]byte)
			}
			n.xattrs[name] = slices.Clone(value)
			e.touchAttr(n)
			return nil
		})
	}
	return xattrError("set", ino, name, err)
}

func checkXattr(name string, value []byte, flags vfs.XattrFlags) error {
	switch {
	case name == "" || strings.Contains(name, "\x00") || flags&^(vfs.XattrCreate|vfs.XattrReplace) != 0:
		return vfs.ErrInvalid
	case len(name) > vfs.MaxXattrName:
		return vfs.ErrNameTooLong
	case len(value) > vfs.MaxXattrSize:
		return vfs.ErrXattrTooBig
	}
	return nil
}

// xattrListLen is what listxattr(2) would return, in bytes.
func (n *node) xattrListLen() int {
	sum := 0
	for name := range n.xattrs {
		sum += len(name) + 1
	}
	return sum
}

// ListXattr implements [vfs.Tree].
func (t *Tree) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	var names []string
	err := t.view(ctx, func() error {
		n, err := t.nodeLocked(ino)
		if err == nil {
			names = slices.Sorted(maps.Keys(n.xattrs))
		}
		return err
	})
	return names, inoError("list xattrs of", ino, err)
}

// RemoveXattr implements [vfs.Tree].
func (t *Tree) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	err := t.change(ctx, func(e *edit) error {
		n, err := t.nodeLocked(ino)
		if err != nil {
			return err
		}
		if _, ok := n.xattrs[name]; !ok {
			return vfs.ErrNoXattr
		}
		delete(n.xattrs, name)
		e.touchAttr(n)
		return nil
	})
	return xattrError("remove", ino, name, err)
}

func (e *edit) touchAttr(n *node) {
	n.attr.Ctime = e.now
	e.emit(vfs.Change{Kind: vfs.ChangeAttr, Ino: n.attr.Ino})
}

func xattrError(op string, ino vfs.Ino, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s xattr %q of %d: %w", op, name, ino, err)
}
