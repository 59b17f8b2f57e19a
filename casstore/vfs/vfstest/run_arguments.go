package vfstest

import (
	"context"
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var argumentBehaviours = []behaviour{
	{"DirectoryThatIsNone", directoryThatIsNone},
	{"DirectoryThatWasRemoved", directoryThatWasRemoved},
	{"DirectoryThatIsGone", directoryThatIsGone},
	{"InodeThatIsGone", inodeThatIsGone},
	{"InodeThatNeverWas", inodeThatNeverWas},
	{"CancelledContextChangesNothing", cancelledContextChangesNothing},
	{"BytesOfWhatHasNone", bytesOfWhatHasNone},
	{"SlicesAreTheCallers", slicesAreTheCallers},
}

// named runs f as a subtest for every operation on a name.
func (s *suite) named(f func(s *suite, op operation[onName])) {
	for _, op := range nameOperations {
		s.Run(op.name, func(t *testing.T) {
			sub := *s
			sub.T = t
			f(&sub, op)
		})
	}
}

func directoryThatIsNone(s *suite) {
	s.create(s.dir, "source")
	s.each(func(s *suite, t vfs.Type, name string) {
		if t == vfs.TypeDir {
			return
		}
		ino := s.make(s.dir, name, t).Ino
		before := s.snapshot()
		s.named(func(s *suite, op operation[onName]) {
			s.fails(op.call(s.ctx(), s.tree, ino, "n", s.dir, "source"), vfs.ErrNotDir)
		})
		_, err := list(s.ctx(), s.tree, ino, 0)
		s.fails(err, vfs.ErrNotDir)
		s.unchanged(before)
	})
}

// removedDir makes a directory, holds it and removes it.
func (s *suite) removedDir() vfs.Ino {
	s.Helper()
	ino := s.mkdir(s.dir, "removed").Ino
	s.tree.Hold(ino)
	s.rmdir(s.dir, "removed")
	return ino
}

func directoryThatWasRemoved(s *suite) {
	s.create(s.dir, "source")
	ino := s.removedDir()
	before := s.snapshot()
	s.named(func(s *suite, op operation[onName]) {
		s.fails(op.call(s.ctx(), s.tree, ino, "n", s.dir, "source"), vfs.ErrNotExist)
	})
	entries, err := list(s.ctx(), s.tree, ino, 0)
	if err != nil && !errors.Is(err, vfs.ErrNotExist) || len(entries) > 0 {
		s.Errorf("listing a removed directory: %v, %v, want nothing or %v", entries, err, vfs.ErrNotExist)
	}
	if a := s.stat(ino); a.Type != vfs.TypeDir || a.Nlink != 0 {
		s.Errorf("removed directory: %+v, want a directory without links", a)
	}
	s.unchanged(before)
	s.tree.Release(ino, 1)
	s.gone(ino)
}

func directoryThatIsGone(s *suite) {
	s.create(s.dir, "source")
	ino := s.mkdir(s.dir, "d").Ino
	s.rmdir(s.dir, "d")
	before := s.snapshot()
	s.named(func(s *suite, op operation[onName]) {
		s.fails(op.call(s.ctx(), s.tree, ino, "n", s.dir, "source"), vfs.ErrNotExist, vfs.ErrStale)
	})
	_, err := list(s.ctx(), s.tree, ino, 0)
	s.fails(err, vfs.ErrNotExist, vfs.ErrStale)
	s.unchanged(before)
}

func inodeThatIsGone(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.unlink(s.dir, "f")
	s.isStale(ino)
}

func inodeThatNeverWas(s *suite) {
	s.isStale(0)
	s.isStale(1 << 62)
	s.isStale(1<<64 - 1)
}

// isStale reports unless every operation on an inode says that it is gone.
func (s *suite) isStale(ino vfs.Ino) {
	s.Helper()
	before := s.snapshot()
	for _, op := range inodeOperations {
		if s.fails(op.call(s.ctx(), s.tree, ino), vfs.ErrStale); s.Failed() {
			s.Fatalf("%s of inode %d", op.name, ino)
		}
	}
	_, err := s.tree.Readlink(s.ctx(), ino)
	s.fails(err, vfs.ErrStale)
	s.tree.Hold(ino)
	s.tree.Release(ino, 1)
	s.unchanged(before)
}

func cancelledContextChangesNothing(s *suite) {
	file := s.create(s.dir, "source").Ino
	s.write(file, 0, []byte("bytes"))
	s.setXattr(file, "user.present", "value")
	s.create(s.dir, "taken")
	s.mkdir(s.dir, "directory")
	before := s.snapshot()
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	interrupted := func(op string, err error) {
		if !errors.Is(err, vfs.ErrInterrupted) {
			s.Errorf("%s: error %v, want %v", op, err, vfs.ErrInterrupted)
		}
	}
	names := map[string]string{"Lookup": "taken", "Unlink": "taken", "RenameFrom": "taken", "Rmdir": "directory"}
	for _, op := range nameOperations {
		name := "free"
		if there, ok := names[op.name]; ok {
			name = there
		}
		interrupted(op.name, op.call(ctx, s.tree, s.dir, name, s.dir, "source"))
	}
	for _, op := range inodeOperations {
		interrupted(op.name, op.call(ctx, s.tree, file))
	}
	for _, op := range treeOperations {
		interrupted(op.name, op.call(ctx, s.tree))
	}
	_, err := list(ctx, s.tree, s.dir, 0)
	interrupted("ReadDir", err)
	s.unchanged(before)
}

func bytesOfWhatHasNone(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		if t == vfs.TypeRegular {
			return
		}
		ino := s.make(s.dir, name, t).Ino
		want := []error{vfs.ErrInvalid}
		if t == vfs.TypeDir {
			want = append(want, vfs.ErrIsDir)
		}
		before := s.snapshot()
		for _, op := range inodeOperations {
			switch op.name {
			case "Truncate", "ReadAt", "WriteAt", "Allocate", "PunchHole", "Seek":
				if s.fails(op.call(s.ctx(), s.tree, ino), want...); s.Failed() {
					s.Fatal(op.name)
				}
			}
		}
		s.unchanged(before)
	})
}

func slicesAreTheCallers(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, size := range []int{1, 100, 4096, 4097, 200 << 10} {
		p := pattern(size, 1)
		s.write(ino, 0, p)
		clear(p)
		s.holds(ino, pattern(size, 1))
	}
	value := []byte("value")
	s.ok(s.tree.SetXattr(s.ctx(), ino, "user.x", value, 0))
	clear(value)
	got, err := s.tree.GetXattr(s.ctx(), ino, "user.x")
	s.ok(err)
	if string(got) != "value" {
		s.Errorf("attribute is %q after its setter's slice changed", got)
	}
	clear(got)
	if again, err := s.tree.GetXattr(s.ctx(), ino, "user.x"); err != nil || string(again) != "value" {
		s.Errorf("attribute is %q (%v) after a getter's slice changed", again, err)
	}
}
