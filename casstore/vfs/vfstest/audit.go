package vfstest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Audit walks a tree that stands still and returns every breach of what must hold for any tree, or nil: each name and
// offset once, in order, within limits; types, inodes and parents agree wherever they are told; a directory has one
// name, and links for itself and its subdirectories; a file has as many links as names; sizes are what can be read.
func Audit(ctx context.Context, tree vfs.Tree) error {
	a := &auditor{tree: tree, names: make(map[vfs.Ino]uint32), attrs: make(map[vfs.Ino]vfs.Attr)}
	a.visitRoot(ctx)
	for ino, n := range a.names {
		if attr := a.attrs[ino]; attr.Type != vfs.TypeDir && attr.Nlink != n {
			a.report("inode %d: %d links, %d names", ino, attr.Nlink, n)
		}
	}
	if len(a.faults) == 0 {
		return nil
	}
	return fmt.Errorf("audit: %w", errors.Join(a.faults...))
}

type auditor struct {
	tree   vfs.Tree
	names  map[vfs.Ino]uint32
	attrs  map[vfs.Ino]vfs.Attr
	faults []error
}

func (a *auditor) report(format string, args ...any) {
	a.faults = append(a.faults, fmt.Errorf(format, args...))
}

// failed reports err, if there is one.
func (a *auditor) failed(err error) bool {
	if err != nil {
		a.faults = append(a.faults, err)
	}
	return err != nil
}

func (a *auditor) visitRoot(ctx context.Context) {
	root, err := a.tree.Stat(ctx, vfs.RootIno)
	if a.failed(err) {
		return
	}
	if root.Type != vfs.TypeDir {
		a.report("the root is of type %d", root.Type)
		return
	}
	a.visit(ctx, root, vfs.RootIno)
}

// visit checks an inode, the first time a name leads to it, and what is below it.
func (a *auditor) visit(ctx context.Context, attr vfs.Attr, dir vfs.Ino) {
	ino := attr.Ino
	a.names[ino]++
	if a.names[ino] > 1 {
		if attr.Type == vfs.TypeDir {
			a.report("directory %d has more than one name", ino)
		}
		return
	}
	a.attrs[ino] = attr
	if attr.Mode&^vfs.ModeMask != 0 {
		a.report("inode %d: mode %o", ino, attr.Mode)
	}
	a.auditXattrs(ctx, ino)
	switch attr.Type {
	case vfs.TypeDir:
		if attr.Parent != dir {
			a.report("directory %d: parent %d, but it is in %d", ino, attr.Parent, dir)
		}
		a.auditDir(ctx, attr)
		return
	case vfs.TypeSymlink:
		a.auditSymlink(ctx, attr)
	case vfs.TypeRegular:
		a.auditSize(ctx, attr)
	}
	if attr.Parent != 0 {
		a.report("inode %d: parent %d, but it is no directory", ino, attr.Parent)
	}
}

func (a *auditor) auditDir(ctx context.Context, dir vfs.Attr) {
	entries, err := list(ctx, a.tree, dir.Ino, 0)
	if a.failed(err) {
		return
	}
	a.auditListing(ctx, dir.Ino, entries)
	links := uint32(2)
	for _, e := range entries {
		attr, err := a.tree.Stat(ctx, e.Ino)
		if a.failed(err) {
			continue
		}
		a.auditEntry(ctx, dir.Ino, e, attr)
		if attr.Type == vfs.TypeDir {
			links++
		}
		a.visit(ctx, attr, dir.Ino)
	}
	if dir.Nlink != links {
		a.report("directory %d: %d links, should be %d", dir.Ino, dir.Nlink, links)
	}
}

// auditListing checks the order of a listing and that it can be resumed in the middle.
func (a *auditor) auditListing(ctx context.Context, dir vfs.Ino, entries []vfs.Dirent) {
	last, seen := vfs.FirstOffset-1, make(map[string]bool, len(entries))
	for _, e := range entries {
		if e.Offset <= last || e.Offset >= 1<<63 {
			a.report("entry %d/%q: offset %d after %d", dir, e.Name, e.Offset, last)
		}
		if seen[e.Name] {
			a.report("entry %d/%q is there twice", dir, e.Name)
		}
		if err := vfs.CheckName(e.Name); err != nil {
			a.report("entry %d/%q: %w", dir, e.Name, err)
		}
		last, seen[e.Name] = e.Offset, true
	}
	if len(entries) == 0 {
		return
	}
	middle := len(entries) / 2
	rest, err := list(ctx, a.tree, dir, entries[middle].Offset)
	if !a.failed(err) && !slices.Equal(rest, entries[middle+1:]) {
		a.report("directory %d: resumed after offset %d: %d entries, should be the last %d of all",
			dir, entries[middle].Offset, len(rest), len(entries)-middle-1)
	}
}

func (a *auditor) auditEntry(ctx context.Context, dir vfs.Ino, e vfs.Dirent, attr vfs.Attr) {
	if attr.Ino != e.Ino || attr.Type != e.Type || !attr.Type.Valid() {
		a.report("entry %d/%q: inode %d of type %d, but Stat says %d of type %d",
			dir, e.Name, e.Ino, e.Type, attr.Ino, attr.Type)
	}
	found, err := a.tree.Lookup(ctx, dir, e.Name)
	if !a.failed(err) && found != attr {
		a.report("entry %d/%q: Lookup says %+v, Stat says %+v", dir, e.Name, found, attr)
	}
}

func (a *auditor) auditSymlink(ctx context.Context, attr vfs.Attr) {
	target, err := a.tree.Readlink(ctx, attr.Ino)
	if !a.failed(err) && (uint64(len(target)) != attr.Size || target == "" || len(target) > vfs.MaxSymlinkLen) {
		a.report("symlink %d: size %d, target of %d bytes", attr.Ino, attr.Size, len(target))
	}
}

// auditSize reads around the end of a file, and a small one whole.
func (a *auditor) auditSize(ctx context.Context, attr vfs.Attr) {
	if attr.Size > vfs.MaxFileSize {
		a.report("file %d: %d bytes", attr.Ino, attr.Size)
		return
	}
	from := attr.Size - min(attr.Size, hashBlock)
	n, err := a.tree.ReadAt(ctx, attr.Ino, make([]byte, 2*hashBlock), from)
	if !a.failed(err) && uint64(n) != attr.Size-from {
		a.report("file %d: %d bytes to be read from %d, size %d", attr.Ino, n, from, attr.Size)
	}
}

func (a *auditor) auditXattrs(ctx context.Context, ino vfs.Ino) {
	names, err := a.tree.ListXattr(ctx, ino)
	if a.failed(err) {
		return
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		a.report("inode %d: attributes not in order: %q", ino, names)
	}
	for _, name := range names {
		value, err := a.tree.GetXattr(ctx, ino, name)
		if !a.failed(err) && len(value) > vfs.MaxXattrSize {
			a.report("inode %d: attribute %q of %d bytes", ino, name, len(value))
		}
	}
}
