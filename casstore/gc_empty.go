package casstore

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// emptying are packs that are about to be emptied together: by one revision, because each waits until all that others have written
// is durable, which takes longer than the copy.
type emptying struct {
	store  *Store
	hurt   map[uint32]bool
	atOnce uint64 // bytes that are copied for one revision; a pack that has more has one of its own
	report *GCReport

	packs  []*weighed
	copies uint64 // bytes that live in them
}

// room reports whether the copy of what lives in a pack fits: beside those of the others, or else when they have been emptied.
func (e *emptying) room(ctx context.Context, p *weighed) (bool, error) {
	if n := e.copies + p.liveBytes(); n <= e.atOnce {
		if ok, err := e.store.space.fitsCopy(n); ok || err != nil {
			return ok, err
		}
	}
	if err := e.empty(ctx); err != nil {
		return false, err
	}
	return e.store.space.fitsCopy(p.liveBytes())
}

func (e *emptying) add(p *weighed) {
	e.packs = append(e.packs, p)
	e.copies += p.liveBytes()
}

// empty moves what lives in the packs to others, and removes them. One with a damaged chunk that lives stays as it is.
func (e *emptying) empty(ctx context.Context) error {
	s, moved := e.store, &movedChunks{to: make(map[chunk.ID]pack.Loc)}
	var packs []*weighed
	for _, p := range e.packs {
		switch err := s.copyLive(ctx, p, moved); {
		case errors.Is(err, vfs.ErrCorrupt):
			s.log.Warn("a pack is damaged, and is not emptied", "pack", p.id, "err", err)
			e.hurt[p.id] = true
		case err != nil:
			return err
		default:
			packs = append(packs, p)
		}
	}
	e.packs, e.copies = nil, 0
	if len(packs) == 0 {
		return nil
	}
	if err := s.commitEmpty(ctx, packs, moved); err != nil {
		return err
	}
	for _, p := range packs {
		if err := s.packs.Remove(p.id); err != nil {
			return mapError(err)
		}
		e.report.Removed++
		e.report.Freed += p.total
		p.live, p.dead = nil, nil
	}
	e.report.Moved += moved.bytes
	e.report.Freed -= min(e.report.Freed, moved.bytes)
	return nil
}

// commitEmpty has the index say where the chunks of emptied packs are now.
func (s *Store) commitEmpty(ctx context.Context, packs []*weighed, moved *movedChunks) error {
	defer s.chunks.reprieve()
	return s.edit(ctx, func(v *revision) error {
		// From here on a chunk that is dead counts as absent; one that somebody has found since the start is not dead.
		for _, p := range packs {
			for _, e := range s.chunks.condemn(p.dead) {
				if err := s.copyChunk(e, moved); err != nil {
					s.chunks.reprieve()
					return err
				}
			}
			v.replace(p, moved.to)
		}
		return nil
	})
}

// movedChunks are chunks that have been copied to other packs.
type movedChunks struct {
	mu    sync.Mutex
	to    map[chunk.ID]pack.Loc
	bytes uint64
}

// copyLive copies what lives in a pack.
func (s *Store) copyLive(ctx context.Context, p *weighed, moved *movedChunks) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, e := range p.live {
		if going.Err() != nil {
			break
		}
		group.Go(func() error { return s.copyChunk(e, moved) })
	}
	err := group.Wait()
	if err == nil && ctx.Err() != nil {
		err = vfs.ErrInterrupted
	}
	return err
}

func (s *Store) copyChunk(e indexed, moved *movedChunks) error {
	codec, plainLen, stored, err := s.packs.Read(nil, e.loc, e.id)
	if err != nil {
		return mapError(err)
	}
	loc, err := s.packs.Append(e.id, codec, plainLen, stored)
	if err != nil {
		return mapError(err)
	}
	moved.mu.Lock()
	defer moved.mu.Unlock()
	moved.to[e.id] = loc
	moved.bytes += uint64(loc.Len)
	return nil
}

// replace puts the index of an emptied pack right.
func (v *revision) replace(p *weighed, moved map[chunk.ID]pack.Loc) {
	for _, list := range [][]indexed{p.live, p.dead} {
		for _, e := range list {
			if loc, ok := moved[e.id]; ok {
				v.moved[e.id] = loc
			} else {
				v.removed = append(v.removed, e.id)
			}
		}
	}
	v.emptied = append(v.emptied, p.id)
}
