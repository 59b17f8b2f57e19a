package pack

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// golden is a pack file of one frame, as the package comment draws it: the chunk "abc", raw.
const golden = "43415252454c504b 00000001 00000001" +
	"43484e4b 01 00 0000 00000003 00000003" +
	"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" +
	"b295955a 616263"

func TestFormatGolden(t *testing.T) {
	want, err := hex.DecodeString(strings.ReplaceAll(golden, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := open(t, dir, Options{})
	it := put(t, s, []byte("abc"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(s.path(1))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file is\n%x, %v, want\n%x", got, err, want)
	}
	checkAll(t, reopen(t, dir, Options{}, map[uint32]uint32{1: uint32(len(want))}), []item{it})
}

func FuzzDecodeHeader(f *testing.F) {
	h := Header{ID: chunk.Sum(nil), Codec: chunk.S2, PlainLen: 100, StoredLen: 10}
	f.Add(h.append(nil, make([]byte, 10)))
	f.Add(Header{dead: true, StoredLen: 10}.append(nil, nil))
	f.Add(append(Header{Codec: chunk.Raw, PlainLen: 3, StoredLen: 3}.append(nil, []byte("abc")), "abc"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, _, what := decodeHeader(b)
		if what != "" {
			return
		}
		if h.StoredLen > chunk.MaxSize || h.PlainLen > chunk.MaxSize {
			t.Fatalf("lengths %d, %d", h.PlainLen, h.StoredLen)
		}
		if again := h.append(nil, nil); !bytes.Equal(again[:frameHeader-4], b[:frameHeader-4]) {
			t.Fatalf("%x encodes to %x", b[:frameHeader], again)
		}
		if _, payload, what := decodeFrame(b); what == "" && !bytes.Equal(append(h.append(nil, payload), payload...), b) {
			t.Fatalf("the frame %x encodes otherwise", b)
		}
	})
}

// spoiled returns a set of one pack with two frames, after change has had its file.
func spoiled(t *testing.T, change func(b []byte) []byte) (*Set, []item) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	items := []item{put(t, s, random(1, 40)), put(t, s, random(2, 50))}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.path(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(1), change(b), 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, Options{}), items
}

// wantCorruptAt holds Scan to find the first bad frame, and the frames before it.
func wantCorruptAt(t *testing.T, s *Set, off uint32, before int) {
	t.Helper()
	found := 0
	err := s.Scan(1, func(Loc, Header) error {
		found++
		return nil
	})
	var bad *CorruptError
	if !errors.As(err, &bad) || !errors.Is(err, chunk.ErrCorrupt) || bad.Off != off || found != before {
		t.Errorf("scan finds %d frames, want %d and an error at %d: %v", found, before, off, err)
	}
}

// flipEach calls check with each bit flipped of the n bytes from off on of a file.
func flipEach(t *testing.T, path string, off, n int64, check func(byteAt int64, bit int)) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var b [1]byte
	flip := func(at int64, bit int) {
		_, errRead := file.ReadAt(b[:], at)
		b[0] ^= 1 << bit
		_, errWrite := file.WriteAt(b[:], at)
		if err := errors.Join(errRead, errWrite); err != nil {
			t.Fatal(err)
		}
	}
	for at := off; at < off+n; at++ {
		for bit := range 8 {
			flip(at, bit)
			check(at-off, bit)
			flip(at, bit)
		}
	}
}

func TestEveryBitFlipIsFound(t *testing.T) {
	const second = fileHeader + frameHeader + 40
	s, items := spoiled(t, func(b []byte) []byte { return b })
	flipEach(t, s.path(1), second, frameHeader+50, func(byteAt int64, bit int) {
		items[0].check(t, s)
		if _, _, _, err := s.Read(nil, items[1].loc, items[1].id); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("bit %d of byte %d: read: %v", bit, byteAt, err)
		}
		if _, err := s.ReadPlain(nil, items[1].loc, items[1].id, nil); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("bit %d of byte %d: read plain: %v", bit, byteAt, err)
		}
		part := make([]byte, 5) // most flips are outside it
		if err := s.ReadRaw(part, 20, items[1].loc, items[1].id, false, nil); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("bit %d of byte %d: read raw: %v", bit, byteAt, err)
		}
		wantCorruptAt(t, s, second, 1)
	})
	checkAll(t, s, items)
}

func TestEveryBitFlipOfTheFileHeaderIsFound(t *testing.T) {
	s, items := spoiled(t, func(b []byte) []byte { return b })
	flipEach(t, s.path(1), 0, fileHeader, func(byteAt int64, bit int) {
		want := chunk.ErrCorrupt
		if byteAt >= 8 && byteAt < 12 {
			want = ErrVersion
		}
		if err := s.Scan(1, nil); !errors.Is(err, want) {
			t.Errorf("bit %d of byte %d: scan: %v", bit, byteAt, err)
		}
		if err := s.TruncateTo(map[uint32]uint32{1: fileHeader}); !errors.Is(err, want) {
			t.Errorf("bit %d of byte %d: truncate: %v", bit, byteAt, err)
		}
		items[1].check(t, s) // frames stand for themselves
	})
	checkAll(t, s, items)
}

