package writebuf

import (
	"bytes"
	"fmt"
	"slices"
)

// modelLayer says for each byte of a file what a layer does to it. It knows no floors and no extents.
type modelLayer struct {
	kind  []Kind
	value []byte
}

func newModelLayer(space int) *modelLayer {
	return &modelLayer{kind: bytesOf(Base, space), value: make([]byte, space)}
}

func bytesOf(k Kind, n int) []Kind { return slices.Repeat([]Kind{k}, n) }

func (l *modelLayer) zero(off, end int) {
	copy(l.kind[off:end], bytesOf(Zero, end-off))
	clear(l.value[off:end])
}

func (l *modelLayer) write(p []byte, off int) {
	copy(l.kind[off:], bytesOf(Data, len(p)))
	copy(l.value[off:], p)
}

// apply changes base to what the layer makes of it.
func (l *modelLayer) apply(base []byte) {
	for i, k := range l.kind {
		if k != Base {
			base[i] = l.value[i]
		}
	}
}

// model is a Buffer beside the naive picture of it, in a file of a fixed space. Its methods return an error when they
// differ.
type model struct {
	space  int
	pool   *Pool
	buf    *Buffer
	base   []byte
	layers []*modelLayer // oldest first, the last is live
	empty  bool
	next   byte // the byte that the next write writes
}

func newModel(space int) *model {
	pool := NewPool(1 << 40)
	m := &model{space: space, pool: pool, buf: New(pool), base: make([]byte, space), empty: true}
	for i := range m.base {
		m.base[i] = 0x80 | byte(i)
	}
	m.layers = []*modelLayer{newModelLayer(space)}
	return m
}

func (m *model) live() *modelLayer { return m.layers[len(m.layers)-1] }

// cut returns the range of n bytes from off as far as it is in the space.
func (m *model) cut(off, n int) (int, int) { return off, min(n, m.space-off) }

func (m *model) write(off, n int) {
	off, n = m.cut(off, n)
	p := make([]byte, n)
	for i := range p {
		p[i] = m.next & 0x7f
		m.next += 3
	}
	m.live().write(p, off)
	m.buf.Write(p, uint64(off))
	for i := range p {
		p[i] = 0xee // the buffer has to have copied it
	}
	m.empty = m.empty && n == 0
}

func (m *model) zero(off, n int) {
	off, n = m.cut(off, n)
	m.live().zero(off, off+n)
	m.buf.Zero(uint64(off), uint64(n))
	m.empty = m.empty && n == 0
}

func (m *model) truncate(size int) {
	m.live().zero(size, m.space)
	m.buf.Truncate(uint64(size))
	m.empty = false
}

func (m *model) freeze() error {
	l := m.buf.Freeze()
	if (l == nil) != m.empty {
		return fmt.Errorf("freeze: layer is nil %v, model empty %v", l == nil, m.empty)
	}
	if l == nil {
		return nil
	}
	m.layers = append(m.layers, newModelLayer(m.space))
	m.empty = true
	if frozen := m.buf.Frozen(); len(frozen) != len(m.layers)-1 || frozen[len(frozen)-1] != l {
		return fmt.Errorf("freeze: the layer is not the newest of %d", len(frozen))
	}
	return nil
}

// drop brings the base up to date with the oldest frozen layer, as one who stores the file does, and drops the layer.
func (m *model) drop() error {
	frozen := m.buf.Frozen()
	if len(frozen) == 0 {
		return nil
	}
	want := slices.Clone(m.base)
	m.layers[0].apply(want)
	store(m.base, frozen[0])
	if err := same("base", 0, m.base, want); err != nil {
		return err
	}
	m.buf.Drop(frozen[0])
	m.layers = m.layers[1:]
	return nil
}

// dropAll is drop for all frozen layers, combined.
func (m *model) dropAll() error {
	frozen := m.buf.Frozen()
	want := slices.Clone(m.base)
	for _, l := range m.layers[:len(frozen)] {
		l.apply(want)
	}
	all := Combine(frozen)
	store(m.base, all)
	all.Release()
	if err := same("base", 0, m.base, want); err != nil {
		return err
	}
	for _, l := range frozen {
		m.buf.Drop(l)
	}
	m.layers = m.layers[len(frozen):]
	return nil
}

// store applies a layer to base by what it says of itself.
func store(base []byte, l *Layer) {
	if floor := l.Floor(); floor < uint64(len(base)) {
		clear(base[floor:])
	}
	for e := range l.Extents {
		if e.Data == nil {
			clear(base[e.Off : e.Off+e.Len])
		} else {
			copy(base[e.Off:e.Off+e.Len], e.Data)
		}
	}
}

