package chunk

import (
	"iter"
	"sort"
	"sync/atomic"
)

// Manifest is the ordered list of a file's chunks and holes. Two holes never follow each other. It is an immutable
// value: Splice returns another, and the two share what is the same in both. The zero Manifest is that of an empty
// file. All methods may be called from many goroutines.
//
// The entries lie in leaves, which are those of the encoded tree (see the package comment), under one flat list of
// them. Finding an offset is two binary searches. A splice copies the leaves that it touches, some hundreds of entries,
// and the list of leaves, 32 bytes each: about 8 KB for a file of 65,536 chunks.
type Manifest struct {
	leaves []leafRef // none empty
	size   uint64    // bytes
	stored uint64    // bytes that are not in holes
	n      int       // entries
}

// leafRef is a leaf and where it stands.
type leafRef struct {
	*leaf
	start  uint64 // the offset of its first byte in the file
	stored uint64 // bytes before it that are not in holes
	index  int    // entries before it
}

// NewManifest returns the list of entries. It panics on an entry that breaks the rules of [Entry]; holes that follow
// each other are merged.
func NewManifest(entries []Entry) Manifest { return Manifest{}.Splice(0, 0, entries) }

// Size returns the length of the file, in bytes.
func (m Manifest) Size() uint64 { return m.size }

// Len returns how many entries there are.
func (m Manifest) Len() int { return m.n }

// Stored returns how many bytes of the file are in chunks.
func (m Manifest) Stored() uint64 { return m.stored }

// StoredIn returns how many of the bytes [off, end) are in chunks, without looking at the leaves between those of off and
// end. What is past the end of the file is in none.
func (m Manifest) StoredIn(off, end uint64) uint64 {
	end = min(end, m.size)
	if off >= end {
		return 0
	}
	first := m.leaves[m.leafAt(off)]
	last := m.leaves[m.leafAt(end-1)]
	if first.start == last.start {
		return first.storedIn(off-first.start, end-first.start)
	}
	between := last.stored - first.stored - first.inUse
	return first.storedIn(off-first.start, first.size()) + between + last.storedIn(0, end-last.start)
}

// Position is an entry and where it stands.
type Position struct {
	Entry
	Index int    // the number of entries before it
	Start uint64 // the offset of its first byte
}

// End returns the offset after the entry's last byte.
func (p Position) End() uint64 { return p.Start + p.Len }

// Find returns the entry that holds the byte at off; ok is false when off is at the end or past it.
func (m Manifest) Find(off uint64) (pos Position, ok bool) {
	if off >= m.size {
		return Position{}, false
	}
	r := m.leaves[m.leafAt(off)]
	return r.position(r.find(off - r.start)), true
}

// From returns the entries in order, beginning with the one that holds the byte at off.
func (m Manifest) From(off uint64) iter.Seq[Position] {
	return func(yield func(Position) bool) {
		if off >= m.size {
			return
		}
		first := m.leafAt(off)
		at := m.leaves[first].find(off - m.leaves[first].start)
		for _, r := range m.leaves[first:] {
			for ; at < len(r.entries); at++ {
				if !yield(r.position(at)) {
					return
				}
			}
			at = 0
		}
	}
}

// Entries returns all entries in a new slice.
func (m Manifest) Entries() []Entry {
	all := make([]Entry, 0, m.n)
	for _, r := range m.leaves {
		all = append(all, r.entries...)
	}
	return all
}

// leafAt returns the number of the leaf that holds the byte at off, which must be in the file.
func (m Manifest) leafAt(off uint64) int {
	return sort.Search(len(m.leaves), func(i int) bool { return m.leaves[i].start > off }) - 1
}

// leaf is a run of entries that the rule for nodes keeps together. It is immutable.
type leaf struct {
	entries []Entry
	ends    []uint64 // of each entry, in bytes from the leaf's start
	inUse   uint64   // bytes that are not in holes

	// id of the node that holds the leaf, once it is known; no other field of a leaf ever changes.
	id atomic.Pointer[ID]
}

// newLeaf keeps entries, which must not be empty.
func newLeaf(entries []Entry) *leaf {
	l := &leaf{entries: entries, ends: make([]uint64, len(entries))}
	var end uint64
	for i, e := range entries {
		end += e.Len
		l.ends[i] = end
		if !e.Hole {
			l.inUse += e.Len
		}
	}
	return l
}

// name returns the leaf's id, given its encoding as a node. It is computed once.
func (l *leaf) name(node []byte) *ID {
	id := l.id.Load()
	if id == nil {
		sum := Sum(node)
		id = &sum
		l.id.Store(id)
	}
	return id
}

// size returns how many bytes of the file the leaf covers.
func (l *leaf) size() uint64 { return l.ends[len(l.ends)-1] }

// find returns which entry holds the byte at off, counted from the leaf's start.
func (l *leaf) find(off uint64) int {
	return sort.Search(len(l.ends), func(i int) bool { return l.ends[i] > off })
}

// storedIn returns how many of the bytes [off, end), counted from the leaf's start, are not in holes.
func (l *leaf) storedIn(off, end uint64) uint64 {
	n := uint64(0)
	for i := l.find(off); off < end; i++ {
		next := min(l.ends[i], end)
		if !l.entries[i].Hole {
			n += next - off
		}
		off = next
	}
	return n
}

func (r leafRef) position(i int) Position {
	e := r.entries[i]
	return Position{Entry: e, Index: r.index + i, Start: r.start + r.ends[i] - e.Len}
}
