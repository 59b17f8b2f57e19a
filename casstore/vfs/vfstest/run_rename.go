package vfstest

import (
	"fmt"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var renameBehaviours = []behaviour{
	{"Matrix", renameMatrix},
	{"KeepsTheInode", renameKeepsTheInode},
	{"TouchesInodeAndDirectories", renameTouchesInodeAndDirectories},
	{"ReplacingEndsTheOtherInode", replacingEndsTheOtherInode},
	{"ReplacingLeavesOtherNames", replacingLeavesOtherNames},
	{"ReplacingANonEmptyDirectoryFails", replacingANonEmptyDirectoryFails},
	{"MovesADirectoryWithItsTree", movesADirectoryWithItsTree},
	{"IntoItselfFails", intoItselfFails},
	{"OntoAnAncestorFails", ontoAnAncestorFails},
	{"OfNothingFails", renameOfNothingFails},
	{"TwoNamesOfOneInodeStay", twoNamesOfOneInodeStay},
	{"OntoItselfChangesNothing", ontoItselfChangesNothing},
	{"BadFlagsFail", badRenameFlagsFail},
	{"ExchangeTouchesBoth", exchangeTouchesBoth},
	{"ExchangeOfDirectoriesMovesTheirParents", exchangeOfDirectories},
	{"ExchangeWithAnAncestorFails", exchangeWithAnAncestorFails},
	{"ChainOfRenames", chainOfRenames},
}

// renameCase is one cell of the matrix: what is renamed, over what, where and how.
type renameCase struct {
	src, dst vfs.Type // dst is zero when the new name is free
	sameDir  bool
	flags    vfs.RenameFlags
}

// want is the error that a cell must give, or nil.
func (c renameCase) want() error {
	srcDir, dstDir := c.src == vfs.TypeDir, c.dst == vfs.TypeDir
	switch {
	case c.flags == vfs.RenameExchange && c.dst == 0:
		return vfs.ErrNotExist
	case c.flags == vfs.RenameExchange:
		return nil
	case c.flags == vfs.RenameNoReplace && c.dst != 0:
		return vfs.ErrExist
	case c.dst != 0 && srcDir && !dstDir:
		return vfs.ErrNotDir
	case c.dst != 0 && !srcDir && dstDir:
		return vfs.ErrIsDir
	}
	return nil
}

func renameMatrix(s *suite) {
	flags := map[vfs.RenameFlags]string{0: "plain", vfs.RenameNoReplace: "noreplace", vfs.RenameExchange: "exchange"}
	i := 0
	for flag, flagName := range flags {
		for _, sameDir := range []bool{true, false} {
			for _, src := range allTypes {
				for _, dst := range append(allTypes[:len(allTypes):len(allTypes)], struct {
					typ  vfs.Type
					name string
				}{0, "free"}) {
					i++
					top := s.mkdir(s.dir, fmt.Sprint(i)).Ino
					s.Run(fmt.Sprintf("%s/%s/%s/sameDir=%t", flagName, src.name, dst.name, sameDir), func(t *testing.T) {
						sub := *s
						sub.T = t
						sub.renameCell(top, renameCase{src.typ, dst.typ, sameDir, flag})
					})
				}
			}
		}
	}
}

// renameCell does one cell of the matrix in an empty directory of its own.
func (s *suite) renameCell(top vfs.Ino, c renameCase) {
	from, to := top, top
	if !c.sameDir {
		from, to = s.mkdir(top, "from").Ino, s.mkdir(top, "to").Ino
	}
	src := s.make(from, "src", c.src).Ino
	var dst vfs.Ino
	if c.dst != 0 {
		dst = s.make(to, "dst", c.dst).Ino
	}
	before, err := snapshotBelow(s.ctx(), s.tree, top)
	s.ok(err)
	err = s.tree.Rename(s.ctx(), from, "src", to, "dst", c.flags)
	if want := c.want(); want != nil {
		s.fails(err, want)
		after, err := snapshotBelow(s.ctx(), s.tree, top)
		s.ok(err)
		if d := DiffTimes(before, after); d != "" {
			s.Errorf("changed:\n%s", d)
		}
		return
	}
	s.ok(err)
	s.leads(to, "dst", src)
	switch {
	case c.flags == vfs.RenameExchange:
		s.leads(from, "src", dst)
	case c.dst != 0:
		s.free(from, "src")
		s.gone(dst)
	default:
		s.free(from, "src")
	}
	s.cellAttrs(c, from, to, src, dst)
}

// cellAttrs checks parents and link counts after a cell's rename was done.
func (s *suite) cellAttrs(c renameCase, from, to, src, dst vfs.Ino) {
	moved := s.stat(src)
	if c.src == vfs.TypeDir && moved.Parent != to {
		s.Errorf("parent %d of the directory that moved, want %d", moved.Parent, to)
	}
	fromDirs, toDirs := uint32(0), uint32(0)
	if c.src == vfs.TypeDir {
		toDirs++
	}
	if c.flags == vfs.RenameExchange && c.dst == vfs.TypeDir {
		fromDirs++
		if p := s.stat(dst).Parent; p != from {
			s.Errorf("parent %d of the directory that moved back, want %d", p, from)
		}
	}
	if c.sameDir {
		s.hasLinks(from, 2+fromDirs+toDirs)
		return
	}
	s.hasLinks(from, 2+fromDirs)
	s.hasLinks(to, 2+toDirs)
}

func renameKeepsTheInode(s *suite) {
	other := s.mkdir(s.dir, "other").Ino
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(6000, 1))
	s.setXattr(ino, "user.x", "1")
	before, then := s.stat(ino), s.tick()
	s.rename(s.dir, "f", other, "g")
	s.touched("the inode", before, then, ctime)
	after := s.stat(ino)
	before.Ctime = after.Ctime
	if after != before {
		s.Errorf("before %+v, after %+v", before, after)
	}
	s.holds(ino, pattern(6000, 1))
}

