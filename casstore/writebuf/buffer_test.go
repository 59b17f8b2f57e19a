package writebuf

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestFloorsAboveHide: what is truncated away in a layer stays away below it, whatever comes later.
func TestFloorsAboveHide(t *testing.T) {
	_, b := newTestBuffer()
	b.Write([]byte("aaaaaaaa"), 0)
	b.Freeze()
	b.Truncate(2)
	b.Freeze()
	b.Truncate(6) // an extension in between made this a cut too; the lower floor is what counts
	b.Write([]byte("c"), 4)
	got := []byte("........")
	if gaps := b.Read(nil, got, 0); len(gaps) != 0 || string(got) != "aa\x00\x00c\x00\x00\x00" {
		t.Errorf("read %q and gaps %v", got, gaps)
	}
}

func TestReadGaps(t *testing.T) {
	_, b := newTestBuffer()
	b.Write([]byte("dd"), 4)
	b.Zero(8, 2)
	b.Freeze()
	b.Truncate(20)
	got := bytes.Repeat([]byte{'.'}, 24)
	gaps := b.Read(nil, got, 0)
	if want := []Gap{{0, 4}, {6, 2}, {10, 10}}; !slices.Equal(gaps, want) {
		t.Errorf("gaps %v, want %v", gaps, want)
	}
	if want := "....dd..\x00\x00..........\x00\x00\x00\x00"; string(got) != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestEmptyBuffer(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*Buffer)
		empty bool
	}{
		"nothing":            {func(*Buffer) {}, true},
		"write of nothing":   {func(b *Buffer) { b.Write(nil, 7) }, true},
		"zeros of no length": {func(b *Buffer) { b.Zero(7, 0) }, true},
		"write":              {func(b *Buffer) { b.Write([]byte{1}, 7) }, false},
		"zeros":              {func(b *Buffer) { b.Zero(7, 1) }, false},
		"truncate":           {func(b *Buffer) { b.Truncate(7) }, false},
		"discarded":          {func(b *Buffer) { b.Truncate(7); b.Discard() }, true},
	} {
		_, b := newTestBuffer()
		c.do(b)
		if b.Empty() != c.empty {
			t.Errorf("%s: empty %v, want %v", name, b.Empty(), c.empty)
		}
		if l := b.Freeze(); (l == nil) != c.empty || !b.Empty() {
			t.Errorf("%s: froze %v, empty after that %v", name, l, b.Empty())
		}
	}
}

// TestFarOffsets: ranges to the end of all offsets do not wrap around.
func TestFarOffsets(t *testing.T) {
	_, b := newTestBuffer()
	b.Write([]byte("far"), vfs.MaxFileSize-3)
	b.Zero(vfs.MaxFileSize, math.MaxUint64)
	b.Zero(10, math.MaxUint64)
	if n := extents(b); n != 1 {
		t.Errorf("%d extents, want one of zeros", n)
	}
	var runs []uint64
	b.Walk(0, math.MaxUint64, func(_, n uint64, _ Kind) bool {
		runs = append(runs, n)
		return true
	})
	if want := []uint64{10, math.MaxUint64 - 10}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
}

func TestWalkAndExtentsStop(t *testing.T) {
	_, b := newTestBuffer()
	b.Write([]byte{1}, 0)
	b.Write([]byte{1}, 10)
	calls := 0
	b.Walk(0, 20, func(_, _ uint64, _ Kind) bool { calls++; return false })
	b.Freeze().Extents(func(Extent) bool { calls++; return false })
	if calls != 2 {
		t.Errorf("called %d times, want once each", calls)
	}
}

func TestDrop(t *testing.T) {
	pool, b := newTestBuffer()
	var layers []*Layer
	for i := range 3 {
		b.Write([]byte{byte(i)}, uint64(i))
		layers = append(layers, b.Freeze())
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("drop of a layer that is not the oldest: no panic")
			}
		}()
		b.Drop(layers[1])
	}()
	b.Drop(layers[0])
	b.Drop(layers[0]) // is not there any more
	if !slices.Equal(b.Frozen(), layers[1:]) {
		t.Errorf("%d frozen layers, want the two newer", len(b.Frozen()))
	}
	b.Discard()
	b.Drop(layers[1]) // by one who stored it meanwhile
	if pool.Used() != 0 {
		t.Errorf("used %d", pool.Used())
	}
}

