package vfstest

import (
	"github.com/carrelfs/carrel/casstore/vfs"
)

var holdBehaviours = []behaviour{
	{"HeldFileOutlivesItsName", heldFileOutlivesItsName},
	{"HeldNodeOfEveryTypeOutlivesItsName", heldNodeOfEveryTypeOutlivesItsName},
	{"HeldFileOutlivesACommit", heldFileOutlivesACommit},
	{"HoldsAreCounted", holdsAreCounted},
	{"ReleasedFileStaysWithItsName", releasedFileStaysWithItsName},
	{"HoldDoesNotBringBack", holdDoesNotBringBack},
	{"RenameOverAHeldFile", renameOverAHeldFile},
	{"RenameOverAHeldDirectory", renameOverAHeldDirectory},
	{"HeldFileCannotBeLinkedAgain", heldFileCannotBeLinkedAgain},
	{"NameOfAHeldFileIsFree", nameOfAHeldFileIsFree},
}

func heldFileOutlivesItsName(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(5000, 1))
	s.tree.Hold(ino)
	before, then := s.stat(ino), s.tick()
	s.unlink(s.dir, "f")
	s.free(s.dir, "f")
	s.touched("the inode", before, then, ctime)
	s.hasLinks(ino, 0)
	s.holds(ino, pattern(5000, 1))
	s.write(ino, 5000, pattern(100_000, 2))
	s.holds(ino, append(pattern(5000, 1), pattern(100_000, 2)...))
	s.truncate(ino, 10)
	s.chmod(ino, 0o611)
	s.setXattr(ino, "user.x", "1")
	s.allocate(ino, 0, 0, 20)
	s.ok(s.tree.Fsync(s.ctx(), ino))
	if a := s.stat(ino); a.Size != 20 || a.Mode != 0o611 || a.Nlink != 0 {
		s.Errorf("held file: %+v", a)
	}
	s.tree.Release(ino, 1)
	s.isStale(ino)
}

func heldNodeOfEveryTypeOutlivesItsName(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		ino := s.make(s.dir, name, t).Ino
		s.tree.Hold(ino)
		s.remove(s.dir, name, t)
		s.hasLinks(ino, 0)
		s.setXattr(ino, "user.x", "1")
		if t == vfs.TypeSymlink {
			_, err := s.tree.Readlink(s.ctx(), ino)
			s.ok(err)
		}
		s.tree.Release(ino, 1)
		s.gone(ino)
	})
}

func heldFileOutlivesACommit(s *suite) {
	for _, size := range []int{0, 100, 4096, 300_000} {
		ino := s.create(s.dir, "f").Ino
		s.write(ino, 0, pattern(size, 1))
		s.commit()
		s.tree.Hold(ino)
		s.unlink(s.dir, "f")
		s.commit()
		s.holds(ino, pattern(size, 1))
		s.write(ino, uint64(size), pattern(10, 2))
		s.commit()
		s.holds(ino, append(pattern(size, 1), pattern(10, 2)...))
		s.tree.Release(ino, 1)
		s.gone(ino)
		s.commit()
		s.gone(ino)
	}
}

func holdsAreCounted(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for range 5 {
		s.tree.Hold(ino)
	}
	s.tree.Release(ino, 1)
	s.unlink(s.dir, "f")
	s.hasLinks(ino, 0)
	s.tree.Release(ino, 1)
	s.hasLinks(ino, 0)
	s.tree.Release(ino, 2)
	s.hasLinks(ino, 0)
	s.tree.Hold(ino)
	s.tree.Release(ino, 1)
	s.hasLinks(ino, 0)
	s.tree.Release(ino, 1)
	s.gone(ino)
}

func releasedFileStaysWithItsName(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, []byte("bytes"))
	s.tree.Hold(ino)
	s.tree.Hold(ino)
	s.tree.Release(ino, 2)
	s.hasLinks(ino, 1)
	s.holds(ino, []byte("bytes"))
	s.unlink(s.dir, "f")
	s.gone(ino)
}

func holdDoesNotBringBack(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.unlink(s.dir, "f")
	s.tree.Hold(ino)
	s.gone(ino)
	s.tree.Release(ino, 1)
	s.gone(ino)
}

func renameOverAHeldFile(s *suite) {
	old, ino := s.create(s.dir, "old").Ino, s.create(s.dir, "new").Ino
	s.write(old, 0, pattern(9000, 1))
	s.write(ino, 0, pattern(7000, 2))
	s.tree.Hold(old)
	before, then := s.stat(old), s.tick()
	s.rename(s.dir, "new", s.dir, "old")
	s.touched("the inode", before, then, ctime)
	s.leads(s.dir, "old", ino)
	s.hasLinks(old, 0)
	s.holds(old, pattern(9000, 1))
	s.holds(ino, pattern(7000, 2))
	s.commit()
	s.holds(old, pattern(9000, 1))
	s.tree.Release(old, 1)
	s.gone(old)
	s.holds(ino, pattern(7000, 2))
}

func renameOverAHeldDirectory(s *suite) {
	old, ino := s.mkdir(s.dir, "old").Ino, s.mkdir(s.dir, "new").Ino
	s.create(ino, "inner")
	s.tree.Hold(old)
	s.rename(s.dir, "new", s.dir, "old")
	s.leads(s.dir, "old", ino)
	s.hasLinks(old, 0)
	_, err := s.tree.Create(s.ctx(), old, "f", fileNode)
	s.fails(err, vfs.ErrNotExist)
	s.tree.Release(old, 1)
	s.gone(old)
}

func heldFileCannotBeLinkedAgain(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.tree.Hold(ino)
	s.unlink(s.dir, "f")
	_, err := s.tree.Link(s.ctx(), ino, s.dir, "g")
	s.fails(err, vfs.ErrNotExist, vfs.ErrStale)
	s.free(s.dir, "g")
	s.hasLinks(ino, 0)
	s.tree.Release(ino, 1)
	s.gone(ino)
}

func nameOfAHeldFileIsFree(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	old := s.create(d, "f").Ino
	s.tree.Hold(old)
	s.unlink(d, "f")
	ino := s.create(d, "f").Ino
	if ino == old {
		s.Fatal("the number of a held inode was given again")
	}
	s.write(ino, 0, []byte("new"))
	s.holds(old, nil)
	s.unlink(d, "f")
	s.rmdir(s.dir, "d") // the held file has no place in it any more
	s.holds(old, nil)
	s.tree.Release(old, 1)
	s.gone(old)
}
