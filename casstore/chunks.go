package casstore

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// chunks finds and stores chunks: in packs, with the index in Badger. What has been stored since the last commit is in
// pending only; the next commit makes the packs durable and then writes these entries of the index.
type chunks struct {
	store    *Store
	cache    chunkLRU // compressed chunks, decoded
	verified placeSet // raw chunks whose frames have been verified since the store was opened

	mu      sync.Mutex
	pending map[chunk.ID]pack.Loc
	// marked, while the collector runs, is what has been stored or found to be there already since it began.
	marked idSet
	// condemned chunks are about to leave the index: they count as absent.
	condemned map[chunk.ID]struct{}

	// gate is read-locked by whoever finds chunks and has not yet put them where the collector looks: flushes and
	// commits.
	gate sync.RWMutex
}

func newChunks(s *Store) *chunks {
	return &chunks{
		store: s, pending: make(map[chunk.ID]pack.Loc),
		cache: newChunkLRU(chunkCache), verified: placeSet{byID: make(map[chunk.ID]pack.Loc)},
	}
}

// put stores the chunk that id names, unless it is there.
func (c *chunks) put(id chunk.ID, plain []byte) error {
	if there, err := c.has(id); there || err != nil {
		return err
	}
	buf := encodeBuffers.Get().(*[]byte)
	defer encodeBuffers.Put(buf)
	codec, stored := chunk.Encode(*buf, plain)
	loc, err := c.store.packs.Append(id, codec, len(plain), stored)
	if err != nil {
		return fmt.Errorf("store chunk %v: %w", id, mapError(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[id] = loc
	return nil
}

var encodeBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, chunk.EncodedCap(chunk.MaxSize))
	return &b
}}

