package casstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// GCReport says what a collection has done.
type GCReport struct {
	Live    uint64 // chunks that something refers to
	Dead    uint64 // chunks that nothing refers to
	Moved   uint64 // bytes copied out of packs that were mostly dead
	Freed   uint64 // bytes of the packs removed, less what was copied
	Removed uint64 // packs
}

// collector frees what no revision that is kept refers to. It runs beside everything else:
//
//	mark    all chunks of the records at the head, of the files in memory, of what is not committed yet; and, from the
//	        start of the collection on, each chunk that is stored or found to be there already
//	copy    what lives in a pack that is mostly dead goes to another pack
//	commit  one revision moves the index of what was copied and removes that of what is dead
//	remove  the pack's file
//
// A crash leaves a pack too many before the commit, which the next collection finds dead, and a file too many after it,
// which is removed when the store is opened.
type collector struct {
	store *Store
	ctx   context.Context
	end   context.CancelFunc
	kick  chan struct{} // buffered
	wg    sync.WaitGroup

	urgent sync.Mutex // taken before mu by those who wait for space
	mu     sync.Mutex // held by the one collection that runs
}

func newCollector(s *Store) *collector {
	c := &collector{store: s, kick: make(chan struct{}, 1)}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.wg.Add(1)
	go c.run()
	return c
}

