package casstore

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// recover reads the store's own records, makes them when the store is new, and undoes what a crash has left of a
// revision that was not finished.
func (s *Store) recover() error {
	if s.db.MaxVersion() == 0 {
		if err := s.initialise(); err != nil {
			return err
		}
	}
	head, err := s.readHead()
	if err != nil {
		return err
	}
	if err := s.witness.check(head.rev); err != nil {
		return errors.Join(err, s.putBack())
	}
	if top := vfs.Rev(s.db.MaxVersion()); top > head.rev {
		s.log.Warn("undoing a revision that a crash has left unfinished", "head", head.rev, "torn", top)
		if head, err = s.undoTorn(head, top); err != nil {
			return err
		}
	}
	s.publish(head.rev)
	s.inos.Store(uint64(head.ino))
	s.nextWS.Store(uint64(head.nextWS))
	r := s.readerAt(head.rev)
	defer r.Close()
	if s.packEnds, err = r.packEnds(); err != nil {
		return err
	}
	return errors.Join(s.recoverForks(r), s.recoverPins(r), s.recoverWindows(r))
}

// putBack closes Badger and leaves its logs as they were found.
func (s *Store) putBack() error {
	s.maps.close()
	s.compactors.close()
	err := s.db.Close()
	s.db = nil
	return errors.Join(err, s.witness.restoreLogs(), s.witness.forgetLogs())
}

// readHead reads the format and the head, whatever is above the head.
func (s *Store) readHead() (headRecord, error) {
	r := s.readerAt(maxGen)
	defer r.Close()
	f, err := r.format()
	if errors.Is(err, vfs.ErrNotExist) {
		return headRecord{}, fmt.Errorf("no format record: %w", vfs.ErrNotStore)
	}
	if err != nil {
		return headRecord{}, err
	}
	s.epoch, s.format = f.epoch, f.version
	head, err := r.head()
	if errors.Is(err, vfs.ErrNotExist) {
		return headRecord{}, fmt.Errorf("no head record: %w", vfs.ErrCorrupt)
	}
	return head, err
}

// initialise makes the first revision of a new store.
func (s *Store) initialise() error {
	f := formatRecord{version: firstFormat}
	if _, err := rand.Read(f.epoch[:]); err != nil {
		return err
	}
	head := headRecord{rev: 1, ino: vfs.RootIno + 1, nextWS: 1}
	return s.apply(1, []kv{{key: []byte{keyFormat}, value: f.encode()}}, head)
}

// undoTorn gives every key that was written above the head the value that it had at the head, as a revision of its
// own above the torn one. It may be cut short by a crash like any revision: then it is done again.
func (s *Store) undoTorn(head headRecord, top vfs.Rev) (headRecord, error) {
	old := s.readerAt(head.rev)
	defer old.Close()
	torn, err := s.keysAbove(head.rev)
	if err != nil {
		return head, err
	}
	kvs := make([]kv, 0, len(torn))
	for _, key := range torn {
		e := kv{key: key}
		item, err := old.txn.Get(key)
		if err == nil {
			e.hide = isWhiteout(item)
			err = item.Value(func(v []byte) error {
				e.value = append([]byte{}, v...)
				return nil
			})
		}
		if err != nil && !errors.Is(err, badger.ErrKeyNotFound) {
			return head, badgerError(err, key)
		}
		kvs = append(kvs, e)
	}
	head.rev = top + 1
	rec := revisionRecord{time: s.now()}
	kvs = append(kvs, kv{key: keyOfRevision(head.rev), value: rec.encode()})
	return head, s.apply(uint64(head.rev), kvs, head)
}

// keysAbove returns the keys that have a version above rev, removed ones too, but not the head's.
func (s *Store) keysAbove(rev vfs.Rev) ([][]byte, error) {
	txn := s.db.NewTransactionAt(maxGen, false)
	defer txn.Discard()
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.AllVersions = true // with removed keys
	opt.SinceTs = uint64(rev)
	it := txn.NewIterator(opt)
	defer it.Close()
	var keys [][]byte
	for it.Rewind(); it.Valid(); it.Next() {
		k := it.Item().Key()
		if n := len(keys); (n > 0 && string(keys[n-1]) == string(k)) || (len(k) == 1 && k[0] == keyHead) {
			continue
		}
		keys = append(keys, append([]byte(nil), k...))
	}
	return keys, nil
}
