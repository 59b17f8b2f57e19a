package casstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// guests are the chunks that peers have written, until records refer to them or their time is over: the collector spares
// them. They are kept in two generations, so that none needs a time of its own: a chunk stays for one to two times
// vfs.ChunkGrace.
type guests struct {
	mu       sync.Mutex
	began    vfs.Time            // of the newer generation
	new, old map[chunk.ID]uint32 // to their plain lengths
	holds    int                 // by loads and merges that are under way: no chunk's time is over then
	// damaged are chunks of the index whose bytes were found not to be theirs. They count as missing, until they are
	// written again.
	damaged map[chunk.ID]struct{}
}

// ageLocked ends a generation whose time is over.
func (g *guests) ageLocked(now vfs.Time) {
	if g.holds > 0 || now-g.began < vfs.Time(vfs.ChunkGrace) {
		return
	}
	g.old, g.new = g.new, nil
	if now-g.began >= 2*vfs.Time(vfs.ChunkGrace) {
		g.old = nil
	}
	g.began = now
}

// hold has all chunks stay until letGo.
func (g *guests) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds++
}

// letGo is the end of hold: the time of the chunks that are there begins again.
func (g *guests) letGo(now vfs.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holds--; g.holds == 0 {
		g.began = now
	}
}

// add takes chunks in: all or, with ErrQuota, none.
func (g *guests) add(now vfs.Time, list []vfs.Chunk) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ageLocked(now)
	if len(g.new)+len(g.old)+len(list) > maxGuests {
		return fmt.Errorf("%d chunks that nothing refers to: %w", len(g.new)+len(g.old), vfs.ErrQuota)
	}
	if g.new == nil {
		g.new = make(map[chunk.ID]uint32)
	}
	for _, c := range list {
		g.new[c.ID] = uint32(c.PlainLen)
	}
	return nil
}

// settle lets chunks go that records refer to now, and returns how many plain bytes they have.
func (g *guests) settle(ids map[chunk.ID]struct{}) (n uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range ids {
		n += uint64(max(g.new[id], g.old[id]))
		delete(g.new, id)
		delete(g.old, id)
	}
	return n
}

// length returns how many plain bytes a chunk has, if it is among them.
func (g *guests) length(id chunk.ID) (n uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n = uint64(max(g.new[id], g.old[id]))
	return n, n > 0
}

// mark adds the chunks that are to be spared.
func (g *guests) mark(now vfs.Time, add func(chunk.Entry)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ageLocked(now)
	for _, generation := range []map[chunk.ID]uint32{g.new, g.old} {
		for id := range generation {
			add(chunk.Entry{ID: id})
		}
	}
}

func (g *guests) isDamaged(id chunk.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, damaged := g.damaged[id]
	return damaged
}

func (g *guests) setDamaged(id chunk.ID, damaged bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !damaged:
		delete(g.damaged, id)
	case len(g.damaged) < maxDamaged:
		if g.damaged == nil {
			g.damaged = make(map[chunk.ID]struct{})
		}
		g.damaged[id] = struct{}{}
	}
}

