package vfstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// suite is one behaviour's test with its tree. Its methods that make something fail the test when that fails, so they
// are for the test's own goroutine.
type suite struct {
	*testing.T
	tree  vfs.Tree
	dir   vfs.Ino // an empty directory to work in
	clock vfs.Ino // a file outside of dir: a change of it reads the tree's clock
}

// Owners that are not root, so that they cannot come from a default.
const (
	someUID uint32 = 1001
	someGID uint32 = 2002
)

var (
	fileNode = vfs.NewNode{Mode: 0o644, UID: someUID, GID: someGID}
	dirNode  = vfs.NewNode{Mode: 0o755, UID: someUID, GID: someGID}
)

func newSuite(t *testing.T, tree vfs.Tree) *suite {
	s := &suite{T: t, tree: tree}
	s.clock = s.create(vfs.RootIno, "clock").Ino
	s.dir = s.mkdir(vfs.RootIno, "work").Ino
	return s
}

func (s *suite) ctx() context.Context { return s.Context() }

// ok ends the test when err is not nil.
func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// fails reports when err is none of the errors wanted.
func (s *suite) fails(err error, want ...error) {
	s.Helper()
	if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		s.Errorf("error %v, want %v", err, want)
	}
}

// tick returns the present of the tree's clock, after waiting until it has moved on: what happened before has a time
// that is no later, what happens after has one that is later.
func (s *suite) tick() vfs.Time {
	s.Helper()
	now := s.readClock()
	for deadline := time.Now().Add(watchDeadline); s.readClock() <= now; {
		if time.Now().After(deadline) {
			s.Fatal("the clock of the tree stands still")
		}
	}
	return now
}

func (s *suite) readClock() vfs.Time {
	s.Helper()
	return s.setAttr(s.clock, vfs.AttrSet{Mask: vfs.SetAtimeNow}).Ctime
}

// times names the time fields that an operation must have moved.
type times uint8

const (
	mtime times = 1 << iota
	ctime
)

// touched reports unless exactly those times of an inode moved, between before and its attributes now, past then.
func (s *suite) touched(what string, before vfs.Attr, then vfs.Time, want times) {
	s.Helper()
	now := s.stat(before.Ino)
	check := func(field string, before, now vfs.Time, moves bool) {
		s.Helper()
		switch {
		case moves && now <= then:
			s.Errorf("%s: %s is %d, want it later than %d", what, field, now, then)
		case !moves && now != before:
			s.Errorf("%s: %s went from %d to %d, want it unchanged", what, field, before, now)
		}
	}
	check("mtime", before.Mtime, now.Mtime, want&mtime != 0)
	check("ctime", before.Ctime, now.Ctime, want&ctime != 0)
}

func (s *suite) create(dir vfs.Ino, name string) vfs.Attr {
	s.Helper()
	a, err := s.tree.Create(s.ctx(), dir, name, fileNode)
	s.ok(err)
	return a
}

func (s *suite) mkdir(dir vfs.Ino, name string) vfs.Attr {
	s.Helper()
	a, err := s.tree.Mkdir(s.ctx(), dir, name, dirNode)
	s.ok(err)
	return a
}

func (s *suite) symlink(dir vfs.Ino, name, target string) vfs.Attr {
	s.Helper()
	a, err := s.tree.Symlink(s.ctx(), dir, name, target, vfs.NewNode{Mode: 0o777, UID: someUID, GID: someGID})
	s.ok(err)
	return a
}

func (s *suite) mknod(dir vfs.Ino, name string, t vfs.Type) vfs.Attr {
	s.Helper()
	a, err := s.tree.Mknod(s.ctx(), dir, name, t, fileNode)
	s.ok(err)
	return a
}

// make makes a node of any type.
func (s *suite) make(dir vfs.Ino, name string, t vfs.Type) vfs.Attr {
	s.Helper()
	switch t {
	case vfs.TypeDir:
		return s.mkdir(dir, name)
	case vfs.TypeSymlink:
		return s.symlink(dir, name, "target")
	}
	return s.mknod(dir, name, t)
}

func (s *suite) link(ino, dir vfs.Ino, name string) vfs.Attr {
	s.Helper()
	a, err := s.tree.Link(s.ctx(), ino, dir, name)
	s.ok(err)
	return a
}

func (s *suite) unlink(dir vfs.Ino, name string) {
	s.Helper()
	s.ok(s.tree.Unlink(s.ctx(), dir, name))
}

func (s *suite) rmdir(dir vfs.Ino, name string) {
	s.Helper()
	s.ok(s.tree.Rmdir(s.ctx(), dir, name))
}

func (s *suite) rename(dir vfs.Ino, name string, newDir vfs.Ino, newName string) {
	s.Helper()
	s.ok(s.tree.Rename(s.ctx(), dir, name, newDir, newName, 0))
}

func (s *suite) exchange(dir vfs.Ino, name string, newDir vfs.Ino, newName string) {
	s.Helper()
	s.ok(s.tree.Rename(s.ctx(), dir, name, newDir, newName, vfs.RenameExchange))
}

func (s *suite) stat(ino vfs.Ino) vfs.Attr {
	s.Helper()
	a, err := s.tree.Stat(s.ctx(), ino)
	s.ok(err)
	return a
}

func (s *suite) setAttr(ino vfs.Ino, set vfs.AttrSet) vfs.Attr {
	s.Helper()
	a, err := s.tree.SetAttr(s.ctx(), ino, set)
	s.ok(err)
	return a
}

