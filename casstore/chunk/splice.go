package chunk

import (
	"fmt"
	"slices"
)

// Splice returns the manifest in which entries stand in place of the bytes from start to end. Both must be at most
// Size, and each must lie between two entries or in a hole, which it then splits. Anything else, an entry that breaks
// the rules of [Entry], or a result that is longer than MaxFileSize, is a mistake of the caller, and panics.
//
// It takes time in proportion to the entries of some leaves and the number of leaves. Only where ids repeat, so that
// leaves end by number and not by content, can all entries after the change have to be gathered anew.
func (m Manifest) Splice(start, end uint64, entries []Entry) Manifest {
	return m.SpliceAll([]Patch{{Start: start, End: end, Entries: entries}})
}

// Patch is what stands in place of the bytes from Start to End.
type Patch struct {
	Start, End uint64 // offsets in the manifest as it is before all patches
	Entries    []Entry
}

// SpliceAll does many splices at once, which must be ascending and apart, as if each were done alone. Each leaf between the
// first and the last is gathered once, where a splice for each patch would gather its leaf for each.
func (m Manifest) SpliceAll(patches []Patch) Manifest {
	if len(patches) == 0 {
		return m
	}
	more, at := 0, uint64(0)
	for _, p := range patches {
		if p.Start > p.End || p.End > m.size || p.Start < at {
			panic(fmt.Sprintf("chunk: splice of %d to %d in a manifest of %d bytes, behind %d", p.Start, p.End, m.size, at))
		}
		more, at = more+len(p.Entries), p.End
	}
	var g gatherer
	g.out.leaves = make([]leafRef, 0, len(m.leaves)+more/MinNode+2)
	m.copyBefore(&g, patches[0].Start)
	for i, p := range patches {
		if i > 0 {
			m.copyBetween(&g, patches[i-1].End, p.Start)
		}
		for _, e := range p.Entries {
			if !e.valid() {
				panic(fmt.Sprintf("chunk: splice of a bad entry: %+v", e))
			}
			g.add(e)
		}
	}
	m.copyAfter(&g, at)
	g.flush()
	if g.out.size > MaxFileSize {
		panic(fmt.Sprintf("chunk: splice makes a manifest of %d bytes", g.out.size))
	}
	return g.out
}

// Truncate returns the manifest of the first size bytes, or, where size is past the end, with a hole up to it. A size
// inside a chunk panics, as in Splice.
func (m Manifest) Truncate(size uint64) Manifest {
	switch {
	case size < m.size:
		return m.Splice(size, m.size, nil)
	case size > m.size:
		return m.Splice(m.size, m.size, []Entry{HoleOf(size - m.size)})
	}
	return m
}

// copyBefore gives g what lies before start. Leaves before the one that holds the last of these bytes stay as they
// are: they end by their content. That one is gathered anew, because more may join it.
func (m Manifest) copyBefore(g *gatherer, start uint64) {
	if start == 0 {
		return
	}
	last := m.leafAt(start - 1)
	r := m.leaves[last]
	g.out = Manifest{leaves: append(g.out.leaves, m.leaves[:last]...), size: r.start, stored: r.stored, n: r.index}
	keep := r.find(start - 1 - r.start) // the entry that holds the byte before start
	g.cur = append(make([]Entry, 0, min(len(r.entries)+8, MaxNode)), r.entries[:keep]...)
	p := r.position(keep)
	g.add(p.clip(p.Start, start))
}

// copyBetween gives g what lies from start to end. As soon as a leaf of g ends where one of m does, those that follow are the
// same, and are shared, but for the last, which is gathered anew as in copyBefore.
func (m Manifest) copyBetween(g *gatherer, start, end uint64) {
	if start == end {
		return
	}
	last := m.leafAt(end - 1)
	for i := m.leafAt(start); i <= last; i++ {
		r := m.leaves[i]
		if i < last && start <= r.start && g.endsBefore(r.entries[0]) {
			g.flush()
			g.attachRun(m, i, last)
			i, r = last, m.leaves[last]
		}
		for at := r.find(max(start, r.start) - r.start); at < len(r.entries); at++ {
			p := r.position(at)
			if p.Start >= end {
				return
			}
			g.add(p.clip(max(start, p.Start), min(end, p.End())))
		}
	}
}

// copyAfter gives g what lies after end. As soon as a leaf of g ends where one of m does, all that follow are the
// same, and are shared.
func (m Manifest) copyAfter(g *gatherer, end uint64) {
	if end == m.size {
		return
	}
	next := m.leafAt(end)
	r := m.leaves[next]
	if at := r.find(end - r.start); at > 0 || end > r.start {
		p := r.position(at)
		g.add(p.clip(end, p.End()))
		for _, e := range r.entries[at+1:] {
			g.add(e)
		}
		next++
	}
	for ; next < len(m.leaves); next++ {
		if g.endsBefore(m.leaves[next].entries[0]) {
			g.flush()
			g.attachRun(m, next, len(m.leaves))
			return
		}
		for _, e := range m.leaves[next].entries {
			g.add(e)
		}
	}
}

// clip returns the part of the entry between two offsets that are in it.
func (p Position) clip(from, to uint64) Entry {
	if from == p.Start && to == p.End() {
		return p.Entry
	}
	if !p.Hole {
		panic(fmt.Sprintf("chunk: splice inside the chunk at %d to %d", p.Start, p.End()))
	}
	return HoleOf(to - from)
}

// gatherer makes a Manifest from left to right.
type gatherer struct {
	out Manifest // what is finished
	cur []Entry  // the leaf that is being filled; the memory is used again for the next
}

// add takes the next entry. A leaf is finished only when the entry after it is known, since a hole may yet grow.
func (g *gatherer) add(e Entry) {
	if last := len(g.cur) - 1; last >= 0 && e.Hole && g.cur[last].Hole {
		g.cur[last].Len += e.Len
		return
	}
	if entriesEnd(g.cur) {
		g.flush()
	}
	g.cur = append(g.cur, e)
}

// endsBefore reports whether the leaf ends here when e is the next entry.
func (g *gatherer) endsBefore(e Entry) bool {
	last := len(g.cur) - 1
	if last < 0 {
		return len(g.out.leaves) == 0
	}
	return entriesEnd(g.cur) && !(e.Hole && g.cur[last].Hole)
}

// flush finishes the leaf that is being filled.
func (g *gatherer) flush() {
	if len(g.cur) > 0 {
		g.attach(newLeaf(slices.Clone(g.cur)))
		g.cur = g.cur[:0]
	}
}

// attach takes a finished leaf.
func (g *gatherer) attach(l *leaf) {
	m := &g.out
	m.leaves = append(m.leaves, leafRef{leaf: l, start: m.size, stored: m.stored, index: m.n})
	m.size += l.size()
	m.stored += l.inUse
	m.n += len(l.entries)
}

// attachRun takes the leaves of m from the one numbered from to before the one numbered to, without looking into them.
func (g *gatherer) attachRun(m Manifest, from, to int) {
	first, out := m.leaves[from], &g.out
	// Differences may be below zero; they wrap around, and so do the sums.
	start, stored, index := out.size-first.start, out.stored-first.stored, out.n-first.index
	for _, r := range m.leaves[from:to] {
		r.start, r.stored, r.index = r.start+start, r.stored+stored, r.index+index
		out.leaves = append(out.leaves, r)
	}
	end := leafRef{start: m.size, stored: m.stored, index: m.n}
	if to < len(m.leaves) {
		end = m.leaves[to]
	}
	out.size, out.stored, out.n = end.start+start, end.stored+stored, end.index+index
}
