package casstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// A fork has records of its own only where it differs from what it began with. Where it has none, those of its layers
// show, each at the revision that it was forked at:
//
//	fork         own records, and whiteouts that hide what a layer has
//	  layers[0]  the workspace it was forked from, at a revision
//	  layers[1]  the one that this was forked from, and so on
//
// The reader knows that: whoever asks it for a record, or goes through those of a workspace, sees one tree. Only inodes,
// names, attributes and atimes are inherited. An ordinary workspace pays for it where it has no record, with a look into
// a map. What is in several neighbouring layers is put into one when there are too many (flatten.go).

// origin is a workspace at a revision, which is pinned; or what several of them were merged to, which is in no need of that: its
// records do not change any more.
type origin struct {
	ws  workspaceID
	rev vfs.Rev
	of  vfs.Rev // of what was merged: the newest revision that a record of it can be of. Zero for a workspace
}

// shown is the revision that a record of it is of, as far as that is known.
func (o origin) shown(rev vfs.Rev) vfs.Rev {
	if o.of > 0 {
		return min(rev, o.of)
	}
	return rev
}

// inheritedKinds are the kinds of keys that a fork has of its origins.
var inheritedKinds = [...]byte{keyInode, keyDirent, keyXattr, keyAtime}

// whiteout is the user meta of a key without a value that hides what an origin has under it.
const whiteout = 1

func isWhiteout(item *badger.Item) bool { return item.UserMeta() == whiteout }

// forkRecord is where a fork came from, and where the records are that it does not have itself. It stays when the workspace
// goes, as long as several others were made of that (kin.go).
//
// Layout: workspace | revision of each layer, the nearest first, uvarints, when these are workspaces and the first of them is
// what the fork was made of. Else: 0 | workspace | revision of what it was made of; then workspace | revision | of for each layer.
type forkRecord struct {
	parent origin   // what it was made of; or what that was made of and so on, when that is gone; zero when all of it is
	layers []origin // the nearest first
}

// plain reports whether the first layout does.
func (f forkRecord) plain() bool {
	return len(f.layers) > 0 && f.parent == f.layers[0] && f.parent.ws != 0 &&
		!slices.ContainsFunc(f.layers, func(o origin) bool { return o.of > 0 })
}

func (f forkRecord) encode() (b []byte) {
	plain := f.plain()
	if !plain {
		b = binary.AppendUvarint([]byte{0}, uint64(f.parent.ws))
		b = binary.AppendUvarint(b, uint64(f.parent.rev))
	}
	for _, o := range f.layers {
		b = binary.AppendUvarint(b, uint64(o.ws))
		b = binary.AppendUvarint(b, uint64(o.rev))
		if !plain {
			b = binary.AppendUvarint(b, uint64(o.of))
		}
	}
	return b
}

func decodeFork(b []byte) (f forkRecord, err error) {
	v, err := allUvarints(b)
	if err == nil {
		f, err = readFork(v)
	}
	if err != nil {
		return forkRecord{}, fmt.Errorf("fork record %x: %w", b, err)
	}
	return f, nil
}

// readFork makes a record of its numbers.
func readFork(v []uint64) (f forkRecord, err error) {
	size := 2
	flat := len(v) > 2 && v[0] == 0
	if flat {
		f.parent = origin{ws: workspaceID(v[1]), rev: vfs.Rev(v[2])}
		v, size = v[3:], 3
	}
	if len(v) == 0 || len(v)%size != 0 || len(v) > size*maxOrigins || (f.parent.ws == 0) != (f.parent.rev == 0) {
		return f, vfs.ErrCorrupt
	}
	for ; len(v) > 0; v = v[size:] {
		o := origin{ws: workspaceID(v[0]), rev: vfs.Rev(v[1])}
		if flat {
			o.of = vfs.Rev(v[2])
		}
		f.layers = append(f.layers, o)
	}
	if !flat {
		f.parent = f.layers[0]
	}
	if flat == f.plain() {
		return f, vfs.ErrCorrupt
	}
	return f, nil
}

// forkOf returns the record of a fork. It is the zero one unless the workspace is one.
func (s *Store) forkOf(ws workspaceID) (f forkRecord, ok bool) {
	v, ok := s.forks.Load(ws)
	if ok {
		f = v.(forkRecord)
	}
	return f, ok
}

