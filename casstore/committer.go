package casstore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// request asks for a commit.
type request struct {
	tree  *Workspace            // nil: all
	ino   vfs.Ino               // of a file whose bytes must be in it, or zero
	exact bool                  // in its record, and not in the journal
	whole bool                  // all bytes must be in it: of the tree, or of all
	edit  func(*revision) error // adds to the revision; its error fails this request only
	push  *pushJob              // carried out alone; it answers by itself
	began time.Time             // of a periodic commit: when its flush did
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
	due    time.Time // when the timer ends, while it is armed
	rested time.Time // when feeds may have the next commit
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
	if !c.armed {
		c.armLocked(time.Now().Add(c.every))
	}
}

// hurry has the clock end early, because somebody waits for what has changed. Called with a tree's lock held.
func (c *committer) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	due := now.Add(feedDelay)
	if due.Before(c.rested) {
		due = c.rested
	}
	if last := now.Add(c.every); last.Before(due) {
		due = last
	}
	if !c.armed || due.Before(c.due) {
		c.armLocked(due)
	}
}

func (c *committer) armLocked(due time.Time) {
	if !c.closed {
		c.armed, c.due = true, due
		c.timer.Reset(time.Until(due))
	}
}

// rest puts the next commit for a feed off by a multiple of what one has taken that began at a time.
func (c *committer) rest(began time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rested = now.Add(feedShare * now.Sub(began))
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
	began := time.Now()
	c.store.flusher.flushDirty()
	c.store.trimTables()
	c.store.maps.trim()
	c.mu.Lock()
	c.armed = false // what is dirty from here on either is in this commit, or begins after its cut and calls soon
	c.mu.Unlock()
	c.enqueue(request{began: began})
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

// commit waits until what r asks for is durable, and returns the revision that holds it. When ctx ends, an edit either
// has not begun and never does, or is waited for: it uses what its caller has.
func (c *committer) commit(ctx context.Context, r request) (vfs.Rev, error) {
	vfs.WillBlock(ctx)
	r.done = make(chan outcome, 1)
	var taken atomic.Bool // by who makes the edit, or by who no longer wants it
	if edit := r.edit; edit != nil {
		r.edit = func(v *revision) error {
			if !taken.CompareAndSwap(false, true) {
				return vfs.ErrInterrupted
			}
			return edit(v)
		}
	}
	if !c.enqueue(r) {
		return 0, vfs.ErrClosed
	}
	var o outcome
	select {
	case o = <-r.done:
	case <-ctx.Done():
		if r.edit == nil || taken.CompareAndSwap(false, true) {
			return 0, vfs.ErrInterrupted
		}
		o = <-r.done
	}
	return o.rev, o.err
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
			if batch[0].push != nil {
				batch[0].push.run()
				continue
			}
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
// head to see what it may do, or is a push, which has a revision of its own.
func (c *committer) take() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	edited := false
	n := slices.IndexFunc(c.queue, func(r request) bool {
		second := edited && r.edit != nil || r.push != nil
		edited = edited || r.edit != nil
		return second
	})
	switch n {
	case -1:
		n = len(c.queue)
	case 0:
		n = 1 // a push
	}
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	return batch
}

func (c *committer) answer(batch []request, rev vfs.Rev, err error) {
	waited := false
	for _, r := range batch {
		if !r.began.IsZero() {
			c.rest(r.began)
		}
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

	push     *pushJob // that it is of, or nil
	admitted bool     // there is room for it
	forced   bool     // it is made for the index, also when nothing else is in it

	snapshots bool // it makes or removes some

	kind     RevisionKind
	of       workspaceID    // that it is about, when it changes none of its records
	loaded   []revisionPart // of workspaces that were loaded
	forked   []newFork
	unforked []workspaceID
	pins     []pin // revisions of workspaces that stay from this revision on, or no longer do

	format uint64        // that has what is in it, or zero when the store's has
	quotas []quotaChange // of open workspaces
	heirs  []quotaHeir   // forks that begin with a quota

	bases map[basisPlace][]byte // of replicas, to what is written there

	promised int64 // what space has set aside for the records that are in it

	start     vfs.Rev                 // of the window from this revision on, or zero when it stays
	history   *historyRecord          // of the history from this revision on, or nil when it stays
	standings map[*Workspace]standing // of the workspaces that are served, where they are another than before
	recents   map[*Workspace]recentRev

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
	v := s.newRevision()
	v.kind = kindOf(batch)
	v.promised = s.space.promised.Load()
	for _, w := range s.openWorkspaces() {
		if c := w.makeCut(); c != nil {
			v.cuts = append(v.cuts, c)
		}
	}
	err := v.make(ctx, batch)
	if err != nil {
		v.undoQuotas()
	}
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

func (s *Store) newRevision() *revision {
	return &revision{
		store: s, rev: s.head() + 1, moved: make(map[chunk.ID]pack.Loc), standings: make(map[*Workspace]standing),
		recents: make(map[*Workspace]recentRev),
	}
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
			r.err = r.tree.flushLarge(ctx, r.ino, r.exact)
		case r.whole:
			for _, w := range s.openWorkspaces() {
				_ = w.flushAll(ctx, w.dirtyFiles()) // whoever needs the bytes gets the error again
			}
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

// flushLarge flushes a file, unless it has so little that the journal will take it and may.
func (w *Workspace) flushLarge(ctx context.Context, ino vfs.Ino, exact bool) error {
	files := w.dirtyFile(ino)
	if !exact && len(files) > 0 && files[0].file.wantsJournal() {
		w.release(files[0])
		return nil
	}
	return w.flushAll(ctx, files)
}

// dirtyFile returns the inode of a file, kept, if it may have dirty bytes.
func (w *Workspace) dirtyFile(ino vfs.Ino) []*inode {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.inodes[ino]
	if n == nil || n.file == nil || n.gen == 0 || n.dead {
		return nil
	}
	n.refs++
	return []*inode{n}
}

func (v *revision) make(ctx context.Context, batch []request) error {
	s := v.store
	for i := range batch {
		if edit := batch[i].edit; edit != nil && batch[i].err == nil {
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
	if len(v.cuts) == 0 && len(v.kvs) == 0 && len(v.emptied) == 0 && !v.forced {
		s.space.written(v.promised) // by what did not happen in the end
		return nil
	}
	return v.write(old)
}

// waitsFor says what a batch needs of each file: all that it was asked for, or that a rename has moved; else, in a
// periodic commit, little, and in one for an fsync nothing but what goes into a record.
func waitsFor(w *Workspace, batch []request) func(*snapshot) need {
	rest := int64(inlineDirty)
	inos, exact := make(map[vfs.Ino]bool), make(map[vfs.Ino]bool)
	for _, r := range batch {
		switch {
		case r.whole && (r.tree == w || r.tree == nil):
			rest = math.MaxInt64
		case r.tree == nil:
			rest = max(rest, lagLimit)
		case r.tree == w:
			inos[r.ino] = true
			exact[r.ino] = exact[r.ino] || r.exact
		}
	}
	return func(s *snapshot) need {
		asked := inos[s.attr.Ino]
		if s.urgent || asked {
			return need{bytes: math.MaxInt64, journal: asked && !s.urgent && !exact[s.attr.Ino] && rest < math.MaxInt64}
		}
		return need{bytes: rest}
	}
}

// write makes the revision durable: bytes first, then the names, then the head. Each step reaches the disk before the
// next one begins. old is a reader of the head.
func (v *revision) write(old *reader) error {
	s := v.store
	if !v.admitted {
		if err := s.space.room(v.size()); err != nil {
			return err
		}
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
	if err := v.hide(old); err != nil {
		return err
	}
	v.slideWindow()
	v.slideHistory()
	if err := v.forgetRevisions(old); err != nil {
		return err
	}
	if err := v.sumUp(old); err != nil {
		return err
	}
	if err := v.track(old); err != nil {
		return err
	}
	if v.push != nil {
		if err := v.push.remember(v); err != nil {
			return err
		}
	}
	v.addBases()
	v.expectBases()
	if err := v.tally(old); err != nil {
		return err
	}
	v.addFormat()
	v.head = headRecord{rev: v.rev, ino: s.peekIno(), nextWS: s.peekWS()}
	all := v.all()
	if err := s.apply(uint64(v.rev), all, v.head); err != nil {
		return err
	}
	s.space.committedRecords(all)
	s.maps.committed()
	s.compactors.committed()
	if err := s.witness.write(v.rev); err != nil {
		s.log.Warn("HEAD not written", "err", err)
	}
	s.packEnds = ends
	s.space.written(v.promised)
	v.publish() // before its index leaves memory: somebody looks for a chunk in one or the other
	v.dropBases()
	v.applyQuotas()
	v.note(all)
	for _, c := range v.cuts {
		s.changed[c.tree.id] = v.rev
	}
	if v.rev%discardEvery == 0 {
		s.letGoOld()
	}
	s.chunks.committed(v.index)
	if v.push != nil {
		v.push.committed()
	}
	return nil
}

// needs has the store be of a version of the format, from the revision on.
func (v *revision) needs(format uint64) {
	if v.store.format < format {
		v.format = max(v.format, format)
	}
}

func (v *revision) addFormat() {
	if v.format > 0 {
		rec := formatRecord{version: v.format, epoch: v.store.epoch}
		v.kvs = append(v.kvs, kv{key: []byte{keyFormat}, value: rec.encode()})
	}
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
	for _, c := range v.cuts {
		all = append(all, c.kvs...)
	}
	rec := v.record()
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
