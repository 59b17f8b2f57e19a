package writebuf

import "math"

// Layer is what was done to a file between two calls of [Buffer.Freeze]. It never changes after the Layer has been
// returned by one, so everything may be used from any goroutine, until [Buffer.Drop]; then its memory is another's.
//
// To bring a base up to date: cut it off at Floor, then put the extents into it.
type Layer struct {
	floor uint64
	list  list
}

// Extent is a run of bytes of a [Layer].
type Extent struct {
	Off, Len uint64 // bytes; Len is at least 1
	Data     []byte // Len bytes, which must not be changed; nil: the run reads as zeros and holds no memory
}

func newLayer() *Layer { return &Layer{floor: math.MaxUint64} }

// Floor is the offset at and above which nothing below the layer is visible: only its own extents are there, and zeros
// between them. It is [math.MaxUint64] when the file was not truncated.
func (l *Layer) Floor() uint64 { return l.floor }

// Extents calls fn for the extents of the layer, ascending and disjoint, until it returns false. Data that is adjacent
// may come as several extents.
func (l *Layer) Extents(fn func(Extent) bool) {
	for _, block := range l.list.blocks {
		for i := range block {
			e := &block[i]
			if !fn(Extent{Off: e.off, Len: e.n, Data: e.data[:len(e.data):len(e.data)]}) {
				return
			}
		}
	}
}

// Bytes is what the layer is charged for, in bytes.
func (l *Layer) Bytes() int64 { return l.list.memory }

// Combine returns a layer that does what several do, oldest first, one after the other. It copies their bytes, belongs to
// no [Buffer] and is charged to no [Pool]. The caller gives it back by [Layer.Release].
func Combine(layers []*Layer) *Layer {
	all := newLayer()
	for _, l := range layers {
		if l.floor != math.MaxUint64 {
			all.truncate(l.floor)
		}
		l.each(func(e *extent) {
			if e.zeros() {
				all.zero(e.off, e.end())
			} else {
				all.write(e.data, e.off)
			}
		})
	}
	return all
}

// Release gives the memory of a layer that [Combine] has returned back. Nobody may read from it any more.
func (l *Layer) Release() { l.free() }

// free gives the memory of a layer that nobody looks at any more back.
func (l *Layer) free() { l.each((*extent).free) }

// each calls fn for every extent.
func (l *Layer) each(fn func(*extent)) {
	for _, block := range l.list.blocks {
		for i := range block {
			fn(&block[i])
		}
	}
}

// empty reports whether the layer changes nothing.
func (l *Layer) empty() bool { return len(l.list.blocks) == 0 && l.floor == math.MaxUint64 }

// write copies p into the layer.
func (l *Layer) write(p []byte, off uint64) {
	for len(p) > 0 {
		at := l.list.seek(off)
		n := l.overwrite(at, p, off)
		if n == 0 {
			n = l.fill(at, p, off)
		}
		p, off = p[n:], off+uint64(n)
	}
}

// overwrite copies what it can of p into data that is at off, and returns how much that was.
func (l *Layer) overwrite(at pos, p []byte, off uint64) int {
	if !l.list.valid(at) {
		return 0
	}
	e := l.list.at(at)
	if e.zeros() || e.off > off {
		return 0
	}
	return copy(e.data[off-e.off:], p)
}

// fill copies what it can of p to off, where there is no data, and returns how much that was. at is the first extent
// that ends after off.
func (l *Layer) fill(at pos, p []byte, off uint64) int {
	room, zeros := l.room(at, off)
	p = p[:min(uint64(len(p)), room, maxSlab)]
	if zeros {
		l.carve(off, off+uint64(len(p)))
		at = l.list.seek(off)
	}
	size := len(p)
	if e := l.list.before(at); e != nil && !e.zeros() && e.end() == off {
		if n := min(e.spare(), len(p)); n > 0 {
			e.append(p[:n])
			return n
		}
		size = max(size, l.growth(e))
	}
	if uint64(size) > room {
		size = int(room)
	}
	l.list.insert(at, newData(off, p, size))
	return len(p)
}

