package casstore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// request asks for a commit.
type request struct {
	tree  *Workspace            // nil: all
	ino   vfs.Ino               // of a file whose bytes must be in it, or zero
	whole bool                  // all bytes must be in it
	edit  func(*revision) error // adds to the revision; its error fails this request only
	done  chan outcome
	err   error // of edit
}

type outcome struct {
	rev vfs.Rev
	err error
}

// committer makes revisions, one after the other, from one goroutine. All requests that have come while one was made
// are answered by the next, so fsyncs that wait share a write to disk.
type committer struct {
	store *Store
	every time.Duration
	wake  chan struct{} // buffered: something is in queue
	stop  chan struct{}
	ended chan struct{}

	timer *time.Timer    // runs while something is dirty; guarded by mu
	clock sync.WaitGroup // calls of periodic

	mu     sync.Mutex
	queue  []request
	armed  bool
	closed bool
}

func newCommitter(s *Store, every time.Duration) *committer {
	c := &committer{
		store: s, every: every,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	c.timer = time.AfterFunc(time.Hour, c.periodic)
	c.timer.Stop()
	go c.run()
	return c
}

// soon starts the clock of the next periodic commit, if it does not run. Called with a tree's lock held.
func (c *committer) soon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed && !c.closed {
		c.armed = true
		c.timer.Reset(c.every)
	}
}

// now asks for a commit, unless one is asked for already.
func (c *committer) now() {
	c.mu.Lock()
	asked := len(c.queue) > 0
	c.mu.Unlock()
	if !asked {
		c.enqueue(request{})
	}
}

// periodic runs when the clock has. It flushes before it asks for the commit, so that an fsync that comes meanwhile does
// not wait for that.
func (c *committer) periodic() {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.clock.Add(1)
	}
	c.mu.Unlock()
	if closed {
		return
	}
	defer c.clock.Done()
	c.store.flusher.flushDirty()
	c.mu.Lock()
	c.armed = false // what is dirty from here on either is in this commit, or begins after its cut and calls soon
	c.mu.Unlock()
	c.enqueue(request{})
}

// enqueue reports whether the request will be answered.
func (c *committer) enqueue(r request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.queue = append(c.queue, r)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return true
}

// commit waits until what r asks for is durable, and returns the revision that holds it.
func (c *committer) commit(ctx context.Context, r request) (vfs.Rev, error) {
	vfs.WillBlock(ctx)
	r.done = make(chan outcome, 1)
	if !c.enqueue(r) {
		return 0, vfs.ErrClosed
	}
	select {
	case o := <-r.done:
		return o.rev, o.err
	case <-ctx.Done():
		return 0, vfs.ErrInterrupted
	}
}

// close answers what has been asked and ends. What is dirty then stays so: the store commits before it closes.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.timer.Stop()
	c.mu.Unlock()
	c.clock.Wait()
	close(c.stop)
	<-c.ended
}

func (c *committer) run() {
	defer close(c.ended)
	for stopping := false; ; {
		if batch := c.take(); len(batch) > 0 {
			rev, err := c.store.makeRevision(batch)
			c.answer(batch, rev, err)
			continue
		}
		if stopping {
			return
		}
		select {
		case <-c.wake:
		case <-c.stop:
			stopping = true
		}
	}
}

// take returns what the next revision is to answer. It has at most one edit, because each looks at the records of the
// head to see what it may do.
func (c *committer) take() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	edited := false
	n := slices.IndexFunc(c.queue, func(r request) bool {
		second := edited && r.edit != nil
		edited = edited || r.edit != nil
		return second
	})
	if n < 0 {
		n = len(c.queue)
	}
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	return batch
}

func (c *committer) answer(batch []request, rev vfs.Rev, err error) {
	waited := false
	for _, r := range batch {
		if r.done != nil {
			waited = true
			r.done <- outcome{rev, cmp.Or(err, r.err)}
		}
	}
	if err == nil {
		return
	}
	if !waited {
		c.store.log.Error("commit failed; it will be tried again", "err", err)
	}
	c.soon()
}

