package mirror

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// followAlways follows the feed, and begins it anew when it ends.
func (m *Mirror) followAlways() {
	for pause := retryFirst; m.ctx.Err() == nil; {
		before, _ := m.position()
		err := m.followOnce()
		if now, _ := m.position(); now.Cursor != before.Cursor {
			pause = retryFirst
		}
		if m.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errAnew) {
			continue
		}
		m.log.Warn("the feed has ended", "err", err, "again in", pause)
		m.pause(pause)
		pause = min(2*pause, retryLast)
	}
}

func (m *Mirror) followOnce() error {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	m.mu.Lock()
	m.anew = cancel
	m.mu.Unlock()
	if !m.loader.isWhole() {
		if err := m.beginLoading(ctx); err != nil {
			return err
		}
	}
	err := m.config.Peer.Follow(ctx, vfs.AllInos, &follower{Mirror: m})
	if ctx.Err() != nil {
		return errAnew
	}
	return err
}

// errAnew is for a feed that was ended so that another one begins.
var errAnew = errors.New("the feed begins anew")

// beginLoading finds out where the snapshot is to begin, if that is not known yet: at a position from before it, so that
// whatever is looked up meanwhile is not older.
func (m *Mirror) beginLoading(ctx context.Context) error {
	select {
	case <-m.loader.begun:
		return nil
	default:
	}
	w, err := m.config.Peer.Welcome(ctx)
	if err != nil {
		return err
	}
	return m.loader.begin(ctx, w.Position.Cursor)
}

func (m *Mirror) wantsSnapshot() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resync
}

// compareAll has the feed begin anew with a snapshot, and everything compared with it.
func (m *Mirror) compareAll() error {
	m.stats.resyncs.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resync = true; m.anew != nil {
		m.anew()
	}
	return nil
}

// follower is the mirror as its feed sees it.
type follower struct {
	*Mirror
	part    syncwire.FeedPart
	load    bool         // the part is a snapshot that is loaded
	compare *comparison  // or that is compared
	began   vfs.Cursor   // where the mirror was when the comparison began
	changes []vfs.Record // of a part that is neither
}

// Resume implements syncwire.Follower.
func (f *follower) Resume() (since vfs.Cursor, from vfs.Ino) {
	f.newSession()
	if !f.loader.isWhole() {
		return f.loader.since()
	}
	if f.wantsSnapshot() {
		return vfs.Cursor{}, 0
	}
	p, _ := f.position()
	f.attached.Store(true)
	return p.Cursor, 0
}

// newSession notes that a push which is under way may have been answered in a session before, whose answer was lost.
func (m *Mirror) newSession() {
	if m.turn.take(m.ctx) != nil {
		return // the mirror is closed
	}
	defer m.turn.giveBack()
	if m.flying != nil {
		m.flying.unsure = true
	}
}

// awaitAnswer waits, once in a session, until it is known what has become of a push whose answer was lost, if an update may
// hold its effect: what others have made of its records is to be held against these, and not against what was before them.
// Else a file that was made by it and removed by others would be made again.
func (m *Mirror) awaitAnswer(t *taking) error {
	if err := m.turn.take(m.ctx); err != nil {
		return err
	}
	f := m.flying
	wait := f != nil && f.unsure && !f.void && !m.doubt && !slices.Contains(t.own, f.push.ID) && f.mayBeIn(t.changes, t.snapshot)
	if wait {
		f.unsure = false
	}
	m.turn.giveBack()
	if !wait {
		return nil
	}
	select {
	case <-f.done:
	case <-time.After(answerPatience):
		m.log.Warn("it is not known what has become of a push", "id", f.push.ID)
	case <-m.ctx.Done():
		return interrupted(m.ctx)
	}
	return nil
}

// answerPatience is how long a feed waits for the answer to a push that is made again. It is one round trip, unless the
// authority cannot answer or many chunks are sent first.
const answerPatience = 10 * time.Second

// Begin implements syncwire.Follower.
func (f *follower) Begin(p syncwire.FeedPart) error {
	f.part, f.changes, f.compare = p, nil, nil
	snapshot := p.Since == 0
	f.load = snapshot && p.First != 0
	switch {
	case f.load:
	case snapshot:
		f.compare = newComparison(f.Mirror)
		// No other push is made meanwhile: what the snapshot does not hold yet would look as if it had been removed.
		f.change(func() { f.resync, f.began = true, f.pos.Cursor })
		if f.compare.loading {
			f.began = f.loader.known()
			return f.loader.startOver(f.ctx, p.Start)
		}
	}
	return nil
}

// Records implements syncwire.Follower.
func (f *follower) Records(got []vfs.Record) error {
	switch {
	case f.load:
		return f.loader.snapshot(f.ctx, got)
	case f.compare != nil:
		return f.compare.add(f.ctx, got)
	}
	for _, r := range got {
		if !f.loader.knows(&r) {
			r.Value = bytes.Clone(r.Value)
			f.changes = append(f.changes, r)
		}
	}
	return nil
}

// Update implements syncwire.Follower.
func (f *follower) Update(u syncwire.FeedUpdate) error {
	if f.load {
		return f.loaded()
	}
	t := taking{changes: f.changes, position: u.Position, own: u.Own}
	if f.compare != nil {
		var err error
		if t.changes, err = f.compare.finish(f.ctx, u.Position.Rev); err != nil {
			return err
		}
		// Of a store that was copied back, the epoch is the same and the revision below ours.
		older := f.began.Epoch != u.Position.Epoch || u.Position.Rev < f.began.Rev
		t.snapshot, t.partial, t.stranger = true, f.compare.loading, older && f.began.Epoch != vfs.Epoch{}
	}
	return f.takeOver(t)
}

// loaded says that the snapshot has arrived. The mirror is where it began: what has changed since comes next.
func (f *follower) loaded() error {
	if err := f.loader.finish(f.ctx); err != nil {
		return err
	}
	start := f.loader.known()
	f.change(func() { f.pos = vfs.Position{Cursor: start} })
	if f.wantsSnapshot() {
		return errAnew // which it could not be asked for before
	}
	return nil
}

// inoNote is a number in the name of a note.
func inoNote(prefix string, n uint64) string { return prefix + strconv.FormatUint(n, 10) }