// growth is the size of a slab for a write that goes on where e ends.
func (l *Layer) growth(e *extent) int {
	if e.held >= growSlab && l.list.memory >= longRun {
		return maxSlab
	}
	return min(2*e.held, growSlab)
}

// room returns how far it is from off, where there is no data, to the next data, and whether there are zeros at or
// after off on the way. It looks past one extent of zeros only, so that a write among many costs no more than
// elsewhere: less room than there is does no harm, as the writer comes again for the rest.
func (l *Layer) room(at pos, off uint64) (room uint64, zeros bool) {
	if l.list.valid(at) && l.list.at(at).zeros() {
		zeros = true
		at = l.list.next(at)
	}
	if !l.list.valid(at) {
		return math.MaxUint64 - off, zeros
	}
	return l.list.at(at).off - off, zeros
}

// zero makes [off, end) read as zeros.
func (l *Layer) zero(off, end uint64) {
	if off >= l.floor {
		l.carve(off, end)
		return
	}
	// Only below the floor do zeros have to be said. They are joined with the zeros around them, so that zeroing a file
	// piece by piece leaves one extent.
	last := min(end, l.floor)
	l.carve(last, end)
	first := off
	if at := l.list.seek(first); l.list.valid(at) {
		if e := l.list.at(at); e.zeros() && e.off <= first && e.end() >= last {
			return
		}
	}
	first, last = l.around(first, last)
	l.carve(first, last)
	l.list.insert(l.list.seek(first), newZeros(first, last))
}

// around widens [off, end) by the zeros that overlap or touch its ends.
func (l *Layer) around(off, end uint64) (uint64, uint64) {
	at := l.list.seek(off)
	if e := l.list.before(at); e != nil && e.zeros() && e.end() == off {
		off = e.off
	}
	for _, at := range [...]pos{at, l.list.seek(end)} {
		if !l.list.valid(at) {
			continue
		}
		if e := l.list.at(at); e.zeros() && e.off <= end {
			off, end = min(off, e.off), max(end, e.end())
		}
	}
	return off, end
}

// truncate takes away everything at and after size, and hides what is there below this layer.
func (l *Layer) truncate(size uint64) {
	l.carve(size, math.MaxUint64)
	l.floor = min(l.floor, size)
}

// carve takes everything in [off, end) out of the layer.
func (l *Layer) carve(off, end uint64) {
	from := l.list.seek(off)
	if off >= end || !l.list.valid(from) {
		return
	}
	if e := l.list.at(from); e.off < off {
		if e.end() > end {
			l.punch(from, off, end)
			return
		}
		l.list.resize(from, func(e *extent) { e.cutTail(off) })
		from = l.list.next(from)
	}
	to := l.list.seek(end)
	if l.list.valid(to) && l.list.at(to).off < end {
		l.list.resize(to, func(e *extent) { e.cutHead(end) })
	}
	l.list.remove(from, to)
}

// punch takes [off, end) out of the middle of one extent.
func (l *Layer) punch(at pos, off, end uint64) {
	var after extent
	l.list.resize(at, func(e *extent) { after = e.punch(off, end) })
	l.list.insert(l.list.next(at), after)
}

// look returns what the layer says of the first n bytes from off or of fewer: how many of the same kind there are, and
// the bytes when they are data. Base means that what is below shows through.
func (l *Layer) look(off, n uint64) (uint64, []byte, Kind) {
	if at := l.list.seek(off); l.list.valid(at) {
		e := l.list.at(at)
		switch {
		case e.off > off:
			n = min(n, e.off-off)
		case e.zeros():
			return min(n, e.end()-off), nil, Zero
		default:
			data := e.data[off-e.off:]
			n = min(n, uint64(len(data)))
			return n, data[:n], Data
		}
	}
	if off >= l.floor {
		return n, nil, Zero
	}
	return min(n, l.floor-off), nil, Base
}