// revision is a commit under way.
type revision struct {
	store *Store
	rev   vfs.Rev
	cuts  []*cut
	kvs   []kv // beside those of the cuts
	index map[chunk.ID]pack.Loc
	head  headRecord

	promised int64 // what space has set aside for the records that are in it

	// What the collector changes in the index.
	moved   map[chunk.ID]pack.Loc
	removed []chunk.ID
	emptied []uint32
}

// makeRevision commits what a batch of requests asks for, and returns the head: the one there was when nothing has
// changed.
func (s *Store) makeRevision(batch []request) (vfs.Rev, error) {
	if err := s.failure(); err != nil {
		return 0, err
	}
	s.chunks.gate.RLock()
	defer s.chunks.gate.RUnlock()
	ctx := context.Background()
	s.flushAhead(ctx, batch)
	v := &revision{store: s, rev: s.head() + 1, promised: s.space.promised.Load(), moved: make(map[chunk.ID]pack.Loc)}
	for _, w := range s.openWorkspaces() {
		if c := w.makeCut(); c != nil {
			v.cuts = append(v.cuts, c)
		}
	}
	err := v.make(ctx, batch)
	for _, c := range v.cuts {
		if err != nil {
			c.undo()
		} else {
			c.finish()
		}
		c.tree.reap()
	}
	for _, w := range s.openWorkspaces() {
		w.retire() // if its last user went while it still had something to commit
	}
	s.collector.hint()
	return s.head(), err
}

// flushAhead flushes what the cut will need before it is made, so that little is left to do after it. An error is that
// of the request which needs the bytes.
func (s *Store) flushAhead(ctx context.Context, batch []request) {
	for i := range batch {
		r := &batch[i]
		switch {
		case r.tree != nil && r.whole:
			r.err = r.tree.flushAll(ctx, r.tree.dirtyFiles())
		case r.tree != nil && r.ino != 0:
			r.err = r.tree.flushAll(ctx, r.tree.dirtyFile(r.ino))
		}
	}
}

const maxGen = 1<<64 - 1

// flushAll flushes files and releases them. It goes on after an error: the first is returned.
func (w *Workspace) flushAll(ctx context.Context, files []*inode) (err error) {
	for _, n := range files {
		if ferr := w.flush(ctx, n, n.file, maxGen); err == nil {
			err = ferr
		}
		w.release(n)
	}
	return err
}

// dirtyFile returns the inode of a file, kept, if it may have dirty bytes.
func (w *Workspace) dirtyFile(ino vfs.Ino) []*inode {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.inodes[ino]
	if n == nil || n.file == nil || n.gen == 0 {
		return nil
	}
	n.refs++
	return []*inode{n}
}

func (v *revision) make(ctx context.Context, batch []request) error {
	s := v.store
	for i := range batch {
		if edit := batch[i].edit; edit != nil {
			batch[i].err = edit(v)
		}
	}
	old := s.reader()
	defer old.Close()
	for _, c := range v.cuts {
		c.capture()
		if err := c.settleData(ctx, waitsFor(c.tree, batch)); err != nil {
			return err
		}
		if err := c.encode(old); err != nil {
			return err
		}
	}
	v.index = s.chunks.uncommitted()
	if len(v.cuts) == 0 && len(v.kvs) == 0 && len(v.emptied) == 0 {
		s.space.written(v.promised) // by what did not happen in the end
		return nil
	}
	return v.write()
}

// waitsFor says how many dirty bytes of each file a batch waits for: all that it was asked for, or that a rename has
// moved; else, in a periodic commit, little, and in one for an fsync nothing but what goes into a record.
func waitsFor(w *Workspace, batch []request) func(*snapshot) int64 {
	rest := int64(inlineDirty)
	inos := make(map[vfs.Ino]bool)
	for _, r := range batch {
		switch {
		case r.tree == w && r.whole:
			rest = math.MaxInt64
		case r.tree == nil:
			rest = max(rest, lagLimit)
		case r.tree == w:
			inos[r.ino] = true
		}
	}
	return func(s *snapshot) int64 {
		if s.urgent || inos[s.attr.Ino] {
			return math.MaxInt64
		}
		return rest
	}
}