func (c *collector) run() {
	defer c.wg.Done()
	for {
		select {
		case <-c.kick:
			if _, err := c.collect(c.ctx, gcDeadShare); err != nil && c.ctx.Err() == nil {
				c.store.log.Warn("collection failed", "err", err)
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// hint starts a collection when enough has been deleted.
func (c *collector) hint() {
	if c.store.space.garbage.Load() < gcGarbage {
		return
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (c *collector) close() {
	c.end()
	c.wg.Wait()
}

// GC collects now, and returns when it is done.
func (s *Store) GC(ctx context.Context) (GCReport, error) {
	report, err := s.collector.collect(ctx, gcDeadShare)
	if err != nil {
		return report, fmt.Errorf("collect: %w", err)
	}
	return report, nil
}

// collectNow collects because space is needed: packs of which little is dead are worth it too.
func (s *Store) collectNow(ctx context.Context) error {
	s.collector.urgent.Lock()
	defer s.collector.urgent.Unlock()
	if s.space.garbage.Load() == 0 {
		return nil // somebody else has just done it
	}
	_, err := s.collector.collect(ctx, gcDeadShare/5)
	return err
}

// collect runs one collection. Packs of which at least share percent is dead are emptied.
func (c *collector) collect(ctx context.Context, share uint64) (report GCReport, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.store
	// What has been deleted is garbage only when that is committed.
	if _, err := s.committer.commit(ctx, request{}); err != nil {
		return report, err
	}
	s.space.garbage.Store(0)
	if err := s.purgeRemoved(ctx); err != nil {
		return report, err
	}
	old, err := s.chunks.startMarking()
	defer s.chunks.stopMarking()
	if err != nil {
		return report, mapError(err)
	}
	live, err := s.mark(ctx)
	if err != nil {
		return report, err
	}
	s.letGoOld()
	packs, err := s.weigh(live, old)
	if err != nil {
		return report, err
	}
	for _, p := range packs {
		report.Live += uint64(len(p.live))
		report.Dead += uint64(len(p.dead))
		if ctx.Err() != nil {
			return report, vfs.ErrInterrupted
		}
		if p.total == 0 || p.deadBytes*100 < p.total*share {
			continue
		}
		if ok, err := s.space.fitsCopy(p.total - p.deadBytes); !ok || err != nil {
			if err != nil {
				return report, err
			}
			continue
		}
		moved, err := s.empty(ctx, p)
		if err != nil {
			return report, err
		}
		report.Moved += moved
		report.Freed += p.total - moved
		report.Removed++
	}
	return report, nil
}

// purgeRemoved removes the records of workspaces that have been removed, where a crash or an error has left some.
func (s *Store) purgeRemoved(ctx context.Context) error {
	list, err := s.Workspaces(ctx)
	if err != nil {
		return err
	}
	known := make(map[workspaceID]bool, len(list))
	for _, w := range list {
		known[workspaceID(w.ID)] = true
	}
	for id := workspaceID(1); id < s.peekWS(); id++ {
		if known[id] || !s.hasRecords(id) {
			continue
		}
		if err := s.purge(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) hasRecords(id workspaceID) (found bool) {
	r := s.reader()
	defer r.Close()
	_ = r.scan(keyOfNode(keyInode, id, 0)[:9], nil, false, func(_, _ []byte) (bool, error) {
		found = true
		return false, nil
	})
	return found
}

// mark returns all chunks that something refers to.
func (s *Store) mark(ctx context.Context) (map[chunk.ID]struct{}, error) {
	live := make(map[chunk.ID]struct{})
	for id := range s.chunks.uncommitted() {
		live[id] = struct{}{}
	}
	for _, w := range s.openWorkspaces() {
		if err := w.markOpen(ctx, live); err != nil {
			return nil, err
		}
	}
	r := s.reader()
	defer r.Close()
	err := r.scan([]byte{keyInode}, nil, true, func(_, value []byte) (bool, error) {
		rec, err := vfs.DecodeInode(value)
		if err != nil {
			return false, err
		}
		return ctx.Err() == nil, s.markBody(ctx, rec.Body, live)
	})
	if err == nil && ctx.Err() != nil {
		err = vfs.ErrInterrupted
	}
	return live, err
}

func (s *Store) markBody(ctx context.Context, b vfs.Body, live map[chunk.ID]struct{}) error {
	switch b.Kind {
	case vfs.BodyExtents:
		entries, err := decodeExtents(b.Data)
		markEntries(entries, live)
		return err
	case vfs.BodyTree:
		root, err := decodeRoot(b.Data)
		if err != nil {
			return err
		}
		get := func(id chunk.ID) ([]byte, error) { return s.chunks.get(ctx, id) }
		return mapError(chunk.WalkTree(root, get, func(id chunk.ID, _ bool) error {
			live[id] = struct{}{}
			return nil
		}))
	}
	return nil
}

func markEntries(entries []chunk.Entry, live map[chunk.ID]struct{}) {
	for _, e := range entries {
		if !e.Hole {
			live[e.ID] = struct{}{}
		}
	}
}

// markOpen marks what the files in memory refer to, which need not be in any record.
func (w *Workspace) markOpen(ctx context.Context, live map[chunk.ID]struct{}) error {
	w.mu.Lock()
	var files []*file
	var stored []vfs.Body
	for _, n := range w.inodes {
		if n.file != nil {
			files = append(files, n.file)
		}
		if n.gone {
			stored = append(stored, n.stored.body) // in no record any more, and perhaps not loaded
		}
	}
	w.mu.Unlock()
	for _, f := range files {
		f.mu.Lock()
		bases := []base{f.base, f.flushed.base, f.saved.base}
		f.mu.Unlock()
		for _, b := range bases {
			markEntries(b.manifest.Entries(), live)
		}
	}
	for _, b := range stored {
		if err := w.store.markBody(ctx, b, live); err != nil {
			return err
		}
	}
	return nil
}

// weighed is a pack and what in it is live and dead.
type weighed struct {
	id               uint32
	live, dead       []indexed
	total, deadBytes uint64
}

type indexed struct {
	id  chunk.ID
	loc pack.Loc
}

// fitsCopy reports whether n bytes of a pack that is to be emptied can be copied. They come out of the reserve when the
// disk is full, and half of that must be left for commits.
func (sp *space) fitsCopy(n uint64) (bool, error) {
	free, err := sp.free()
	return free >= int64(n)+int64(sp.reserve)/2, err
}

// weigh sorts the index by pack, as far as the packs are among old, those with the fewest live bytes first: on a full
// disk each makes room to empty the next. What is not in the index any more is dead weight: a pack's total is its
// file's size.
func (s *Store) weigh(live map[chunk.ID]struct{}, old []pack.Info) ([]*weighed, error) {
	byID := make(map[uint32]*weighed, len(old))
	list := make([]*weighed, 0, len(old))
	for _, p := range old {
		w := &weighed{id: p.ID, total: uint64(p.Size), deadBytes: uint64(p.Size)}
		byID[p.ID] = w
		list = append(list, w)
	}
	r := s.reader()
	defer r.Close()
	err := r.scan([]byte{keyChunk}, nil, true, func(key, value []byte) (bool, error) {
		loc, err := decodeLoc(value)
		if err != nil {
			return false, err
		}
		w := byID[loc.Pack]
		if w == nil {
			return true, nil
		}
		e := indexed{id: chunk.ID(key[1:]), loc: loc}
		if _, ok := live[e.id]; ok {
			w.live = append(w.live, e)
			w.deadBytes -= min(w.deadBytes, uint64(loc.Len))
		} else {
			w.dead = append(w.dead, e)
		}
		return true, nil
	})
	slices.SortFunc(list, func(a, b *weighed) int { return cmp.Compare(a.total-a.deadBytes, b.total-b.deadBytes) })
	return list, err
}

// empty moves what lives in a pack to another one, and removes it. It returns how many bytes it has moved.
func (s *Store) empty(ctx context.Context, p *weighed) (moved uint64, err error) {
	places := make(map[chunk.ID]pack.Loc, len(p.live))
	move := func(e indexed) error {
		codec, plainLen, stored, err := s.packs.Read(nil, e.loc, e.id)
		if err != nil {
			return mapError(err)
		}
		loc, err := s.packs.Append(e.id, codec, plainLen, stored)
		if err != nil {
			return mapError(err)
		}
		places[e.id] = loc
		moved += uint64(loc.Len)
		return nil
	}
	for _, e := range p.live {
		if err := move(e); err != nil {
			return moved, err
		}
	}
	err = s.edit(ctx, func(v *revision) error {
		// From here on a chunk that is dead counts as absent; one that somebody has found since the start is not dead.
		for _, e := range s.chunks.condemn(p.dead) {
			if err := move(e); err != nil {
				s.chunks.reprieve()
				return err
			}
		}
		v.replace(p, places)
		return nil
	})
	s.chunks.reprieve()
	if err != nil {
		return moved, err
	}
	return moved, mapError(s.packs.Remove(p.id))
}

// replace puts the index of an emptied pack right.
func (v *revision) replace(p *weighed, places map[chunk.ID]pack.Loc) {
	for _, list := range [][]indexed{p.live, p.dead} {
		for _, e := range list {
			if loc, ok := places[e.id]; ok {
				v.moved[e.id] = loc
			} else {
				v.removed = append(v.removed, e.id)
			}
		}
	}
	v.emptied = append(v.emptied, p.id)
}

// startMarking makes everything that is stored or found from now on count as live, and returns the packs that take no
// more appends and hold nothing but what is committed. It waits for flushes and commits under way: they may have found
// chunks that no base in memory shows yet.
func (c *chunks) startMarking() ([]pack.Info, error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marked = make(map[chunk.ID]struct{})
	if err := c.store.packs.Seal(); err != nil {
		return nil, err
	}
	uncommitted := make(map[uint32]bool)
	for _, loc := range c.pending {
		uncommitted[loc.Pack] = true
	}
	return slices.DeleteFunc(c.store.packs.Packs(), func(p pack.Info) bool { return uncommitted[p.ID] }), nil
}

func (c *chunks) stopMarking() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marked = nil
}

// condemn makes chunks count as absent, so that whoever needs one stores it again, until reprieve. It returns those
// that have been found meanwhile, which are not condemned.
func (c *chunks) condemn(dead []indexed) (alive []indexed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.condemned = make(map[chunk.ID]struct{}, len(dead))
	for _, e := range dead {
		if _, ok := c.marked[e.id]; ok {
			alive = append(alive, e)
		} else {
			c.condemned[e.id] = struct{}{}
		}
	}
	return alive
}

func (c *chunks) reprieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.condemned = nil
}
