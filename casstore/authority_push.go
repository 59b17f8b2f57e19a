package casstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// pushJob is a push on its way into the live tree and into a revision of its own.
//
//	caller     look for the chunks that the records refer to            (reads packs; nothing waits for it)
//	committer  known already? answer as before
//	           CheckPush against the head                               (reads Badger)
//	           has the live tree changed where the check has looked?    commit that, and check again
//	           put the records into the live tree                       (the tree's lock, once, for all of them)
//	           write the revision: the records, and that the push was applied
//
// The committer's goroutine makes all revisions, so the head stands still under a check. What is dirty elsewhere in the
// tree stays dirty, and is not in the push's revision: a mirror that was at the revision before has all of the new one.
type pushJob struct {
	tree   *Workspace
	peer   vfs.PeerID
	push   *vfs.Push
	sum    vfs.PushSum
	origin any

	taken atomic.Bool // by the committer, or by a caller that no longer waits
	done  chan error

	noRoom error // what the disk says

	kind     RevisionKind // zero for a push
	incoming *Incoming    // of a replica that takes over what its authority has; the rest of the push is nothing to it

	// Of the search for chunks:
	marking   uint64                // how many collections had begun
	chunks    map[chunk.ID]struct{} // that the records refer to and that are there
	missing   []chunk.ID
	chunksErr error

	applied appliedPush // once its revision is being written
	outcome vfs.Outcome
}

var (
	// errMoved says that the live tree has changed where a push was checked.
	errMoved = errors.New("the tree has moved on")
	// errMarking says that the collector may not know of the chunks that a push was found to refer to.
	errMarking = errors.New("a collection has begun")
)

// Push implements vfs.Authority. ErrBusy when the tree keeps changing where the push does.
func (a *Authority) Push(ctx context.Context, peer vfs.PeerID, p vfs.Push) (o vfs.Outcome, err error) {
	err = a.call(ctx, "push", func() error {
		vfs.WillBlock(ctx)
		var noRoom error // which is no reason not to answer what was applied before
		if cost := pushCost(&p); cost > 0 {
			noRoom = a.tree.store.space.admit(ctx, cost)
		}
		sum := p.Sum()
		for {
			j := &pushJob{
				tree: a.tree, peer: peer, push: &p, sum: sum, origin: vfs.OriginOf(ctx), done: make(chan error, 1), noRoom: noRoom,
			}
			if err := j.findChunks(func() error { return a.tree.alive(ctx) }); err != nil {
				return err
			}
			err := a.tree.store.committer.push(ctx, j)
			if !errors.Is(err, errMarking) {
				o = j.outcome
				return err
			}
		}
	})
	if err != nil {
		return vfs.Outcome{}, err
	}
	return o, nil
}

// pushCost is what a push may need on disk. What removes more than it makes needs nothing, though it changes directories.
func pushCost(p *vfs.Push) (n int) {
	for i := range p.Records {
		if r := &p.Records[i]; r.Value != nil {
			n += recordCost + len(r.Value)
		} else {
			n -= recordCost
		}
	}
	return max(0, n)
}

// push has the committer carry out a push, and waits until it has: the records belong to the caller.
func (c *committer) push(ctx context.Context, j *pushJob) error {
	if !c.enqueue(request{push: j}) {
		return vfs.ErrClosed
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.taken.CompareAndSwap(false, true) {
			return vfs.ErrInterrupted
		}
		return <-j.done
	}
}

// run carries a push out, on the committer's goroutine.
func (j *pushJob) run() {
	if !j.taken.CompareAndSwap(false, true) {
		return
	}
	err := j.carryOut()
	s := j.tree.store
	j.tree.reap()
	j.tree.retire()
	s.collector.hint()
	j.done <- err
}

