package casstore

import (
	"encoding/binary"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
)

// usageClass says what a chunk is there for.
type usageClass uint8

const (
	inPast usageClass = iota // only revisions need it that are kept and not the newest
	inUse
)

// usage adds up what chunks are there for. Beyond usageMarks chunks it looks only at those whose ids begin with some zero bits,
// more and more of them. Ids are hashes, so these are as good a sample as any: of a million chunks the sums are right to
// a part in a thousand.
type usage struct {
	bits  uint // a chunk is looked at if so many bits of its id are zero
	marks map[uint64]usageMark
	most  int // of them

	data   uint64            // plain bytes that are referred to; exact
	stored [inUse + 1]uint64 // bytes of frames, of those that are looked at
}

type usageMark struct {
	plain uint32
	class usageClass
}

func newUsage() *usage { return &usage{most: usageMarks, marks: make(map[uint64]usageMark)} }

func (u *usage) looksAt(k uint64) bool { return k&(1<<u.bits-1) == 0 }

// mark notes what a chunk is there for.
func (u *usage) mark(e chunk.Entry, class usageClass) {
	k := binary.LittleEndian.Uint64(e.ID[:])
	if !u.looksAt(k) {
		return
	}
	m := u.marks[k]
	u.marks[k] = usageMark{plain: max(m.plain, uint32(e.Len)), class: max(m.class, class)}
	for len(u.marks) > u.most {
		u.bits++
		for k := range u.marks {
			if !u.looksAt(k) {
				delete(u.marks, k)
			}
		}
	}
}

// frame counts where a chunk is, when all are marked.
func (u *usage) frame(id chunk.ID, loc pack.Loc) {
	if m, marked := u.marks[binary.LittleEndian.Uint64(id[:])]; marked {
		u.stored[m.class] += uint64(loc.Len)
	}
}

// unique is how many plain bytes the chunks have that are in use.
func (u *usage) unique() (n uint64) {
	for _, m := range u.marks {
		if m.class == inUse {
			n += uint64(m.plain)
		}
	}
	return n
}
