package pack

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// crash returns a copy of a directory of packs, as it would be found after a crash that lost nothing.
func crash(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Whatever a crash leaves of a frame that was not synced, the store goes on without it.
func TestCrashAtEveryByteOfATail(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	items := []item{put(t, s, random(1, 30)), put(t, s, random(2, 40))}
	mustSync(t, s)
	ends := s.Ends()
	tail := put(t, s, random(3, 50))
	if !maps.Equal(s.Ends(), ends) {
		t.Fatal("an end moved without a Sync")
	}
	whole := crash(t, dir)
	for n := tail.loc.Off; n <= tail.loc.Off+tail.loc.Len; n++ {
		for _, zeros := range []bool{false, true} { // the size may be on disk before the bytes are
			dir := crash(t, whole)
			if err := os.Truncate(dir+"/"+name(1), int64(n)); err != nil {
				t.Fatal(err)
			}
			if zeros {
				if err := os.Truncate(dir+"/"+name(1), int64(tail.loc.Off+tail.loc.Len)); err != nil {
					t.Fatal(err)
				}
			}
			s := reopen(t, dir, Options{}, ends)
			checkAll(t, s, items)
			if p := s.active; p.alloc != p.end {
				t.Errorf("cut at %d: %d bytes are taken to be reserved", n, p.alloc-p.end)
			}
			next := put(t, s, random(4, 60))
			if next.loc.Off != tail.loc.Off || next.loc.Pack != 1 {
				t.Errorf("cut at %d: next frame %v", n, next.loc)
			}
			checkAll(t, s, append(slices.Clone(items), next))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A pack that was begun after the last commit goes, torn or not.
func TestCrashInNewPack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	first := put(t, s, random(1, 30))
	mustSync(t, s)
	ends := s.Ends()
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	put(t, s, random(2, 30))
	for n := range int64(fileHeader + frameHeader + 30 + 1) {
		dir := crash(t, dir)
		if err := os.Truncate(dir+"/"+name(2), n); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, dir, Options{}, ends)
		checkAll(t, s, []item{first})
		if _, err := os.Stat(s.path(2)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("cut at %d: pack 2: %v", n, err)
		}
		if next := put(t, s, random(3, 10)); next.loc.Pack != 1 {
			t.Errorf("cut at %d: next frame %v", n, next.loc)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTruncateToRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	put(t, s, random(1, 30))
	mustSync(t, s)
	end := s.Ends()[1]
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	put(t, s, random(2, 30))
	mustSync(t, s)
	cases := []struct {
		name      string
		ends      map[uint32]uint32
		pack, off uint32
	}{
		{"missing pack", map[uint32]uint32{1: end, 3: end}, 3, end},
		{"too short", map[uint32]uint32{1: end + 1, 2: end}, 1, end + 1},
		{"end in the header", map[uint32]uint32{1: end, 2: fileHeader - 1}, 2, fileHeader - 1},
	}
	for _, c := range cases {
		dir := crash(t, dir)
		s := open(t, dir, Options{})
		before := s.Packs()
		var bad *CorruptError
		err := s.TruncateTo(c.ends)
		if !errors.As(err, &bad) || !errors.Is(err, chunk.ErrCorrupt) || bad.Pack != c.pack || bad.Off != c.off {
			t.Errorf("%s: %v", c.name, err)
		}
		if after := open(t, dir, Options{}).Packs(); !slices.Equal(after, before) {
			t.Errorf("%s: packs were %v, now %v", c.name, before, after)
		}
	}
}

// blocks returns how much of the disk a pack takes, in bytes.
func blocks(t *testing.T, s *Set, id uint32) int64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(s.path(id), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// Space that is reserved ahead is given back: by Seal, by Close, and after a crash by TruncateTo.
func TestReservedSpaceIsGivenBack(t *testing.T) {
	const ahead, little = 1 << 20, 128 << 10
	dir := t.TempDir()
	s := open(t, dir, Options{Prealloc: ahead})
	put(t, s, random(1, 30))
	if n := blocks(t, s, 1); n < ahead/2 {
		t.Errorf("%d bytes reserved", n)
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	if n := blocks(t, s, 1); n > little {
		t.Errorf("%d bytes after Seal", n)
	}
	put(t, s, random(2, 30))
	mustSync(t, s)
	if n := blocks(t, s, 2); n < ahead/2 {
		t.Errorf("%d bytes reserved", n)
	}
	again := reopen(t, dir, Options{Prealloc: ahead}, s.Ends()) // s is as good as dead
	if n := blocks(t, again, 2); n > little {
		t.Errorf("%d bytes after TruncateTo", n)
	}
	put(t, again, random(3, 30))
	if n := blocks(t, again, 2); n < ahead/2 {
		t.Errorf("%d bytes reserved", n)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if n := blocks(t, again, 2); n > little {
		t.Errorf("%d bytes after Close", n)
	}
}