// MissingChunks implements vfs.Authority.
func (a *Authority) MissingChunks(ctx context.Context, ids []chunk.ID) (missing []chunk.ID, err error) {
	err = a.call(ctx, "missing chunks", func() error {
		if len(ids) > vfs.MaxChunkIDs {
			return fmt.Errorf("%d chunks: %w", len(ids), vfs.ErrInvalid)
		}
		for _, id := range ids {
			there, err := a.tree.store.hasSound(id)
			if err == nil {
				err = a.tree.alive(ctx)
			}
			if err != nil {
				return err
			}
			if !there {
				missing = append(missing, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return missing, nil
}

// hasSound reports whether a chunk is there, and not known to be damaged.
func (s *Store) hasSound(id chunk.ID) (bool, error) {
	there, err := s.chunks.has(id)
	return there && !s.guests.isDamaged(id), err
}

// ReadChunks implements vfs.Authority. Each chunk is hashed before it is yielded.
func (a *Authority) ReadChunks(ctx context.Context, ids []chunk.ID, yield func(vfs.Chunk) error) error {
	return a.call(ctx, "read chunks", func() error {
		if len(ids) > vfs.MaxChunkIDs {
			return fmt.Errorf("%d chunks: %w", len(ids), vfs.ErrInvalid)
		}
		vfs.WillBlock(ctx)
		var buf []byte
		for _, id := range ids {
			if err := a.tree.alive(ctx); err != nil {
				return err
			}
			c, err := a.tree.store.storedChunk(id, &buf)
			if err == nil && c.Stored != nil {
				err = yield(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// storedChunk returns a chunk in stored form, in buf's memory, which grows. One that is not there or damaged has none.
func (s *Store) storedChunk(id chunk.ID, buf *[]byte) (c vfs.Chunk, err error) {
	found := false
	err = s.chunks.find(id, func(loc pack.Loc) (err error) {
		found = true
		if cap(*buf) < int(loc.Len) {
			*buf = make([]byte, 0, loc.Len)
		}
		c.Codec, c.PlainLen, c.Stored, err = s.packs.Read((*buf)[:0], loc, id)
		return err
	})
	if errors.Is(err, vfs.ErrCorrupt) || errors.Is(err, pack.ErrNoPack) {
		if found {
			s.log.Error("a chunk is damaged; a mirror that has it can repair it", "chunk", id, "err", err)
			s.guests.setDamaged(id, true)
		}
		return vfs.Chunk{}, nil
	}
	c.ID = id
	return c, err
}

// WriteChunks implements vfs.Authority. ErrQuota when more than a million chunks are there that nothing refers to,
// ErrNoSpace when the disk is full.
func (a *Authority) WriteChunks(ctx context.Context, list []vfs.Chunk) error {
	return a.call(ctx, "write chunks", func() error {
		if len(list) > vfs.MaxChunkIDs {
			return fmt.Errorf("%d chunks: %w", len(list), vfs.ErrInvalid)
		}
		vfs.WillBlock(ctx)
		size, err := verifyChunks(list, func() error { return a.tree.alive(ctx) })
		if err != nil {
			return err
		}
		s := a.tree.store
		if err := s.space.admit(ctx, size); err != nil {
			return err
		}
		if err := s.accept(list); err != nil {
			return err
		}
		return s.indexMany(ctx)
	})
}

// verifyBatch is how many chunks a processor verifies between two looks whether it is to go on.
const verifyBatch = 4

// verifyChunks hashes chunks on all processors, and returns how many bytes they take.
func verifyChunks(list []vfs.Chunk, alive func() error) (size int, err error) {
	var group errgroup.Group
	parts := runtime.GOMAXPROCS(0)
	for part := range parts {
		group.Go(func() error {
			var checker vfs.Checker
			for i := part * verifyBatch; i < len(list); i += parts * verifyBatch {
				err := alive()
				if err == nil {
					err = checker.Check(list[i:min(i+verifyBatch, len(list))]...)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, c := range list {
		size += len(c.Stored)
	}
	return size, group.Wait()
}

// accept stores chunks that have been verified.
func (s *Store) accept(list []vfs.Chunk) error {
	s.chunks.gate.RLock()
	defer s.chunks.gate.RUnlock()
	if err := s.guests.add(s.now(), list); err != nil {
		return err
	}
	return s.takeLocked(list)
}

// take stores chunks that have been verified, and does not mind if the collector takes them away again.
func (s *Store) take(list []vfs.Chunk) error {
	s.chunks.gate.RLock()
	defer s.chunks.gate.RUnlock()
	return s.takeLocked(list)
}

// takeLocked is take for whoever holds the gate.
func (s *Store) takeLocked(list []vfs.Chunk) error {
	for _, c := range list {
		there, err := s.hasSound(c.ID)
		if err == nil && !there {
			err = s.chunks.acceptOne(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// acceptOne stores a chunk as it came, also in the place of one that is damaged.
func (c *chunks) acceptOne(ch vfs.Chunk) error {
	if ch.Codec != chunk.Raw && len(ch.Stored) >= ch.PlainLen { // which no pack takes: it has grown
		plain, err := ch.Plain(nil)
		if err != nil {
			return err
		}
		ch.Codec, ch.Stored = chunk.Raw, plain
	}
	loc, err := c.store.packs.Append(ch.ID, ch.Codec, ch.PlainLen, ch.Stored)
	if err != nil {
		return fmt.Errorf("store chunk %v: %w", ch.ID, mapError(err))
	}
	c.mu.Lock()
	c.pending[ch.ID] = loc
	c.mu.Unlock()
	c.verified.forget(ch.ID)
	c.store.guests.setDamaged(ch.ID, false)
	return nil
}

// indexMany commits the index when much of it is in memory only: a peer may write chunks for long before it pushes.
func (s *Store) indexMany(ctx context.Context) error {
	s.chunks.mu.Lock()
	many := len(s.chunks.pending) > indexAhead
	s.chunks.mu.Unlock()
	if !many {
		return nil
	}
	return s.edit(ctx, func(v *revision) error {
		v.forced = true
		return nil
	})
}
