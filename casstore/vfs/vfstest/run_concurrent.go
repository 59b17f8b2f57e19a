package vfstest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var concurrentBehaviours = []behaviour{
	{"OneOfManyCreatesWins", oneOfManyCreatesWins},
	{"OneOfManyRenamesWins", oneOfManyRenamesWins},
	{"StormOnAFewNames", stormOnAFewNames},
	{"ReplacedNameIsAlwaysThere", replacedNameIsAlwaysThere},
	{"ExchangedNamesAreAlwaysThere", exchangedNamesAreAlwaysThere},
	{"MovesMakeNoLoop", movesMakeNoLoop},
	{"RmdirAgainstCreate", rmdirAgainstCreate},
	{"WritesToPartsOfAFile", writesToPartsOfAFile},
	{"LinksAreCountedExactly", linksAreCountedExactly},
	{"HoldAgainstUnlink", holdAgainstUnlink},
	{"UnlinkedOnce", unlinkedOnce},
}

// together runs f in n goroutines and waits for them.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func oneOfManyCreatesWins(s *suite) {
	for i := range 30 {
		name := fmt.Sprint(i)
		var won atomic.Uint64
		together(8, func(int) {
			a, err := s.tree.Create(s.ctx(), s.dir, name, fileNode)
			switch {
			case err != nil:
				s.fails(err, vfs.ErrExist)
			case !won.CompareAndSwap(0, uint64(a.Ino)):
				s.Errorf("%q was made twice", name)
			}
		})
		s.leads(s.dir, name, vfs.Ino(won.Load()))
	}
}

func oneOfManyRenamesWins(s *suite) {
	for i := range 30 {
		ino := s.create(s.dir, "src").Ino
		var won atomic.Int32
		together(8, func(g int) {
			err := s.tree.Rename(s.ctx(), s.dir, "src", s.dir, fmt.Sprint(i, "-", g), vfs.RenameNoReplace)
			if err == nil {
				won.Add(1)
				return
			}
			s.fails(err, vfs.ErrNotExist)
		})
		if won.Load() != 1 {
			s.Errorf("%d of 8 renames of one name succeeded", won.Load())
		}
		s.hasLinks(ino, 1)
	}
	if n := len(s.list(s.dir)); n != 30 {
		s.Errorf("%d entries, want 30", n)
	}
}

func stormOnAFewNames(s *suite) {
	dirs := []vfs.Ino{s.dir, s.mkdir(vfs.RootIno, "x").Ino, s.mkdir(vfs.RootIno, "y").Ino}
	for range 5 {
		s.storm(dirs, 8, 300)
		if err := Audit(s.ctx(), s.tree); err != nil {
			s.Fatal(err)
		}
		s.commit()
	}
}

// alternate runs change in one goroutine, and check in this one until that is done.
func alternate(change, check func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		change()
	}()
	for {
		select {
		case <-done:
			return
		default:
			check()
		}
	}
}

func replacedNameIsAlwaysThere(s *suite) {
	s.create(s.dir, "target")
	alternate(func() {
		for range 300 {
			a, err := s.tree.Create(s.ctx(), s.dir, "tmp", fileNode)
			if err == nil {
				err = s.tree.WriteAt(s.ctx(), a.Ino, []byte("complete"), 0, false)
			}
			if err == nil {
				err = s.tree.Rename(s.ctx(), s.dir, "tmp", s.dir, "target", 0)
			}
			if err != nil {
				s.Error(err)
			}
		}
	}, func() {
		if _, err := s.tree.Lookup(s.ctx(), s.dir, "target"); err != nil {
			s.Error(err)
		}
	})
	s.free(s.dir, "tmp")
}

func exchangedNamesAreAlwaysThere(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	s.create(s.dir, "a")
	s.create(d, "b")
	alternate(func() {
		for range 500 {
			if err := s.tree.Rename(s.ctx(), s.dir, "a", d, "b", vfs.RenameExchange); err != nil {
				s.Error(err)
			}
		}
	}, func() {
		_, errA := s.tree.Lookup(s.ctx(), s.dir, "a")
		_, errB := s.tree.Lookup(s.ctx(), d, "b")
		if err := errors.Join(errA, errB); err != nil {
			s.Error(err)
		}
	})
}

