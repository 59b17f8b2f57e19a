package vfstest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var xattrBehaviours = []behaviour{
	{"SetGetListRemove", xattrSetGetListRemove},
	{"OfEveryType", xattrOfEveryType},
	{"Flags", xattrFlags},
	{"ValuesAreBytes", xattrValuesAreBytes},
	{"ValueHasALimit", xattrValueHasALimit},
	{"NameHasLimits", xattrNameHasLimits},
	{"ListHasALimit", xattrListHasALimit},
	{"ListIsInOrder", xattrListIsInOrder},
	{"SetsTheCtime", xattrSetsTheCtime},
	{"MissingFails", xattrMissingFails},
	{"FollowsTheInode", xattrFollowsTheInode},
}

// xattrIs reports unless an attribute has a value.
func (s *suite) xattrIs(ino vfs.Ino, name, want string) {
	s.Helper()
	if got, err := s.tree.GetXattr(s.ctx(), ino, name); err != nil || string(got) != want {
		s.Errorf("attribute %q is %.100q (%v), want %.100q", name, got, err, want)
	}
}

// xattrsAre reports unless an inode has these attributes.
func (s *suite) xattrsAre(ino vfs.Ino, want ...string) {
	s.Helper()
	got, err := s.tree.ListXattr(s.ctx(), ino)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("attributes %q (%v), want %q", got, err, want)
	}
}

func xattrSetGetListRemove(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.xattrsAre(ino)
	s.setXattr(ino, "user.b", "1")
	s.setXattr(ino, "user.a", "2")
	s.commit()
	s.xattrsAre(ino, "user.a", "user.b")
	s.setXattr(ino, "user.b", "a longer value")
	s.xattrIs(ino, "user.b", "a longer value")
	s.xattrIs(ino, "user.a", "2")
	s.commit()
	s.ok(s.tree.RemoveXattr(s.ctx(), ino, "user.a"))
	s.xattrsAre(ino, "user.b")
	s.ok(s.tree.RemoveXattr(s.ctx(), ino, "user.b"))
	s.commit()
	s.xattrsAre(ino)
}

func xattrOfEveryType(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		ino := s.make(s.dir, name, t).Ino
		s.setXattr(ino, "trusted.x", name)
		s.commit()
		s.xattrIs(ino, "trusted.x", name)
		s.xattrsAre(ino, "trusted.x")
	})
	s.setXattr(vfs.RootIno, "user.root", "r")
	s.xattrIs(vfs.RootIno, "user.root", "r")
}

func xattrFlags(s *suite) {
	ino := s.create(s.dir, "f").Ino
	set := func(value string, flags vfs.XattrFlags) error {
		return s.tree.SetXattr(s.ctx(), ino, "user.x", []byte(value), flags)
	}
	s.fails(set("1", vfs.XattrReplace), vfs.ErrNoXattr)
	s.xattrsAre(ino)
	s.ok(set("2", vfs.XattrCreate))
	s.fails(set("3", vfs.XattrCreate), vfs.ErrExist)
	s.xattrIs(ino, "user.x", "2")
	s.ok(set("4", vfs.XattrReplace))
	s.xattrIs(ino, "user.x", "4")
	s.ok(set("5", 0))
	s.xattrIs(ino, "user.x", "5")
	s.fails(set("6", 1<<7), vfs.ErrInvalid, vfs.ErrNotSupported)
	s.xattrIs(ino, "user.x", "5")
}

func xattrValuesAreBytes(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for i, value := range []string{"", "\x00", "a\x00b", "\xff\xfe", string(pattern(5000, 1))} {
		name := fmt.Sprint("user.", i)
		s.setXattr(ino, name, value)
		s.commit()
		s.xattrIs(ino, name, value)
	}
	s.setXattr(ino, "user.4", "")
	s.xattrIs(ino, "user.4", "")
	s.xattrsAre(ino, "user.0", "user.1", "user.2", "user.3", "user.4")
}

