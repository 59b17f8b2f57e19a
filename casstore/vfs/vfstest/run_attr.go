package vfstest

import (
	"fmt"
	"math"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var attrBehaviours = []behaviour{
	{"SetAttrSetsEachField", setAttrSetsEachField},
	{"SetAttrOfEveryType", setAttrOfEveryType},
	{"SetAttrReturnsAll", setAttrReturnsAll},
	{"SetAttrSetsTheCtime", setAttrSetsTheCtime},
	{"SetAttrOfNothingChangesNothing", setAttrOfNothingChangesNothing},
	{"SetAttrIsAppliedWhole", setAttrIsAppliedWhole},
	{"SetSizeHasLimits", setSizeHasLimits},
	{"SetSizeOfWhatHasNone", setSizeOfWhatHasNone},
	{"SetSizeSetsTimes", setSizeSetsTimes},
	{"TimesAreKeptToTheNanosecond", timesAreKept},
	{"TimesFromTheTreesClock", timesFromTheTreesClock},
	{"ModeIsMasked", modeIsMasked},
	{"WriteKillsPrivileges", writeKillsPrivileges},
	{"SetAttrKillsPrivileges", setAttrKillsPrivileges},
	{"AttrsSurviveACommit", attrsSurviveACommit},
}

func setAttrSetsEachField(s *suite) {
	ino := s.create(s.dir, "f").Ino
	set := vfs.AttrSet{Mode: 0o4711, UID: 12, GID: 34, Size: 56, Atime: 78, Mtime: 90}
	fields := []struct {
		mask  vfs.SetMask
		apply func(a *vfs.Attr)
	}{
		{vfs.SetMode, func(a *vfs.Attr) { a.Mode = 0o4711 }},
		{vfs.SetUID, func(a *vfs.Attr) { a.UID = 12 }},
		{vfs.SetGID, func(a *vfs.Attr) { a.GID = 34 }},
		{vfs.SetAtime, func(a *vfs.Attr) { a.Atime = 78 }},
		{vfs.SetMtime, func(a *vfs.Attr) { a.Mtime = 90 }},
		{vfs.SetSize | vfs.SetMtime, func(a *vfs.Attr) { a.Size = 56 }},
	}
	for _, f := range fields {
		want := s.stat(ino)
		f.apply(&want)
		set.Mask = f.mask
		got := s.setAttr(ino, set)
		want.Ctime, want.Blocks = got.Ctime, got.Blocks
		if got != want {
			s.Errorf("after mask %#x: %+v, want %+v", f.mask, got, want)
		}
	}
	ino = s.create(s.dir, "g").Ino
	set.Mask = vfs.SetMode | vfs.SetUID | vfs.SetGID | vfs.SetSize | vfs.SetAtime | vfs.SetMtime
	got := s.setAttr(ino, set)
	want := vfs.Attr{
		Ino: ino, Type: vfs.TypeRegular, Mode: 0o4711, Nlink: 1, UID: 12, GID: 34, Size: 56, Atime: 78, Mtime: 90,
		Blocks: got.Blocks, Ctime: got.Ctime,
	}
	if got != want {
		s.Errorf("all at once: %+v, want %+v", got, want)
	}
}

func setAttrOfEveryType(s *suite) {
	set := vfs.AttrSet{
		Mask: vfs.SetMode | vfs.SetUID | vfs.SetGID | vfs.SetAtime | vfs.SetMtime,
		Mode: 0o1705, UID: 1, GID: 2, Atime: 3, Mtime: 4,
	}
	s.each(func(s *suite, t vfs.Type, name string) {
		want := s.make(s.dir, name, t)
		got := s.setAttr(want.Ino, set)
		want.Mode, want.UID, want.GID, want.Atime, want.Mtime, want.Ctime = 0o1705, 1, 2, 3, 4, got.Ctime
		if got != want {
			s.Errorf("%+v, want %+v", got, want)
		}
	})
	root := s.setAttr(vfs.RootIno, set)
	if root.Mode != 0o1705 || root.UID != 1 || root.Mtime != 4 {
		s.Errorf("the root: %+v", root)
	}
}

func setAttrReturnsAll(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(5000, 1))
	for _, mask := range []vfs.SetMask{
		vfs.SetMode, vfs.SetSize, vfs.SetAtimeNow | vfs.SetMtimeNow, vfs.SetUID | vfs.SetKillPriv,
	} {
		got := s.setAttr(ino, vfs.AttrSet{Mask: mask, Mode: 0o600, Size: 3000, UID: 5})
		if now := s.stat(ino); now != got {
			s.Errorf("mask %#x: SetAttr says %+v, Stat says %+v", mask, got, now)
		}
	}
}

