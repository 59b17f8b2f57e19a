package casstore

import (
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// edited knows the keys of a replica that have a basis, so that the few there are need not be looked for in Badger: it passes over
// everything there that was removed and is not compacted away yet, and after each push that is all that was pushed.
type edited struct {
	mu   sync.Mutex
	keys map[vfs.Key]struct{}
}

// maxSought is how many edits are looked up each by its key. More are found by a scan.
const maxSought = 1024

// load takes the keys from the store, before anything changes them.
func (e *edited) load(r *reader, ws workspaceID) error {
	e.keys = make(map[vfs.Key]struct{})
	return r.scan(keyOfNode(keyBasis, ws, 0)[:9], nil, false, func(k, _ []byte) (bool, error) {
		key, err := basisKey(k)
		e.keys[key] = struct{}{}
		return err == nil, err
	})
}

// expectBases adds the keys that get a basis by the revision, before anybody can see it.
func (v *revision) expectBases() {
	for at, value := range v.bases {
		if value != nil {
			e := &at.tree.replica.edited
			e.mu.Lock()
			e.keys[at.key] = struct{}{}
			e.mu.Unlock()
		}
	}
}

// dropBases takes away the keys that have none any more, once everybody sees it.
func (v *revision) dropBases() {
	for at, value := range v.bases {
		if value == nil {
			e := &at.tree.replica.edited
			e.mu.Lock()
			delete(e.keys, at.key)
			e.mu.Unlock()
		}
	}
}

// editsReader is a reader that knows where the edits are.
type editsReader struct {
	*reader
	ws     workspaceID
	sought []vfs.Key // all that may have a basis, in their order
	listed bool      // sought is of use
}

// editsReader returns a reader of the newest state, and the position that it reads at. It is to be closed.
func (w *Workspace) editsReader() (*editsReader, vfs.Position) {
	e := &w.replica.edited
	// With the lock held none is taken away that the reader sees.
	e.mu.Lock()
	defer e.mu.Unlock()
	head, p := w.snapshotReader()
	r := &editsReader{reader: head, ws: w.id, listed: len(e.keys) <= maxSought}
	if r.listed {
		r.sought = make([]vfs.Key, 0, len(e.keys))
		for k := range e.keys {
			r.sought = append(r.sought, k)
		}
		slices.SortFunc(r.sought, vfs.Key.Compare)
	}
	return r, p
}

// edits yields the edits of the inodes in a range, in the order of their keys.
func (r *editsReader) edits(in vfs.InoRange, yield func(Edit) error) error {
	if !r.listed {
		return r.scan(keyOfNode(keyBasis, r.ws, 0)[:9], keyOfNode(keyBasis, r.ws, in.First), true, func(k, value []byte) (bool, error) {
			key, err := basisKey(k)
			if err != nil || key.Ino > in.Last {
				return false, err
			}
			theirs, err := decodeBasis(value)
			if err == nil {
				err = r.yieldEdit(key, theirs, yield)
			}
			return err == nil, err
		})
	}
	for _, key := range r.sought {
		if key.Ino < in.First || key.Ino > in.Last {
			continue
		}
		theirs, known, err := r.basis(r.ws, key)
		if err == nil && known {
			err = r.yieldEdit(key, theirs, yield)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *editsReader) yieldEdit(key vfs.Key, theirs []byte, yield func(Edit) error) error {
	mine, err := r.value(r.ws, key)
	if err != nil {
		return err
	}
	return yield(Edit{Key: key, Mine: mine, Theirs: theirs})
}
