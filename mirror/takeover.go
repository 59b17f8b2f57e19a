package mirror

import (
	"errors"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// taking is what the feed has brought, up to a position.
type taking struct {
	changes  []vfs.Record
	position vfs.Position
	own      []vfs.PushID
	snapshot bool // what the authority no longer has is told by its absence
	partial  bool // and what the mirror had was a part of another snapshot
	mending  bool // what the mirror knows may be no tree of any revision; with the changes it is
	stranger bool // and that says nothing, because it is another life of the store

	nowhere map[chunk.ID]struct{} // chunks that neither the mirror nor the authority has, which edits refer to

	given func(vfs.Ino) bool // reports that this mirror had given a number to an inode before
}

// takeOver makes what the feed has brought part of the tree, and moves the cursor.
func (m *Mirror) takeOver(t taking) error {
	m.log.Debug("update", "rev", t.position.Rev, "changes", len(t.changes), "own", len(t.own), "snapshot", t.snapshot)
	if err := m.awaitAnswer(&t); err != nil {
		return err
	}
	if err := m.turn.take(m.ctx); err != nil {
		return err
	}
	defer m.turn.giveBack()
	if f := m.flying; f != nil && f.echoedIn(t.changes) {
		t.own = append(t.own, f.push.ID)
	}
	if err := m.landed(t.own); err != nil {
		return err
	}
	p, _ := m.position()
	if !t.snapshot && p.Epoch == t.position.Epoch && t.position.Rev < p.Rev {
		return nil // an answer to a push was faster
	}
	if t.snapshot && !t.stranger && p.Epoch == t.position.Epoch && t.position.Rev < p.Rev {
		return m.compareAll() // the same, by a push that was under way: the next snapshot holds it
	}
	t.mending = t.snapshot || p.Digest == (vfs.Digest{}) || m.loader.isPast(p.Rev) // what was loaded is of no one revision
	if same, err := m.sameLife(t); err != nil || !same {
		return errors.Join(err, m.compareAll())
	}
	t.stranger = t.stranger || t.snapshot && m.doubt && p.Epoch != vfs.Epoch{}
	if t.stranger {
		t.given = m.loader.given()
		if err := m.forgetLife(); err != nil {
			return err
		}
	}
	if err := m.merge(m.ctx, t); err != nil {
		return err
	}
	if t.snapshot {
		if err := m.loader.finish(m.ctx); err != nil {
			return err
		}
	}
	notes := append(m.loader.forget(t.position.Rev, t.snapshot && !t.partial), stateAt(t.position).note())
	if err := m.replica.Note(m.ctx, notes...); err != nil {
		return err
	}
	if t.snapshot {
		m.doubt = false // not before: what failed on the way is done again
	}
	m.change(func() {
		if t.snapshot {
			m.resync = false
		}
	})
	m.arrive(t.position)
	m.kickPush()
	return m.verify(m.ctx)
}

// sameLife reports whether what the feed brings first, after it was attached, goes on from what the mirror knows. It does
// not when the authority's store was copied back, which leaves its epoch, and others have written to it since, so that
// the cursor seems good: then it is to be compared as another life's is, before anything of it is taken over.
func (m *Mirror) sameLife(t taking) (bool, error) {
	if t.snapshot || len(m.ahead) > 0 || m.loader.isPast(t.position.Rev) || !m.attached.Swap(false) {
		return true, nil
	}
	sums, err := m.replica.Theirs(m.ctx, []vfs.InoRange{vfs.AllInos})
	if err != nil {
		return false, err
	}
	keys := make([]vfs.Key, len(t.changes))
	for i := range t.changes {
		keys[i] = t.changes[i].Key
	}
	versions, err := m.replica.Versions(keys)
	if err != nil {
		return false, err
	}
	d := sums[0]
	for i, v := range versions {
		d.Remove(&vfs.Record{Key: keys[i], Value: v.Theirs})
		d.Add(&t.changes[i])
	}
	if d == t.position.Digest {
		return true, nil
	}
	m.doubt = true
	m.log.Error("the authority's store does not go on from what it was; comparing everything", "revision", t.position.Rev)
	return false, nil
}

// landed takes note that pushes were applied, as the feed says it before their own answers do.
func (m *Mirror) landed(own []vfs.PushID) error {
	for _, id := range own {
		f := m.flying
		if f == nil || f.push.ID != id {
			continue
		}
		m.settled(f)
		if err := m.replica.Settle(m.ctx, recordsOf(&f.push), f.forget()...); err != nil {
			return err
		}
		m.letGo()
	}
	return nil
}

// forgetLife lets go of what belonged to another life of the authority's store: numbers that were leased there, and the
// push that was under way. What was made with such a number has a revision then, so that the reconciliation gives it another.
func (m *Mirror) forgetLife() error {
	m.log.Warn("the authority's store is in another life: it was put back to an older state, or made anew")
	m.stats.lives.Add(1)
	m.replica.DropNumbers()
	clear(m.ahead)
	var notes []casstore.Note
	if m.flying != nil {
		notes = m.flying.forget()
		m.flying.void = true // it may be applied all the same
	}
	m.change(func() {})
	if err := m.replica.Note(m.ctx, notes...); err != nil {
		return err
	}
	_, err := m.replica.Commit(m.ctx, 0)
	return err
}