func (m *model) discard() {
	m.buf.Discard()
	m.layers = []*modelLayer{newModelLayer(m.space)}
	m.empty = true
}

// view returns what [off, off+n) reads as, and where it comes from.
func (m *model) view(off, n int) ([]byte, []Kind) {
	value, kind := slices.Clone(m.base[off:off+n]), bytesOf(Base, n)
	for _, l := range m.layers {
		for i, k := range l.kind[off : off+n] {
			if k != Base {
				value[i], kind[i] = l.value[off+i], k
			}
		}
	}
	return value, kind
}

// check reads and walks a range and compares.
func (m *model) check(off, n int) error {
	off, n = m.cut(off, n)
	value, kind := m.view(off, n)
	got := bytes.Repeat([]byte{0xaa}, n)
	end := uint64(off)
	for _, g := range m.buf.Read(nil, got, uint64(off)) {
		if g.Len == 0 || g.Off < end || (g.Off == end && end > uint64(off)) || g.Off+g.Len > uint64(off+n) {
			return fmt.Errorf("read %d+%d: bad gap %v after %d", off, n, g, end)
		}
		end = g.Off + g.Len
		hole := got[g.Off-uint64(off) : end-uint64(off)]
		if i := slices.IndexFunc(hole, func(b byte) bool { return b != 0xaa }); i >= 0 {
			return fmt.Errorf("read %d+%d: wrote into the gap %v", off, n, g)
		}
		copy(hole, m.base[g.Off:end])
	}
	if err := same("read", off, got, value); err != nil {
		return err
	}
	return m.checkWalk(off, n, kind)
}

func (m *model) checkWalk(off, n int, want []Kind) error {
	var got []Kind
	var err error
	m.buf.Walk(uint64(off), uint64(off+n), func(o, n uint64, k Kind) bool {
		if o != uint64(off+len(got)) || n == 0 || n > uint64(m.space) {
			err = fmt.Errorf("walk from %d: run %d+%d after %d", off, o, n, off+len(got))
			return false
		}
		got = append(got, bytesOf(k, int(n))...)
		return true
	})
	if err != nil {
		return err
	}
	return same("walk", off, got, want)
}

// checkAll compares everything, and the insides of the lists.
func (m *model) checkAll() error {
	var held int64
	for _, l := range append(m.buf.Frozen(), m.buf.live) {
		if err := checkLayer(l); err != nil {
			return err
		}
		held += l.Bytes()
	}
	if used := m.pool.Used(); used != held {
		return fmt.Errorf("pool: used %d, layers hold %d", used, held)
	}
	if m.buf.Empty() != m.empty {
		return fmt.Errorf("empty: %v, want %v", m.buf.Empty(), m.empty)
	}
	return m.check(0, m.space)
}

// checkLayer checks what list, extent and Layer promise to themselves.
func checkLayer(l *Layer) error {
	var memory int64
	var end uint64
	var zeros bool
	for b, block := range l.list.blocks {
		if len(block) == 0 || len(block) > blockLen {
			return fmt.Errorf("block %d has %d extents", b, len(block))
		}
		if b > 0 && len(block)+len(l.list.blocks[b-1]) < minJoined {
			return fmt.Errorf("blocks %d and %d have %d extents", b-1, b, len(block)+len(l.list.blocks[b-1]))
		}
		for _, e := range block {
			memory += e.memory()
			switch {
			case e.n == 0 || e.off < end:
				return fmt.Errorf("extent %d+%d after %d", e.off, e.n, end)
			case e.zeros() && (zeros && e.off == end || e.end() > l.floor):
				return fmt.Errorf("needless zeros %d+%d after %d, floor %d", e.off, e.n, end, l.floor)
			case !e.zeros() && (e.n != uint64(len(e.data)) || e.held < cap(e.data)):
				return fmt.Errorf("extent %d+%d has %d bytes of %d in %d", e.off, e.n, len(e.data), cap(e.data), e.held)
			}
			end, zeros = e.end(), e.zeros()
		}
	}
	if memory != l.Bytes() {
		return fmt.Errorf("layer is charged %d, holds %d", l.Bytes(), memory)
	}
	return nil
}

// same says where two slices that begin at off differ first.
func same[T comparable](what string, off int, got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s from %d: %d long, want %d", what, off, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: at %d is %v, want %v", what, off+i, got[i], want[i])
		}
	}
	return nil
}
