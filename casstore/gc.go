package casstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// GCReport says what a collection has done.
type GCReport struct {
	Live    uint64 // chunks that something refers to
	Dead    uint64 // chunks that nothing refers to
	Moved   uint64 // bytes copied out of packs that were emptied
	Freed   uint64 // bytes of the packs removed, less what was copied
	Removed uint64 // packs

	// Unreadable is how many manifests there are that cannot be read, so that nobody knows their chunks, and Spared how many bytes
	// of packs stay for that, whatever is in them (gc_spared.go). Check names the files.
	Unreadable uint64
	Spared     uint64
}

// collector frees what no revision that is kept refers to. It runs beside everything else:
//
//	mark    all chunks of the records at the head and at every revision that is kept, of the files in memory, of what is not committed yet, of peers that
//	        have written them for a push to come; and, from the
//	        start of the collection on, each chunk that is stored or found to be there already
//	copy    what lives in packs that are mostly dead goes to others
//	commit  one revision moves the index of what was copied and removes that of what is dead
//	remove  the packs' files
//
// A crash leaves what was copied before the commit, which the next collection finds dead, and files too many after it,
// which are removed when the store is opened. Writers that are faster than all that are slowed down (gc_pace.go).
type collector struct {
	store *Store
	ctx   context.Context
	end   context.CancelFunc
	kick  chan struct{} // buffered
	wg    sync.WaitGroup

	markings atomic.Uint64 // how many collections have begun to mark

	headThen atomic.Uint64 // the head when the last one did

	pacer pacer

	// passed is how many dead bytes the last collection has left in packs that would be worth emptying for want of space.
	passed atomic.Uint64

	urgent turn            // taken before turn by those who wait for space
	turn   turn            // of the one collection that runs
	hurt   map[uint32]bool // packs that could not be emptied because they are damaged; guarded by turn
	spared spared          // guarded by turn
	busy   atomic.Bool
}