func (s *suite) truncate(ino vfs.Ino, size uint64) {
	s.Helper()
	if a := s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetSize, Size: size}); a.Size != size {
		s.Fatalf("size %d after truncation to %d", a.Size, size)
	}
}

func (s *suite) chmod(ino vfs.Ino, mode uint32) {
	s.Helper()
	s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: mode})
}

func (s *suite) write(ino vfs.Ino, off uint64, p []byte) {
	s.Helper()
	s.ok(s.tree.WriteAt(s.ctx(), ino, p, off, false))
}

func (s *suite) setXattr(ino vfs.Ino, name, value string) {
	s.Helper()
	s.ok(s.tree.SetXattr(s.ctx(), ino, name, []byte(value), 0))
}

func (s *suite) allocate(ino vfs.Ino, mode vfs.AllocMode, off, n uint64) {
	s.Helper()
	s.ok(s.tree.Allocate(s.ctx(), ino, mode, off, n))
}

func (s *suite) commit() vfs.Rev {
	s.Helper()
	rev, err := s.tree.Commit(s.ctx())
	s.ok(err)
	return rev
}

// list returns the entries of a directory.
func (s *suite) list(dir vfs.Ino) []vfs.Dirent {
	s.Helper()
	return s.listAfter(dir, 0)
}

func (s *suite) listAfter(dir vfs.Ino, after vfs.Offset) []vfs.Dirent {
	s.Helper()
	entries, err := list(s.ctx(), s.tree, dir, after)
	s.ok(err)
	return entries
}

// leads reports unless name leads to ino, by Lookup.
func (s *suite) leads(dir vfs.Ino, name string, ino vfs.Ino) {
	s.Helper()
	a, err := s.tree.Lookup(s.ctx(), dir, name)
	if err != nil || a.Ino != ino {
		s.Errorf("%q leads to inode %d (%v), want %d", name, a.Ino, err, ino)
	}
}

// free reports unless there is no such name.
func (s *suite) free(dir vfs.Ino, name string) {
	s.Helper()
	_, err := s.tree.Lookup(s.ctx(), dir, name)
	s.fails(err, vfs.ErrNotExist)
}

// gone reports unless there is no such inode.
func (s *suite) gone(ino vfs.Ino) {
	s.Helper()
	_, err := s.tree.Stat(s.ctx(), ino)
	s.fails(err, vfs.ErrStale)
}

func (s *suite) hasLinks(ino vfs.Ino, want uint32) {
	s.Helper()
	if got := s.stat(ino).Nlink; got != want {
		s.Errorf("inode %d has %d links, want %d", ino, got, want)
	}
}

// holds reports unless the bytes of a file are exactly want.
func (s *suite) holds(ino vfs.Ino, want []byte) {
	s.Helper()
	if size := s.stat(ino).Size; size != uint64(len(want)) {
		s.Errorf("size %d, want %d", size, len(want))
	}
	got := dirty(len(want) + 1)
	n, err := s.tree.ReadAt(s.ctx(), ino, got, 0)
	s.ok(err)
	if n != len(want) {
		s.Errorf("read %d bytes, want %d", n, len(want))
	}
	if at := differAt(got[:n], want); at >= 0 {
		s.Fatalf("bytes differ from %d on: %s", at, around(got[:n], want, at))
	}
}

// reads reports unless the bytes from off on are want.
func (s *suite) reads(ino vfs.Ino, off uint64, want []byte) {
	s.Helper()
	got := dirty(len(want))
	n, err := s.tree.ReadAt(s.ctx(), ino, got, off)
	s.ok(err)
	if n != len(want) {
		s.Errorf("read %d bytes at %d, want %d", n, off, len(want))
	}
	if at := differAt(got[:n], want); at >= 0 {
		s.Fatalf("bytes differ from %d on: %s", off+uint64(at), around(got[:n], want, at))
	}
}

// dirty returns a slice to read into that shows which bytes were left alone.
func dirty(n int) []byte { return bytes.Repeat([]byte{0xdb}, n) }

// differAt returns the first index at which the common part of a and b differs, or -1.
func differAt(a, b []byte) int {
	n := min(len(a), len(b))
	if bytes.Equal(a[:n], b[:n]) {
		return -1
	}
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func around(got, want []byte, at int) string {
	end := min(at+8, len(got), len(want))
	return fmt.Sprintf("% x, want % x", got[at:end], want[at:end])
}

// snapshot returns the snapshot of the whole tree.
func (s *suite) snapshot() map[string]Node {
	s.Helper()
	nodes, err := Snapshot(s.ctx(), s.tree)
	s.ok(err)
	return nodes
}

// unchanged reports when the tree, times of data included, is not what it was in before.
func (s *suite) unchanged(before map[string]Node) {
	s.Helper()
	if d := DiffTimes(before, s.snapshot()); d != "" {
		s.Errorf("changed:\n%s", d)
	}
}

// allTypes are the types of inode with a name for each.
var allTypes = []struct {
	typ  vfs.Type
	name string
}{
	{vfs.TypeRegular, "file"},
	{vfs.TypeDir, "directory"},
	{vfs.TypeSymlink, "symlink"},
	{vfs.TypeFIFO, "fifo"},
	{vfs.TypeSocket, "socket"},
	{vfs.TypeCharDev, "chardev"},
	{vfs.TypeBlockDev, "blockdev"},
}
