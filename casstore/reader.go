package casstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// reader reads records as they were at one revision. It is for one goroutine.
type reader struct {
	store *Store
	rev   vfs.Rev
	pin   vfs.Rev // the revision from which on Badger keeps everything for it: rev, or an earlier one
	txn   *badger.Txn

	known *knownOrigins // or nil
}

// knownOrigins are those of a workspace which the store need not know any more, because it was removed.
type knownOrigins struct {
	ws      workspaceID
	origins []origin
}

// reader returns a reader of the newest revision. The caller closes it.
func (s *Store) reader() *reader {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	return s.readerLocked(s.head(), s.head())
}

// readerAt returns a reader of a revision, which nobody may be about to let go.
func (s *Store) readerAt(rev vfs.Rev) *reader {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	return s.readerLocked(rev, rev)
}

func (s *Store) readerLocked(rev, pin vfs.Rev) *reader {
	s.reading.open[pin]++
	return &reader{store: s, rev: rev, pin: pin, txn: s.db.NewTransactionAt(uint64(rev), false)}
}

// Close lets go of the revision.
func (r *reader) Close() {
	r.txn.Discard()
	s := r.store
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	if n := s.reading.open[r.pin]; n > 1 {
		s.reading.open[r.pin] = n - 1
	} else {
		delete(s.reading.open, r.pin)
	}
}

// as has the reader see a workspace with its origins also when it was removed. It returns the reader.
func (r *reader) as(ws workspaceID, origins []origin) *reader {
	r.known = &knownOrigins{ws, origins}
	return r
}

// originsOf returns where a workspace's records are, beside its own.
func (r *reader) originsOf(ws workspaceID) []origin {
	if r.known != nil && r.known.ws == ws {
		return r.known.origins
	}
	return r.store.origins(ws)
}

// reading knows which revisions are being read. Badger by itself keeps for a reader only the tables that were there
// when an iterator began; each look-up and each further scan sees the tables of its moment.
type reading struct {
	mu    sync.Mutex
	open  map[vfs.Rev]int // how many readers each has
	start vfs.Rev         // of the window, or zero when there is none
	kept  vfs.Rev         // of the history, or zero when none is kept
	keep  vfs.Time        // how long it is to be kept
	pins  pins

	retired []retiredFork
}

// letGoOld lets Badger drop, in compactions to come, what no reader sees and no revision from the window's start on holds.
func (s *Store) letGoOld() {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	s.reading.release()
	low := s.head()
	for _, start := range [...]vfs.Rev{s.reading.start, s.reading.kept, s.reading.pins.lowest()} {
		if start > 0 {
			low = min(low, start)
		}
	}
	for rev := range s.reading.open {
		low = min(low, rev)
	}
	s.db.SetDiscardTs(uint64(low))
}

// get calls decode with the value of a key, which is valid until decode returns. ErrNotExist when there is none.
func (r *reader) get(key []byte, decode func([]byte) error) error {
	r.store.maps.read()
	item, err := r.txn.Get(key)
	switch {
	case err == nil && isWhiteout(item):
		return vfs.ErrNotExist
	case err == nil:
		err = item.Value(decode)
	case errors.Is(err, badger.ErrKeyNotFound):
		if origins := r.inherited(key); origins != nil {
			return r.getFrom(origins, key, decode)
		}
	}
	return badgerError(err, key)
}

// badgerError gives Badger's errors our sentinels. What Badger says of a key that is there is that it is damaged.
func badgerError(err error, key []byte) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, badger.ErrKeyNotFound):
		return vfs.ErrNotExist
	case errors.Is(err, badger.ErrDBClosed):
		return vfs.ErrClosed
	case errors.Is(err, vfs.ErrCorrupt), errors.Is(err, vfs.ErrNewerFormat), errors.Is(err, vfs.ErrNotStore):
		return fmt.Errorf("record %x: %w", key, err)
	}
	return fmt.Errorf("record %x: %w: %w", key, vfs.ErrCorrupt, err)
}

func (r *reader) inode(ws workspaceID, ino vfs.Ino) (rec vfs.InodeRecord, err error) {
	err = r.get(keyOfNode(keyInode, ws, ino), func(b []byte) error {
		rec, err = vfs.DecodeInode(append([]byte(nil), b...))
		return err
	})
	return rec, err
}

// dirent returns the record of a name: the zero one when there is none.
func (r *reader) dirent(ws workspaceID, dir vfs.Ino, name string) (rec vfs.DirentRecord, err error) {
	err = r.get(keyOfDirent(ws, dir, name), func(b []byte) error {
		rec, err = vfs.DecodeDirent(b)
		return err
	})
	if errors.Is(err, vfs.ErrNotExist) {
		err = nil
	}
	return rec, err
}