// has reports whether a chunk is there, and keeps it from a collector that is under way.
func (c *chunks) has(id chunk.ID) (bool, error) {
	c.mu.Lock()
	_, pending := c.pending[id]
	_, condemned := c.condemned[id]
	if c.marked != nil {
		c.marked.add(id)
	}
	c.mu.Unlock()
	if pending || condemned {
		return pending, nil
	}
	_, err := c.indexed(id)
	if errors.Is(err, vfs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (c *chunks) indexed(id chunk.ID) (pack.Loc, error) {
	r := c.store.reader()
	defer r.Close()
	return r.chunk(id)
}

func (c *chunks) locate(id chunk.ID) (pack.Loc, error) {
	c.mu.Lock()
	loc, ok := c.pending[id]
	c.mu.Unlock()
	if ok {
		return loc, nil
	}
	return c.indexed(id)
}

// get returns the plain bytes of a chunk, verified against its id, for those that something else depends on: the nodes
// of manifests. ErrCorrupt when it is not there or not what its id says.
func (c *chunks) get(ctx context.Context, id chunk.ID) (plain []byte, err error) {
	vfs.WillBlock(ctx)
	err = c.fetch(ctx, id, func(loc pack.Loc) (err error) {
		plain, err = c.store.packs.ReadChunk(nil, loc, id)
		return err
	})
	return plain, err
}

// getHere is get for a chunk that is not fetched.
func (c *chunks) getHere(ctx context.Context, id chunk.ID) (plain []byte, err error) {
	vfs.WillBlock(ctx)
	err = c.find(id, func(loc pack.Loc) (err error) {
		plain, err = c.store.packs.ReadChunk(nil, loc, id)
		return err
	})
	return plain, err
}

// read fills p with the bytes of a chunk of a file, from off on. The errors are those of get, but what is verified is
// the checksum of the chunk's frame: see package pack.
//
// Raw chunks are read straight into p and are not cached, as the operating system does that: a part of one whose frame
// has been verified costs a system call. Compressed chunks are decoded into p when they are wanted whole, else into the
// cache.
func (c *chunks) read(ctx context.Context, p []byte, e chunk.Entry, off uint64) error {
	if plain, ok := c.cache.get(e.ID); ok && uint64(len(plain)) == e.Len {
		copy(p, plain[off:])
		return nil
	}
	whole := uint64(len(p)) == e.Len
	if loc, ok := c.verified.get(e.ID); ok && loc.Raw(e.Len) && !whole {
		err := c.store.packs.ReadRaw(p, int(off), loc, e.ID, true, func() { vfs.WillBlock(ctx) })
		if !errors.Is(err, pack.ErrNoPack) {
			return mapError(err)
		}
		c.verified.forget(e.ID)
	}
	return c.fetch(ctx, e.ID, func(loc pack.Loc) error {
		switch {
		case loc.Raw(e.Len):
			return c.readRaw(ctx, p, e.ID, off, loc)
		case whole:
			return c.decode(ctx, p, e, loc)
		}
		plain := make([]byte, e.Len)
		if err := c.decode(ctx, plain, e, loc); err != nil {
			return err
		}
		c.cache.add(e.ID, plain)
		copy(p, plain[off:])
		return nil
	})
}

// readRaw reads a part of a raw chunk and verifies all of it.
func (c *chunks) readRaw(ctx context.Context, p []byte, id chunk.ID, off uint64, loc pack.Loc) error {
	err := c.store.packs.ReadRaw(p, int(off), loc, id, false, func() { vfs.WillBlock(ctx) })
	if err == nil {
		c.verified.add(id, loc)
	}
	return err
}

// decode fills p with all of a compressed chunk.
func (c *chunks) decode(ctx context.Context, p []byte, e chunk.Entry, loc pack.Loc) error {
	plain, err := c.store.packs.ReadPlain(p[:0:len(p)], loc, e.ID, func() { vfs.WillBlock(ctx) })
	if err == nil && len(plain) != len(p) {
		err = fmt.Errorf("%d bytes, not %d: %w", len(plain), len(p), vfs.ErrCorrupt)
	}
	return err
}

// find calls read with the place of a chunk. The collector may move it in between: then the index has its new place.
func (c *chunks) find(id chunk.ID, read func(pack.Loc) error) (err error) {
	for range 3 {
		var loc pack.Loc
		if loc, err = c.locate(id); err == nil {
			err = read(loc)
		}
		if !errors.Is(err, pack.ErrNoPack) {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vfs.ErrNotExist):
		err = fmt.Errorf("%w: %w", errAbsent, vfs.ErrCorrupt)
	}
	return fmt.Errorf("chunk %v: %w", id, mapError(err))
}

// uncommitted returns the entries of the index that are not in Badger. Their bytes are in packs, but durable only after
// a Sync of those.
func (c *chunks) uncommitted() map[chunk.ID]pack.Loc {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[chunk.ID]pack.Loc, len(c.pending))
	for id, loc := range c.pending {
		out[id] = loc
	}
	return out
}

// committed says that entries are now in Badger.
func (c *chunks) committed(done map[chunk.ID]pack.Loc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, loc := range done {
		if c.pending[id] == loc {
			delete(c.pending, id)
		}
	}
}

// chunkLRU holds decoded chunks, those that were used last, up to a number of bytes. It is safe for concurrent use.
type chunkLRU struct {
	mu    sync.Mutex
	room  int
	order *list.List // of *cachedChunk, the last used in front
	byID  map[chunk.ID]*list.Element
}

type cachedChunk struct {
	id    chunk.ID
	plain []byte
}

func newChunkLRU(size int) chunkLRU {
	return chunkLRU{room: size, order: list.New(), byID: make(map[chunk.ID]*list.Element)}
}

func (l *chunkLRU) get(id chunk.ID) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byID[id]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*cachedChunk).plain, true
}

func (l *chunkLRU) add(id chunk.ID, plain []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.byID[id]; ok {
		return
	}
	l.byID[id] = l.order.PushFront(&cachedChunk{id: id, plain: plain})
	l.room -= len(plain)
	for l.room < 0 {
		last := l.order.Remove(l.order.Back()).(*cachedChunk)
		delete(l.byID, last.id)
		l.room += len(last.plain)
	}
}

// placeSet remembers where chunks are, up to maxPlaces of them. When it is full, any one of them is forgotten. It is
// safe for concurrent use.
type placeSet struct {
	mu   sync.Mutex
	byID map[chunk.ID]pack.Loc
}

func (s *placeSet) get(id chunk.ID) (pack.Loc, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	loc, ok := s.byID[id]
	return loc, ok
}

func (s *placeSet) add(id chunk.ID, loc pack.Loc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= maxPlaces {
		for other := range s.byID {
			delete(s.byID, other)
			break
		}
	}
	s.byID[id] = loc
}

func (s *placeSet) forget(id chunk.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}