func (j *pushJob) carryOut() error {
	s := j.tree.store
	if err := s.failure(); err != nil {
		return err
	}
	if j.incoming == nil {
		if known, err := j.remembered(); known || err != nil {
			return err
		}
	}
	for try := range pushTries {
		blocking, err := j.try(try > 0)
		if !errors.Is(err, errMoved) {
			return err
		}
		if err := j.tree.commitFor(blocking); err != nil {
			return err
		}
	}
	return fmt.Errorf("the tree has changed %d times where the push does: %w", pushTries, vfs.ErrBusy)
}

// commitFor makes a revision of what is dirty, with all bytes of some files in their records.
func (w *Workspace) commitFor(files []vfs.Ino) error {
	batch := []request{{tree: w}}
	for _, ino := range files {
		batch = append(batch, request{tree: w, ino: ino, exact: true})
	}
	_, err := w.store.makeRevision(batch)
	for _, r := range batch {
		err = errors.Join(err, r.err)
	}
	return err
}

// try checks a push and applies it. With errMoved it returns the files that have changed: nothing is done. fresh says
// that everything that was dirty when the push came has a revision: then the head is a state of the live tree from
// meanwhile, and a push that does not fit it is answered from it.
func (j *pushJob) try(fresh bool) (blocking []vfs.Ino, err error) {
	s := j.tree.store
	s.chunks.gate.RLock()
	defer s.chunks.gate.RUnlock()
	if j.incoming == nil && s.collector.markings.Load() != j.marking {
		return nil, errMarking
	}
	r := s.reader()
	defer r.Close()
	if j.incoming != nil && len(j.incoming.Raw) > 0 {
		return nil, j.applyRaw(r)
	}
	view := newPushView(j, r)
	stale, err := j.check(view)
	if err == nil && len(stale) == 0 {
		err = j.chunksErr
	}
	if err == nil && len(stale) == 0 && len(j.missing) == 0 {
		return j.apply(r, view)
	}
	if !fresh {
		if blocking, ok := j.tree.standsIn(view); ok {
			return blocking, errMoved
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, j.refuse(r, stale)
}

func (j *pushJob) check(view *pushView) (stale []vfs.Record, err error) {
	if j.incoming != nil && j.incoming.Mending {
		return vfs.CheckMending(view, j.push)
	}
	return vfs.CheckPush(view, j.push)
}

// refuse answers a push that does not fit.
func (j *pushJob) refuse(r *reader, stale []vfs.Record) error {
	p, _ := j.tree.position()
	for i := range stale {
		rec, err := r.record(j.tree.id, stale[i].Key)
		if err != nil {
			return err
		}
		stale[i].Rev = min(rec.Rev, p.Rev)
	}
	j.outcome = vfs.Outcome{Position: p, Stale: stale}
	if len(stale) == 0 {
		j.outcome.Missing = j.missing
	}
	return nil
}

// apply makes a checked push part of the live tree, and then a revision.
func (j *pushJob) apply(r *reader, view *pushView) ([]vfs.Ino, error) {
	s := j.tree.store
	v := s.newRevision()
	v.push, v.forced, v.admitted = j, true, true
	v.kind = cmp.Or(j.kind, RevisionPush)
	v.index = s.chunks.uncommitted()
	plan := newPushPlan(j, view)
	if len(plan.kvs) == 0 {
		return nil, v.write(r) // that it was applied
	}
	if err := cmp.Or(j.noRoom, s.space.room(v.size()+plan.size())); err != nil {
		return nil, err
	}
	defer plan.release()
	err := plan.load(r)
	if err == nil {
		err = plan.quota()
	}
	if err != nil {
		return nil, err
	}
	c, blocking, err := plan.carryOut(view)
	if err != nil {
		return blocking, err
	}
	v.cuts = []*cut{c}
	if err := v.write(r); err != nil {
		c.undo() // nothing is written any more until the store is opened again
		return nil, err
	}
	c.finish()
	s.space.deleted(min(plan.replaced, s.guests.settle(j.chunks)))
	return nil, nil
}