// origins returns where a workspace's records are, beside its own: nothing unless it is a fork. They stay readable for whoever
// has had a reader open before this is called, as long as that is.
func (s *Store) origins(ws workspaceID) []origin {
	f, _ := s.forkOf(ws)
	return f.layers
}

// inherited returns the origins in which a key may be that its workspace does not have.
func (r *reader) inherited(key []byte) []origin {
	switch key[0] {
	case keyInode, keyDirent, keyXattr, keyAtime:
		if len(key) >= 9 {
			return r.originsOf(workspaceOfKey(key))
		}
	}
	return nil
}

// in returns a key as another workspace has it.
func (o origin) in(key []byte) []byte {
	k := bytes.Clone(key)
	binary.BigEndian.PutUint64(k[1:], uint64(o.ws))
	return k
}

// getFrom is get for a key that the workspace itself does not have.
func (r *reader) getFrom(origins []origin, key []byte, decode func([]byte) error) error {
	for _, o := range origins {
		switch found, err := r.getOwn(o, key, decode); {
		case err != nil:
			return err
		case found:
			return nil
		}
	}
	return vfs.ErrNotExist
}

// getOwn looks at one origin: found is false when another may have the key.
func (r *reader) getOwn(o origin, key []byte, decode func([]byte) error) (found bool, err error) {
	txn := r.store.db.NewTransactionAt(uint64(o.rev), false)
	defer txn.Discard()
	item, err := txn.Get(o.in(key))
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return false, nil
	case err == nil && isWhiteout(item):
		return true, vfs.ErrNotExist
	case err == nil:
		err = item.Value(decode)
	}
	return true, badgerError(err, key)
}

// hide makes whiteouts of the removals of what an origin has. old is at the head.
func (v *revision) hide(old *reader) error {
	for _, c := range v.cuts {
		origins := v.store.origins(c.tree.id)
		if len(origins) == 0 {
			continue
		}
		for i := range c.kvs {
			e := &c.kvs[i]
			if e.value != nil || old.inherited(e.key) == nil {
				continue
			}
			err := old.getFrom(origins, e.key, func([]byte) error { return nil })
			if err != nil && !errors.Is(err, vfs.ErrNotExist) {
				return err
			}
			e.hide = err == nil
		}
	}
	return nil
}

// recoverForks finds the forks of a store that is being opened.
func (s *Store) recoverForks(r *reader) error {
	return r.scan([]byte{keyFork}, nil, true, func(key, value []byte) (bool, error) {
		f, err := decodeFork(value)
		if err == nil && len(key) != 9 {
			err = fmt.Errorf("fork key %x: %w", key, vfs.ErrCorrupt)
		}
		if err != nil {
			return false, err
		}
		s.setFork(workspaceOfKey(key), f, 0)
		return true, nil
	})
}

// setFork makes a fork known, or what it is from a revision on. reading.mu is held, or the store is being opened.
func (s *Store) setFork(ws workspaceID, f forkRecord, from vfs.Rev) {
	old, known := s.forkOf(ws)
	s.forks.Store(ws, f)
	s.reading.pins.addFork(f, 1)
	switch {
	case !known:
	case slices.Equal(old.layers, f.layers):
		s.reading.pins.addFork(old, -1)
	default:
		s.reading.retired = append(s.reading.retired, retiredFork{old, from})
	}
}

// dropFork is the end of setFork.
func (s *Store) dropFork(ws workspaceID) {
	if f, ok := s.forkOf(ws); ok {
		s.reading.pins.addFork(f, -1)
		s.forks.Delete(ws)
	}
}

// retiredFork is what a fork was made of before a revision. Whoever began to read before that may still look there.
type retiredFork struct {
	forkRecord
	before vfs.Rev
}

// release lets go of the layers that nobody reads any more. mu is held.
func (r *reading) release() {
	oldest := newest
	for rev := range r.open {
		oldest = min(oldest, rev)
	}
	r.retired = slices.DeleteFunc(r.retired, func(f retiredFork) bool {
		if oldest < f.before {
			return false
		}
		r.pins.addFork(f.forkRecord, -1)
		return true
	})
}
