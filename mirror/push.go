package mirror

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// pushAlways pushes what is committed, as it is.
func (m *Mirror) pushAlways() {
	seen := vfs.Rev(0)
	for pause := retryFirst; m.ctx.Err() == nil; {
		more, err := m.pushOnce()
		switch {
		case err != nil && m.ctx.Err() != nil:
			return
		case err != nil:
			m.log.Warn("push failed", "err", err, "again in", pause)
			m.change(func() { m.refuse = refusal(err) })
			m.pause(pause)
			pause = min(2*pause, retryLast)
			continue
		case more:
			pause = retryFirst
			continue
		}
		pause = retryFirst
		if seen, err = m.awaitEdits(seen); err != nil && m.ctx.Err() == nil {
			m.log.Error("the local store is not to be waited for", "err", err)
			m.pause(retryLast)
		}
	}
}

// refusal is what a failed push has to say to those who wait for it; most failures are to be waited out.
func refusal(err error) error {
	for _, final := range []error{vfs.ErrNoSpace, vfs.ErrQuota, vfs.ErrReadOnly, syncwire.ErrRights, syncwire.ErrToken} {
		if errors.Is(err, final) {
			return err
		}
	}
	return nil
}

// awaitEdits waits until there is a local revision after one, or something else to be pushed.
func (m *Mirror) awaitEdits(seen vfs.Rev) (vfs.Rev, error) {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	kicked := make(chan struct{})
	go func() {
		defer close(kicked)
		select {
		case <-m.kick:
			cancel()
		case <-ctx.Done():
		}
	}()
	p, err := m.ws.Authority().Wait(ctx, seen)
	cancel()
	<-kicked
	if err != nil {
		return seen, nil // it was kicked, or is closed
	}
	return p.Rev, nil
}

// kickPush has the push loop look again.
func (m *Mirror) kickPush() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// pushOnce makes one push, and reports whether there may be more to do.
func (m *Mirror) pushOnce() (more bool, err error) {
	f, err := m.prepare()
	if f == nil || err != nil {
		return false, err
	}
	o, err := m.send(f)
	var nowhere *nowhereError
	switch {
	case errors.As(err, &nowhere):
		return false, errors.Join(err, m.abandon(f, nowhere))
	case err == nil && o.Applied():
		return true, m.applied(f, o)
	case err == nil:
		return true, m.rejected(f, o)
	case spoiled(err):
		m.log.Error("the authority does not take a push; comparing everything", "err", err)
		return false, errors.Join(err, m.refused(f, err)) // and then it is tried again, after a while
	}
	return false, err
}

// refused forgets a push that can never be applied, and has everything compared. When a number in it is not the mirror's, the
// authority does not know what it has leased: then the comparison is one with another life of its store. That says
// nothing of a push which was made for the life before.
func (m *Mirror) refused(f *flight, err error) error {
	if err := m.turn.take(m.ctx); err != nil {
		return err
	}
	defer m.turn.giveBack()
	if m.flying != f {
		return nil
	}
	m.letGo()
	if f.void {
		return nil
	}
	m.doubt = m.doubt || errors.Is(err, vfs.ErrNotPermitted)
	return errors.Join(m.replica.Note(m.ctx, f.forget()...), m.compareAll())
}

// nowhereError is of chunks that neither the mirror nor the authority has.
type nowhereError struct{ ids map[chunk.ID]struct{} }

func (e *nowhereError) Error() string { return fmt.Sprintf("%d chunks are nowhere", len(e.ids)) }

func (e *nowhereError) Unwrap() error { return vfs.ErrCorrupt }

// abandon forgets a push that can never be applied because bytes are nowhere, and ends the edits of the files that they are of:
// what is left of each becomes a conflicting copy. All else is pushed.
func (m *Mirror) abandon(f *flight, nowhere *nowhereError) error {
	err := m.drop(f)
	if err != nil {
		return err
	}
	if err = m.turn.take(m.ctx); err != nil {
		return err
	}
	p, _ := m.position()
	err = m.merge(m.ctx, taking{position: p, nowhere: nowhere.ids})
	m.turn.giveBack()
	if errors.Is(err, vfs.ErrCorrupt) {
		return errors.Join(err, m.compareAll())
	}
	return err
}

