package writebuf

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func newTestBuffer() (*Pool, *Buffer) {
	p := NewPool(1 << 40)
	return p, New(p)
}

// extents counts what the live layer has.
func extents(b *Buffer) int {
	n := 0
	for range b.live.Extents {
		n++
	}
	return n
}

// TestMemoryOfPatterns holds what usual writers are charged against the bytes they write.
func TestMemoryOfPatterns(t *testing.T) {
	const file = 8 << 20
	random := func(size, space int) func(*Buffer) { // file bytes at random places of a space
		return func(b *Buffer) {
			r := rand.New(rand.NewPCG(1, 1))
			for _, i := range r.Perm(space / size)[:file/size] {
				b.Write(make([]byte, size), uint64(i*size))
			}
		}
	}
	sequential := func(size int) func(*Buffer) {
		return func(b *Buffer) {
			for off := 0; off < file; off += size {
				b.Write(make([]byte, size), uint64(off))
			}
		}
	}
	for _, c := range []struct {
		name    string
		write   func(*Buffer)
		factor  float64 // of the bytes written
		extents int
	}{
		{"sequential 1 MiB", sequential(1 << 20), 1.001, 8},
		{"sequential 128 KiB", sequential(128 << 10), 1.002, 64},
		{"sequential 4 KiB", sequential(4 << 10), 1.03, 80},
		{"appends of 128 B", sequential(128), 1.13, 80}, // the last slab is almost empty
		{"random 4 KiB", random(4<<10, 4*file), 1.2, file / 4096},
		{"random 4 KiB, dense", random(4<<10, file), 1.04, file / 4096},
		{"random 64 KiB", random(64<<10, 4*file), 1.2, file / (64 << 10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool, b := newTestBuffer()
			c.write(b)
			if got := float64(b.Dirty()) / file; got > c.factor || got < 1 {
				t.Errorf("charged %.4f of the bytes written, want 1 to %.4f", got, c.factor)
			}
			if n := extents(b); n > c.extents {
				t.Errorf("%d extents, want %d at most", n, c.extents)
			}
			held := b.Dirty()
			c.write(b)
			if b.Dirty() != held {
				t.Errorf("writing the same again: charged %d, before %d", b.Dirty(), held)
			}
			b.Freeze()
			c.write(b)
			b.Freeze()
			b.Write([]byte("x"), 5)
			if want := b.Dirty() + 2*held; pool.Used() != want {
				t.Errorf("two frozen and a live layer: used %d, want %d", pool.Used(), want)
			}
			b.Discard()
			if pool.Used() != 0 || !b.Empty() || len(b.Frozen()) != 0 {
				t.Errorf("discarded: used %d, %d frozen", pool.Used(), len(b.Frozen()))
			}
		})
	}
}

// TestSmallFileIsSmall: a file that is written at once takes no slab of 128 KiB.
func TestSmallFileIsSmall(t *testing.T) {
	_, b := newTestBuffer()
	b.Write(make([]byte, 100), 0)
	if b.Dirty() > 128+extentOverhead {
		t.Errorf("100 bytes are charged %d", b.Dirty())
	}
}

// TestHolesGiveMemoryBack punches a file of one slab away, in small steps and in several orders.
func TestHolesGiveMemoryBack(t *testing.T) {
	const size, step = 1 << 20, 4 << 10
	orders := map[string][]int{"random": rand.New(rand.NewPCG(2, 2)).Perm(size / step)}
	for i := range size / step {
		orders["ascending"] = append(orders["ascending"], i)
	}
	orders["descending"] = slices.Clone(orders["ascending"])
	slices.Reverse(orders["descending"])
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			_, b := newTestBuffer()
			b.Write(make([]byte, size), 0)
			for i, at := range order {
				b.Zero(uint64(at*step), step)
				left := int64(size - (i+1)*step)
				if limit := 2*left + int64(extents(b))*extentOverhead; b.Dirty() > limit {
					t.Fatalf("%d bytes are left, charged %d, want %d at most", left, b.Dirty(), limit)
				}
			}
			if b.Dirty() != extentOverhead {
				t.Errorf("one extent of zeros is charged %d, want %d", b.Dirty(), extentOverhead)
			}
		})
	}
}

// TestPunchCopiesTheSmallerPart: the larger one keeps its slab, on whichever side it is.
func TestPunchCopiesTheSmallerPart(t *testing.T) {
	const size = 100 << 10
	for _, off := range []uint64{1 << 10, 98 << 10} {
		before := newData(0, make([]byte, size), size)
		first, last := &before.data[0], &before.data[size-1]
		after := before.punch(off, off+1)
		if keepsHead, wantHead := &before.data[0] == first, off > size/2; keepsHead != wantHead {
			t.Errorf("hole at %d: the head keeps the slab %v, want %v", off, keepsHead, wantHead)
		}
		if keepsTail, wantTail := &after.data[len(after.data)-1] == last, off < size/2; keepsTail != wantTail {
			t.Errorf("hole at %d: the tail keeps the slab %v, want %v", off, keepsTail, wantTail)
		}
	}
}

// TestTruncateGivesMemoryBack: a file that is truncated to nothing holds nothing, and still is not empty.
func TestTruncateGivesMemoryBack(t *testing.T) {
	pool, b := newTestBuffer()
	b.Write(make([]byte, 3<<20), 100)
	b.Zero(10<<20, 1<<20)
	b.Truncate(0)
	if pool.Used() != 0 || b.Empty() {
		t.Errorf("truncated: used %d, empty %v", pool.Used(), b.Empty())
	}
	b.Zero(0, 1<<30) // says nothing that the floor does not
	if pool.Used() != 0 {
		t.Errorf("zeros above the floor: used %d", pool.Used())
	}
}

func TestNoAllocation(t *testing.T) {
	_, b := newTestBuffer()
	page := make([]byte, 4096)
	for i := range uint64(100) {
		b.Write(page, i*8192)
		if i%10 == 0 {
			b.Freeze()
		}
	}
	b.Write(make([]byte, 64<<10), 1<<20)
	b.Zero(2<<20, 1<<20)
	p := make([]byte, 64<<10)
	var gaps [1]Gap
	for name, f := range map[string]func(){
		"read data":   func() { b.Read(nil, p, 1<<20) },
		"read zeros":  func() { b.Read(nil, p, 2<<20) },
		"read a gap":  func() { b.Read(gaps[:0], p, 8<<20) },
		"overwrite":   func() { b.Write(page, 1<<20+77) },
		"walk to end": func() { b.Walk(0, 4<<20, func(_, _ uint64, _ Kind) bool { return true }) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
