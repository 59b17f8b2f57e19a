package vfstest

import (
	"fmt"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var durableBehaviours = []behaviour{
	{"FsyncOfEveryType", fsyncOfEveryType},
	{"RevisionsGrow", revisionsGrow},
	{"CommitChangesNothing", commitChangesNothing},
	{"CommitWhileWriting", commitWhileWriting},
	{"StatFSIsPlausible", statFSIsPlausible},
}

func fsyncOfEveryType(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		ino := s.make(s.dir, name, t).Ino
		s.ok(s.tree.Fsync(s.ctx(), ino))
		s.chmod(ino, 0o600)
		s.ok(s.tree.Fsync(s.ctx(), ino))
		s.tree.Hold(ino)
		s.remove(s.dir, name, t)
		s.ok(s.tree.Fsync(s.ctx(), ino))
		s.tree.Release(ino, 1)
	})
	s.ok(s.tree.Fsync(s.ctx(), vfs.RootIno))
}

func revisionsGrow(s *suite) {
	last := s.commit()
	if again := s.commit(); again < last {
		s.Errorf("revision %d after %d", again, last)
	}
	ino := s.create(s.dir, "f").Ino
	changes := []func(){
		func() { s.create(s.dir, "g") },
		func() { s.write(ino, 0, []byte("bytes")) },
		func() { s.chmod(ino, 0o600) },
		func() { s.setXattr(ino, "user.x", "v") },
		func() { s.truncate(ino, 0) },
		func() { s.rename(s.dir, "g", s.dir, "h") },
		func() { s.unlink(s.dir, "h") },
	}
	last = s.commit()
	for i, change := range changes {
		change()
		rev := s.commit()
		if rev <= last {
			s.Errorf("revision %d after change %d, the last one was %d", rev, i, last)
		}
		last = rev
		s.ok(s.tree.Sync(s.ctx()))
	}
}

func commitChangesNothing(s *suite) {
	for i := range 20 {
		d := s.mkdir(s.dir, fmt.Sprint(i)).Ino
		s.fill(d, "f", 50)
		for _, t := range allTypes {
			s.make(d, t.name, t.typ)
		}
		ino := s.create(d, "with bytes").Ino
		s.write(ino, uint64(i), pattern(i*i*400, uint64(i)))
		s.setXattr(ino, "user.x", fmt.Sprint(i))
		s.link(ino, s.dir, fmt.Sprint("link", i))
	}
	before := s.snapshot()
	for range 3 {
		s.commit()
		s.unchanged(before)
	}
	s.unlink(s.dir, "link3")
	before = s.snapshot()
	s.ok(s.tree.Sync(s.ctx()))
	s.unchanged(before)
}

func commitWhileWriting(s *suite) {
	const writers, rounds = 4, 60
	want := make([][]byte, writers)
	inos := make([]vfs.Ino, writers)
	for w := range writers {
		inos[w] = s.create(s.dir, fmt.Sprint(w)).Ino
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range rounds {
				p, off := pattern(5000+i*37, uint64(w*rounds+i)), i*3000
				if err := s.tree.WriteAt(s.ctx(), inos[w], p, uint64(off), false); err != nil {
					s.Error(err)
				}
				want[w] = overwrite(want[w], off, p)
			}
		})
	}
	for range 10 {
		s.commit()
	}
	all.Wait()
	for w := range writers {
		s.holds(inos[w], want[w])
	}
	s.commit()
	for w := range writers {
		s.holds(inos[w], want[w])
	}
}

func statFSIsPlausible(s *suite) {
	f, err := s.tree.StatFS(s.ctx())
	s.ok(err)
	if f.BlockSize == 0 || f.Blocks == 0 || f.Free > f.Blocks || f.Available > f.Blocks || f.FilesFree > f.Files {
		s.Errorf("%+v", f)
	}
}
