package writebuf

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs/vfstest/seed"
)

// inUse counts the slabs that somebody has.
func inUse() int {
	slabs.mu.Lock()
	defer slabs.mu.Unlock()
	return slabs.bytes()/maxSlab - len(slabs.free)
}

// filled returns bytes that no other number's are like.
func filled(n int, number byte) []byte { return bytes.Repeat([]byte{number}, n) }

func TestSlabsComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*Buffer)
		left int // slabs in use after it
	}{
		"nothing":          {func(*Buffer) {}, 4},
		"drop":             {func(b *Buffer) { b.Drop(b.Freeze()) }, 0},
		"discard":          {func(b *Buffer) { b.Discard() }, 0},
		"truncate to none": {func(b *Buffer) { b.Truncate(0) }, 0},
		"truncate to some": {func(b *Buffer) { b.Truncate(maxSlab + maxSlab/4) }, 1},
		"zero one":         {func(b *Buffer) { b.Zero(maxSlab, maxSlab) }, 3},
		"zero most of one": {func(b *Buffer) { b.Zero(0, 3*maxSlab/4) }, 3},
		"zero inside":      {func(b *Buffer) { b.Zero(maxSlab/4, maxSlab/4) }, 4},
		"zero the middle":  {func(b *Buffer) { b.Zero(maxSlab/8, 6*maxSlab/8) }, 3},
		"overwrite":        {func(b *Buffer) { b.Write(filled(2*maxSlab, 7), maxSlab/2) }, 4},
		"freeze, write":    {func(b *Buffer) { b.Freeze(); b.Write(filled(maxSlab, 7), 0) }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			before := inUse()
			_, b := newTestBuffer()
			b.Write(filled(4*maxSlab, 1), 0)
			c.do(b)
			if n := inUse() - before; n != c.left {
				t.Errorf("%d slabs are in use, want %d", n, c.left)
			}
			b.Freeze()
			for _, l := range b.Frozen() {
				b.Drop(l)
			}
		})
	}
}

// TestSlabsOfDiscarded: who reads from a frozen layer while the file goes can go on; the slabs come back when he is done.
func TestSlabsOfDiscarded(t *testing.T) {
	before := inUse()
	_, b := newTestBuffer()
	b.Write(filled(4*maxSlab, 1), 0)
	l := b.Freeze()
	b.Discard()
	_, other := newTestBuffer()
	other.Write(filled(8*maxSlab, 2), 0)
	for e := range l.Extents {
		if !bytes.Equal(e.Data, filled(len(e.Data), 1)) {
			t.Fatalf("the extent at %d has changed", e.Off)
		}
	}
	runtime.KeepAlive(l)
	l = nil
	other.Discard()
	for range 100 {
		runtime.GC()
		if inUse() == before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d slabs are still in use", inUse()-before)
}

// TestArenaIsFull: more than the arena has comes from the heap.
func TestArenaIsFull(t *testing.T) {
	_, b := newTestBuffer()
	const n = arenaSize + 8*maxSlab
	for off := 0; off < n; off += maxSlab {
		b.Write(filled(maxSlab, byte(off>>20)), uint64(off))
	}
	got := make([]byte, maxSlab)
	for off := 0; off < n; off += maxSlab {
		if gaps := b.Read(nil, got, uint64(off)); len(gaps) > 0 || !bytes.Equal(got, filled(maxSlab, byte(off>>20))) {
			t.Fatalf("the bytes at %d are others", off)
		}
	}
	b.Drop(b.Freeze())
}

// TestTrim: memory that was given back reads as new, and can be used again.
func TestTrim(t *testing.T) {
	_, b := newTestBuffer()
	b.Write(filled(4*maxSlab, 1), 0)
	slabs.trim()
	got := make([]byte, 4*maxSlab)
	if b.Read(nil, got, 0); !bytes.Equal(got, filled(4*maxSlab, 1)) {
		t.Fatal("trim has taken what is in use")
	}
	b.Drop(b.Freeze())
	slabs.trim() // they were in use since it last ran
	slabs.trim()
	if slabs.high != 0 {
		t.Errorf("%d bytes are kept", slabs.high)
	}
	b.Write(filled(maxSlab, 3), 0)
	if got = got[:maxSlab]; len(b.Read(nil, got, 0)) > 0 || !bytes.Equal(got, filled(maxSlab, 3)) {
		t.Error("the bytes are others")
	}
	b.Discard()
}

// TestTrimBesideWork: the memory of a burst goes while a few slabs are still used, and is told to be gone.
func TestTrimBesideWork(t *testing.T) {
	told := -1
	OnSlabs(func(bytes int) { told = bytes })
	defer OnSlabs(nil)
	for slabs.bytes() > 0 && inUse() == 0 {
		slabs.trim()
	}
	start := slabs.bytes()
	_, burst := newTestBuffer()
	burst.Write(filled(32*maxSlab, 1), 0)
	if told < start+32*maxSlab-slabStep {
		t.Errorf("told %d bytes of %d", told, slabs.bytes())
	}
	_, b := newTestBuffer()
	for range 3 {
		b.Write(filled(maxSlab, 2), 0)
		burst.Discard()
		slabs.trim()
		b.Drop(b.Freeze())
	}
	if n := slabs.bytes() - start; n > 2*maxSlab {
		t.Errorf("%d bytes are kept", n)
	}
	if told > start+slabStep {
		t.Errorf("told %d bytes of %d", told, slabs.bytes())
	}
	burst.Write(filled(32*maxSlab, 3), 0)
	got := make([]byte, 32*maxSlab)
	if burst.Read(nil, got, 0); !bytes.Equal(got, filled(32*maxSlab, 3)) {
		t.Error("the bytes are others")
	}
	burst.Discard()
}

// TestSlabsUnderRandomWork compares buffers that share the arena with plain bytes.
func TestSlabsUnderRandomWork(t *testing.T) {
	const size = 6 * maxSlab
	seed := seed.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	type file struct {
		buf  *Buffer
		want []byte
	}
	var files [3]file
	for i := range files {
		_, files[i].buf = newTestBuffer()
		files[i].want = make([]byte, size)
		files[i].buf.Truncate(0)
	}
	got := make([]byte, size)
	for step := range 120 {
		f := &files[r.IntN(len(files))]
		off, number := r.IntN(size), byte(step)
		n := 1 + r.IntN(min(size-off, 3*maxSlab))
		switch r.IntN(8) {
		case 0:
			f.buf.Zero(uint64(off), uint64(n))
			clear(f.want[off : off+n])
		case 1:
			f.buf.Truncate(uint64(off))
			clear(f.want[off:])
		case 2:
			f.buf.Discard()
			f.buf.Truncate(0)
			clear(f.want)
		default:
			f.buf.Write(filled(n, number), uint64(off))
			copy(f.want[off:], filled(n, number))
		}
		if len(f.buf.Read(nil, got, 0)) > 0 || !bytes.Equal(got, f.want) {
			t.Fatalf("seed %d, step %d: the bytes are others", seed, step)
		}
	}
	for i := range files {
		files[i].buf.Discard()
	}
}
