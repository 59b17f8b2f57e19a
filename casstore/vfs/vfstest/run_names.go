package vfstest

import (
	"slices"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var nameBehaviours = []behaviour{
	{"BadNamesFail", badNamesFail},
	{"NamesAreBytes", namesAreBytes},
	{"LookupOfAFreeNameFails", lookupOfAFreeNameFails},
	{"LongestName", longestName},
}

func badNamesFail(s *suite) {
	s.create(s.dir, "source")
	bad := []struct {
		name string
		err  error
	}{
		{"", vfs.ErrInvalid},
		{".", vfs.ErrInvalid},
		{"..", vfs.ErrInvalid},
		{"/", vfs.ErrInvalid},
		{"a/b", vfs.ErrInvalid},
		{"a/", vfs.ErrInvalid},
		{"\x00", vfs.ErrInvalid},
		{"a\x00b", vfs.ErrInvalid},
		{strings.Repeat("n", vfs.MaxNameLen+1), vfs.ErrNameTooLong},
		{strings.Repeat("n", 1<<16), vfs.ErrNameTooLong},
	}
	before := s.snapshot()
	for _, op := range nameOperations {
		for _, b := range bad {
			err := op.call(s.ctx(), s.tree, s.dir, b.name, s.dir, "source")
			if s.fails(err, b.err); s.Failed() {
				s.Fatalf("%s of %.20q", op.name, b.name)
			}
		}
	}
	s.unchanged(before)
}

// byteNames are names that a tree which thinks in characters gets wrong.
func byteNames() []string {
	names := []string{
		"...", "..a", ".a", "-", " ", "a ", " a", "a\n", "a\\b", "CON", "nul:", "*?", "a", "A", "caf\u00e9", "cafe\u0301",
		"\xff", "\xff\xfe", "\xc3", "\xed\xa0\x80", "\u202e", strings.Repeat("\xfe", vfs.MaxNameLen),
		strings.Repeat("\u00e9", vfs.MaxNameLen/2), strings.Repeat("x", vfs.MaxNameLen),
	}
	for b := 1; b < 256; b++ {
		if name := string([]byte{byte(b)}); name != "/" && name != "." && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func namesAreBytes(s *suite) {
	inos := make(map[string]vfs.Ino)
	for _, name := range byteNames() {
		inos[name] = s.create(s.dir, name).Ino
	}
	s.commit()
	for name, ino := range inos {
		s.leads(s.dir, name, ino)
	}
	entries := s.list(s.dir)
	if len(entries) != len(inos) {
		s.Errorf("%d entries, want %d", len(entries), len(inos))
	}
	for _, e := range entries {
		if inos[e.Name] != e.Ino {
			s.Errorf("entry %q leads to inode %d, want %d", e.Name, e.Ino, inos[e.Name])
		}
	}
	for name := range inos {
		s.unlink(s.dir, name)
	}
	if entries := s.list(s.dir); len(entries) > 0 {
		s.Errorf("left over: %v", entries)
	}
}

func lookupOfAFreeNameFails(s *suite) {
	s.free(s.dir, "n")
	s.create(s.dir, "name")
	s.free(s.dir, "nam")
	s.free(s.dir, "names")
	s.free(s.dir, "Name")
	s.free(vfs.RootIno, "name")
}

func longestName(s *suite) {
	long := strings.Repeat("l", vfs.MaxNameLen)
	ino := s.create(s.dir, long).Ino
	other := strings.Repeat("m", vfs.MaxNameLen)
	s.rename(s.dir, long, s.dir, other)
	s.free(s.dir, long)
	s.leads(s.dir, other, ino)
	s.free(s.dir, other[1:])
	s.link(ino, s.dir, long)
	s.hasLinks(ino, 2)
}