func xattrValueHasALimit(s *suite) {
	ino := s.create(s.dir, "f").Ino
	largest := string(pattern(vfs.MaxXattrSize, 1))
	s.setXattr(ino, "user.x", largest)
	s.fails(s.tree.SetXattr(s.ctx(), ino, "user.x", make([]byte, vfs.MaxXattrSize+1), 0), vfs.ErrXattrTooBig)
	s.fails(s.tree.SetXattr(s.ctx(), ino, "user.y", make([]byte, 1<<20), 0), vfs.ErrXattrTooBig)
	s.commit()
	s.xattrIs(ino, "user.x", largest)
	s.xattrsAre(ino, "user.x")
}

func xattrNameHasLimits(s *suite) {
	ino := s.create(s.dir, "f").Ino
	longest := "user." + strings.Repeat("n", vfs.MaxXattrName-5)
	s.setXattr(ino, longest, "v")
	s.xattrIs(ino, longest, "v")
	err := s.tree.SetXattr(s.ctx(), ino, longest+"n", []byte("v"), 0)
	s.fails(err, vfs.ErrNameTooLong, vfs.ErrXattrTooBig, vfs.ErrInvalid)
	for _, name := range []string{"", "user.\x00"} {
		s.fails(s.tree.SetXattr(s.ctx(), ino, name, []byte("v"), 0), vfs.ErrInvalid)
	}
	s.setXattr(ino, "user.\xff\xfe/\n", "bytes")
	s.xattrIs(ino, "user.\xff\xfe/\n", "bytes")
	s.xattrsAre(ino, longest, "user.\xff\xfe/\n")
}

func xattrListHasALimit(s *suite) {
	const nameLen = 255 // with its NUL 256, which divides MaxXattrList
	ino := s.create(s.dir, "f").Ino
	name := func(i int) string { return fmt.Sprintf("user.%0*d", nameLen-len("user."), i) }
	for i := range vfs.MaxXattrList / (nameLen + 1) {
		s.setXattr(ino, name(i), "v")
	}
	s.fails(s.tree.SetXattr(s.ctx(), ino, "u", []byte("v"), 0), vfs.ErrNoSpace)
	s.setXattr(ino, name(3), "another value")
	s.ok(s.tree.RemoveXattr(s.ctx(), ino, name(5)))
	s.setXattr(ino, "u", "v")
	names, err := s.tree.ListXattr(s.ctx(), ino)
	s.ok(err)
	if len(names) != vfs.MaxXattrList/(nameLen+1) {
		s.Errorf("%d attributes", len(names))
	}
}

func xattrListIsInOrder(s *suite) {
	ino := s.create(s.dir, "f").Ino
	names := []string{"user.z", "user.a", "user.\xff", "user.A", "user.ab", "user.a.b", "security.x", "user.\u00e9"}
	for _, name := range names {
		s.setXattr(ino, name, "v")
	}
	slices.Sort(names)
	s.xattrsAre(ino, names...)
	s.commit()
	s.xattrsAre(ino, names...)
}

func xattrSetsTheCtime(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, value := range []string{"1", "2"} {
		before, then := s.stat(ino), s.tick()
		s.setXattr(ino, "user.x", value)
		s.touched("setting", before, then, ctime)
	}
	before, work, then := s.stat(ino), s.stat(s.dir), s.tick()
	s.ok(s.tree.RemoveXattr(s.ctx(), ino, "user.x"))
	s.touched("removing", before, then, ctime)
	s.touched("the directory", work, then, 0)
	before, then = s.stat(ino), s.tick()
	s.fails(s.tree.RemoveXattr(s.ctx(), ino, "user.x"), vfs.ErrNoXattr)
	s.touched("removing nothing", before, then, 0)
}

func xattrMissingFails(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.setXattr(ino, "user.name", "v")
	for _, name := range []string{"user.nam", "user.names", "user.Name", "name"} {
		_, err := s.tree.GetXattr(s.ctx(), ino, name)
		s.fails(err, vfs.ErrNoXattr)
		s.fails(s.tree.RemoveXattr(s.ctx(), ino, name), vfs.ErrNoXattr)
	}
}

func xattrFollowsTheInode(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	ino := s.create(s.dir, "f").Ino
	s.setXattr(ino, "user.x", "v")
	s.link(ino, d, "g")
	s.rename(s.dir, "f", d, "h")
	s.unlink(d, "g")
	s.xattrIs(ino, "user.x", "v")
	s.unlink(d, "h")
	other := s.create(d, "h").Ino
	s.xattrsAre(other)
}