func setAttrSetsTheCtime(s *suite) {
	ino := s.create(s.dir, "f").Ino
	masks := []vfs.SetMask{vfs.SetMode, vfs.SetUID, vfs.SetGID, vfs.SetAtime, vfs.SetAtimeNow}
	for _, mask := range masks {
		before, then := s.stat(ino), s.tick()
		s.setAttr(ino, vfs.AttrSet{Mask: mask, Mode: before.Mode, UID: before.UID, GID: before.GID, Atime: before.Atime})
		s.touched(fmt.Sprintf("mask %#x", mask), before, then, ctime)
	}
	before, then := s.stat(ino), s.tick()
	s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetMtime, Mtime: before.Mtime})
	s.touched("the same mtime", before, then, ctime)
	s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetMtimeNow})
	s.touched("mtime now", before, then, mtime|ctime)
}

func setAttrOfNothingChangesNothing(s *suite) {
	before := s.create(s.dir, "f")
	then := s.tick()
	if got := s.setAttr(before.Ino, vfs.AttrSet{Mode: 1, UID: 2, Size: 3, Mtime: 4}); got != before {
		s.Errorf("%+v, want %+v", got, before)
	}
	s.touched("an empty mask", before, then, 0)
}

func setAttrIsAppliedWhole(s *suite) {
	before := s.create(s.dir, "f")
	then := s.tick()
	mask := vfs.SetMode | vfs.SetUID | vfs.SetSize | vfs.SetMtime
	_, err := s.tree.SetAttr(s.ctx(), before.Ino, vfs.AttrSet{Mask: mask, Mode: 0o777, Size: vfs.MaxFileSize + 1})
	s.fails(err, vfs.ErrTooBig)
	if now := s.stat(before.Ino); now != before {
		s.Errorf("a change that failed left %+v, was %+v", now, before)
	}
	d := s.mkdir(s.dir, "d")
	_, err = s.tree.SetAttr(s.ctx(), d.Ino, vfs.AttrSet{Mask: mask, Mode: 0o777})
	s.fails(err, vfs.ErrIsDir, vfs.ErrInvalid)
	if now := s.stat(d.Ino); now != d {
		s.Errorf("a change that failed left %+v, was %+v", now, d)
	}
	s.touched("a change that failed", before, then, 0)
}

func setSizeHasLimits(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, []byte("bytes"))
	for _, size := range []uint64{vfs.MaxFileSize + 1, 1 << 50, 1 << 63, math.MaxUint64} {
		_, err := s.tree.SetAttr(s.ctx(), ino, vfs.AttrSet{Mask: vfs.SetSize, Size: size})
		s.fails(err, vfs.ErrTooBig)
	}
	s.holds(ino, []byte("bytes"))
	s.truncate(ino, vfs.MaxFileSize)
	s.reads(ino, 0, []byte("bytes\x00"))
	s.reads(ino, vfs.MaxFileSize-2, []byte{0, 0})
	s.truncate(ino, 2)
	s.holds(ino, []byte("by"))
}

func setSizeOfWhatHasNone(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		if t == vfs.TypeRegular {
			return
		}
		before := s.make(s.dir, name, t)
		for _, size := range []uint64{0, before.Size, 100} {
			_, err := s.tree.SetAttr(s.ctx(), before.Ino, vfs.AttrSet{Mask: vfs.SetSize, Size: size})
			s.fails(err, vfs.ErrIsDir, vfs.ErrInvalid)
		}
		if now := s.stat(before.Ino); now != before {
			s.Errorf("a change that failed left %+v, was %+v", now, before)
		}
	})
}

func setSizeSetsTimes(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, size := range []uint64{100, 50, 50, 0, 0, 1 << 20} {
		before, then := s.stat(ino), s.tick()
		s.truncate(ino, size)
		s.touched(fmt.Sprintf("from %d to %d bytes", before.Size, size), before, then, mtime|ctime)
	}
	a := s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetSize | vfs.SetMtime, Size: 7, Mtime: 12345})
	if a.Mtime != 12345 || a.Size != 7 {
		s.Errorf("size and mtime together: %+v", a)
	}
	then := s.tick()
	a = s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetSize | vfs.SetMtimeNow, Size: 7})
	if a.Mtime <= then {
		s.Errorf("size and mtime now: mtime %d, want it later than %d", a.Mtime, then)
	}
}

