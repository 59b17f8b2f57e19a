package writebuf

import (
	"math"
	"slices"
)

// Kind says where the bytes of a run come from.
type Kind uint8

// The kinds of a run.
const (
	Data Kind = iota // a layer holds them
	Zero             // a layer says that they are zeros: a hole
	Base             // no layer knows them: they are those of the base
)

// Gap is a run [Off, Off+Len) whose bytes come from the base.
type Gap struct{ Off, Len uint64 }

// Buffer is the dirty bytes of one file. The owner's lock guards it: Write, Zero, Truncate, Freeze, Drop and Discard
// need it alone, the other methods may run beside each other. Offsets and lengths are bytes and are not checked here:
// the owner has held them against vfs.MaxFileSize.
type Buffer struct {
	pool   *Pool
	live   *Layer
	frozen []*Layer // oldest first
}

// New returns the buffer of a file of which nothing is dirty. What it holds is charged to pool.
func New(pool *Pool) *Buffer { return &Buffer{pool: pool, live: newLayer()} }

// Write copies p into the live layer, at off. It does not wait for memory: see [Pool.Admit].
func (b *Buffer) Write(p []byte, off uint64) {
	b.change(func(live *Layer) { live.write(p, off) })
}

// Zero makes the n bytes from off read as zeros. They hold no memory, but what an extent itself costs.
func (b *Buffer) Zero(off, n uint64) {
	if n == 0 {
		return
	}
	end := off + min(n, math.MaxUint64-off)
	b.change(func(live *Layer) { live.zero(off, end) })
}

// Truncate takes away everything at and after size, in the live layer and, hidden, in all that is below it. When the
// file is extended later there are zeros. Extending a file needs no call.
func (b *Buffer) Truncate(size uint64) {
	b.change(func(live *Layer) { live.truncate(size) })
}

// change runs f on the live layer and charges the difference.
func (b *Buffer) change(f func(live *Layer)) {
	held := b.live.Bytes()
	f(b.live)
	b.pool.charge(b.live.Bytes() - held)
}

// Dirty is what the live layer is charged for, in bytes.
func (b *Buffer) Dirty() int64 { return b.live.Bytes() }

// Empty reports whether the live layer changes nothing: no Write, Zero or Truncate since the last Freeze.
func (b *Buffer) Empty() bool { return b.live.empty() }

// Freeze makes the live layer immutable, puts it on the stack and returns it; what is done from now on goes to a new
// one. It returns nil when the live layer is empty. The cost does not depend on what the layer holds.
func (b *Buffer) Freeze() *Layer {
	if b.live.empty() {
		return nil
	}
	l := b.live
	b.frozen = append(b.frozen, l)
	b.live = newLayer()
	return l
}

// Frozen returns the frozen layers, oldest first. The slice is the caller's.
func (b *Buffer) Frozen() []*Layer { return slices.Clone(b.frozen) }

// Drop forgets l, the oldest frozen layer, because the base now contains it, and gives its memory back. Nobody may read
// from l any more, and so there must be one who stores a layer, not several. It does nothing when l is not in the
// stack, since Discard may have come between the Freeze and the Drop of whoever stores the layer. It panics when l is
// not the oldest.
func (b *Buffer) Drop(l *Layer) {
	switch slices.Index(b.frozen, l) {
	case -1:
	case 0:
		b.frozen = slices.Delete(b.frozen, 0, 1)
		b.pool.charge(-l.Bytes())
		l.free()
	default:
		panic("writebuf: Drop of a layer that is not the oldest")
	}
}

// Discard forgets all layers, because the file is gone, and gives their memory back. The buffer is then as new. Whoever
// still reads from a frozen layer may go on.
func (b *Buffer) Discard() {
	held := b.live.Bytes()
	for _, l := range b.frozen {
		held += l.Bytes()
		slabs.giveLater(l)
	}
	b.live.free()
	b.live, b.frozen = newLayer(), nil
	b.pool.charge(-held)
}

// Read fills p with the bytes from off, as far as the layers know them, data and zeros, and appends to gaps the runs
// that must come from the base, ascending, disjoint and not adjacent; there p is as it was. It allocates nothing when
// gaps has the room.
func (b *Buffer) Read(gaps []Gap, p []byte, off uint64) []Gap {
	for len(p) > 0 {
		n, data, kind := b.look(off, uint64(len(p)))
		switch kind {
		case Data:
			copy(p, data)
		case Zero:
			clear(p[:n])
		case Base:
			gaps = append(gaps, Gap{Off: off, Len: n})
		}
		p, off = p[n:], off+n
	}
	return gaps
}

// Walk calls fn for the runs that [off, end) consists of, ascending and without gaps, until it returns false.
// Neighbours may be of the same kind. Above the floors, what is not data is one run of zeros, however large end is.
func (b *Buffer) Walk(off, end uint64, fn func(off, n uint64, kind Kind) bool) {
	for off < end {
		n, _, kind := b.look(off, end-off)
		if !fn(off, n, kind) {
			return
		}
		off += n
	}
}

// look returns what is visible from off on: the length of the first run, at most n (which is not zero), and its bytes
// when it is data. A layer is asked only for what the layers above it let through.
func (b *Buffer) look(off, n uint64) (uint64, []byte, Kind) {
	n, data, kind := b.live.look(off, n)
	for i := len(b.frozen) - 1; i >= 0 && kind == Base; i-- {
		n, data, kind = b.frozen[i].look(off, n)
	}
	return n, data, kind
}