func TestDecodeHeaderRefuses(t *testing.T) {
	dead := func(h Header) Header { h.dead = true; return h }
	cases := map[string]Header{
		"no codec":              {PlainLen: 1, StoredLen: 1},
		"unknown codec":         {Codec: 4, PlainLen: 1, StoredLen: 1},
		"plain too long":        {Codec: chunk.S2, PlainLen: chunk.MaxSize + 1, StoredLen: 1},
		"stored longer":         {Codec: chunk.S2, PlainLen: 1, StoredLen: 2},
		"raw of other length":   {Codec: chunk.Raw, PlainLen: 2, StoredLen: 1},
		"dead and too long":     dead(Header{StoredLen: chunk.MaxSize + 1}),
		"dead with a codec":     dead(Header{Codec: chunk.Raw}),
		"dead with plain bytes": dead(Header{PlainLen: 1}),
		"dead with an id":       dead(Header{ID: chunk.Sum(nil)}),
	}
	for name, h := range cases {
		if _, _, what := decodeHeader(h.append(nil, nil)); what == "" {
			t.Errorf("%s is taken", name)
		}
	}
	good := Header{Codec: chunk.Raw}.append(nil, nil)
	if _, _, what := decodeHeader(good); what != "" {
		t.Error(what)
	}
	if _, _, what := decodeHeader(good[:frameHeader-1]); what == "" {
		t.Error("a short header is taken")
	}
}

func TestScanOfTornFile(t *testing.T) {
	const second = fileHeader + frameHeader + 40
	for n := range second + frameHeader + 50 {
		off, before := uint32(second), 1
		switch {
		case n == fileHeader || n == second:
			continue // ends between frames
		case n < fileHeader:
			off, before = 0, 0
		case n < second:
			off, before = fileHeader, 0
		}
		s, items := spoiled(t, func(b []byte) []byte { return b[:n] })
		wantCorruptAt(t, s, off, before)
		if _, err := s.ReadChunk(nil, items[1].loc, items[1].id); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("cut at %d: read: %v", n, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadRefusesOtherPlaces(t *testing.T) {
	s, items := spoiled(t, func(b []byte) []byte { return b })
	a, b := items[0], items[1]
	cases := []struct {
		name string
		loc  Loc
		id   chunk.ID
	}{
		{"another chunk", a.loc, b.id},
		{"too short", Loc{1, a.loc.Off, a.loc.Len - 1}, a.id},
		{"too long", Loc{1, a.loc.Off, a.loc.Len + 1}, a.id},
		{"beside it", Loc{1, a.loc.Off + 1, a.loc.Len}, a.id},
		{"past the end", Loc{1, 1 << 30, a.loc.Len}, a.id},
		{"no frame's length", Loc{1, a.loc.Off, 1<<32 - 1}, a.id},
		{"file header", Loc{1, 0, a.loc.Len}, a.id},
	}
	for _, c := range cases {
		var bad *CorruptError
		if _, _, _, err := s.Read(nil, c.loc, c.id); !errors.As(err, &bad) || bad.Off != c.loc.Off {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := s.ReadRaw(make([]byte, 5), 3, c.loc, c.id, false, nil); !errors.As(err, &bad) || bad.Off != c.loc.Off {
			t.Errorf("%s: read raw: %v", c.name, err)
		}
	}
}

// A frame that is whole, but does not hold the chunk that it says, is found by the hash, for whoever hands the chunk on
// or checks it. Who reads a file does not have it hashed.
func TestReadChunkVerifies(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	id := chunk.Sum([]byte("abc"))
	wrong, err := s.Append(id, chunk.Raw, 3, []byte("abd"))
	if err != nil {
		t.Fatal(err)
	}
	garbage, err := s.Append(id, chunk.Zstd, 3, []byte("ab"))
	if err != nil {
		t.Fatal(err)
	}
	for _, loc := range []Loc{wrong, garbage} {
		var bad *CorruptError
		if _, _, _, err := s.Read(nil, loc, id); !errors.As(err, &bad) || bad.Off != loc.Off {
			t.Errorf("%v: read: %v", loc, err)
		}
		if _, err := s.ReadChunk(nil, loc, id); !errors.As(err, &bad) || bad.Off != loc.Off {
			t.Errorf("%v: read chunk: %v", loc, err)
		}
	}
	if plain, err := s.ReadPlain(nil, wrong, id, nil); err != nil || string(plain) != "abd" {
		t.Errorf("read plain: %q, %v", plain, err)
	}
	if _, err := s.ReadPlain(nil, garbage, id, nil); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("read plain what does not decode: %v", err)
	}
}

func TestScanStops(t *testing.T) {
	s, items := spoiled(t, func(b []byte) []byte { return b })
	stop := errors.New("enough")
	var seen []Loc
	err := s.Scan(1, func(l Loc, h Header) error {
		if h.PlainLen != 40 || h.StoredLen != 40 || h.Codec != chunk.Raw || h.ID != items[0].id {
			t.Errorf("header %v", h)
		}
		seen = append(seen, l)
		return stop
	})
	if err != stop || !slices.Equal(seen, []Loc{items[0].loc}) {
		t.Errorf("%v, %v", seen, err)
	}
}
