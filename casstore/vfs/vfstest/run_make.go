package vfstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var makeBehaviours = []behaviour{
	{"RootIsADirectory", rootIsADirectory},
	{"CreateMakesAnEmptyFile", createMakesAnEmptyFile},
	{"MkdirMakesAnEmptyDirectory", mkdirMakesAnEmptyDirectory},
	{"MknodMakesEveryType", mknodMakesEveryType},
	{"MknodOfAnotherTypeFails", mknodOfAnotherTypeFails},
	{"SymlinkHoldsItsTarget", symlinkHoldsItsTarget},
	{"SymlinkTargetHasLimits", symlinkTargetHasLimits},
	{"ReadlinkOfAnythingElseFails", readlinkOfAnythingElseFails},
	{"MakingTouchesTheDirectory", makingTouchesTheDirectory},
	{"TakenNameFails", takenNameFails},
	{"ModeKeepsAllBits", modeKeepsAllBits},
	{"SetgidDirectoryGivesItsGroup", setgidDirectoryGivesItsGroup},
	{"InodeNumbersAreNotReused", inodeNumbersAreNotReused},
}

func rootIsADirectory(s *suite) {
	a := s.stat(vfs.RootIno)
	if a.Type != vfs.TypeDir || a.Ino != vfs.RootIno || a.Parent != vfs.RootIno {
		s.Errorf("root: %+v", a)
	}
	s.hasLinks(vfs.RootIno, 3) // with the directory of the suite
}

// isNew reports unless a node has the attributes that its maker gave it, wherever they are asked for.
func (s *suite) isNew(dir vfs.Ino, name string, got, want vfs.Attr, then vfs.Time) {
	s.Helper()
	if got.Ino == 0 || got.Ctime <= then || got.Mtime <= then || got.Atime <= then {
		s.Errorf("inode %d with times %d %d %d, want all later than %d", got.Ino, got.Atime, got.Mtime, got.Ctime, then)
	}
	if s.stat(got.Ino) != got {
		s.Errorf("made %+v, Stat says %+v", got, s.stat(got.Ino))
	}
	if found, err := s.tree.Lookup(s.ctx(), dir, name); err != nil || found != got {
		s.Errorf("made %+v, Lookup says %+v (%v)", got, found, err)
	}
	want.Ino, want.Atime, want.Mtime, want.Ctime = got.Ino, got.Atime, got.Mtime, got.Ctime
	if want.Type == vfs.TypeDir || want.Type == vfs.TypeSymlink { // what they take on a disk is up to the tree
		want.Blocks, got.Blocks = 0, 0
	}
	if want.Type == vfs.TypeDir {
		want.Size, got.Size = 0, 0
	}
	if got != want {
		s.Errorf("made %+v, want %+v", got, want)
	}
}

func createMakesAnEmptyFile(s *suite) {
	then := s.tick()
	a := s.create(s.dir, "f")
	s.isNew(s.dir, "f", a, vfs.Attr{Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, UID: someUID, GID: someGID}, then)
	s.holds(a.Ino, nil)
}

func mkdirMakesAnEmptyDirectory(s *suite) {
	then := s.tick()
	a := s.mkdir(s.dir, "d")
	want := vfs.Attr{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, UID: someUID, GID: someGID, Parent: s.dir}
	s.isNew(s.dir, "d", a, want, then)
	if entries := s.list(a.Ino); len(entries) > 0 {
		s.Errorf("new directory holds %v", entries)
	}
	s.hasLinks(s.dir, 3)
}

func mknodMakesEveryType(s *suite) {
	const device = 0x12345678
	for _, t := range allTypes {
		if t.typ == vfs.TypeDir || t.typ == vfs.TypeSymlink {
			continue
		}
		then := s.tick()
		n := vfs.NewNode{Mode: 0o640, UID: someUID, GID: someGID, Rdev: device}
		a, err := s.tree.Mknod(s.ctx(), s.dir, t.name, t.typ, n)
		s.ok(err)
		want := vfs.Attr{Type: t.typ, Mode: 0o640, Nlink: 1, UID: someUID, GID: someGID}
		if t.typ == vfs.TypeCharDev || t.typ == vfs.TypeBlockDev {
			want.Rdev = device
		}
		s.isNew(s.dir, t.name, a, want, then)
	}
}

func mknodOfAnotherTypeFails(s *suite) {
	before := s.snapshot()
	for _, t := range []vfs.Type{0, vfs.TypeDir, vfs.TypeSymlink, vfs.TypeBlockDev + 1, 255} {
		_, err := s.tree.Mknod(s.ctx(), s.dir, "n", t, fileNode)
		s.fails(err, vfs.ErrInvalid)
	}
	s.unchanged(before)
}

func symlinkHoldsItsTarget(s *suite) {
	targets := []string{
		"f", "/", "../..", "/abs/./path//", ".", "\xff\xfe\x80", "with space\nand line",
		strings.Repeat("x", vfs.MaxSymlinkLen), strings.Repeat("a/", 100),
	}
	for i, target := range targets {
		then := s.tick()
		name := fmt.Sprint(i)
		a := s.symlink(s.dir, name, target)
		want := vfs.Attr{Type: vfs.TypeSymlink, Mode: 0o777, Nlink: 1, UID: someUID, GID: someGID, Size: uint64(len(target))}
		s.isNew(s.dir, name, a, want, then)
		if got, err := s.tree.Readlink(s.ctx(), a.Ino); err != nil || got != target {
			s.Errorf("target %q (%v), want %q", got, err, target)
		}
	}
}

