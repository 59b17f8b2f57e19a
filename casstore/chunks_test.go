package casstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// forget makes the next read of every chunk the first.
func (c *chunks) forget() {
	c.cache = newChunkLRU(chunkCache)
	c.verified = placeSet{byID: make(map[chunk.ID]pack.Loc)}
}

// storedFile makes a file and has it stored.
func storedFile(t *testing.T, w *Workspace, name string, b []byte) vfs.Ino {
	t.Helper()
	a, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
	if err == nil {
		err = w.WriteAt(bg, a.Ino, b, 0, false)
	}
	if err == nil {
		_, err = w.Commit(bg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.Ino
}

// readParts reads a file in pieces of a length, from a store that has read none of it and from one that has, and holds
// them against what it should be.
func readParts(t *testing.T, w *Workspace, ino vfs.Ino, want []byte, size int) {
	t.Helper()
	w.store.chunks.forget()
	for _, pass := range []string{"first", "second"} {
		p := make([]byte, size)
		for off := 0; off < len(want); off += size {
			n, err := w.ReadAt(bg, ino, p, uint64(off))
			if rest := want[off:][:min(size, len(want)-off)]; err != nil || !bytes.Equal(p[:n], rest) {
				t.Fatalf("%s read of %d bytes at %d: %d bytes, %v", pass, size, off, n, err)
			}
		}
	}
}

// TestReadParts reads files of raw and of compressed chunks in pieces that are less than a chunk, and more.
func TestReadParts(t *testing.T) {
	w := openWorkspace(t, openStore(t, t.TempDir(), Options{}), "ws")
	for _, c := range []content{random, text} {
		want := c.bytes(3<<20 + 5)
		ino := storedFile(t, w, string(c), want)
		for _, size := range []int{len(want), 1 << 20, 100_000, 4 << 10} {
			readParts(t, w, ino, want, size)
		}
		if cached := w.store.chunks.cache.room < chunkCache; cached != (c == text) {
			t.Errorf("%s: chunks in the cache: %v", c, cached)
		}
	}
}

// TestEveryReadFindsDamage flips a bit of a chunk's bytes on disk. Whatever part of the chunk is read first, raw or
// compressed, the read fails; other chunks can be read.
func TestEveryReadFindsDamage(t *testing.T) {
	for _, c := range []content{random, text} {
		t.Run(string(c), func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			w := openWorkspace(t, s, "ws")
			want := c.bytes(1 << 20)
			ino := storedFile(t, w, "f", want)
			n, err := w.acquire(bg, ino)
			if err != nil {
				t.Fatal(err)
			}
			first, _ := n.file.base.manifest.Find(0)
			w.release(n)
			loc, err := s.chunks.locate(first.ID)
			if err != nil {
				t.Fatal(err)
			}
			flipBit(t, filepath.Join(dir, packDir, fmt.Sprintf("%08d.pack", loc.Pack)), int64(loc.Off+loc.Len/2))
			for _, part := range [][2]uint64{{0, 1}, {0, 4096}, {first.Len - 1, first.Len}, {0, first.Len}, {0, 1 << 20}} {
				s.chunks.forget()
				if _, err := w.ReadAt(bg, ino, make([]byte, part[1]-part[0]), part[0]); !errors.Is(err, vfs.ErrCorrupt) {
					t.Errorf("read of %v: %v", part, err)
				}
			}
			rest := make([]byte, 1<<20-first.Len)
			if _, err := w.ReadAt(bg, ino, rest, first.Len); err != nil || !bytes.Equal(rest, want[first.Len:]) {
				t.Errorf("read of the rest: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func flipBit(t *testing.T, path string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadAfterCollection: a part of a chunk that was verified where it was is found where the collector has moved it.
func TestReadAfterCollection(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	all := random.bytes(3 << 20)
	kept := storedFile(t, w, "kept", all[:1<<20])
	storedFile(t, w, "gone", all[1<<20:])
	readParts(t, w, kept, all[:1<<20], 4<<10)
	if err := w.Unlink(bg, vfs.RootIno, "gone"); err != nil {
		t.Fatal(err)
	}
	if report, err := s.GC(bg); err != nil || report.Moved == 0 {
		t.Fatal(report, err)
	}
	p := make([]byte, 4<<10)
	for off := 0; off < 1<<20; off += len(p) {
		if _, err := w.ReadAt(bg, kept, p, uint64(off)); err != nil || !bytes.Equal(p, all[off:][:len(p)]) {
			t.Fatalf("at %d: %v", off, err)
		}
	}
}

func TestPlacesAreBounded(t *testing.T) {
	s := placeSet{byID: make(map[chunk.ID]pack.Loc)}
	var last chunk.ID
	for i := range maxPlaces + 10 {
		last = chunk.ID{byte(i), byte(i >> 8), byte(i >> 16)}
		s.add(last, pack.Loc{Pack: 1})
	}
	if _, ok := s.get(last); len(s.byID) != maxPlaces || !ok {
		t.Errorf("%d places, the last one: %v", len(s.byID), ok)
	}
	s.forget(last)
	if _, ok := s.get(last); ok {
		t.Error("a place that was forgotten")
	}
}

// blocked counts what a caller is told by vfs.WillBlock.
type blocked struct{ n int }

func (b *blocked) WillBlock() { b.n++ }

// TestReadOfCachedBytesDoesNotBlock: a read whose bytes the operating system has does not hand its request over; where
// the filesystem cannot tell, every read does.
func TestReadOfCachedBytesDoesNotBlock(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	want := random.bytes(1 << 20)
	ino := storedFile(t, w, "f", want)
	tells := canTell(t, s.dir)
	var b blocked
	ctx := context.WithValue(bg, vfs.BlockHookKey, vfs.BlockHook(&b))
	for _, size := range []int{4 << 10, 1 << 20} {
		s.chunks.forget()
		b.n = 0
		if _, err := w.ReadAt(ctx, ino, make([]byte, size), 0); err != nil || (b.n == 0) != tells {
			t.Errorf("read of %d bytes: blocks %d times, %v; the filesystem can tell: %v", size, b.n, err, tells)
		}
	}
}

// canTell reports whether the filesystem of dir knows reads that do not wait.
func canTell(t *testing.T, dir string) bool {
	t.Helper()
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	n, _ := unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 1)}, 0, unix.RWF_NOWAIT)
	return n == 1
}

// TestHowBytesWereWrittenDoesNotMatter: a file comes out in the same chunks, however its bytes lay in memory.
func TestHowBytesWereWrittenDoesNotMatter(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	all := random.bytes(5<<20 + 7)
	copy(all[1<<20:], make([]byte, 1000)) // too few to be a hole
	rnd := rand.New(rand.NewPCG(1, 2))
	var want []chunk.Entry
	for name, size := range map[string]func() int{
		"all":      func() int { return len(all) },
		"1 MiB":    func() int { return 1 << 20 },
		"4 KiB":    func() int { return 4 << 10 },
		"anything": func() int { return 1 + rnd.IntN(300_000) },
	} {
		a, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{})
		if err != nil {
			t.Fatal(err)
		}
		for off := 0; off < len(all); {
			p := all[off:][:min(size(), len(all)-off)]
			if err := w.WriteAt(bg, a.Ino, p, uint64(off), false); err != nil {
				t.Fatal(err)
			}
			off += len(p)
		}
		if err := w.Fsync(bg, a.Ino); err != nil {
			t.Fatal(err)
		}
		n, err := w.acquire(bg, a.Ino)
		if err != nil {
			t.Fatal(err)
		}
		got := n.file.base.manifest.Entries()
		w.release(n)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("written in pieces of %s: %d chunks, want %d", name, len(got), len(want))
		}
		readParts(t, w, a.Ino, all, 100_000)
	}
}
