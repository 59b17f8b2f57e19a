package vfstest

import (
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var linkBehaviours = []behaviour{
	{"LinkAddsAName", linkAddsAName},
	{"LinkOfEveryType", linkOfEveryType},
	{"LinkTouchesInodeAndDirectory", linkTouchesInodeAndDirectory},
	{"LinkOfADirectoryFails", linkOfADirectoryFails},
	{"LinksHaveAMaximum", linksHaveAMaximum},
	{"LinksShareEverything", linksShareEverything},
	{"UnlinkRemovesAName", unlinkRemovesAName},
	{"UnlinkTouchesInodeAndDirectory", unlinkTouchesInodeAndDirectory},
	{"UnlinkOfTheLastNameEndsTheInode", unlinkOfTheLastNameEndsTheInode},
	{"UnlinkFails", unlinkFails},
	{"RmdirRemovesADirectory", rmdirRemovesADirectory},
	{"RmdirFails", rmdirFails},
	{"RmdirAfterEmptying", rmdirAfterEmptying},
}

func linkAddsAName(s *suite) {
	other := s.mkdir(s.dir, "other").Ino
	f := s.create(s.dir, "f")
	a := s.link(f.Ino, other, "g")
	if a.Nlink != 2 || a.Ino != f.Ino || a != s.stat(f.Ino) {
		s.Errorf("link returned %+v, Stat says %+v", a, s.stat(f.Ino))
	}
	s.leads(s.dir, "f", f.Ino)
	s.leads(other, "g", f.Ino)
	s.unlink(s.dir, "f")
	s.leads(other, "g", f.Ino)
	s.hasLinks(f.Ino, 1)
	s.link(f.Ino, s.dir, "f")
	s.hasLinks(f.Ino, 2)
	s.hasLinks(s.dir, 3)
}

func linkOfEveryType(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		if t == vfs.TypeDir {
			return
		}
		a := s.make(s.dir, name, t)
		linked := s.link(a.Ino, s.dir, name+"2")
		if linked.Type != t || linked.Nlink != 2 {
			s.Errorf("link returned %+v", linked)
		}
		s.leads(s.dir, name+"2", a.Ino)
	})
}

func linkTouchesInodeAndDirectory(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	f := s.create(s.dir, "f")
	work, dir, then := s.stat(s.dir), s.stat(d), s.tick()
	s.link(f.Ino, d, "g")
	s.touched("the inode", f, then, ctime)
	s.touched("the directory of the new name", dir, then, mtime|ctime)
	s.touched("the directory of the old name", work, then, 0)
}

func linkOfADirectoryFails(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	before := s.snapshot()
	_, err := s.tree.Link(s.ctx(), d, s.dir, "e")
	s.fails(err, vfs.ErrNotPermitted)
	_, err = s.tree.Link(s.ctx(), d, d, "itself")
	s.fails(err, vfs.ErrNotPermitted)
	s.unchanged(before)
}

func linksHaveAMaximum(s *suite) {
	ino := s.create(s.dir, "0").Ino
	for i := 1; i < vfs.MaxLinks; i++ {
		s.link(ino, s.dir, fmt.Sprint(i))
	}
	s.hasLinks(ino, vfs.MaxLinks)
	_, err := s.tree.Link(s.ctx(), ino, s.dir, "more")
	s.fails(err, vfs.ErrTooManyLinks)
	s.free(s.dir, "more")
	s.rename(s.dir, "0", s.dir, "moved")
	s.unlink(s.dir, "1")
	s.link(ino, s.dir, "more")
	s.hasLinks(ino, vfs.MaxLinks)
}

func linksShareEverything(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.link(ino, s.dir, "g")
	s.write(ino, 0, []byte("shared"))
	s.chmod(ino, 0o604)
	s.setXattr(ino, "user.x", "1")
	f, err := s.tree.Lookup(s.ctx(), s.dir, "f")
	s.ok(err)
	g, err := s.tree.Lookup(s.ctx(), s.dir, "g")
	s.ok(err)
	if f != g || g.Size != 6 || g.Mode != 0o604 {
		s.Errorf("two names of one file: %+v and %+v", f, g)
	}
}

func unlinkRemovesAName(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		if t == vfs.TypeDir {
			return
		}
		a := s.make(s.dir, name, t)
		s.link(a.Ino, s.dir, "second")
		s.unlink(s.dir, name)
		s.free(s.dir, name)
		s.hasLinks(a.Ino, 1)
		s.unlink(s.dir, "second")
		s.gone(a.Ino)
	})
	if entries := s.list(s.dir); len(entries) > 0 {
		s.Errorf("left over: %v", entries)
	}
}

func unlinkTouchesInodeAndDirectory(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	ino := s.create(s.dir, "f").Ino
	s.link(ino, d, "g")
	f, work, dir, then := s.stat(ino), s.stat(s.dir), s.stat(d), s.tick()
	s.unlink(d, "g")
	s.touched("the inode", f, then, ctime)
	s.touched("the directory of the name", dir, then, mtime|ctime)
	s.touched("the directory of the other name", work, then, 0)
}

func unlinkOfTheLastNameEndsTheInode(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(10_000, 1))
	s.unlink(s.dir, "f")
	s.isStale(ino)
	if again := s.create(s.dir, "f"); again.Ino == ino || again.Size != 0 {
		s.Errorf("the next file of that name: %+v", again)
	}
}

func unlinkFails(s *suite) {
	s.mkdir(s.dir, "d")
	before := s.snapshot()
	s.fails(s.tree.Unlink(s.ctx(), s.dir, "free"), vfs.ErrNotExist)
	s.fails(s.tree.Unlink(s.ctx(), s.dir, "d"), vfs.ErrIsDir)
	s.unchanged(before)
}

func rmdirRemovesADirectory(s *suite) {
	ino := s.mkdir(s.dir, "d").Ino
	before, then := s.stat(s.dir), s.tick()
	s.rmdir(s.dir, "d")
	s.touched("the parent", before, then, mtime|ctime)
	s.free(s.dir, "d")
	s.gone(ino)
	s.hasLinks(s.dir, 2)
}

func rmdirFails(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	s.symlink(d, "inner", "target")
	top := s.mkdir(s.dir, "top").Ino
	s.mkdir(top, "empty")
	before := s.snapshot()
	s.fails(s.tree.Rmdir(s.ctx(), s.dir, "free"), vfs.ErrNotExist)
	s.fails(s.tree.Rmdir(s.ctx(), s.dir, "d"), vfs.ErrNotEmpty)
	s.fails(s.tree.Rmdir(s.ctx(), s.dir, "top"), vfs.ErrNotEmpty)
	s.unchanged(before)
	s.each(func(s *suite, t vfs.Type, name string) {
		if t != vfs.TypeDir {
			s.make(s.dir, name, t)
			s.fails(s.tree.Rmdir(s.ctx(), s.dir, name), vfs.ErrNotDir)
		}
	})
}

func rmdirAfterEmptying(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	s.create(d, "a")
	s.mkdir(d, "b")
	s.commit()
	s.rename(d, "a", s.dir, "a")
	s.fails(s.tree.Rmdir(s.ctx(), s.dir, "d"), vfs.ErrNotEmpty)
	s.rmdir(d, "b")
	s.rmdir(s.dir, "d")
	s.gone(d)
}