func symlinkTargetHasLimits(s *suite) {
	before := s.snapshot()
	_, err := s.tree.Symlink(s.ctx(), s.dir, "l", "", fileNode)
	s.fails(err, vfs.ErrInvalid, vfs.ErrNotExist)
	_, err = s.tree.Symlink(s.ctx(), s.dir, "l", strings.Repeat("x", vfs.MaxSymlinkLen+1), fileNode)
	s.fails(err, vfs.ErrNameTooLong)
	s.unchanged(before)
}

func readlinkOfAnythingElseFails(s *suite) {
	for _, t := range allTypes {
		if t.typ != vfs.TypeSymlink {
			_, err := s.tree.Readlink(s.ctx(), s.make(s.dir, t.name, t.typ).Ino)
			s.fails(err, vfs.ErrInvalid)
		}
	}
}

func makingTouchesTheDirectory(s *suite) {
	for _, t := range allTypes {
		before, then := s.stat(s.dir), s.tick()
		s.make(s.dir, t.name, t.typ)
		s.touched("making a "+t.name, before, then, mtime|ctime)
	}
}

func takenNameFails(s *suite) {
	other := s.create(s.dir, "other").Ino
	for _, t := range allTypes {
		s.make(s.dir, t.name, t.typ)
	}
	before := s.snapshot()
	for _, t := range allTypes {
		_, err := s.tree.Create(s.ctx(), s.dir, t.name, fileNode)
		s.fails(err, vfs.ErrExist)
		_, err = s.tree.Mkdir(s.ctx(), s.dir, t.name, dirNode)
		s.fails(err, vfs.ErrExist)
		_, err = s.tree.Mknod(s.ctx(), s.dir, t.name, vfs.TypeFIFO, fileNode)
		s.fails(err, vfs.ErrExist)
		_, err = s.tree.Symlink(s.ctx(), s.dir, t.name, "target", fileNode)
		s.fails(err, vfs.ErrExist)
		_, err = s.tree.Link(s.ctx(), other, s.dir, t.name)
		s.fails(err, vfs.ErrExist)
	}
	s.unchanged(before)
}

func modeKeepsAllBits(s *suite) {
	for i, mode := range []uint32{0, 0o7777, 0o4755, 0o2755, 0o2644, 0o1777, 0o001} {
		n := vfs.NewNode{Mode: mode}
		f, err := s.tree.Create(s.ctx(), s.dir, fmt.Sprint("f", i), n)
		s.ok(err)
		d, err := s.tree.Mkdir(s.ctx(), s.dir, fmt.Sprint("d", i), n)
		s.ok(err)
		if f.Mode != mode || d.Mode != mode {
			s.Errorf("modes %o and %o, want %o", f.Mode, d.Mode, mode)
		}
	}
}

func setgidDirectoryGivesItsGroup(s *suite) {
	const group = 7007
	top := s.mkdir(s.dir, "top").Ino
	s.setAttr(top, vfs.AttrSet{Mask: vfs.SetMode | vfs.SetGID, Mode: vfs.ModeSetGID | 0o755, GID: group})
	for _, t := range allTypes {
		a := s.make(top, t.name, t.typ)
		if a.GID != group || a.UID != someUID {
			s.Errorf("%s in a setgid directory has owner %d:%d, want %d:%d", t.name, a.UID, a.GID, someUID, group)
		}
		if setgid := a.Mode&vfs.ModeSetGID != 0; setgid != (t.typ == vfs.TypeDir) {
			s.Errorf("%s in a setgid directory has mode %o", t.name, a.Mode)
		}
	}
	below, err := s.tree.Lookup(s.ctx(), top, "directory")
	s.ok(err)
	if a := s.create(below.Ino, "f"); a.GID != group {
		s.Errorf("file two levels down has group %d, want %d", a.GID, group)
	}
	moved := s.create(s.dir, "moved")
	s.rename(s.dir, "moved", top, "moved")
	if a := s.stat(moved.Ino); a.GID != someGID {
		s.Errorf("a file that was moved in has group %d, want its own, %d", a.GID, someGID)
	}
}

func inodeNumbersAreNotReused(s *suite) {
	seen := map[vfs.Ino]bool{vfs.RootIno: true, s.dir: true, s.clock: true}
	for range 20 {
		for _, t := range allTypes {
			a := s.make(s.dir, "n", t.typ)
			if seen[a.Ino] {
				s.Errorf("inode number %d was given twice", a.Ino)
			}
			seen[a.Ino] = true
			s.remove(s.dir, "n", t.typ)
		}
	}
}

// remove takes the name of a node of type t away.
func (s *suite) remove(dir vfs.Ino, name string, t vfs.Type) {
	s.Helper()
	if t == vfs.TypeDir {
		s.rmdir(dir, name)
		return
	}
	s.unlink(dir, name)
}

// each runs f as a subtest for every type of inode.
func (s *suite) each(f func(s *suite, t vfs.Type, name string)) {
	for _, t := range allTypes {
		s.Run(t.name, func(tt *testing.T) {
			sub := *s
			sub.T = tt
			f(&sub, t.typ, t.name)
		})
	}
}