func newCollector(s *Store) *collector {
	c := &collector{
		store: s, kick: make(chan struct{}, 1), urgent: newTurn(), turn: newTurn(), hurt: make(map[uint32]bool),
	}
	c.pacer.kept.Store(s.packBytes())
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
			if _, err := c.collect(c.ctx, c.unasked()); err != nil && c.ctx.Err() == nil {
				c.store.log.Warn("collection failed", "err", err)
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// hint starts a collection when enough has been deleted.
func (c *collector) hint() {
	if !c.due() {
		return
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// due reports whether a collection is worth it.
func (c *collector) due() bool {
	if c.store.replicas.any.Load() {
		return c.store.overCache() > 0
	}
	return c.store.space.garbage.Load() >= c.pacer.step() || c.historyPassed()
}

func (c *collector) close() {
	c.end()
	c.wg.Wait()
}

// GC collects now, and returns when it is done.
func (s *Store) GC(ctx context.Context) (GCReport, error) {
	report, err := s.collector.collect(ctx, s.collector.asked())
	if err != nil {
		return report, fmt.Errorf("collect: %w", err)
	}
	return report, nil
}

// mayFree reports whether a collection, or waiting for the one that runs, could make room.
func (c *collector) mayFree() bool {
	sp := c.store.space
	return c.busy.Load() || sp.garbage.Load() > 0 || sp.inHistory.Load() > 0 || c.passed.Load() > 0 ||
		c.store.replicas.any.Load()
}

// collectNow collects because space is needed for n bytes: packs of which little is dead are worth it too.
func (s *Store) collectNow(ctx context.Context, n int) error {
	if err := s.collector.urgent.take(ctx); err != nil {
		return err
	}
	defer s.collector.urgent.give()
	if err := s.collector.await(ctx); err != nil {
		return err
	}
	if ok, err := s.space.ask(n); ok || err != nil || !s.collector.mayFree() {
		return err // somebody else has just done it
	}
	if _, err := s.shortenHistory(ctx, true); err != nil {
		return err
	}
	s.space.inHistory.Store(0)
	_, err := s.collector.collect(ctx, aim{worth: s.space.worthNow})
	return err
}

// await returns when no collection is running that was when it was called.
func (c *collector) await(ctx context.Context) error {
	err := c.turn.take(ctx)
	if err == nil {
		c.turn.give()
	}
	return err
}

// aim says which packs a collection empties, and how many bytes it may copy for one revision.
type aim struct {
	worth  func(*weighed) bool
	atOnce uint64
}

// unasked is for a collection that nobody waits for, and asked for one that somebody has asked for.
func (c *collector) unasked() aim { return aim{c.fuller(gcDeadShare), gcAtOnce} }
func (c *collector) asked() aim   { return aim{c.fuller(gcAskedShare), gcAtOnce} }

// fuller reports whether a pack is worth it of which so much is dead, in percent. In a cache none is unless that is too large.
func (c *collector) fuller(share uint64) func(*weighed) bool {
	return func(p *weighed) bool {
		return p.deadShare() >= share && (!c.store.replicas.any.Load() || c.store.overCache() > 0)
	}
}

// worthNow reports whether a pack is to be emptied because space is needed. The fewer bytes of a pack are dead, the more
// is copied for each that is won, so those with very few are emptied only until there is room to go on with.
func (sp *space) worthNow(p *weighed) bool {
	if share := p.deadShare(); share >= gcUrgentShare || share < gcLeastShare {
		return share >= gcUrgentShare
	}
	ok, err := sp.ask(spaceSlack)
	return err == nil && !ok
}

// collect runs one collection, which empties the packs that are worth it.
func (c *collector) collect(ctx context.Context, aim aim) (report GCReport, err error) {
	if err := c.turn.take(ctx); err != nil {
		return report, err
	}
	defer c.turn.give()
	c.busy.Store(true)
	defer c.busy.Store(false)
	s := c.store
	// What has been deleted is garbage only when that is committed.
	if err := s.edit(ctx, func(v *revision) error {
		// What was fetched is in an index in memory, where it counts as live; and history may have passed since the last commit.
		v.forced = s.replicas.any.Load() || s.isHistoryLong()
		return nil
	}); err != nil {
		return report, err
	}
	c.pacer.collecting.Store(s.space.garbage.Swap(0))
	defer func() {
		c.pacer.collecting.Store(0)
		c.look()
	}()
	if err := s.purgeRemoved(ctx); err != nil {
		return report, err
	}
	c.headThen.Store(uint64(s.head()))
	old, err := s.chunks.startMarking()
	defer s.chunks.stopMarking()
	if err != nil {
		return report, mapError(err)
	}
	m, packs, err := s.markAndWeigh(ctx, old)
	if err != nil {
		return report, err
	}
	report.Unreadable, report.Spared = uint64(len(m.unreadable)), c.spared.bytes
	err = c.emptyAll(ctx, m, packs, aim, &report)
	s.flattener.hint() // it may be time for old layers
	return report, err
}

// emptyAll empties the packs that are worth it and whose copy fits, and remembers what it has passed over.
func (c *collector) emptyAll(ctx context.Context, m *marked, packs []*weighed, aim aim, report *GCReport) error {
	var passed, kept uint64
	next := emptying{store: c.store, hurt: c.hurt, atOnce: aim.atOnce, report: report}
	for i, p := range packs {
		report.Live += p.liveChunks
		report.Dead += p.deadChunks
		kept += p.liveBytes()
		if ctx.Err() != nil {
			return vfs.ErrInterrupted
		}
		if !aim.worth(p) {
			if p.deadShare() >= gcLeastShare {
				passed += p.deadBytes
			}
			continue
		}
		if c.hurt[p.id] {
			continue
		}
		if p.live == nil && p.dead == nil {
			if err := next.empty(ctx); err != nil { // before there is more to keep in memory
				return err
			}
			if err := c.store.list(m, packs[i:], aim.worth); err != nil {
				return err
			}
		}
		if ok, err := next.room(ctx, p); err != nil {
			return err
		} else if ok {
			next.add(p)
		}
	}
	c.passed.Store(passed)
	c.pacer.kept.Store(int64(kept + c.spared.bytes))
	return next.empty(ctx)
}

// purgeRemoved removes the records of workspaces that have been removed, where a crash or an error has left some.
func (s *Store) purgeRemoved(ctx context.Context) error {
	ids := s.withRecords()  // before the lists, which then have them all, but for what has been removed
	loads, err := s.loads() // before the other list, to which each of them goes when it is published
	if err != nil {
		return err
	}
	known := s.usedLayers() // likewise
	list, err := s.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, id := range loads {
		known[id] = true
	}
	for _, w := range list {
		known[workspaceID(w.ID)] = true
	}
	for _, id := range ids {
		if known[id] {
			continue
		}
		if err := s.purge(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// withRecords returns the workspaces that have records of their own. It skips from one to the next.
func (s *Store) withRecords() (ids []workspaceID) {
	r := s.reader()
	defer r.Close()
	for _, kind := range inheritedKinds {
		opt := badger.DefaultIteratorOptions
		opt.PrefetchValues = false
		opt.Prefix = []byte{kind}
		it := r.txn.NewIterator(opt)
		for it.Rewind(); it.Valid(); {
			id := workspaceOfKey(it.Item().Key())
			ids = append(ids, id)
			it.Seek(keyOfNode(kind, id+1, 0))
		}
		it.Close()
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (s *Store) hasRecords(id workspaceID) (found bool) {
	r := s.reader()
	defer r.Close()
	for _, kind := range inheritedKinds {
		_ = r.scanOwn(keyOfNode(kind, id, 0)[:9], func(*badger.Item) (bool, error) {
			found = true
			return false, nil
		})
	}
	return found
}

// fitsCopy reports whether n bytes of a pack that is to be emptied can be copied. They come out of the reserve when the
// disk is full, and half of that must be left for commits.
func (sp *space) fitsCopy(n uint64) (bool, error) {
	free, err := sp.free()
	return free >= int64(n)+int64(sp.reserve)/2, err
}

// startMarking makes everything that is stored or found from now on count as live, and returns the packs that take no
// more appends and hold nothing but what is committed. It waits for flushes and commits under way: they may have found
// chunks that no base in memory shows yet.
func (c *chunks) startMarking() ([]pack.Info, error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marked = make(idSet)
	c.store.collector.markings.Add(1)
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
	if c.condemned == nil {
		c.condemned = make(map[chunk.ID]struct{}, len(dead))
	}
	for _, e := range dead {
		if c.marked.has(e.id) {
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
