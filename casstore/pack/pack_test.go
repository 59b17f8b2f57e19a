package pack

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// item is a chunk that a test has appended.
type item struct {
	loc   Loc
	id    chunk.ID
	plain []byte
}

// random returns n bytes that do not compress, the same ones for the same seed.
func random(seed uint64, n int) []byte {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b)
	return b
}

func open(t testing.TB, dir string, opts Options) *Set {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen opens what a process would find that starts after s has died, and goes back to ends.
func reopen(t testing.TB, dir string, opts Options, ends map[uint32]uint32) *Set {
	t.Helper()
	s := open(t, dir, opts)
	if err := s.TruncateTo(ends); err != nil {
		t.Fatal(err)
	}
	return s
}

func tryPut(s *Set, plain []byte) (item, error) {
	id := chunk.Sum(plain)
	codec, stored := chunk.Encode(nil, plain)
	loc, err := s.Append(id, codec, len(plain), stored)
	return item{loc, id, plain}, err
}

func put(t testing.TB, s *Set, plain []byte) item {
	t.Helper()
	it, err := tryPut(s, plain)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func mustSync(t testing.TB, s *Set) {
	t.Helper()
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
}

func (it item) check(t testing.TB, s *Set) {
	t.Helper()
	plain, err := s.ReadChunk(nil, it.loc, it.id)
	if err != nil || !bytes.Equal(plain, it.plain) {
		t.Errorf("chunk at %v: %d bytes, %v", it.loc, len(plain), err)
	}
}

// checkAll reads all items, and holds Scan of all packs to find exactly them.
func checkAll(t testing.TB, s *Set, items []item) {
	t.Helper()
	want := map[Loc]chunk.ID{}
	for _, it := range items {
		it.check(t, s)
		want[it.loc] = it.id
	}
	got := map[Loc]chunk.ID{}
	for _, info := range s.Packs() {
		err := s.Scan(info.ID, func(l Loc, h Header) error {
			got[l] = h.ID
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("scan finds %d chunks, want %d", len(got), len(want))
	}
}

func TestAppendReadScan(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	plains := [][]byte{
		nil, []byte("x"), bytes.Repeat([]byte("carrel "), 9999), random(1, 1), random(2, chunk.MaxSize),
		make([]byte, chunk.MaxSize), random(3, 100_000),
	}
	var items []item
	for _, p := range plains {
		items = append(items, put(t, s, p))
	}
	checkAll(t, s, items)
	for _, it := range items {
		codec, n, stored, err := s.Read(make([]byte, 0, maxFrame), it.loc, it.id)
		if err != nil || n != len(it.plain) || int(it.loc.Len) != frameHeader+len(stored) {
			t.Errorf("read %v: %d bytes in %d, %v", it.loc, n, len(stored), err)
		}
		if plain, err := chunk.Decode(nil, codec, stored, n); err != nil || !bytes.Equal(plain, it.plain) {
			t.Errorf("read %v: decodes to %d bytes, %v", it.loc, len(plain), err)
		}
	}
	if packs := s.Packs(); len(packs) != 1 || packs[0].Size <= chunk.MaxSize {
		t.Errorf("packs: %v", packs)
	}
}

// Every part of a raw chunk can be read, by itself or with the whole frame verified.
func TestReadRaw(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	for _, n := range []int{0, 1, 5000, chunk.MaxSize} {
		it := put(t, s, random(uint64(n), n))
		if !it.loc.Raw(uint64(n)) {
			t.Fatalf("%d bytes: %v is not raw", n, it.loc)
		}
		for _, part := range [][2]int{{0, n}, {0, n / 2}, {n / 3, n / 2}, {n / 2, n}, {n, n}} {
			for _, known := range []bool{false, true} {
				p := make([]byte, part[1]-part[0])
				err := s.ReadRaw(p, part[0], it.loc, it.id, known, nil)
				if err != nil || !bytes.Equal(p, it.plain[part[0]:part[1]]) {
					t.Errorf("bytes %v of %d, known %v: %v", part, n, known, err)
				}
			}
		}
		for _, off := range []int{-1, 1, n + 1} {
			if err := s.ReadRaw(make([]byte, n), off, it.loc, it.id, true, nil); !errors.Is(err, chunk.ErrCorrupt) {
				t.Errorf("%d bytes of %d from %d: %v", n, n, off, err)
			}
		}
	}
	it := put(t, s, bytes.Repeat([]byte("carrel "), 9999))
	if it.loc.Raw(uint64(len(it.plain))) {
		t.Error("a compressed chunk is raw by its length")
	}
	if err := s.ReadRaw(make([]byte, 10), 0, it.loc, it.id, false, nil); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("a compressed chunk read as raw: %v", err)
	}
}

// A read says that it waits exactly when the operating system does not have the bytes.
func TestReadWaits(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	it := put(t, s, random(1, 300_000))
	mustSync(t, s)
	file := s.packs[it.loc.Pack].file
	cached := func() bool {
		n, _ := unix.Preadv2(int(file.Fd()), [][]byte{make([]byte, it.loc.Len)}, int64(it.loc.Off), unix.RWF_NOWAIT)
		return n == int(it.loc.Len)
	}
	for _, drop := range []bool{false, true} {
		reads := map[string]func(wait func()) error{
			"raw":   func(wait func()) error { return s.ReadRaw(make([]byte, 1), 5, it.loc, it.id, false, wait) },
			"part":  func(wait func()) error { return s.ReadRaw(make([]byte, 9), 5, it.loc, it.id, true, wait) },
			"plain": func(wait func()) error { _, err := s.ReadPlain(nil, it.loc, it.id, wait); return err },
		}
		for name, read := range reads {
			if drop {
				if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
					t.Fatal(err)
				}
			}
			// It is told by what is in the cache before: some filesystems drop nothing, and some cannot tell.
			waits, want := 0, 1
			if !drop && cached() {
				want = 0
			}
			if err := read(func() { waits++ }); err != nil {
				t.Fatal(err)
			}
			if waits != want && !(drop && cached()) {
				t.Errorf("%s, dropped %v: waits %d times, want %d", name, drop, waits, want)
			}
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	cases := []struct {
		name     string
		codec    chunk.Codec
		plainLen int
		stored   int
	}{
		{"no codec", 0, 10, 10},
		{"unknown codec", 9, 10, 10},
		{"negative length", chunk.Raw, -1, 0},
		{"too long", chunk.S2, chunk.MaxSize + 1, 10},
		{"raw of other length", chunk.Raw, 10, 9},
		{"longer than plain", chunk.S2, 10, 11},
		{"compressed to no less", chunk.S2, 10, 10},
		{"stored too long", chunk.S2, 10, chunk.MaxSize + 1},
	}
	for _, c := range cases {
		_, err := s.Append(chunk.ID{}, c.codec, c.plainLen, make([]byte, c.stored))
		if !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if len(s.Packs()) != 0 {
		t.Error("a pack was begun for nothing")
	}
}

func TestPacksFillUp(t *testing.T) {
	for _, prealloc := range []int64{0, -1} {
		dir := t.TempDir()
		s := open(t, dir, Options{PackSize: 10_000, Prealloc: prealloc})
		var items []item
		for i := range uint64(20) {
			items = append(items, put(t, s, random(i, 3000)))
		}
		items = append(items, put(t, s, random(99, 50_000))) // longer than a pack
		items = append(items, put(t, s, random(100, 10)))
		packs := s.Packs()
		if len(packs) != 9 {
			t.Errorf("%d packs", len(packs))
		}
		for i, info := range packs {
			if info.ID != uint32(i+1) || info.Size > 10_000 && info.Size != fileHeader+frameHeader+50_000 {
				t.Errorf("pack %v", info)
			}
		}
		checkAll(t, s, items)
		mustSync(t, s)
		ends := s.Ends()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		checkAll(t, reopen(t, dir, Options{PackSize: 10_000, Prealloc: prealloc}, ends), items)
	}
}

// More packs than may be open at a time.
func TestManyPacks(t *testing.T) {
	s := open(t, t.TempDir(), Options{PackSize: 1, Prealloc: -1})
	var items []item
	for i := range uint64(maxOpen + 50) {
		items = append(items, put(t, s, random(i, 10)))
	}
	mustSync(t, s)
	for range 2 {
		checkAll(t, s, items)
	}
	if n := s.opened.Len(); n > maxOpen {
		t.Errorf("%d files open", n)
	}
}

func TestSeal(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	first := put(t, s, random(1, 10))
	for range 2 {
		if err := s.Seal(); err != nil {
			t.Fatal(err)
		}
	}
	second := put(t, s, random(2, 10))
	if first.loc.Pack != 1 || second.loc.Pack != 2 {
		t.Errorf("appended at %v and %v", first.loc, second.loc)
	}
	checkAll(t, s, []item{first, second})
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	it := put(t, s, random(1, chunk.MaxSize))
	put(t, s, random(2, chunk.MaxSize))
	if err := s.Remove(1); !errors.Is(err, ErrActive) {
		t.Errorf("remove the active pack: %v", err)
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	found := 0
	err := s.Scan(1, func(Loc, Header) error { // removed while it is read
		if found++; found > 1 {
			return nil
		}
		return s.Remove(1)
	})
	if err != nil || found != 2 {
		t.Errorf("scan: %d found, %v", found, err)
	}
	if _, err := s.ReadChunk(nil, it.loc, it.id); !errors.Is(err, ErrNoPack) {
		t.Errorf("read: %v", err)
	}
	if err := s.Scan(1, nil); !errors.Is(err, ErrNoPack) {
		t.Errorf("scan: %v", err)
	}
	if err := s.Remove(1); !errors.Is(err, ErrNoPack) {
		t.Errorf("remove again: %v", err)
	}
	if _, err := os.Stat(s.path(1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("file: %v", err)
	}
	if n := s.opened.Len(); n != 0 {
		t.Errorf("%d files open", n)
	}
	mustSync(t, s)
	if next := put(t, s, random(2, 10)); next.loc.Pack != 2 {
		t.Errorf("a number was used again: %v", next.loc)
	}
}

// A pack that vanishes behind our back is one that is not there.
func TestReadOfMissingFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	it := put(t, s, random(1, 10))
	mustSync(t, s)
	s = reopen(t, dir, Options{PackSize: 1}, s.Ends())
	if err := os.Remove(s.path(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadChunk(nil, it.loc, it.id); !errors.Is(err, ErrNoPack) {
		t.Errorf("read: %v", err)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	it := put(t, s, random(1, 10))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, errAppend := tryPut(s, it.plain)
	_, errRead := s.ReadChunk(nil, it.loc, it.id)
	for op, err := range map[string]error{
		"append": errAppend, "read": errRead, "sync": s.Sync(), "seal": s.Seal(), "scan": s.Scan(1, nil),
		"truncate": s.TruncateTo(map[uint32]uint32{1: fileHeader}), "remove": s.Remove(1),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestOpenLeavesOtherFilesAlone(t *testing.T) {
	dir := t.TempDir()
	names := []string{"1.pack", "00000000.pack", "00000001.pack.tmp", "LOCK", "4294967295.pack", "x0000001.pack"}
	for _, n := range names {
		if err := os.WriteFile(dir+"/"+n, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := reopen(t, dir, Options{}, nil)
	if packs := s.Packs(); len(packs) != 0 {
		t.Errorf("packs: %v", packs)
	}
	for _, n := range names {
		if _, err := os.Stat(dir + "/" + n); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(t.TempDir(), Options{PackSize: MaxPackSize + 1}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("size: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/00000001.pack", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dir+"/00000001.pack", 1<<32); err != nil {
		t.Fatal(err)
	}
	var bad *CorruptError
	if _, err := Open(dir, Options{}); !errors.As(err, &bad) || bad.Pack != 1 {
		t.Errorf("huge file: %v", err)
	}
}

func TestLoc(t *testing.T) {
	for _, l := range []Loc{{1, 16, 52}, {1<<32 - 2, 1<<32 - 1, maxFrame}} {
		b := l.Append(nil)
		if got, err := DecodeLoc(b); err != nil || got != l || len(b) != LocSize {
			t.Errorf("%v: %x decodes to %v, %v", l, b, got, err)
		}
	}
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 0}
	if b := (Loc{0x01020304, 0x05060708, 0x10000}).Append(nil); !bytes.Equal(b, want) {
		t.Errorf("encoding: %x", b)
	}
	good := Loc{1, 16, 52}.Append(nil)
	for name, b := range map[string][]byte{
		"nothing": nil, "cut short": good[:11], "too long": append(good[:12:12], 0),
		"pack 0": Loc{0, 16, 52}.Append(nil), "in the file header": Loc{1, 15, 52}.Append(nil),
		"shorter than a header": Loc{1, 16, 51}.Append(nil), "too long a frame": Loc{1, 16, maxFrame + 1}.Append(nil),
	} {
		if got, err := DecodeLoc(b); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
