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
	store *Store
	cache chunkLRU

	mu      sync.Mutex
	pending map[chunk.ID]pack.Loc
	// marked, while the collector runs, is what has been stored or found to be there already since it began.
	marked map[chunk.ID]struct{}
	// condemned chunks are about to leave the index: they count as absent.
	condemned map[chunk.ID]struct{}

	// gate is read-locked by whoever finds chunks and has not yet put them where the collector looks: flushes and
	// commits.
	gate sync.RWMutex
}

func newChunks(s *Store) *chunks {
	return &chunks{store: s, pending: make(map[chunk.ID]pack.Loc), cache: newChunkLRU(chunkCache)}
}

// put stores a chunk, unless it is there, and returns its id.
func (c *chunks) put(plain []byte) (chunk.ID, error) {
	id := chunk.Sum(plain)
	return id, c.putAs(id, plain)
}

// putAs is put for a chunk whose id is known.
func (c *chunks) putAs(id chunk.ID, plain []byte) error {
	if there, err := c.has(id); there || err != nil {
		return err
	}
	codec, stored := chunk.Encode(nil, plain)
	loc, err := c.store.packs.Append(id, codec, len(plain), stored)
	if err != nil {
		return fmt.Errorf("store chunk %v: %w", id, mapError(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[id] = loc
	return nil
}

// has reports whether a chunk is there, and keeps it from a collector that is under way.
func (c *chunks) has(id chunk.ID) (bool, error) {
	c.mu.Lock()
	_, pending := c.pending[id]
	_, condemned := c.condemned[id]
	if c.marked != nil {
		c.marked[id] = struct{}{}
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

// get returns the plain bytes of a chunk, which must not be changed. ErrCorrupt when it is not there or not what its
// id says.
func (c *chunks) get(ctx context.Context, id chunk.ID) ([]byte, error) {
	if plain, ok := c.cache.get(id); ok {
		return plain, nil
	}
	vfs.WillBlock(ctx)
	// The collector may move a chunk between the look-up and the read: then the index has its new place.
	var err error
	for range 3 {
		var loc pack.Loc
		if loc, err = c.locate(id); err != nil {
			break
		}
		var plain []byte
		if plain, err = c.store.packs.ReadChunk(nil, loc, id); err == nil {
			c.cache.add(id, plain)
			return plain, nil
		}
		if !errors.Is(err, pack.ErrNoPack) {
			break
		}
	}
	if errors.Is(err, vfs.ErrNotExist) {
		err = fmt.Errorf("not in the index: %w", vfs.ErrCorrupt)
	}
	return nil, fmt.Errorf("chunk %v: %w", id, mapError(err))
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
