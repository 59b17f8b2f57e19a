package mirror

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// fetchPatience is how long a read waits for bytes when its caller has set no bound: the program then is told that they
// cannot be had, instead of hanging with its directory.
const fetchPatience = time.Minute

// fetcher fetches chunks, each once however many wait for it.
type fetcher struct {
	m     *Mirror
	slots chan struct{} // batches that are fetched ahead
	idle  *idle

	mu     sync.Mutex
	coming map[chunk.ID]*arrival
}

// arrival is a chunk on its way.
type arrival struct {
	id   chunk.ID
	done chan struct{}
	err  error // before done is closed
}

func newFetcher(m *Mirror) *fetcher {
	return &fetcher{m: m, slots: make(chan struct{}, prefetches), idle: newIdle(), coming: make(map[chunk.ID]*arrival)}
}

// claim splits ids into those that the caller is to fetch and those that others do.
func (f *fetcher) claim(ids []chunk.ID) (mine []chunk.ID, arrivals []*arrival) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		a := f.coming[id]
		if a == nil {
			a = &arrival{id: id, done: make(chan struct{})}
			f.coming[id] = a
			mine = append(mine, id)
		}
		if !slices.Contains(arrivals, a) {
			arrivals = append(arrivals, a)
		}
	}
	return mine, arrivals
}

// fetch stores chunks that are not here: up to vfs.MaxChunkIDs of them.
func (f *fetcher) fetch(ctx context.Context, ids []chunk.ID) error {
	defer f.idle.busy()()
	return f.obtain(ctx, ids)
}

// fetchIdly is fetch for what nobody waits for. It begins when nobody waits for anything else.
func (f *fetcher) fetchIdly(ctx context.Context, ids []chunk.ID) error {
	if err := f.idle.await(ctx); err != nil {
		return err
	}
	return f.obtain(ctx, ids)
}

func (f *fetcher) obtain(ctx context.Context, ids []chunk.ID) error {
	if _, bound := ctx.Deadline(); !bound {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, fetchPatience)
		defer cancel()
	}
	vfs.WillBlock(ctx)
	for len(ids) > 0 {
		mine, arrivals := f.claim(ids)
		if len(mine) > 0 {
			f.bring(ctx, mine)
		}
		var left []chunk.ID
		for _, a := range arrivals {
			select {
			case <-a.done:
			case <-ctx.Done():
				return interrupted(ctx)
			}
			switch {
			case a.err == nil:
			case slices.Contains(mine, a.id):
				return a.err
			default:
				left = append(left, a.id) // somebody else has given up, who may have waited for less long
			}
		}
		ids = left
	}
	return nil
}

// bring fetches chunks that the caller has claimed, and says to who waits for them how that ended.
func (f *fetcher) bring(ctx context.Context, ids []chunk.ID) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.m.ctx, cancel)()
	left := slices.Clone(ids)
	var batch []vfs.Chunk
	size := 0
	keep := func() error {
		err := f.m.replica.AddChunks(ctx, batch)
		for _, c := range batch {
			f.arrived(c.ID, err)
		}
		f.m.stats.fetched.Add(uint64(len(batch)))
		f.m.stats.fetchedBytes.Add(uint64(size))
		batch, size = nil, 0
		return err
	}
	err := f.m.config.Peer.ReadChunks(ctx, ids, func(c vfs.Chunk) error {
		c.Stored = bytes.Clone(c.Stored)
		batch = append(batch, c)
		left = slices.DeleteFunc(left, func(id chunk.ID) bool { return id == c.ID })
		if size += len(c.Stored); size < chunkBatch/4 {
			return nil
		}
		return keep()
	})
	if len(batch) > 0 {
		if kept := keep(); err == nil {
			err = kept
		}
	}
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("chunk %v is not at the authority: %w", left[0], vfs.ErrCorrupt)
	}
	for _, id := range left {
		f.arrived(id, err)
	}
}

func (f *fetcher) arrived(id chunk.ID, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.coming[id]
	if a == nil {
		return
	}
	delete(f.coming, id)
	a.err = err
	close(a.done)
}

// ahead fetches chunks in the background, unless enough is fetched that way.
func (f *fetcher) ahead(ids []chunk.ID) {
	select {
	case f.slots <- struct{}{}:
	default:
		return
	}
	f.m.group.Go(func() {
		defer func() { <-f.slots }()
		if err := f.fetch(f.m.ctx, ids); err != nil {
			f.m.log.Debug("read ahead", "err", err)
		}
	})
}
