package casstore

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// keptRevisions are the revisions at which records can be read, beside the head.
type keptRevisions struct {
	history vfs.Rev                   // all from this one on, or none when it is zero
	pins    map[workspaceID][]vfs.Rev // ascending
}

func (s *Store) keptRevisions() keptRevisions {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	return keptRevisions{history: s.reading.kept, pins: s.reading.pins.sorted()}
}

// wants says for what a version of a record of a workspace is there: it was replaced at a revision above it, newer, which
// is math.MaxUint64 while it has not been.
func (k *keptRevisions) wants(ws workspaceID, version, newer vfs.Rev) (live, past bool) {
	if newer == math.MaxUint64 {
		return true, false
	}
	pins := k.pins[ws]
	if i, _ := slices.BinarySearch(pins, version); i < len(pins) && pins[i] < newer {
		return true, false
	}
	return false, k.history > 0 && newer > k.history
}

// version is one version of an inode's record.
type version struct {
	ws    workspaceID
	ino   vfs.Ino
	rev   vfs.Rev // that it is of
	newer vfs.Rev // that replaced or removed it, or math.MaxUint64
	value []byte  // valid until the call returns
}

func (v *version) newest() bool { return v.newer == math.MaxUint64 }

// versions calls fn for all versions of the records of inodes that Badger has, but for what was removed.
func (r *reader) versions(ctx context.Context, fn func(version) error) error {
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.Prefix = []byte{keyInode}
	opt.AllVersions = true
	it := r.txn.NewIterator(opt)
	defer it.Close()
	var key []byte
	newer := vfs.Rev(math.MaxUint64)
	for it.Rewind(); it.Valid(); it.Next() {
		if ctx.Err() != nil {
			return vfs.ErrInterrupted
		}
		r.store.maps.read()
		item := it.Item()
		if !bytes.Equal(key, item.Key()) {
			key, newer = item.KeyCopy(key), math.MaxUint64
		}
		v := version{rev: vfs.Rev(item.Version()), newer: newer}
		v.ws, v.ino = nodeOfKey(key)
		newer = v.rev
		if item.IsDeletedOrExpired() || isWhiteout(item) {
			continue
		}
		err := item.Value(func(b []byte) error {
			v.value = b
			return fn(v)
		})
		if err != nil {
			return badgerError(err, key)
		}
	}
	return nil
}

// markRecords marks what the records refer to at the head and at every revision that is kept.
func (s *Store) markRecords(ctx context.Context, m *marked) error {
	kept := s.keptRevisions()
	r := s.reader()
	defer r.Close()
	return r.versions(ctx, func(v version) error {
		live, past := kept.wants(v.ws, v.rev, v.newer)
		set := m.live
		switch {
		case !live && !past:
			return nil
		case past:
			set = m.past
		}
		body := v.value
		rec, err := vfs.DecodeInode(v.value)
		if err == nil {
			body, err = rec.Body.Data, s.markBody(ctx, rec.Body, set.mark)
		}
		return m.note(state{v.ws, v.ino, v.rev, body}, err)
	})
}

// markAndWeigh finds out what is live, and has the history let go of what goes beyond its share of the disk.
func (s *Store) markAndWeigh(ctx context.Context, old []pack.Info) (*marked, []*weighed, error) {
	for {
		m, err := s.mark(ctx)
		if err != nil {
			return nil, nil, err
		}
		packs, past, err := s.weigh(m, s.collector.spare(m, old))
		if err != nil {
			return nil, nil, err
		}
		s.space.inHistory.Store(int64(past))
		disk, err := s.diskSize()
		if err != nil {
			return nil, nil, err
		}
		if past > disk*historyShare/100 {
			shorter, err := s.shortenHistory(ctx, false)
			if err != nil {
				return nil, nil, err
			}
			if shorter {
				continue
			}
		}
		s.letGoOld()
		return m, packs, nil
	}
}

// historyPassed reports whether there was so much for the history only, and so much of that has passed since the last
// collection, that another is worth it.
func (c *collector) historyPassed() bool {
	then := vfs.Rev(c.headThen.Load())
	kept := c.store.historyStart()
	return c.store.space.inHistory.Load() >= gcHistory && kept > then
}
