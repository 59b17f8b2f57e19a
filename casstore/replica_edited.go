package casstore

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// edited knows the keys of a replica that have a basis, so that the few there are need not be looked for in Badger: it passes over
// everything there that was removed and is not compacted away yet, and after each push that is all that was pushed.
type edited struct {
	mu   sync.Mutex
	keys map[vfs.Key]struct{}
}

// apart is by how much the numbers of two inodes differ between which it is quicker to look anew than to go on.
const apart = 16

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
}

// editsReader returns a reader of the newest state, and the position that it reads at. It is to be closed.
func (w *Workspace) editsReader() (*editsReader, vfs.Position) {
	e := &w.replica.edited
	e.mu.Lock() // with it held none is taken away that the reader sees
	head, p := w.snapshotReader()
	sought := slices.Collect(maps.Keys(e.keys))
	e.mu.Unlock()
	slices.SortFunc(sought, vfs.Key.Compare)
	return &editsReader{head, w.id, sought}, p
}

// edits yields the edits of the inodes in a range, in the order of their keys.
func (r *editsReader) edits(in vfs.InoRange, yield func(Edit) error) error {
	opt := badger.DefaultIteratorOptions
	opt.Prefix = keyOfNode(keyBasis, r.ws, 0)[:9]
	opt.PrefetchValues = false
	it := r.txn.NewIterator(opt)
	defer it.Close()
	last, begun := vfs.Ino(0), false
	for _, key := range r.sought {
		if key.Ino < in.First || key.Ino > in.Last {
			continue
		}
		k := keyOfBasis(r.ws, key)
		if !begun || key.Ino-last > apart {
			it.Seek(k)
		}
		for ; it.Valid() && bytes.Compare(it.Item().Key(), k) < 0; it.Next() {
		}
		last, begun = key.Ino, true
		r.store.maps.read()
		if !it.Valid() || !bytes.Equal(it.Item().Key(), k) {
			continue // it has none yet, or no longer
		}
		e := Edit{Key: key}
		err := badgerError(it.Item().Value(func(v []byte) (err error) {
			e.Theirs, err = decodeBasis(v)
			return err
		}), k)
		if err == nil {
			e.Mine, err = r.value(r.ws, key)
		}
		if err == nil {
			err = yield(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
