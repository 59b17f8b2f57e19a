package casstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// A fork has records of its own only where it differs from what it began with. Where it has none, those of its origins
// show, each at the revision that it was forked at:
//
//	fork          own records, and whiteouts that hide what an origin has
//	  origins[0]  the workspace it was forked from, at a revision
//	  origins[1]  the one that this was forked from, and so on
//
// The reader knows that: whoever asks it for a record, or goes through those of a workspace, sees one tree. Only inodes,
// names, attributes and atimes are inherited. An ordinary workspace pays for it where it has no record, with a look into
// a map.

// origin is a workspace at a revision, which is pinned.
type origin struct {
	ws  workspaceID
	rev vfs.Rev
}

// inheritedKinds are the kinds of keys that a fork has of its origins.
var inheritedKinds = [...]byte{keyInode, keyDirent, keyXattr, keyAtime}

// whiteout is the user meta of a key without a value that hides what an origin has under it.
const whiteout = 1

func isWhiteout(item *badger.Item) bool { return item.UserMeta() == whiteout }

// forkRecord is where a fork came from. Layout: workspace | revision of each origin, the nearest first, uvarints.
type forkRecord []origin

func (f forkRecord) encode() (b []byte) {
	for _, o := range f {
		b = binary.AppendUvarint(b, uint64(o.ws))
		b = binary.AppendUvarint(b, uint64(o.rev))
	}
	return b
}

func decodeFork(b []byte) (f forkRecord, err error) {
	v, err := allUvarints(b)
	if err == nil && (len(v) == 0 || len(v)%2 != 0 || len(v) > 2*maxOrigins) {
		err = vfs.ErrCorrupt
	}
	if err != nil {
		return nil, fmt.Errorf("fork record %x: %w", b, err)
	}
	for i := 0; i < len(v); i += 2 {
		f = append(f, origin{workspaceID(v[i]), vfs.Rev(v[i+1])})
	}
	return f, nil
}

// origins returns where a workspace's records are, beside its own: nothing unless it is a fork.
func (s *Store) origins(ws workspaceID) []origin {
	if f, ok := s.forks.Load(ws); ok {
		return f.(forkRecord)
	}
	return nil
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
		s.addFork(workspaceOfKey(key), f)
		return true, nil
	})
}

// addFork makes a fork known. reading.mu is held, or the store is being opened.
func (s *Store) addFork(ws workspaceID, f forkRecord) {
	s.forks.Store(ws, f)
	for _, o := range f {
		s.reading.pins.add(pin{o.ws, o.rev, 1})
	}
}

// dropFork is the end of addFork.
func (s *Store) dropFork(ws workspaceID) {
	for _, o := range s.origins(ws) {
		s.reading.pins.add(pin{o.ws, o.rev, -1})
	}
	s.forks.Delete(ws)
}