func renameTouchesInodeAndDirectories(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		from, to := s.mkdir(s.dir, "from "+name).Ino, s.mkdir(s.dir, "to "+name).Ino
		n := s.make(from, "n", t)
		f, g, then := s.stat(from), s.stat(to), s.tick()
		s.rename(from, "n", to, "m")
		s.touched("the inode", n, then, ctime)
		s.touched("the old directory", f, then, mtime|ctime)
		s.touched("the new directory", g, then, mtime|ctime)
		n, g, then = s.stat(n.Ino), s.stat(to), s.tick()
		s.rename(to, "m", to, "n")
		s.touched("the inode in its directory", n, then, ctime)
		s.touched("the directory", g, then, mtime|ctime)
	})
}

func replacingEndsTheOtherInode(s *suite) {
	old, ino := s.create(s.dir, "old").Ino, s.create(s.dir, "new").Ino
	s.write(old, 0, pattern(100_000, 1))
	s.write(ino, 0, pattern(100_000, 2))
	s.rename(s.dir, "new", s.dir, "old")
	s.isStale(old)
	s.holds(ino, pattern(100_000, 2))
	s.hasLinks(ino, 1)
	if entries := s.list(s.dir); len(entries) != 1 || entries[0].Name != "old" || entries[0].Ino != ino {
		s.Errorf("entries %v", entries)
	}
}

func replacingLeavesOtherNames(s *suite) {
	old := s.create(s.dir, "old").Ino
	s.link(old, s.dir, "second")
	s.create(s.dir, "new")
	before, then := s.stat(old), s.tick()
	s.rename(s.dir, "new", s.dir, "old")
	s.hasLinks(old, 1)
	s.leads(s.dir, "second", old)
	s.touched("the replaced inode", before, then, ctime)
}

func replacingANonEmptyDirectoryFails(s *suite) {
	s.mkdir(s.dir, "new")
	old := s.mkdir(s.dir, "old").Ino
	s.create(old, "inner")
	before := s.snapshot()
	s.fails(s.tree.Rename(s.ctx(), s.dir, "new", s.dir, "old", 0), vfs.ErrNotEmpty)
	s.unchanged(before)
	s.unlink(old, "inner")
	s.rename(s.dir, "new", s.dir, "old")
	s.gone(old)
	s.hasLinks(s.dir, 3)
}

