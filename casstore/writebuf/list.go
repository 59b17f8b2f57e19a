package writebuf

import (
	"slices"
	"sort"
)

// list is an ordered list of disjoint extents in blocks of up to blockLen, none of them empty. Finding, inserting and
// removing cost O(log n). (Why not a B-tree of the shelf: its iterators allocate a stack, and every read would pay.)
type list struct {
	blocks [][]extent
	memory int64 // what all extents are charged, in bytes
}

// pos is a place in a list: an extent, or the end. A change of the list makes it void.
type pos struct{ block, i int }

// valid reports whether p is an extent and not the end.
func (l *list) valid(p pos) bool { return p.block < len(l.blocks) }

// at returns the extent at p. Who changes its memory must account for it (see resize).
func (l *list) at(p pos) *extent { return &l.blocks[p.block][p.i] }

// next returns the place after p, which must be valid.
func (l *list) next(p pos) pos {
	if p.i+1 < len(l.blocks[p.block]) {
		return pos{p.block, p.i + 1}
	}
	return pos{p.block + 1, 0}
}

// before returns the extent before p, or nil.
func (l *list) before(p pos) *extent {
	switch {
	case p.i > 0:
		return &l.blocks[p.block][p.i-1]
	case p.block > 0:
		block := l.blocks[p.block-1]
		return &block[len(block)-1]
	}
	return nil
}

// seek returns the first extent that ends after off: the one that off is in, or else the next.
func (l *list) seek(off uint64) pos {
	b := sort.Search(len(l.blocks), func(i int) bool {
		block := l.blocks[i]
		return block[len(block)-1].end() > off
	})
	if b == len(l.blocks) {
		return pos{b, 0}
	}
	block := l.blocks[b]
	return pos{b, sort.Search(len(block), func(i int) bool { return block[i].end() > off })}
}

// insert puts e before p.
func (l *list) insert(p pos, e extent) {
	l.memory += e.memory()
	if !l.valid(p) {
		l.push(e)
		return
	}
	b, full := p.block, len(l.blocks[p.block]) == blockLen
	if full {
		p = l.split(p)
	}
	l.blocks[p.block] = slices.Insert(l.blocks[p.block], p.i, e)
	if full {
		l.join(b)
	}
}

// push adds e to the end. The last block is filled up and not split, so that a sequential writer leaves full blocks.
func (l *list) push(e extent) {
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last]) == blockLen {
		l.blocks = append(l.blocks, nil)
		last++
	}
	l.blocks[last] = append(l.blocks[last], e)
}

// split halves the block of p and returns where p is now.
func (l *list) split(p pos) pos {
	const half = blockLen / 2
	block := l.blocks[p.block]
	upper := append(make([]extent, 0, blockLen), block[half:]...)
	l.blocks[p.block] = slices.Delete(block, half, blockLen)
	l.blocks = slices.Insert(l.blocks, p.block+1, upper)
	if p.i > half {
		return pos{p.block + 1, p.i - half}
	}
	return p
}

// remove takes out the extents from one place up to, not including, another, and frees them.
func (l *list) remove(from, to pos) {
	if from == to {
		return
	}
	for p := from; p != to; p = l.next(p) {
		l.memory -= l.at(p).memory()
		l.at(p).free()
	}
	if from.block == to.block {
		l.blocks[from.block] = slices.Delete(l.blocks[from.block], from.i, to.i)
	} else {
		l.blocks[from.block] = slices.Delete(l.blocks[from.block], from.i, len(l.blocks[from.block]))
		if l.valid(to) {
			l.blocks[to.block] = slices.Delete(l.blocks[to.block], 0, to.i)
		}
		l.blocks = slices.Delete(l.blocks, from.block+1, to.block)
	}
	l.join(from.block)
}

// join merges block b and the one after it, which have lost extents or been split, with their neighbours where they
// have become small, so that no block is empty and the blocks stay as full as extentOverhead says.
func (l *list) join(b int) {
	for i := min(b+2, len(l.blocks)-1); i >= max(b, 1); i-- {
		low, high := l.blocks[i-1], l.blocks[i]
		if len(low) == 0 || len(high) == 0 || len(low)+len(high) < minJoined {
			l.blocks[i-1] = append(low, high...)
			l.blocks = slices.Delete(l.blocks, i, i+1)
		}
	}
	if len(l.blocks) == 1 && len(l.blocks[0]) == 0 {
		l.blocks = nil
	}
}

// resize calls change on the extent at p and accounts for the memory that it takes or gives back.
func (l *list) resize(p pos, change func(*extent)) {
	e := l.at(p)
	l.memory -= e.memory()
	change(e)
	l.memory += e.memory()
}