// spoiled reports whether a push can never be applied: what the mirror knows of the authority is not so.
func spoiled(err error) bool {
	for _, e := range []error{
		vfs.ErrInvalid, vfs.ErrNotPermitted, vfs.ErrCorrupt, vfs.ErrPushReused, vfs.ErrTooManyLinks, vfs.ErrNameTooLong,
		vfs.ErrXattrTooBig,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// prepare returns the push that is to be made: the one that was under way, or one of all edits, noted. Nil when there is
// nothing to push.
func (m *Mirror) prepare() (*flight, error) {
	if f, err := m.underWay(); f != nil || err != nil {
		return f, err // also during a comparison, which waits for its answer
	}
	if err := m.await(m.ctx, func() (bool, error) { return !m.resync, nil }); err != nil {
		return nil, err // what is being compared would be pushed wrong
	}
	if err := m.turn.take(m.ctx); err != nil {
		return nil, err
	}
	defer m.turn.giveBack()
	if f := m.again(); f != nil {
		return f, nil
	}
	f := newFlight()
	f.bytes = m.written.Load()
	edits, rev, err := m.edits()
	if err != nil {
		return nil, err
	}
	f.rev = rev
	if len(edits) == 0 {
		m.settled(f)
		return nil, nil
	}
	edits, rest, err := firstPart(edits, pushRecords, pushBytes, func(k vfs.Key) ([]byte, error) {
		v, err := m.version(k)
		return v.Theirs, err
	})
	if err != nil {
		return nil, err
	}
	f.rest = len(rest) > 0
	for _, e := range edits {
		old := vfs.Record{Key: e.Key, Value: e.Theirs}
		f.push.Records = append(f.push.Records, vfs.PushRecord{Record: vfs.Record{Key: e.Key, Value: e.Mine}, Base: old.Base()})
	}
	rand.Read(f.push.ID[:])
	p, _ := m.position()
	f.at = p.Rev
	if err := m.replica.Note(m.ctx, f.note()...); err != nil {
		return nil, err
	}
	m.flying = f
	return f, nil
}

// underWay returns the push that is under way, or nil: also while the authority's store may be in another life, which is not
// the one that it was made for.
func (m *Mirror) underWay() (*flight, error) {
	if err := m.turn.take(m.ctx); err != nil {
		return nil, err
	}
	defer m.turn.giveBack()
	if m.doubt {
		return nil, nil
	}
	return m.again(), nil
}

// again returns the push that is to be made again, or nil. Whoever calls it has the turn.
func (m *Mirror) again() *flight {
	if m.flying != nil && m.flying.void {
		m.letGo()
	}
	return m.flying
}

// settled says that the authority has everything up to a local revision.
func (m *Mirror) settled(f *flight) {
	m.change(func() {
		m.refuse = nil
		if !f.rest {
			m.pushed, m.sent = max(m.pushed, f.rev), max(m.sent, f.bytes)
		}
	})
}

// send sends the chunks that the authority lacks, and the push.
func (m *Mirror) send(f *flight) (vfs.Outcome, error) {
	ids, err := m.newChunks(f)
	if err != nil {
		return vfs.Outcome{}, err
	}
	local := m.ws.Authority()
	if len(ids)*chunk.AvgSize > inlineChunks {
		if err := m.upload(ids, true); err != nil {
			return vfs.Outcome{}, err
		}
		ids = nil
	}
	for try := 0; ; try++ {
		// A copy: the feed may look at the flight meanwhile, and an encoder writes to what it encodes.
		p := vfs.Push{ID: f.push.ID, Records: slices.Clone(f.push.Records)}
		o, err := m.config.Peer.PushWith(m.ctx, p, ids, local)
		if err != nil || len(o.Missing) == 0 || try == maxTries {
			return o, err
		}
		if err := m.upload(o.Missing, false); err != nil {
			return o, err
		}
	}
}

// maxTries is how often chunks that an authority has forgotten again are sent anew in one go.
const maxTries = 64

// newChunks returns the chunks of a push that its files had not, as far as they are here: the others came from the authority.
func (m *Mirror) newChunks(f *flight) (ids []chunk.ID, err error) {
	seen := make(map[chunk.ID]bool)
	for i := range f.push.Records {
		r := &f.push.Records[i]
		if r.Kind != vfs.KeyInode || r.Value == nil {
			continue
		}
		v, err := m.version(r.Key)
		if err != nil {
			return nil, err
		}
		more, err := m.replica.ChunksOf(m.ctx, r.Value, v.Theirs)
		if err != nil {
			return nil, err
		}
		for _, id := range more {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return m.here(ids)
}

// here returns those of chunks that are in the local store.
func (m *Mirror) here(ids []chunk.ID) (out []chunk.ID, err error) {
	for len(ids) > 0 {
		some := ids[:min(len(ids), vfs.MaxChunkIDs)]
		ids = ids[len(some):]
		absent, err := m.ws.Authority().MissingChunks(m.ctx, some)
		if err != nil {
			return nil, err
		}
		for _, id := range some { // absent is in the same order
			if len(absent) > 0 && absent[0] == id {
				absent = absent[1:]
				continue
			}
			out = append(out, id)
		}
	}
	return out, nil
}

// upload sends chunks; with ask, those of them that the authority does not have.
func (m *Mirror) upload(ids []chunk.ID, ask bool) error {
	for len(ids) > 0 {
		some := ids[:min(len(ids), vfs.MaxChunkIDs)]
		ids = ids[len(some):]
		if ask {
			var err error
			if some, err = m.config.Peer.MissingChunks(m.ctx, some); err != nil {
				return err
			}
		}
		if err := m.uploadSome(some); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mirror) uploadSome(ids []chunk.ID) error {
	var batch []vfs.Chunk
	size, nowhere := 0, &nowhereError{make(map[chunk.ID]struct{}, len(ids))}
	for _, id := range ids {
		nowhere.ids[id] = struct{}{}
	}
	flush := func() error {
		err := m.config.Peer.WriteChunks(m.ctx, batch)
		batch, size = nil, 0
		return err
	}
	err := m.ws.Authority().ReadChunks(m.ctx, ids, func(c vfs.Chunk) error {
		delete(nowhere.ids, c.ID)
		c.Stored = append([]byte(nil), c.Stored...)
		batch = append(batch, c)
		if size += len(c.Stored); size < chunkBatch {
			return nil
		}
		return flush()
	})
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	if err == nil && len(nowhere.ids) > 0 {
		err = nowhere
	}
	return err
}

// applied takes note that a push was applied.
func (m *Mirror) applied(f *flight, o vfs.Outcome) error {
	m.log.Debug("push applied", "prev", o.Prev, "rev", o.Position.Rev, "records", len(f.push.Records))
	m.stats.pushes.Add(1)
	m.settled(f) // who waits for it need not wait for our own disk
	if err := m.turn.take(m.ctx); err != nil {
		return err
	}
	defer m.turn.giveBack()
	if m.flying != f {
		return nil // the feed has told it already
	}
	p, _ := m.position()
	if o.Position.Epoch == p.Epoch && o.Position.Rev <= p.Rev && m.loader.isWhole() {
		// The answer was lost with a session, and the feed of the next one has brought what has become of the records since.
		m.letGo()
		return m.replica.Note(m.ctx, f.forget()...)
	}
	next := o.Prev == p.Rev && o.Position.Epoch == p.Epoch && m.loader.isWhole()
	notes := f.forget()
	if next {
		notes = append(notes, stateAt(o.Position).note())
	}
	if err := m.replica.Settle(m.ctx, recordsOf(&f.push), notes...); err != nil {
		return err
	}
	m.letGo()
	if !next {
		for i := range f.push.Records {
			m.ahead[f.push.Records[i].Key] = o.Position.Rev
		}
	}
	if !next {
		m.change(func() {})
		return nil
	}
	m.arrive(o.Position)
	return m.verify(m.ctx)
}

func recordsOf(p *vfs.Push) []vfs.Record {
	out := make([]vfs.Record, len(p.Records))
	for i := range p.Records {
		out[i] = p.Records[i].Record
	}
	return out
}

// arrive says that the mirror has everything up to a position, on its disk.
func (m *Mirror) arrive(p vfs.Position) {
	m.change(func() { m.pos = p })
	for k, rev := range m.ahead {
		if rev <= p.Rev {
			delete(m.ahead, k)
		}
	}
	m.config.Peer.Acknowledge(p.Rev)
}

// rejected gives up a push that others were faster than, and waits for what they did.
func (m *Mirror) rejected(f *flight, o vfs.Outcome) error {
	m.stats.stale.Add(1)
	if err := m.drop(f); err != nil {
		return err
	}
	if len(o.Missing) > 0 {
		return fmt.Errorf("push: %d chunks do not stay at the authority: %w", len(o.Missing), vfs.ErrBusy)
	}
	if p, _ := m.position(); f.at >= o.Position.Rev && f.rev > 0 && p.Epoch == o.Position.Epoch {
		m.log.Error("the authority's records are not those it has sent; comparing everything", "first", o.Stale[0].Key)
		return m.compareAll()
	}
	ctx, cancel := context.WithTimeout(m.ctx, stalePatience)
	defer cancel()
	err := m.await(ctx, func() (bool, error) {
		return m.pos.Rev >= o.Position.Rev || m.pos.Epoch != o.Position.Epoch, nil
	})
	if errors.Is(err, vfs.ErrInterrupted) {
		return nil // the feed is slow; the next push tells us so
	}
	return err
}

// stalePatience is how long a feed may take to bring what a push has met.
const stalePatience = 10 * time.Second

// drop forgets a push that has had no effect.
func (m *Mirror) drop(f *flight) error {
	if err := m.turn.take(m.ctx); err != nil {
		return err
	}
	defer m.turn.giveBack()
	if m.flying != f {
		return nil
	}
	m.letGo()
	return m.replica.Note(m.ctx, f.forget()...)
}

// letGo forgets the push that was under way: it is known what has become of it. Whoever calls it has the turn.
func (m *Mirror) letGo() {
	close(m.flying.done)
	m.flying = nil
}

// edits returns all edits that the authority does not have.
func (m *Mirror) edits() (edits []casstore.Edit, rev vfs.Rev, err error) {
	rev, err = m.replica.Pending(m.ctx, func(e casstore.Edit) error {
		edits = append(edits, e)
		return nil
	})
	return edits, rev, err
}
