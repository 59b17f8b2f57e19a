package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// standing is where a workspace stands. Its revisions are those of the store that have changed its records: the others,
// made for other workspaces and for the store itself, are not told to its mirrors.
//
//	floor ............ next ....... rev
//	  nothing changed         changed
//
// The store keeps what was removed since the start of its window only. A mirror of a workspace that stood still while
// the window moved on has missed nothing all the same: floor and next remember that for one gap.
type standing struct {
	rev    vfs.Rev // the newest revision
	floor  vfs.Rev // no change is above it and below next
	next   vfs.Rev
	digest vfs.Digest
}

// oldest returns the lowest revision since which changes can be told when the window begins at start.
func (st *standing) oldest(start vfs.Rev) vfs.Rev {
	switch {
	case st.rev <= start:
		return st.rev
	case st.next > start:
		return st.floor
	}
	return start
}

// advance takes in changes of which the first is of revision first, the last of last.
func (st *standing) advance(start, first, last vfs.Rev) {
	switch st.oldest(start) {
	case st.rev:
		st.floor, st.next = st.rev, first
	case st.floor:
	default:
		st.floor, st.next = start, start+1
	}
	st.rev = last
}

// standingRecord is a standing as the store has it. Layout: at | rev | floor | next, uvarints | digest 32 bytes.
type standingRecord struct {
	standing
	at vfs.Rev // the revision at which it was so
}

func (r standingRecord) encode() []byte {
	var b []byte
	for _, v := range [...]vfs.Rev{r.at, r.rev, r.floor, r.next} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	digest := r.digest.Bytes()
	return append(b, digest[:]...)
}

func decodeStanding(b []byte) (r standingRecord, err error) {
	const digestLen = 32
	if len(b) < digestLen {
		return r, fmt.Errorf("standing record %x: %w", b, vfs.ErrCorrupt)
	}
	numbers, digest := b[:len(b)-digestLen], b[len(b)-digestLen:]
	v, err := uvarints(numbers, 4)
	if err != nil {
		return r, fmt.Errorf("standing record: %w", err)
	}
	r.at, r.rev, r.floor, r.next = vfs.Rev(v[0]), vfs.Rev(v[1]), vfs.Rev(v[2]), vfs.Rev(v[3])
	r.digest = vfs.DigestOf([digestLen]byte(digest))
	if r.rev > r.at || r.floor > r.rev {
		return r, fmt.Errorf("standing record %x: %w", b, vfs.ErrCorrupt)
	}
	return r, nil
}

// served is what a workspace that is used as an authority keeps up to date. It is guarded by reading.mu, so that a
// reader and the standing that it is told belong together.
type served struct {
	on bool
	standing
	saved bool // the store's record says so
	recent
	moved chan struct{} // closed when the standing changes
}

// set makes st the standing. The lock is held.
func (sv *served) set(st standing) {
	moved := sv.moved
	sv.on, sv.saved, sv.standing = true, true, st
	sv.moved = make(chan struct{})
	if moved != nil {
		close(moved)
	}
}

// position returns where a workspace that is served stands, and a channel that is closed when it no longer does.
func (w *Workspace) position() (vfs.Position, <-chan struct{}) {
	reading := &w.store.reading
	reading.mu.Lock()
	defer reading.mu.Unlock()
	return w.positionLocked(), w.served.moved
}

func (w *Workspace) positionLocked() vfs.Position {
	st := &w.served.standing
	return vfs.Position{
		Cursor: vfs.Cursor{Epoch: w.epoch(), Rev: st.rev}, Oldest: st.oldest(w.store.reading.start), Digest: st.digest,
	}
}

// epoch is the store's, with the workspace's number in it: a cursor is good for one workspace, also when that is
// removed and another gets its name.
func (w *Workspace) epoch() vfs.Epoch {
	e := w.store.epoch
	n := e[len(e)-8:]
	binary.BigEndian.PutUint64(n, binary.BigEndian.Uint64(n)^uint64(w.id))
	return e
}

func (w *Workspace) isServed() bool {
	w.store.reading.mu.Lock()
	defer w.store.reading.mu.Unlock()
	return w.served.on
}

// serve finds out where a workspace stands, the first time, and has commits keep that up to date. The digest comes from
// the store's record and from what has changed since it was written, or else from all records, less than a second for a million.
// Commits go on meanwhile.
func (w *Workspace) serve(ctx context.Context) error {
	if w.isServed() {
		return nil
	}
	vfs.WillBlock(ctx)
	select {
	case w.serving <- struct{}{}:
		defer func() { <-w.serving }()
	case <-ctx.Done():
		return vfs.ErrInterrupted
	}
	if w.isServed() {
		return nil
	}
	if err := w.store.beginWindow(ctx); err != nil {
		return err
	}
	st, at, err := w.findStanding(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	alive := func() error { return w.alive(ctx) }
	// What came meanwhile, before the committer is kept busy with the rest.
	head := w.store.reader()
	defer head.Close()
	if err := st.follow(w.id, at, head, alive); err != nil {
		return err
	}
	return w.store.edit(ctx, func(*revision) error {
		last := w.store.reader()
		defer last.Close()
		if err := st.follow(w.id, head, last, alive); err != nil {
			return err
		}
		w.store.reading.mu.Lock()
		defer w.store.reading.mu.Unlock()
		w.served.recent = recent{since: st.rev}
		w.served.set(st)
		w.served.saved = false // the revision that this edit is of writes it
		return nil
	})
}

// findStanding returns a standing of the workspace, and a reader of a revision at which it was so.
func (w *Workspace) findStanding(ctx context.Context) (standing, *reader, error) {
	s := w.store
	head := s.reader()
	rec, err := head.standing(w.id)
	known := err == nil
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		head.Close()
		return standing{}, nil, err
	}
	if known {
		if at := s.readerSince(rec.at); at != nil {
			head.Close()
			return rec.standing, at, nil
		}
	}
	digest, found, err := s.inheritedDigest(w.id, head, func() error { return w.alive(ctx) })
	if err == nil && !known && found {
		start := s.windowStart()
		return standing{rev: head.rev, floor: start, next: start + 1, digest: digest}, head, nil
	}
	if err == nil {
		digest, err = head.digest(w.id, vfs.AllInos, func() error { return w.alive(ctx) })
	}
	if err != nil {
		head.Close()
		return standing{}, nil, err
	}
	if known && digest == rec.digest {
		return rec.standing, head, nil
	}
	start := s.windowStart()
	return standing{rev: head.rev, floor: start, next: start + 1, digest: digest}, head, nil
}

// follow takes in what has changed between two revisions. It asks now and then whether to go on.
func (st *standing) follow(ws workspaceID, old, head *reader, alive func() error) error {
	var d digestChange
	err := head.records(ws, vfs.AllInos, old.rev, func(r vfs.Record) error {
		if err := d.replace(old, ws, r); err != nil {
			return err
		}
		return alive()
	})
	if err == nil && d.first > 0 {
		st.digest = st.digest.Plus(d.delta)
		st.advance(head.store.windowStart(), d.first, d.last)
	}
	return err
}

func (r *reader) standing(ws workspaceID) (rec standingRecord, err error) {
	err = r.get(keyOfStanding(ws), func(b []byte) error {
		rec, err = decodeStanding(b)
		return err
	})
	return rec, err
}
