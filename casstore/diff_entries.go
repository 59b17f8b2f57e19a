package casstore

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// node makes the entries of an inode.
func (d *differ) node(ino vfs.Ino, n *diffInode) error {
	was, before, err := d.a.node(ino)
	if err != nil {
		return err
	}
	is, after, err := d.b.node(ino)
	if err != nil || !before && !after {
		return err
	}
	e := DiffEntry{}
	if before {
		e.Old = attrOf(ino, was)
	}
	if after {
		e.New = attrOf(ino, is)
	}
	if before && after {
		e.Fields = fieldsOf(&was, &is)
		if n.xattrs {
			e.Fields |= DiffXattrs
		}
	}
	return d.paths(ino, n, e, before && after)
}

// fieldsOf says what is different in two records of an inode.
func fieldsOf(was, is *vfs.InodeRecord) (f DiffFields) {
	if was.Body.Kind != is.Body.Kind || !bytes.Equal(was.Body.Data, is.Body.Data) || was.Size != is.Size || was.Rdev != is.Rdev {
		f |= DiffBytes
	}
	if was.Mode != is.Mode {
		f |= DiffMode
	}
	if was.UID != is.UID || was.GID != is.GID {
		f |= DiffOwner
	}
	if was.Mtime != is.Mtime && is.Type != vfs.TypeDir {
		f |= DiffTimes
	}
	return f
}

// paths adds an entry for each name that an inode has lost or got. As many as are in both are renames; what is different
// besides is said once.
func (d *differ) paths(ino vfs.Ino, n *diffInode, e DiffEntry, both bool) error {
	renames := 0
	if both {
		renames = min(len(n.removed), len(n.added))
	}
	for i := range max(len(n.removed), len(n.added)) {
		next := e
		switch {
		case i < renames:
			next.Kind = DiffRenamed
			if i > 0 {
				next.Fields = 0
			}
			if err := d.path(d.a, n.removed[i], &next.From); err != nil {
				return err
			}
			if err := d.path(d.b, n.added[i], &next.Path); err != nil {
				return err
			}
			d.entries = append(d.entries, next)
			continue
		case i < len(n.removed):
			if err := d.lone(d.a, DiffRemoved, n.removed[i], next); err != nil {
				return err
			}
		}
		if i >= renames && i < len(n.added) {
			if err := d.lone(d.b, DiffAdded, n.added[i], next); err != nil {
				return err
			}
		}
	}
	if renames > 0 || e.Fields == 0 {
		return nil
	}
	e.Kind = DiffModified
	if err := d.anyPath(ino, &e); err != nil {
		return err
	}
	d.entries = append(d.entries, e)
	return nil
}

// anyPath finds a path of what has kept its names.
func (d *differ) anyPath(ino vfs.Ino, e *DiffEntry) error {
	if ino == vfs.RootIno {
		e.Path = "/"
		return nil
	}
	name, err := d.b.paths.nameOf(d.ctx, ino, e.New.Type)
	if err != nil {
		return err
	}
	return d.path(d.b, name, &e.Path)
}

// lone adds the entry of a name that is on one side only.
func (d *differ) lone(side *diffSide, kind DiffKind, name dirName, e DiffEntry) error {
	e.Kind, e.Fields = kind, 0
	if kind == DiffRemoved {
		e.New = vfs.Attr{}
		d.removed[name] = len(d.entries)
	} else {
		e.Old = vfs.Attr{}
		d.added[name] = len(d.entries)
	}
	if err := d.path(side, name, &e.Path); err != nil {
		return err
	}
	d.entries = append(d.entries, e)
	return nil
}

func (d *differ) path(side *diffSide, name dirName, to *string) error {
	dir, err := side.paths.dir(d.ctx, name.dir)
	if err != nil {
		return fmt.Errorf("path of %q in directory %d: %w", name.name, name.dir, err)
	}
	*to = dir + "/" + name.name
	return nil
}

// replaced makes one entry of a file that was removed and one that was added under its name, in the same directory, as
// editors save.
func (d *differ) replaced() {
	gone := make(map[int]bool)
	for name, i := range d.added {
		e := &d.entries[i]
		j, ok := d.removed[name]
		if !ok || d.entries[j].Old.Type != e.New.Type || e.New.Type == vfs.TypeDir {
			continue
		}
		was, _, _ := d.a.node(d.entries[j].Old.Ino)
		is, _, _ := d.b.node(e.New.Ino)
		e.Kind, e.Old, e.Fields = DiffModified, d.entries[j].Old, fieldsOf(&was, &is)
		gone[j] = true
	}
	n := -1
	d.entries = slices.DeleteFunc(d.entries, func(DiffEntry) bool { n++; return gone[n] })
}
