package casstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// writeSome writes as many keys as one transaction takes, durably, and returns how many that were.
func (s *Store) writeSome(ts uint64, kvs []kv) (int, error) {
	txn := s.db.NewTransactionAt(ts, true)
	defer txn.Discard()
	n := 0
	for _, e := range kvs {
		var err error
		switch {
		case e.hide:
			err = txn.SetEntry(badger.NewEntry(e.key, nil).WithMeta(whiteout))
		case e.value == nil:
			err = txn.Delete(e.key)
		default:
			err = txn.Set(e.key, e.value)
		}
		if errors.Is(err, badger.ErrTxnTooBig) && n > 0 {
			break
		}
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, txn.CommitAt(ts, nil)
}

func uvarint(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func encodeLoc(l pack.Loc) []byte { return l.Append(nil) }

func decodeLoc(b []byte) (pack.Loc, error) {
	l, err := pack.DecodeLoc(b)
	if err != nil {
		return pack.Loc{}, fmt.Errorf("%w: %w", vfs.ErrCorrupt, err)
	}
	return l, nil
}
