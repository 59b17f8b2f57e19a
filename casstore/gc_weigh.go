package casstore

import (
	"cmp"
	"slices"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
)

// weighed is a pack, and how much in it is live and dead.
type weighed struct {
	id                     uint32
	total, deadBytes       uint64
	liveChunks, deadChunks uint64

	live, dead []indexed // its chunks, from when it is about to be emptied; see list
}

func (p *weighed) liveBytes() uint64 { return p.total - p.deadBytes }

// deadShare is how much of the pack is dead, in percent.
func (p *weighed) deadShare() uint64 {
	if p.total == 0 {
		return 0
	}
	return p.deadBytes * 100 / p.total
}

type indexed struct {
	id  chunk.ID
	loc pack.Loc
}

// weigh says what the packs hold, as far as they are among old, those with the fewest live bytes first: on a full disk
// each makes room to empty the next. What is not in the index any more is dead weight: a pack's total is its file's size.
// past is how many bytes in all packs only history refers to.
func (s *Store) weigh(m *marked, old []pack.Info) (packs []*weighed, past uint64, err error) {
	byID := make(map[uint32]*weighed, len(old))
	for _, p := range old {
		w := &weighed{id: p.ID, total: uint64(p.Size), deadBytes: uint64(p.Size)}
		byID[p.ID] = w
		packs = append(packs, w)
	}
	err = s.eachIndexed(func(e indexed) {
		live := m.live.has(e.id)
		kept := live || m.past.has(e.id)
		if kept && !live {
			past += uint64(e.loc.Len)
		}
		w := byID[e.loc.Pack]
		switch {
		case w == nil:
		case kept:
			w.liveChunks++
			w.deadBytes -= min(w.deadBytes, uint64(e.loc.Len))
		default:
			w.deadChunks++
		}
	})
	slices.SortFunc(packs, func(a, b *weighed) int {
		return cmp.Or(cmp.Compare(a.liveBytes(), b.liveBytes()), cmp.Compare(a.id, b.id))
	})
	return packs, past, err
}

// list fills in the chunks of the first of these packs, and of those after it that are worth emptying, up to listMost
// chunks: so many that the index is not read for each pack, and so few that a large store's do not fill the memory.
func (s *Store) list(m *marked, packs []*weighed, worth func(*weighed) bool) error {
	byID := make(map[uint32]*weighed)
	var n uint64
	for i, p := range packs {
		if i > 0 && (n+p.liveChunks+p.deadChunks > listMost || !worth(p)) {
			continue
		}
		n += p.liveChunks + p.deadChunks
		byID[p.id] = p
		p.live, p.dead = make([]indexed, 0, p.liveChunks), make([]indexed, 0, p.deadChunks)
	}
	return s.eachIndexed(func(e indexed) {
		switch w := byID[e.loc.Pack]; {
		case w == nil:
		case m.live.has(e.id) || m.past.has(e.id):
			w.live = append(w.live, e)
		default:
			w.dead = append(w.dead, e)
		}
	})
}

// eachIndexed calls fn for every chunk in the index.
func (s *Store) eachIndexed(fn func(indexed)) error {
	r := s.reader()
	defer r.Close()
	return r.scan([]byte{keyChunk}, nil, true, func(key, value []byte) (bool, error) {
		loc, err := decodeLoc(value)
		if err == nil {
			fn(indexed{id: chunk.ID(key[1:]), loc: loc})
		}
		return err == nil, err
	})
}