func (r *reader) atime(ws workspaceID, ino vfs.Ino) (t vfs.Time, set bool, err error) {
	key := keyOfNode(keyAtime, ws, ino)
	err = r.get(key, func(b []byte) error {
		v, err := uvarints(b, 1)
		if err == nil {
			t, set = unzigzag(v[0]), true
		}
		return err
	})
	if errors.Is(err, vfs.ErrNotExist) {
		err = nil
	}
	return t, set, err
}

func (r *reader) chunk(id chunk.ID) (loc pack.Loc, err error) {
	err = r.get(keyOfChunk(id), func(b []byte) error {
		loc, err = decodeLoc(b)
		return err
	})
	return loc, err
}

func (r *reader) xattrs(ws workspaceID, ino vfs.Ino) (map[string][]byte, error) {
	values := make(map[string][]byte)
	err := r.scan(keyOfNode(keyXattr, ws, ino), nil, true, func(key, value []byte) (bool, error) {
		values[string(key[prefixLen:])] = append([]byte{}, value...)
		return true, nil
	})
	return values, err
}

// storedDirent is an entry of a directory as the store has it.
type storedDirent struct {
	vfs.DirentRecord
	hash uint64
	name string
}

// dirents returns up to limit entries of a directory, from a hash on; last says that there are no more.
func (r *reader) dirents(ws workspaceID, dir vfs.Ino, hash uint64, limit int) (out []storedDirent, last bool, err error) {
	prefix := keyOfNode(keyDirent, ws, dir)
	from := binary.BigEndian.AppendUint64(append([]byte(nil), prefix...), hash)
	last = true
	err = r.scan(prefix, from, true, func(key, value []byte) (bool, error) {
		if len(out) == limit {
			last = false
			return false, nil
		}
		if len(key) <= direntLen {
			return false, fmt.Errorf("dirent key %x: %w", key, vfs.ErrCorrupt)
		}
		rec, err := vfs.DecodeDirent(value)
		out = append(out, storedDirent{
			DirentRecord: rec, hash: binary.BigEndian.Uint64(key[prefixLen:]), name: string(key[direntLen:]),
		})
		return err == nil, err
	})
	return out, last, err
}

// scan calls fn for the keys of a prefix in order, from a key on when from is not nil, until it returns false. Key and
// value are valid until fn returns; the value is nil unless values is set. Of a fork it sees the tree: keys of its origins
// come as its own.
func (r *reader) scan(prefix, from []byte, values bool, fn func(key, value []byte) (bool, error)) error {
	opt := badger.DefaultIteratorOptions
	opt.Prefix = prefix
	opt.PrefetchValues = false // values lie with their keys; prefetching only adds goroutines
	it := r.iterator(opt)
	defer it.Close()
	_, several := it.(*lineageIterator)
	var own []byte
	if from == nil {
		from = prefix
	}
	for it.Seek(from); it.Valid(); it.Next() {
		r.store.maps.read()
		item := it.Item()
		key := item.Key()
		if several {
			own = append(append(own[:0], prefix[:9]...), key[9:]...)
			key = own
		}
		more, err := true, error(nil)
		switch {
		case isWhiteout(item):
		case values:
			err = badgerError(item.Value(func(v []byte) error {
				more, err = fn(key, v)
				return err
			}), key)
		default:
			more, err = fn(key, nil)
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// scanOwn calls fn for the keys of a prefix that the store itself has, whiteouts too, until it returns false.
func (r *reader) scanOwn(prefix []byte, fn func(*badger.Item) (bool, error)) error {
	opt := badger.DefaultIteratorOptions
	opt.Prefix = prefix
	opt.PrefetchValues = false
	it := r.txn.NewIterator(opt)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		r.store.maps.read()
		if more, err := fn(it.Item()); err != nil || !more {
			return badgerError(err, it.Item().Key())
		}
	}
	return nil
}

func (r *reader) head() (h headRecord, err error) {
	err = r.get([]byte{keyHead}, func(b []byte) error {
		h, err = decodeHead(b)
		return err
	})
	return h, err
}

func (r *reader) format() (f formatRecord, err error) {
	err = r.get([]byte{keyFormat}, func(b []byte) error {
		f, err = decodeFormat(b)
		return err
	})
	return f, err
}

// packEnds returns the committed length of every pack.
func (r *reader) packEnds() (map[uint32]uint32, error) {
	ends := make(map[uint32]uint32)
	err := r.scan([]byte{keyPack}, nil, true, func(key, value []byte) (bool, error) {
		v, err := uvarints(value, 1)
		if err != nil || len(key) != 5 {
			return false, fmt.Errorf("pack record %x: %w", key, vfs.ErrCorrupt)
		}
		ends[binary.BigEndian.Uint32(key[1:])] = uint32(v[0])
		return true, nil
	})
	return ends, err
}
