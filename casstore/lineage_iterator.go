package casstore

import (
	"bytes"
	"encoding/binary"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// recordIterator goes through keys in order. [*badger.Iterator] is one.
type recordIterator interface {
	Seek(key []byte)
	Valid() bool
	Item() *badger.Item
	Next()
	Close()
}

// iterator returns an iterator over the keys under a prefix. For a fork, those of its origins are there where it has none
// itself; the keys of their items are the origins'. With every version (AllVersions) it gives what the workspace itself
// has.
func (r *reader) iterator(opt badger.IteratorOptions) recordIterator {
	origins := r.inherited(opt.Prefix)
	if len(origins) == 0 || opt.AllVersions {
		return r.txn.NewIterator(opt)
	}
	it := &lineageIterator{layers: make([]layer, len(origins)+1)}
	it.layers[0] = layer{ws: workspaceOfKey(opt.Prefix), it: r.txn.NewIterator(opt)}
	for i, o := range origins {
		it.layers[i+1] = r.store.openLayer(o, opt)
	}
	return it
}

// overlay returns an iterator over what some layers show of a kind of keys, whiteouts too.
func (s *Store) overlay(kind byte, layers []origin) *lineageIterator {
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.Prefix = keyOfNode(kind, 0, 0)[:9]
	it := &lineageIterator{whiteouts: true}
	for _, o := range layers {
		it.layers = append(it.layers, s.openLayer(o, opt))
	}
	return it
}

// openLayer opens an iterator of a layer, over the keys that begin as the prefix of opt does in another workspace.
func (s *Store) openLayer(o origin, opt badger.IteratorOptions) layer {
	txn := s.db.NewTransactionAt(uint64(o.rev), false)
	opt.Prefix = o.in(opt.Prefix)
	return layer{ws: o.ws, of: o, it: txn.NewIterator(opt), txn: txn}
}

// layer is one workspace of a lineage.
type layer struct {
	ws  workspaceID
	of  origin // the zero one for the fork itself
	it  *badger.Iterator
	txn *badger.Txn // its own, or nil
}

// rest is what of the present key does not depend on the workspace, or nil.
func (l *layer) rest() []byte {
	if !l.it.Valid() {
		return nil
	}
	return l.it.Item().Key()[9:]
}

// lineageIterator merges the layers of a fork, the nearest of which counts where several have a key.
type lineageIterator struct {
	layers []layer
	at     *layer // which has the present key, or nil at the end
	rest   []byte

	whiteouts bool // they come, too
}

// revisionOf is the revision that the present record of an iterator is of.
func revisionOf(it recordIterator) vfs.Rev {
	rev := vfs.Rev(it.Item().Version())
	if l, several := it.(*lineageIterator); several {
		rev = l.at.of.shown(rev)
	}
	return rev
}

func (it *lineageIterator) Seek(key []byte) {
	for i := range it.layers {
		l := &it.layers[i]
		k := bytes.Clone(key)
		binary.BigEndian.PutUint64(k[1:], uint64(l.ws))
		l.it.Seek(k)
	}
	it.settle()
}

// settle finds the next key that is not hidden, or whose whiteout comes.
func (it *lineageIterator) settle() {
	for {
		it.at = nil
		var low []byte
		for i := range it.layers {
			if rest := it.layers[i].rest(); rest != nil && (it.at == nil || bytes.Compare(rest, low) < 0) {
				it.at, low = &it.layers[i], rest
			}
		}
		if it.at == nil || it.whiteouts || !isWhiteout(it.at.it.Item()) {
			return
		}
		it.pass()
	}
}

// pass goes past the present key in all layers.
func (it *lineageIterator) pass() {
	it.rest = append(it.rest[:0], it.at.rest()...)
	for i := range it.layers {
		if l := &it.layers[i]; bytes.Equal(l.rest(), it.rest) && l.it.Valid() {
			l.it.Next()
		}
	}
}

func (it *lineageIterator) Valid() bool { return it.at != nil }

func (it *lineageIterator) Item() *badger.Item { return it.at.it.Item() }

func (it *lineageIterator) Next() {
	it.pass()
	it.settle()
}

func (it *lineageIterator) Close() {
	for i := range it.layers {
		it.layers[i].it.Close()
		if txn := it.layers[i].txn; txn != nil {
			txn.Discard()
		}
	}
}