// write makes the revision durable: bytes first, then the names, then the head. Each step reaches the disk before the
// next one begins.
func (v *revision) write() error {
	s := v.store
	if err := s.space.room(v.size()); err != nil {
		return err
	}
	if err := s.hook("sync packs"); err != nil {
		return err
	}
	if err := s.packs.Sync(); err != nil {
		return s.fail(fmt.Errorf("sync packs: %w", mapError(err)))
	}
	ends := s.packs.Ends()
	for _, p := range v.emptied {
		s.emptied[p] = struct{}{} // for good: its file stays for a moment, and commits that come first must not name it
	}
	for p := range s.emptied {
		delete(ends, p)
	}
	v.addIndex(ends)
	v.head = headRecord{rev: v.rev, ino: s.peekIno(), nextWS: s.peekWS()}
	all := v.all()
	if err := s.apply(uint64(v.rev), all, v.head); err != nil {
		return err
	}
	s.space.committedRecords(all)
	if err := s.witness.write(v.rev); err != nil {
		s.log.Warn("HEAD not written", "err", err)
	}
	s.packEnds = ends
	s.space.written(v.promised)
	s.publish(v.rev) // before its index leaves memory: somebody looks for a chunk in one or the other
	if v.rev%discardEvery == 0 {
		s.letGoOld()
	}
	s.chunks.committed(v.index)
	return nil
}

// size is about how many bytes the revision writes to Badger.
func (v *revision) size() int {
	n := len(v.index) * 64
	for _, c := range v.cuts {
		for _, e := range c.kvs {
			n += len(e.key) + len(e.value)
		}
	}
	return n
}

// addIndex adds the index of the chunks that are new or moved, takes away that of those that are gone, and says how far
// the packs reach. A key comes once: two values of one key at one timestamp would have no order.
func (v *revision) addIndex(ends map[uint32]uint32) {
	for id, loc := range v.moved {
		if _, again := v.index[id]; !again {
			v.kvs = append(v.kvs, kv{key: keyOfChunk(id), value: encodeLoc(loc)})
		}
	}
	for _, id := range v.removed {
		if _, again := v.index[id]; !again {
			v.kvs = append(v.kvs, kv{key: keyOfChunk(id)})
		}
	}
	for id, loc := range v.index {
		v.kvs = append(v.kvs, kv{key: keyOfChunk(id), value: encodeLoc(loc)})
	}
	for p, end := range ends {
		if v.store.packEnds[p] != end {
			v.kvs = append(v.kvs, kv{key: keyOfPack(p), value: uvarint(uint64(end))})
		}
	}
	for _, p := range v.emptied {
		v.kvs = append(v.kvs, kv{key: keyOfPack(p)})
	}
}

// all returns everything that the revision writes, but the head.
func (v *revision) all() []kv {
	all := v.kvs
	rec := revisionRecord{time: v.store.now()}
	for i, c := range v.cuts {
		all = append(all, c.kvs...)
		rec.records += c.records
		if rec.ws = c.tree.id; i > 0 {
			rec.ws = 0
		}
	}
	return append(all, kv{key: keyOfRevision(v.rev), value: rec.encode()})
}

// apply writes keys at a timestamp, and the head last. What fits is one transaction of Badger, atomic by itself. More
// is several, in order, and whatever a crash leaves above the old head is undone when the store is opened: see recover.
func (s *Store) apply(ts uint64, kvs []kv, head headRecord) error {
	kvs = append(kvs, kv{key: []byte{keyHead}, value: head.encode()})
	for len(kvs) > 0 {
		if err := s.hook("write"); err != nil {
			return err
		}
		n, err := s.writeSome(ts, kvs)
		if err != nil {
			return s.fail(fmt.Errorf("write revision %d: %w", ts, mapError(err)))
		}
		kvs = kvs[n:]
	}
	return nil
}
