package casstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// RevisionKind says why a revision was made. The values are part of the format.
type RevisionKind uint8

// The kinds of revision.
const (
	RevisionUnknown  RevisionKind = iota
	RevisionPeriodic              // what had changed since the one before
	RevisionFsync                 // somebody waited for a file
	RevisionSync                  // somebody waited for everything
	RevisionPush                  // changes of a mirror
	RevisionCreate                // a workspace was made
	RevisionSnapshot
	RevisionUpkeep // the store's own
	RevisionFork   // a workspace was made of another
	RevisionRestore
	RevisionMerge
	RevisionLoad // a backup was loaded
)

var revisionKinds = [...]string{"revision", "periodic", "fsync", "sync", "push", "create", "snapshot", "upkeep", "fork", "restore",
	"merge", "load"}

// String is the kind in a word.
func (k RevisionKind) String() string {
	if int(k) < len(revisionKinds) {
		return revisionKinds[k]
	}
	return revisionKinds[RevisionUnknown]
}

// kindOf is the kind of a revision that answers a batch of requests. An edit may say something else.
func kindOf(batch []request) RevisionKind {
	kind := RevisionPeriodic
	for i := range batch {
		switch r := &batch[i]; {
		case r.edit != nil:
			return RevisionUpkeep
		case r.whole:
			kind = RevisionSync
		case r.tree != nil && kind == RevisionPeriodic:
			kind = RevisionFsync
		}
	}
	return kind
}

// record says what the revision is.
func (v *revision) record() revisionRecord {
	rec := revisionRecord{time: v.store.now(), kind: v.kind}
	if v.of > 0 {
		rec.parts = append(rec.parts, revisionPart{ws: v.of})
	}
	rec.parts = append(rec.parts, v.loaded...)
	for _, c := range v.cuts {
		if c.tree.id == v.of {
			rec.parts[0].records = c.records
		} else {
			rec.parts = append(rec.parts, revisionPart{c.tree.id, c.records})
		}
	}
	return rec
}

// forgetRevisions removes some of what the log has of revisions that are no longer kept, now and then. old is at the
// head.
func (v *revision) forgetRevisions(old *reader) error {
	s := v.store
	if v.rev%discardEvery != 0 {
		return nil
	}
	low := v.rev - min(v.rev, logKept)
	for _, start := range [...]vfs.Rev{s.windowStart(), s.historyStart()} {
		if start > 0 {
			low = min(low, start)
		}
	}
	n := 0
	return old.scan([]byte{keyRevision}, keyOfRevision(s.forgotten), false, func(key, _ []byte) (bool, error) {
		if rev := vfs.Rev(binary.BigEndian.Uint64(key[1:])); rev < low {
			v.kvs = append(v.kvs, kv{key: append([]byte(nil), key...)})
			s.forgotten = rev
			n++
			return n < forgetBatch, nil
		}
		return false, nil
	})
}

// LogEntry is a revision that has changed a workspace.
type LogEntry struct {
	Rev      vfs.Rev
	Time     vfs.Time
	Kind     RevisionKind
	Records  uint64 // inodes, names and attributes that were written or removed
	Snapshot string // the name of a snapshot of it, if there is one
	Readable bool   // it can be opened: WORKSPACE@REV
}

// Log calls yield for the revisions of a workspace, the newest first, until it returns false. It reaches back as far as
// history is kept, and some thousand revisions in any case. ErrNoWorkspace.
func (s *Store) Log(ctx context.Context, name string, yield func(LogEntry) bool) error {
	err := s.listRevisions(ctx, name, yield)
	if err != nil {
		return fmt.Errorf("log of workspace %q: %w", name, err)
	}
	return nil
}

func (s *Store) listRevisions(ctx context.Context, name string, yield func(LogEntry) bool) error {
	info, err := s.find(name)
	if err != nil {
		return err
	}
	id := workspaceID(info.ID)
	snapshots, err := s.snapshotsOf(id)
	if err != nil {
		return err
	}
	named := make(map[vfs.Rev]string, len(snapshots))
	for _, sn := range snapshots {
		named[sn.Rev] = sn.Name
	}
	r := s.reader()
	defer r.Close()
	return r.revisions(r.rev, func(rev vfs.Rev, rec revisionRecord) (bool, error) {
		for _, p := range rec.parts {
			if p.ws == id {
				e := LogEntry{Rev: rev, Time: rec.time, Kind: rec.kind, Records: p.records, Snapshot: named[rev]}
				e.Readable = s.readable(id, rev)
				return yield(e) && ctx.Err() == nil, nil
			}
		}
		return ctx.Err() == nil, nil
	})
}

// RevisionsAfter returns how many revisions that have changed records of the workspace are above rev, and when the oldest of
// them was made. It looks at up to max revisions of the store, the newest first: what is above rev and older than these is not counted.
func (w *Workspace) RevisionsAfter(ctx context.Context, rev vfs.Rev, max int) (n int, oldest vfs.Time, err error) {
	r := w.store.reader()
	defer r.Close()
	err = r.revisions(r.rev, func(at vfs.Rev, rec revisionRecord) (bool, error) {
		if at <= rev || max == 0 {
			return false, nil
		}
		max--
		if slices.ContainsFunc(rec.parts, func(p revisionPart) bool { return p.ws == w.id && p.records > 0 }) {
			n, oldest = n+1, rec.time
		}
		return true, ctx.Err()
	})
	if err != nil {
		return 0, 0, fmt.Errorf("revisions after %d: %w", rev, err)
	}
	return n, oldest, nil
}

// revisions calls fn for the revisions of the log from one on downwards, until it returns false.
func (r *reader) revisions(from vfs.Rev, fn func(vfs.Rev, revisionRecord) (bool, error)) error {
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.Reverse = true
	opt.Prefix = []byte{keyRevision}
	it := r.txn.NewIterator(opt)
	defer it.Close()
	for it.Seek(keyOfRevision(from)); it.Valid(); it.Next() {
		item := it.Item()
		more := false
		err := badgerError(item.Value(func(b []byte) error {
			rec, err := decodeRevision(b)
			if err == nil {
				more, err = fn(vfs.Rev(binary.BigEndian.Uint64(item.Key()[1:])), rec)
			}
			return err
		}), item.Key())
		if err != nil || !more {
			return err
		}
	}
	return nil
}