func movesADirectoryWithItsTree(s *suite) {
	a, b := s.mkdir(s.dir, "a").Ino, s.mkdir(s.dir, "b").Ino
	sub := s.mkdir(a, "sub").Ino
	deep := s.mkdir(sub, "deep").Ino
	f := s.create(deep, "f").Ino
	s.rename(a, "sub", b, "moved")
	s.leads(b, "moved", sub)
	s.leads(sub, "deep", deep)
	s.leads(deep, "f", f)
	s.hasLinks(a, 2)
	s.hasLinks(b, 3)
	s.hasLinks(sub, 3)
	if p := s.stat(sub).Parent; p != b {
		s.Errorf("parent %d, want %d", p, b)
	}
	if p := s.stat(deep).Parent; p != sub {
		s.Errorf("parent %d, want %d", p, sub)
	}
	s.rmdir(s.dir, "a")
}

func intoItselfFails(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	sub := s.mkdir(d, "sub").Ino
	deep := s.mkdir(sub, "deep").Ino
	before := s.snapshot()
	for _, into := range []vfs.Ino{d, sub, deep} {
		s.fails(s.tree.Rename(s.ctx(), s.dir, "d", into, "free", 0), vfs.ErrInvalid)
		s.fails(s.tree.Rename(s.ctx(), s.dir, "d", into, "free", vfs.RenameNoReplace), vfs.ErrInvalid)
	}
	s.fails(s.tree.Rename(s.ctx(), s.dir, "d", sub, "deep", 0), vfs.ErrInvalid)
	s.fails(s.tree.Rename(s.ctx(), s.dir, "d", sub, "deep", vfs.RenameExchange), vfs.ErrInvalid)
	s.fails(s.tree.Rename(s.ctx(), s.dir, "d", d, "sub", vfs.RenameExchange), vfs.ErrInvalid)
	s.unchanged(before)
	s.rename(sub, "deep", s.dir, "deep") // and out of itself is fine
	s.rename(s.dir, "d", deep, "d")
}

func ontoAnAncestorFails(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	sub := s.mkdir(d, "sub").Ino
	s.mkdir(sub, "deep")
	s.create(sub, "f")
	before := s.snapshot()
	s.fails(s.tree.Rename(s.ctx(), sub, "deep", s.dir, "d", 0), vfs.ErrNotEmpty)
	s.fails(s.tree.Rename(s.ctx(), sub, "deep", d, "sub", 0), vfs.ErrNotEmpty)
	s.fails(s.tree.Rename(s.ctx(), sub, "f", s.dir, "d", 0), vfs.ErrIsDir, vfs.ErrNotEmpty) // Linux says the latter
	s.unchanged(before)
}

func renameOfNothingFails(s *suite) {
	s.create(s.dir, "there")
	before := s.snapshot()
	for _, flags := range []vfs.RenameFlags{0, vfs.RenameNoReplace, vfs.RenameExchange} {
		s.fails(s.tree.Rename(s.ctx(), s.dir, "nothing", s.dir, "free", flags), vfs.ErrNotExist)
	}
	s.fails(s.tree.Rename(s.ctx(), s.dir, "nothing", s.dir, "there", 0), vfs.ErrNotExist)
	s.fails(s.tree.Rename(s.ctx(), s.dir, "nothing", s.dir, "there", vfs.RenameExchange), vfs.ErrNotExist)
	s.unchanged(before)
}

func twoNamesOfOneInodeStay(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	ino := s.create(s.dir, "f").Ino
	s.link(ino, s.dir, "g")
	s.link(ino, d, "h")
	f, work, dir := s.stat(ino), s.stat(s.dir), s.stat(d)
	then := s.tick()
	before := s.snapshot()
	for _, flags := range []vfs.RenameFlags{0, vfs.RenameExchange} {
		s.ok(s.tree.Rename(s.ctx(), s.dir, "f", s.dir, "g", flags))
		s.ok(s.tree.Rename(s.ctx(), s.dir, "f", d, "h", flags))
	}
	s.fails(s.tree.Rename(s.ctx(), s.dir, "f", s.dir, "g", vfs.RenameNoReplace), vfs.ErrExist)
	s.unchanged(before)
	s.hasLinks(ino, 3)
	s.touched("the inode", f, then, 0)
	s.touched("a directory", work, then, 0)
	s.touched("a directory", dir, then, 0)
}