// movesMakeNoLoop moves two directories into each other at once: were both to succeed, nothing would lead to them.
func movesMakeNoLoop(s *suite) {
	for i := range 60 {
		top := s.mkdir(s.dir, fmt.Sprint(i)).Ino
		a, b := s.mkdir(top, "a").Ino, s.mkdir(top, "b").Ino
		deep := s.mkdir(b, "deep").Ino
		var won atomic.Int32
		together(2, func(g int) {
			var err error
			if g == 0 {
				err = s.tree.Rename(s.ctx(), top, "a", deep, "a", 0)
			} else {
				err = s.tree.Rename(s.ctx(), top, "b", a, "b", 0)
			}
			if err == nil {
				won.Add(1)
				return
			}
			s.fails(err, vfs.ErrInvalid)
		})
		if won.Load() != 1 {
			s.Errorf("%d of two moves that exclude each other succeeded", won.Load())
		}
		s.hasLinks(top, 3)
	}
}

func rmdirAgainstCreate(s *suite) {
	for i := range 100 {
		name := fmt.Sprint(i)
		d := s.mkdir(s.dir, name).Ino
		var created, removed atomic.Bool
		together(2, func(g int) {
			if g == 0 {
				_, err := s.tree.Create(s.ctx(), d, "f", fileNode)
				if created.Store(err == nil); err != nil {
					s.fails(err, vfs.ErrNotExist, vfs.ErrStale)
				}
				return
			}
			err := s.tree.Rmdir(s.ctx(), s.dir, name)
			if removed.Store(err == nil); err != nil {
				s.fails(err, vfs.ErrNotEmpty)
			}
		})
		if created.Load() == removed.Load() {
			s.Errorf("created: %t, its directory removed: %t", created.Load(), removed.Load())
		}
	}
}

func writesToPartsOfAFile(s *suite) {
	const writers, part = 8, 50_001
	ino := s.create(s.dir, "f").Ino
	want := make([]byte, writers*part)
	together(writers, func(w int) {
		p := pattern(part, uint64(w))
		copy(want[w*part:], p)
		for off := 0; off < part; off += 3333 {
			end := min(off+3333, part)
			if err := s.tree.WriteAt(s.ctx(), ino, p[off:end], uint64(w*part+off), false); err != nil {
				s.Error(err)
			}
		}
	})
	s.holds(ino, want)
	s.commit()
	s.holds(ino, want)
}

func linksAreCountedExactly(s *suite) {
	const goroutines, each = 8, 50
	ino := s.create(s.dir, "f").Ino
	together(goroutines, func(g int) {
		for i := range each {
			if _, err := s.tree.Link(s.ctx(), ino, s.dir, fmt.Sprint(g, "-", i)); err != nil {
				s.Error(err)
			}
		}
	})
	s.hasLinks(ino, 1+goroutines*each)
	together(goroutines, func(g int) {
		for i := range each {
			if err := s.tree.Unlink(s.ctx(), s.dir, fmt.Sprint(g, "-", i)); err != nil {
				s.Error(err)
			}
		}
	})
	s.hasLinks(ino, 1)
	together(goroutines, func(g int) {
		if _, err := s.tree.Mkdir(s.ctx(), s.dir, fmt.Sprint(g), dirNode); err != nil {
			s.Error(err)
		}
	})
	s.hasLinks(s.dir, 2+goroutines)
}

func holdAgainstUnlink(s *suite) {
	for range 200 {
		ino := s.create(s.dir, "f").Ino
		together(2, func(g int) {
			if g == 0 {
				s.tree.Hold(ino)
				return
			}
			if err := s.tree.Unlink(s.ctx(), s.dir, "f"); err != nil {
				s.Error(err)
			}
		})
		if _, err := s.tree.Stat(s.ctx(), ino); err == nil { // held in time
			s.hasLinks(ino, 0)
		} else {
			s.fails(err, vfs.ErrStale)
		}
		s.tree.Release(ino, 1)
		s.gone(ino)
	}
}

func unlinkedOnce(s *suite) {
	for range 100 {
		s.create(s.dir, "f")
		var won atomic.Int32
		together(4, func(int) {
			err := s.tree.Unlink(s.ctx(), s.dir, "f")
			if err == nil {
				won.Add(1)
				return
			}
			s.fails(err, vfs.ErrNotExist)
		})
		if won.Load() != 1 {
			s.Errorf("%d of 4 removals of one name succeeded", won.Load())
		}
	}
}
