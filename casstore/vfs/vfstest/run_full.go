package vfstest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// fillFile is the size of the files that RunFull fills a tree with, in bytes.
const fillFile = 1 << 20

// RunFull takes what a tree promises when its disk is full to one with room for 4 to 256 MiB, which open makes: a write
// that the room does not suffice for gives ErrNoSpace and changes nothing, every write that was taken can be committed
// and read, and removing works.
func RunFull(t *testing.T, open func(t *testing.T) vfs.Tree) {
	s := newSuite(t, open(t))
	last := s.create(s.dir, "last").Ino
	s.write(last, 0, pattern(5000, 1))
	files := s.fillUp()
	before := s.snapshot()
	err := s.tree.WriteAt(s.ctx(), last, pattern(8<<20, 2), 1000, false)
	s.fails(err, vfs.ErrNoSpace)
	s.unchanged(before)
	s.commit()
	s.unchanged(before)
	for i := range files {
		s.holds(files[i], pattern(int(s.stat(files[i]).Size), uint64(i)))
	}
	for i := range files {
		s.unlink(s.dir, fmt.Sprint(i))
	}
	s.commit()
	s.holds(last, pattern(5000, 1))
	if err := Audit(t.Context(), s.tree); err != nil {
		t.Error(err)
	}
}

// fillUp writes files until there is no room for another, and returns them.
func (s *suite) fillUp() []vfs.Ino {
	s.Helper()
	var files []vfs.Ino
	for i := range 300 {
		ino, err := s.fillOne(fmt.Sprint(i), uint64(i))
		if ino != 0 {
			files = append(files, ino)
		}
		if errors.Is(err, vfs.ErrNoSpace) {
			return files
		}
		s.ok(err)
	}
	s.Fatal("the tree does not become full")
	return nil
}

// fillOne makes a file and writes it in steps; ino is zero when not even the file could be made.
func (s *suite) fillOne(name string, seed uint64) (ino vfs.Ino, err error) {
	a, err := s.tree.Create(s.ctx(), s.dir, name, fileNode)
	if err != nil {
		return 0, err
	}
	p := pattern(fillFile, seed)
	for off := 0; off < len(p); off += 128 << 10 {
		if err := s.tree.WriteAt(s.ctx(), a.Ino, p[off:off+128<<10], uint64(off), false); err != nil {
			return a.Ino, err
		}
	}
	return a.Ino, nil
}