func ontoItselfChangesNothing(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		n := s.make(s.dir, name, t)
		work, then := s.stat(s.dir), s.tick()
		s.rename(s.dir, name, s.dir, name)
		s.exchange(s.dir, name, s.dir, name)
		s.fails(s.tree.Rename(s.ctx(), s.dir, name, s.dir, name, vfs.RenameNoReplace), vfs.ErrExist)
		s.leads(s.dir, name, n.Ino)
		s.touched("the inode", n, then, 0)
		s.touched("the directory", work, then, 0)
	})
}

func badRenameFlagsFail(s *suite) {
	s.create(s.dir, "f")
	s.create(s.dir, "g")
	before := s.snapshot()
	for _, flags := range []vfs.RenameFlags{vfs.RenameNoReplace | vfs.RenameExchange, 4, 1 << 31} {
		s.fails(s.tree.Rename(s.ctx(), s.dir, "f", s.dir, "g", flags), vfs.ErrInvalid)
	}
	s.unchanged(before)
}

func exchangeTouchesBoth(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	f, g := s.create(s.dir, "f"), s.symlink(d, "g", "target")
	work, dir, then := s.stat(s.dir), s.stat(d), s.tick()
	s.exchange(s.dir, "f", d, "g")
	s.touched("one inode", f, then, ctime)
	s.touched("the other inode", g, then, ctime)
	s.touched("one directory", work, then, mtime|ctime)
	s.touched("the other directory", dir, then, mtime|ctime)
	for _, e := range append(s.list(s.dir), s.list(d)...) {
		if a := s.stat(e.Ino); e.Type != a.Type {
			s.Errorf("entry %q of type %d leads to an inode of type %d", e.Name, e.Type, a.Type)
		}
	}
}

func exchangeOfDirectories(s *suite) {
	a, b := s.mkdir(s.dir, "a").Ino, s.mkdir(s.dir, "b").Ino
	x, y := s.mkdir(a, "x").Ino, s.mkdir(b, "y").Ino
	s.create(x, "in x")
	s.mkdir(y, "in y")
	s.exchange(a, "x", b, "y")
	s.leads(a, "x", y)
	s.leads(b, "y", x)
	if px, py := s.stat(x).Parent, s.stat(y).Parent; px != b || py != a {
		s.Errorf("parents %d and %d, want %d and %d", px, py, b, a)
	}
	s.create(a, "f")
	s.exchange(a, "x", a, "f")
	s.hasLinks(a, 3)
	s.exchange(a, "f", s.dir, "b") // the directory y for b
	if p := s.stat(b).Parent; p != a {
		s.Errorf("parent %d, want %d", p, a)
	}
}

func exchangeWithAnAncestorFails(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	sub := s.mkdir(d, "sub").Ino
	s.create(sub, "f")
	s.mkdir(sub, "deep")
	before := s.snapshot()
	for _, name := range []string{"f", "deep"} {
		s.fails(s.tree.Rename(s.ctx(), sub, name, s.dir, "d", vfs.RenameExchange), vfs.ErrInvalid)
		s.fails(s.tree.Rename(s.ctx(), s.dir, "d", sub, name, vfs.RenameExchange), vfs.ErrInvalid)
		s.fails(s.tree.Rename(s.ctx(), sub, name, d, "sub", vfs.RenameExchange), vfs.ErrInvalid)
	}
	s.unchanged(before)
}

func chainOfRenames(s *suite) {
	ino := s.create(s.dir, "n").Ino
	s.write(ino, 0, []byte("bytes"))
	dirs := []vfs.Ino{s.dir, s.mkdir(s.dir, "a").Ino, s.mkdir(s.dir, "b").Ino}
	for i := range 300 {
		if i%50 == 0 {
			s.commit()
		}
		s.rename(dirs[i%3], "n", dirs[(i+1)%3], "n")
	}
	s.leads(s.dir, "n", ino)
	s.hasLinks(ino, 1)
	s.holds(ino, []byte("bytes"))
}
