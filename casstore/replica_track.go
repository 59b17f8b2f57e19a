package casstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Basis says what the authority has under a key. Same says that it is what the replica has: then there is nothing to
// remember.
type Basis struct {
	Key   vfs.Key
	Value []byte // nil: nothing. With Same it is looked at only where the replica's value is not written with the basis
	Same  bool
}

// Note is something that whoever keeps a replica wants to find again after a crash. A nil value removes it.
type Note struct {
	Name  string
	Value []byte
}

// keyOfBasis is the key of the basis of a record: they come in the order of inode numbers.
func keyOfBasis(ws workspaceID, k vfs.Key) []byte {
	b := append(keyOfNode(keyBasis, ws, k.Ino), byte(k.Kind))
	return append(b, k.Name...)
}

// basisKey is the inverse of keyOfBasis.
func basisKey(k []byte) (key vfs.Key, err error) {
	if len(k) <= prefixLen {
		return key, fmt.Errorf("key %x: %w", k, vfs.ErrCorrupt)
	}
	_, key.Ino = nodeOfKey(k)
	key.Kind, key.Name = vfs.KeyKind(k[prefixLen]), string(k[prefixLen+1:])
	if err := key.Valid(); err != nil {
		return key, fmt.Errorf("key %x: %w: %w", k, vfs.ErrCorrupt, err)
	}
	return key, nil
}

func keyOfReplica(ws workspaceID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyReplica}, uint64(ws))
}

func keyOfNote(ws workspaceID, name string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{keyNote}, uint64(ws)), name...)
}

// encodeBasis: 0 for nothing, or 1 and the value.
func encodeBasis(value []byte) []byte {
	if value == nil {
		return []byte{0}
	}
	return append([]byte{1}, value...)
}

// decodeBasis is the inverse of encodeBasis. The value is a copy.
func decodeBasis(b []byte) ([]byte, error) {
	switch {
	case len(b) == 1 && b[0] == 0:
		return nil, nil
	case len(b) > 0 && b[0] == 1:
		return append([]byte{}, b[1:]...), nil
	}
	return nil, fmt.Errorf("basis %x: %w", b, vfs.ErrCorrupt)
}

// track writes down, in the revision that changes records of replicas, what the authority had. old is at the head.
func (v *revision) track(old *reader) error {
	for _, c := range v.cuts {
		if c.tree.replica == nil || c.gen == pushGen {
			continue
		}
		for _, e := range c.kvs {
			key, ok, err := recordOfKey(e.key)
			if err == nil && ok {
				err = v.trackOne(old, c.tree, key, e.value)
			}
			if err != nil {
				return err
			}
		}
		v.saveNumbers(c.tree)
	}
	return nil
}

func (v *revision) trackOne(old *reader, w *Workspace, key vfs.Key, value []byte) error {
	basis, known, err := v.basis(old, w, key)
	if err != nil {
		return err
	}
	if !known {
		if basis, err = old.value(w.id, key); err != nil {
			return err
		}
	}
	switch same := (basis == nil) == (value == nil) && bytes.Equal(basis, value); {
	case same && known:
		v.setBasis(w, Basis{Key: key, Same: true})
	case !same && !known:
		v.setBasis(w, Basis{Key: key, Value: basis})
	}
	return nil
}

// basis returns the basis of a key, as this revision leaves it.
func (v *revision) basis(old *reader, w *Workspace, key vfs.Key) (value []byte, known bool, err error) {
	if b, ok := v.bases[basisPlace{w, key}]; ok {
		if b == nil {
			return nil, false, nil
		}
		value, err = decodeBasis(b)
		return value, true, err
	}
	return old.basis(w.id, key)
}

// basisPlace is where a basis is.
type basisPlace struct {
	tree *Workspace
	key  vfs.Key
}

// setBasis has the revision write a basis, or remove it.
func (v *revision) setBasis(w *Workspace, b Basis) {
	if v.bases == nil {
		v.bases = make(map[basisPlace][]byte)
	}
	at := basisPlace{w, b.Key}
	if b.Same {
		v.bases[at] = nil
	} else {
		v.bases[at] = encodeBasis(b.Value)
	}
}

// addBases adds what setBasis was told to what is written.
func (v *revision) addBases() {
	for at, value := range v.bases {
		v.kvs = append(v.kvs, kv{key: keyOfBasis(at.tree.id, at.key), value: value})
	}
}

// saveNumbers writes which numbers a replica has left, when that has changed.
func (v *revision) saveNumbers(w *Workspace) {
	w.mu.Lock()
	b := w.replica.numbers.encode()
	w.mu.Unlock()
	if !bytes.Equal(b, w.replica.saved) {
		v.kvs = append(v.kvs, kv{key: keyOfReplica(w.id), value: b})
		w.replica.saved = b
	}
}

// keepNotes has the revision write notes.
func (v *revision) keepNotes(ws workspaceID, notes []Note) {
	for _, n := range notes {
		v.kvs = append(v.kvs, kv{key: keyOfNote(ws, n.Name), value: n.Value})
	}
}

// basis returns the basis of a key. known is false when there is none.
func (r *reader) basis(ws workspaceID, key vfs.Key) (value []byte, known bool, err error) {
	err = r.get(keyOfBasis(ws, key), func(b []byte) (err error) {
		value, err = decodeBasis(b)
		return err
	})
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, false, nil
	}
	return value, true, err
}

// value returns a copy of what is under a key, nil for nothing.
func (r *reader) value(ws workspaceID, key vfs.Key) (value []byte, err error) {
	err = r.get(keyOfRecord(ws, key), func(b []byte) error {
		value = append([]byte{}, b...)
		return nil
	})
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	return value, err
}

// Settle says that the authority has values under keys now, because it has taken a push, and writes notes with that.
func (r *Replica) Settle(ctx context.Context, has []vfs.Record, notes ...Note) error {
	w := r.tree
	err := w.store.edit(ctx, func(v *revision) error {
		head := w.store.reader()
		defer head.Close()
		for _, rec := range has {
			now, err := head.value(w.id, rec.Key)
			if err != nil {
				return err
			}
			same := (now == nil) == (rec.Value == nil) && bytes.Equal(now, rec.Value)
			v.setBasis(w, Basis{Key: rec.Key, Value: rec.Value, Same: same})
		}
		v.keepNotes(w.id, notes)
		v.forced = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}

// Note writes notes.
func (r *Replica) Note(ctx context.Context, notes ...Note) error { return r.Settle(ctx, nil, notes...) }

// Notes returns the notes whose names have a prefix, in the order of their names.
func (r *Replica) Notes(prefix string) (notes []Note, err error) {
	head := r.tree.store.reader()
	defer head.Close()
	return head.notes(r.tree.id, prefix)
}

func (r *reader) notes(ws workspaceID, prefix string) (notes []Note, err error) {
	start := keyOfNote(ws, "")
	err = r.scan(keyOfNote(ws, prefix), nil, true, func(key, value []byte) (bool, error) {
		notes = append(notes, Note{Name: string(key[len(start):]), Value: append([]byte{}, value...)})
		return true, nil
	})
	return notes, err
}
