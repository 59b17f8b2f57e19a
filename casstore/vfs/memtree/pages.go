package memtree

// pages holds the bytes of a file. A page that is not there is a hole; none lies at or past the end, and what a page
// holds past the end is zeros.
type pages struct {
	size uint64
	page map[uint64]*[pageSize]byte // by offset / pageSize
}

func (p *pages) count() uint64 { return uint64(len(p.page)) }

// span is the part of one page that a range covers.
type span struct{ page, from, to uint64 }

// spanAt returns the part of [off, end) that lies in the page of off.
func spanAt(off, end uint64) span {
	page := off / pageSize
	return span{page, off - page*pageSize, min(end-page*pageSize, pageSize)}
}

// read fills b from off and returns how many bytes there were before the end.
func (p *pages) read(b []byte, off uint64) int {
	if off >= p.size {
		return 0
	}
	b = b[:min(uint64(len(b)), p.size-off)]
	clear(b)
	for at, end := off, off+uint64(len(b)); at < end; {
		s := spanAt(at, end)
		if page := p.page[s.page]; page != nil {
			copy(b[at-off:], page[s.from:s.to])
		}
		at += s.to - s.from
	}
	return len(b)
}

// missing returns how many pages a write of n bytes at off would add.
func (p *pages) missing(off, n uint64) uint64 {
	var add uint64
	for at := off; at < off+n; {
		s := spanAt(at, off+n)
		if p.page[s.page] == nil {
			add++
		}
		at += s.to - s.from
	}
	return add
}

func (p *pages) write(b []byte, off uint64) {
	if p.page == nil {
		p.page = make(map[uint64]*[pageSize]byte)
	}
	for at, end := off, off+uint64(len(b)); at < end; {
		s := spanAt(at, end)
		if p.page[s.page] == nil {
			p.page[s.page] = new([pageSize]byte)
		}
		copy(p.page[s.page][s.from:s.to], b[at-off:])
		at += s.to - s.from
	}
	p.size = max(p.size, off+uint64(len(b)))
}

// punch makes a hole of [off, off+n). Pages that it covers in part stay, with zeros.
func (p *pages) punch(off, n uint64) {
	end := off + n
	for i, page := range p.page {
		from, to := max(off, i*pageSize), min(end, (i+1)*pageSize)
		switch {
		case from >= to:
		case to-from == pageSize:
			delete(p.page, i)
		default:
			clear(page[from-i*pageSize : to-i*pageSize])
		}
	}
}

func (p *pages) truncate(size uint64) {
	if size < p.size {
		// To the end of the last page, so that it goes whole.
		p.punch(size, (p.size+pageSize-1)/pageSize*pageSize-size)
	}
	p.size = size
}

// data returns the first offset at or after off, before the end, that is in no hole.
func (p *pages) data(off uint64) (uint64, bool) {
	if off >= p.size {
		return 0, false
	}
	if p.page[off/pageSize] != nil {
		return off, true
	}
	next, found := uint64(0), false
	for i := range p.page {
		if at := i * pageSize; at > off && (!found || at < next) {
			next, found = at, true
		}
	}
	return next, found
}

// hole returns the first offset at or after off that is in a hole or the end.
func (p *pages) hole(off uint64) (uint64, bool) {
	if off >= p.size {
		return 0, false
	}
	at := off
	for p.page[at/pageSize] != nil {
		at = (at/pageSize + 1) * pageSize
	}
	return min(at, p.size), true
}