// TestFrozenLayerNeverChanges: a layer reads the same after its buffer has gone on, and its data cannot be appended to.
func TestFrozenLayerNeverChanges(t *testing.T) {
	_, b := newTestBuffer()
	b.Write([]byte("hello "), 0)
	b.Write([]byte("you"), 6) // leaves room at the end of a slab
	l := b.Freeze()
	b.Write([]byte("HELLO YOU AND ALL"), 0)
	b.Drop(l)
	b.Truncate(3)
	var got []byte
	for e := range l.Extents {
		got = append(got, e.Data...)
		if cap(e.Data) != len(e.Data) {
			t.Errorf("extent at %d can be appended to in place", e.Off)
		}
	}
	for e := range l.Extents {
		if !bytes.Equal(e.Data, []byte("hello you")[e.Off:e.Off+e.Len]) {
			t.Errorf("extent at %d is %q", e.Off, e.Data)
		}
	}
	if string(got) != "hello you" {
		t.Errorf("layer holds %q", got)
	}
}

// TestFilesUnderOneBudget lets many files share a small pool: writers wait, one goroutine stores what is dirty when
// it is told to. Nothing may get stuck or lost, or, under the race detector, be touched without the file's lock.
func TestFilesUnderOneBudget(t *testing.T) {
	const files, size, step = 8, 1 << 20, 9000
	pool := NewPool(1 << 20)
	wake := make(chan struct{}, 1)
	pool.OnPressure(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	all := make([]*sharedFile, files)
	var writing, storing sync.WaitGroup
	for i := range all {
		f := &sharedFile{buf: New(pool), base: make([]byte, size)}
		all[i] = f
		writing.Go(func() { f.fill(t, pool, byte(i+1), size, step) })
	}
	stop := make(chan struct{})
	storing.Go(func() {
		for {
			select {
			case <-wake:
				for _, f := range all {
					f.store()
				}
			case <-stop:
				return
			}
		}
	})
	writing.Wait()
	close(stop)
	storing.Wait()
	for i, f := range all {
		f.store()
		if n := bytes.Count(f.base, []byte{byte(i + 1)}); n != size {
			t.Errorf("file %d: %d of %d bytes arrived", i, n, size)
		}
	}
	if pool.Used() != 0 {
		t.Errorf("used %d in the end", pool.Used())
	}
}

// sharedFile is a file as an owner has it.
type sharedFile struct {
	mu   sync.RWMutex
	buf  *Buffer
	base []byte
}

// fill writes the file from end to end, and reads each step back.
func (f *sharedFile) fill(t *testing.T, pool *Pool, value byte, size, step int) {
	for off := 0; off < size; off += step {
		p := bytes.Repeat([]byte{value}, min(step, size-off))
		if err := pool.Admit(context.Background(), len(p)); err != nil {
			t.Error(err)
			return
		}
		f.mu.Lock()
		f.buf.Write(p, uint64(off))
		f.mu.Unlock()
		if got := f.read(off, len(p)); !bytes.Equal(got, p) {
			t.Errorf("read back other bytes at %d", off)
			return
		}
	}
}

func (f *sharedFile) read(off, n int) []byte {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p := make([]byte, n)
	for _, g := range f.buf.Read(nil, p, uint64(off)) {
		copy(p[g.Off-uint64(off):][:g.Len], f.base[g.Off:])
	}
	return p
}

// store does what an owner does: freeze under the lock, copy without it, swap the base under it. Only one goroutine
// at a time stores, so that base may be read here without the lock.
func (f *sharedFile) store() {
	f.mu.Lock()
	l := f.buf.Freeze()
	f.mu.Unlock()
	if l == nil {
		return
	}
	base := slices.Clone(f.base)
	store(base, l)
	f.mu.Lock()
	f.base = base
	f.buf.Drop(l)
	f.mu.Unlock()
}
