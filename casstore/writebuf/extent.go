package writebuf

import "slices"

// extent is a run of bytes that a layer knows, and the only owner of its slab.
type extent struct {
	off  uint64
	n    uint64 // len(data), or how many zeros
	data []byte // nil: zeros. The capacity behind it is unused, and an appending writer may use it
	held int    // bytes of the slab that data is in
}

// newData returns an extent that holds a copy of p, with room for size bytes in all.
func newData(off uint64, p []byte, size int) extent {
	var slab []byte
	if size == maxSlab {
		slab = slabs.take()
	}
	if slab == nil && size > len(p) {
		slab = slices.Grow(slab, size)
	}
	// For a slab that is filled at once, append takes memory that has not been cleared, unlike make.
	slab = append(slab, p...)
	return extent{off: off, n: uint64(len(p)), data: slab, held: cap(slab)}
}

// newZeros returns an extent that reads as zeros.
func newZeros(off, end uint64) extent { return extent{off: off, n: end - off} }

// end is the offset after the last byte.
func (e *extent) end() uint64 { return e.off + e.n }

// zeros reports whether e has no data.
func (e *extent) zeros() bool { return e.data == nil }

// memory is what e is charged, in bytes.
func (e *extent) memory() int64 { return int64(e.held) + extentOverhead }

// spare is how many bytes can be appended in place.
func (e *extent) spare() int { return cap(e.data) - len(e.data) }

// append adds p, no more than spare bytes, to the end of e.
func (e *extent) append(p []byte) {
	e.data = append(e.data, p...)
	e.n += uint64(len(p))
}

// cutTail takes away everything from offset at, which is inside e, to the end.
func (e *extent) cutTail(at uint64) {
	e.n = at - e.off
	if !e.zeros() {
		e.data = e.data[:e.n]
		e.shrink()
	}
}

// cutHead takes away everything before offset at, which is inside e.
func (e *extent) cutHead(at uint64) {
	cut := at - e.off
	e.off, e.n = at, e.n-cut
	if !e.zeros() {
		e.data = e.data[cut:]
		e.shrink()
	}
}

// free gives the slab back. Nobody may use the extent after that, nor have its data.
func (e *extent) free() {
	if e.held == maxSlab {
		slabs.give(e.data[:1])
	}
}

// move puts data, a part of e's, into a slab of its own, in e's place.
func (e *extent) move(off uint64, data []byte) {
	moved := newData(off, data, len(data))
	e.free()
	*e = moved
}

// shrink moves what is left to a slab of its own when it is less than half of the old one. Waiting for the half makes
// the bytes moved less than the bytes cut off, however small the steps.
func (e *extent) shrink() {
	if len(e.data)*2 < e.held {
		e.move(e.off, e.data)
	}
}

// punch takes [off, end), which is inside e and touches neither end, out of e: e keeps what is before and the result
// is what is after. The smaller of the two is copied and the other keeps the slab.
func (e *extent) punch(off, end uint64) extent {
	after := *e
	switch {
	case e.zeros():
		after.cutHead(end)
		e.cutTail(off)
	case off-e.off < e.end()-end:
		*e = newData(e.off, e.data[:off-e.off], 0) // the slab is now after's
		after.cutHead(end)
	default:
		after = newData(end, e.data[end-e.off:], 0)
		e.cutTail(off)
	}
	return after
}
