package casstore

import (
	"bytes"
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// digestChange adds up what records that have changed do to a digest.
type digestChange struct {
	delta       vfs.Digest
	first, last vfs.Rev // of the records that have really changed; zero when none has
}

// replace counts that r, of revision r.Rev, has taken the place of what a reader finds under its key.
func (d *digestChange) replace(old *reader, ws workspaceID, r vfs.Record) error {
	same := false
	err := old.get(keyOfRecord(ws, r.Key), func(v []byte) error {
		if same = r.Value != nil && bytes.Equal(v, r.Value); !same {
			d.delta.Remove(&vfs.Record{Key: r.Key, Value: present(v)})
		}
		return nil
	})
	switch {
	case errors.Is(err, vfs.ErrNotExist):
		same = r.Value == nil
	case err != nil:
		return err
	}
	if same {
		return nil
	}
	d.delta.Add(&r)
	if d.last = max(d.last, r.Rev); d.first == 0 || r.Rev < d.first {
		d.first = r.Rev
	}
	return nil
}

// present is the value of a key that is there: not nil, also when it is empty.
func present(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}

// digest returns the digest of the records in a range. It asks now and then whether to go on.
func (r *reader) digest(ws workspaceID, in vfs.InoRange, alive func() error) (d vfs.Digest, err error) {
	err = r.records(ws, in, 0, func(rec vfs.Record) error {
		d.Add(&rec)
		return alive()
	})
	return d, err
}

// sumUp finds out where the workspaces that are served stand after a revision, and has it write that. old is at the
// head.
func (v *revision) sumUp(old *reader) error {
	if v.store.windowStart() == 0 {
		return nil
	}
	cuts := make(map[*Workspace]*cut, len(v.cuts))
	for _, c := range v.cuts {
		cuts[c.tree] = c
	}
	for _, w := range v.store.openWorkspaces() {
		st, on, saved := w.knownStanding()
		if !on {
			continue
		}
		d, err := cuts[w].changes(old, v.rev)
		if err != nil {
			return err
		}
		if d.first == 0 && saved && v.start == 0 {
			continue
		}
		if d.first > 0 {
			st.digest = st.digest.Plus(d.delta)
			st.advance(v.store.windowStart(), d.first, d.last)
			keys, err := cuts[w].recordKeys()
			if err != nil {
				return err
			}
			v.recents[w] = recentRev{v.rev, keys}
		}
		v.standings[w] = st
		rec := standingRecord{standing: st, at: v.rev}
		v.kvs = append(v.kvs, kv{key: keyOfStanding(w.id), value: rec.encode()})
	}
	return nil
}

func (w *Workspace) knownStanding() (st standing, on, saved bool) {
	w.store.reading.mu.Lock()
	defer w.store.reading.mu.Unlock()
	return w.served.standing, w.served.on, w.served.saved
}

// changes is what a cut does to the digest. A nil cut does nothing.
func (c *cut) changes(old *reader, rev vfs.Rev) (d digestChange, err error) {
	if c == nil {
		return d, nil
	}
	removed := make(map[vfs.Key]struct{}) // attributes: the change of one and the removal of its owner both remove it
	for _, e := range c.kvs {
		key, ok, err := recordOfKey(e.key)
		if err != nil {
			return d, err
		}
		if _, again := removed[key]; !ok || again {
			continue
		}
		if key.Kind == vfs.KeyXattr && e.value == nil {
			removed[key] = struct{}{}
		}
		if err := d.replace(old, c.tree.id, vfs.Record{Key: key, Value: e.value, Rev: rev}); err != nil {
			return d, err
		}
	}
	return d, nil
}
