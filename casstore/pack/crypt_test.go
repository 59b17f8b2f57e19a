package pack

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
)

var testKey = random(99, KeyLen)

// TestEncryptedFormat holds a pack against the description, with another way to the same stream.
func TestEncryptedFormat(t *testing.T) {
	s := open(t, t.TempDir(), Options{Key: testKey})
	first, second := put(t, s, random(1, 1000)), put(t, s, []byte("plain text that somebody could know"))
	mustSync(t, s)
	b, err := os.ReadFile(s.path(1))
	if err != nil {
		t.Fatal(err)
	}
	if want := appendFileHeader(nil, 2, 1); !bytes.Equal(b[:fileHeader], want) {
		t.Errorf("the file begins with %x, want %x", b[:fileHeader], want)
	}
	at := fileHeader
	for _, it := range []item{first, second} {
		nonce, frame := b[at:at+nonceLen], b[at+nonceLen:][:it.loc.Len]
		if int(it.loc.Off) != at+nonceLen {
			t.Errorf("a frame at %v, want at %d", it.loc, at+nonceLen)
		}
		block, err := aes.NewCipher(testKey)
		if err != nil {
			t.Fatal(err)
		}
		open := append(bytes.Clone(frame[16:48]), frame[frameHeader:]...)
		cipher.NewCTR(block, nonce).XORKeyStream(open, open)
		if !bytes.Equal(open[:32], it.id[:]) || !bytes.Equal(open[32:], it.plain) {
			t.Errorf("the frame at %v does not decrypt to its chunk", it.loc)
		}
		at += nonceLen + len(frame)
	}
	for _, secret := range [][]byte{first.plain[:32], second.plain, first.id[:], second.id[:], first.id[:8], testKey[:8]} {
		if bytes.Contains(b, secret) {
			t.Errorf("the file has %q", secret)
		}
	}
}

func TestEncryptedReads(t *testing.T) {
	for _, prealloc := range []int64{0, -1} {
		s := open(t, t.TempDir(), Options{Key: testKey, Prealloc: prealloc})
		var items []item
		for _, p := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("carrel "), 9999), random(2, chunk.MaxSize), random(3, 5000)} {
			items = append(items, put(t, s, p))
		}
		checkAll(t, s, items)
		for _, it := range items {
			codec, n, stored, err := s.Read(nil, it.loc, it.id)
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := chunk.Decode(nil, codec, stored, n); err != nil || !bytes.Equal(plain, it.plain) {
				t.Errorf("read %v: decodes to %d bytes, %v", it.loc, len(plain), err)
			}
			n = len(it.plain)
			if !it.loc.Raw(uint64(n)) {
				continue
			}
			for _, part := range [][2]int{{0, n}, {0, n / 2}, {n / 3, n / 2}, {n / 2, n}, {min(17, n), n}, {n, n}} {
				for _, known := range []bool{false, true} {
					p := make([]byte, part[1]-part[0])
					err := s.ReadRaw(p, part[0], it.loc, it.id, known, func() {})
					if err != nil || !bytes.Equal(p, it.plain[part[0]:part[1]]) {
						t.Errorf("bytes %v of %d, known %v: %v", part, n, known, err)
					}
				}
			}
		}
	}
}

// What is stored twice is not alike, and what is written again to a place that was taken back uses no stream twice.
func TestEncryptedIsNeverAlike(t *testing.T) {
	dir, plain := t.TempDir(), random(1, 1000)
	read := func(s *Set, it item) []byte {
		b := make([]byte, nonceLen+int(it.loc.Len))
		file, err := os.Open(s.path(it.loc.Pack))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.ReadAt(b, int64(it.loc.Off)-nonceLen); err != nil {
			t.Fatal(err)
		}
		return b
	}
	s := open(t, dir, Options{Key: testKey})
	kept := put(t, s, plain)
	mustSync(t, s)
	ends := s.Ends()
	lost := put(t, s, plain)
	one, two := read(s, kept), read(s, lost)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, dir, Options{Key: testKey}, ends)
	again := put(t, s, plain)
	if again.loc != lost.loc {
		t.Fatalf("written again at %v, want %v", again.loc, lost.loc)
	}
	three := read(s, again)
	for what, other := range map[string][]byte{"a copy": two, "written again": three} {
		if bytes.Equal(one[:nonceLen], other[:nonceLen]) || bytes.Equal(one[nonceLen+16:], other[nonceLen+16:]) {
			t.Errorf("%s is like the first", what)
		}
	}
	if bytes.Equal(two, three) {
		t.Error("written again it is as it was")
	}
	checkAll(t, s, []item{kept, again})
}

func TestEncryptedBitFlips(t *testing.T) {
	s := open(t, t.TempDir(), Options{Key: testKey})
	first, second := put(t, s, random(1, 40)), put(t, s, random(2, 50))
	mustSync(t, s)
	flipEach(t, s.path(1), int64(second.loc.Off)-nonceLen, nonceLen+int64(second.loc.Len), func(byteAt int64, bit int) {
		first.check(t, s)
		if _, err := s.ReadPlain(nil, second.loc, second.id, nil); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("bit %d of byte %d: read plain: %v", bit, byteAt, err)
		}
		if err := s.ReadRaw(make([]byte, 9), 7, second.loc, second.id, false, nil); !errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("bit %d of byte %d: read raw: %v", bit, byteAt, err)
		}
		wantCorruptAt(t, s, second.loc.Off, 1)
	})
	second.check(t, s)
}

// Another key gives errors and no bytes, and a set with a key is not taken for one without.
func TestEncryptedKeys(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{Key: testKey})
	it := put(t, s, random(1, 5000))
	mustSync(t, s)
	ends := s.Ends()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := reopen(t, dir, Options{Key: random(5, KeyLen)}, ends)
	if _, err := other.ReadPlain(nil, it.loc, it.id, nil); !errors.Is(err, chunk.ErrCorrupt) {
		t.Errorf("with another key: %v", err)
	}
	if err := open(t, dir, Options{}).TruncateTo(ends); !errors.Is(err, ErrVersion) {
		t.Errorf("without a key: %v", err)
	}
	plain := t.TempDir()
	s = open(t, plain, Options{})
	put(t, s, random(1, 5000))
	mustSync(t, s)
	ends = s.Ends()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, plain, Options{Key: testKey}).TruncateTo(ends); !errors.Is(err, ErrVersion) {
		t.Errorf("packs without a key: %v", err)
	}
	if _, err := Open(t.TempDir(), Options{Key: testKey[:16]}); err == nil {
		t.Error("a short key is taken")
	}
}

// Whatever operation fails, and however, as TestEveryOperationFails has it.
func TestEncryptedOperationsFail(t *testing.T) {
	disk := smallDisk(t, 64<<20)
	for _, failure := range []error{syscall.EIO, syscall.ENOSPC} {
		for _, prealloc := range []int64{2000, -1} {
			for n := int64(1); ; n++ {
				hook, count := failNth(n, failure)
				run := fmt.Sprintf("encrypted, %v, prealloc %d, operation %d", failure, prealloc, n)
				failOne(t, run, filepath.Join(disk, run), Options{PackSize: 4000, Prealloc: prealloc, Key: testKey, Hook: hook})
				if count.Load() < n {
					break
				}
			}
		}
	}
}

func BenchmarkReadEncrypted(b *testing.B) {
	s := open(b, b.TempDir(), Options{Key: testKey})
	it := put(b, s, random(1, 128<<10))
	p := make([]byte, len(it.plain))
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if err := s.ReadRaw(p, 0, it.loc, it.id, false, nil); err != nil {
			b.Fatal(err)
		}
	}
}