func timesAreKept(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, v := range []vfs.Time{
		0, 1, -1, 999_999_999, 1_000_000_000, -1_000_000_001, 1_700_000_000_123_456_789, math.MaxInt64, math.MinInt64,
	} {
		s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetAtime | vfs.SetMtime, Atime: v, Mtime: v})
		s.commit()
		if a := s.stat(ino); a.Atime != v || a.Mtime != v {
			s.Errorf("atime %d, mtime %d, want %d", a.Atime, a.Mtime, v)
		}
	}
}

func timesFromTheTreesClock(s *suite) {
	ino := s.create(s.dir, "f").Ino
	then := s.tick()
	a := s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetAtimeNow | vfs.SetMtimeNow, Atime: 1, Mtime: 2})
	now := s.tick()
	for _, v := range []vfs.Time{a.Atime, a.Mtime, a.Ctime} {
		if v <= then || v > now {
			s.Errorf("time %d, want it after %d and not after %d", v, then, now)
		}
	}
	if a.Atime != a.Mtime || a.Mtime != a.Ctime {
		s.Errorf("one change at three times: %+v", a)
	}
}

func modeIsMasked(s *suite) {
	ino := s.create(s.dir, "f").Ino
	if a := s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o100644}); a.Mode != 0o644 {
		s.Errorf("mode %o, want 644", a.Mode)
	}
	a, err := s.tree.Create(s.ctx(), s.dir, "g", vfs.NewNode{Mode: 0o107755})
	s.ok(err)
	if a.Mode != 0o7755 {
		s.Errorf("mode %o, want 7755", a.Mode)
	}
}

// killed are modes with what write(2) makes of them.
var killed = []struct{ mode, after uint32 }{
	{0o644, 0o644},
	{0o4755, 0o755},
	{0o2755, 0o755},
	{0o6777, 0o777},
	{0o6711, 0o711},
	{0o2745, 0o2745}, // without execution by the group the bit asks for mandatory locking
	{0o6604, 0o2604},
	{0o1777, 0o1777},
	{0o7777, 0o1777},
}

func writeKillsPrivileges(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, k := range killed {
		s.chmod(ino, k.mode)
		s.ok(s.tree.WriteAt(s.ctx(), ino, []byte("x"), 0, false))
		if mode := s.stat(ino).Mode; mode != k.mode {
			s.Errorf("mode %o became %o by a write that keeps privileges", k.mode, mode)
		}
		s.ok(s.tree.WriteAt(s.ctx(), ino, []byte("x"), 0, true))
		if mode := s.stat(ino).Mode; mode != k.after {
			s.Errorf("mode %o became %o by a write, want %o", k.mode, mode, k.after)
		}
	}
}

func setAttrKillsPrivileges(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, mask := range []vfs.SetMask{vfs.SetSize, vfs.SetUID, vfs.SetGID, vfs.SetUID | vfs.SetGID} {
		for _, k := range killed {
			s.chmod(ino, k.mode)
			set := vfs.AttrSet{Mask: mask, Size: 10, UID: 5, GID: 6}
			if a := s.setAttr(ino, set); a.Mode != k.mode {
				s.Errorf("mode %o became %o by mask %#x", k.mode, a.Mode, mask)
			}
			set.Mask |= vfs.SetKillPriv
			if a := s.setAttr(ino, set); a.Mode != k.after {
				s.Errorf("mode %o became %o by mask %#x, want %o", k.mode, a.Mode, set.Mask, k.after)
			}
		}
	}
	d := s.mkdir(s.dir, "d").Ino
	s.chmod(d, 0o2775)
	if a := s.setAttr(d, vfs.AttrSet{Mask: vfs.SetUID | vfs.SetKillPriv, UID: 5}); a.Mode != 0o2775 {
		s.Errorf("mode of a directory became %o by chown, want 2775", a.Mode)
	}
}

func attrsSurviveACommit(s *suite) {
	s.each(func(s *suite, t vfs.Type, name string) {
		ino := s.make(s.dir, name, t).Ino
		s.setAttr(ino, vfs.AttrSet{Mask: vfs.SetMode | vfs.SetMtime, Mode: 0o1234, Mtime: -5})
		before := s.stat(ino)
		s.commit()
		if after := s.stat(ino); after != before {
			s.Errorf("before the commit %+v, after %+v", before, after)
		}
	})
}
