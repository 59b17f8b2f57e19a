package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// window is the run of revisions since which changes can be told. What was removed or replaced in it stays in Badger,
// so it is bounded: by age, by the number of revisions, and by the bytes written in it, which are the most that can have
// become garbage. It begins when a workspace of the store is first used as an authority; a store that never is has none.
//
// Its start is a record of the store, which is durable before Badger may drop anything below. The rest is for the
// committer's goroutine alone.
type window struct {
	bounds  windowBounds
	marks   []windowMark // where it may begin next, ascending
	written uint64       // bytes of records since the store was opened
}

type windowBounds struct {
	revisions vfs.Rev
	age       vfs.Time
	bytes     uint64
	slack     vfs.Time // by which it may be older before it begins anew
	apart     vfs.Time // of marks
	every     vfs.Rev  // marks are of multiples of it
}

// windowMark is a revision, when it was made, and how much had been written by then.
type windowMark struct {
	rev     vfs.Rev
	time    vfs.Time
	written uint64
}

// windowStart is the revision that the window begins with, or zero.
func (s *Store) windowStart() vfs.Rev {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	return s.reading.start
}

// beginWindow begins the window, if the store has none yet.
func (s *Store) beginWindow(ctx context.Context) error {
	if s.windowStart() > 0 {
		return nil
	}
	return s.edit(ctx, func(v *revision) error {
		if s.windowStart() == 0 {
			v.startWindow(v.rev)
		}
		return nil
	})
}

// closeWindow lets everything go that is older than the head, because space is needed: mirrors that are not up to date
// take a snapshot.
func (s *Store) closeWindow(ctx context.Context) error {
	if s.windowStart() == 0 {
		return nil
	}
	return s.edit(ctx, func(v *revision) error {
		v.startWindow(v.rev)
		return nil
	})
}

// startWindow has the window begin with a revision, from this one on.
func (v *revision) startWindow(start vfs.Rev) {
	v.start = start
	v.kvs = append(v.kvs, kv{key: []byte{keyWindow}, value: uvarint(uint64(start))})
}

// slideWindow moves the start of the window on, now and then.
func (v *revision) slideWindow() {
	old := v.store.windowStart()
	if old == 0 || v.start > 0 || v.rev%discardEvery != 0 {
		return
	}
	w := &v.store.window
	bytes := max(w.bounds.bytes, uint64(v.store.tablesSize()/2))
	if start := w.choose(v.rev, v.store.now(), bytes); start > old {
		v.startWindow(start)
	}
}

// choose returns the mark with which the window may begin, and forgets those before it. It is zero when the window may stay as
// it is.
func (w *window) choose(head vfs.Rev, now vfs.Time, bytes uint64) (start vfs.Rev) {
	for long := w.isLong(head, now, bytes); long && w.passed(head, now, bytes); {
		w.marks = w.marks[1:]
		start = w.marks[0].rev
	}
	return start
}

// isLong reports whether so much has passed that the window is to begin anew.
func (w *window) isLong(head vfs.Rev, now vfs.Time, bytes uint64) bool {
	return w.passed(head, now, bytes) && (w.full(head, bytes) || now-w.marks[0].time >= w.bounds.age+w.bounds.slack)
}

// passed reports whether the window may begin with its second mark. Of its age it has no less than it may: what was when that began
// is in it.
func (w *window) passed(head vfs.Rev, now vfs.Time, bytes uint64) bool {
	return len(w.marks) > 1 && (w.full(head, bytes) || now-w.marks[1].time > w.bounds.age)
}

// full reports whether more is in the window than may be.
func (w *window) full(head vfs.Rev, bytes uint64) bool {
	return head-w.marks[0].rev > w.bounds.revisions || w.written-w.marks[0].written > bytes
}

// note counts what a revision has written.
func (w *window) note(rev vfs.Rev, now vfs.Time, bytes uint64) {
	w.written += bytes
	apart := len(w.marks) == 0 || now-w.marks[len(w.marks)-1].time >= w.bounds.apart
	if len(w.marks) == 0 || rev%w.bounds.every == 0 && apart {
		w.marks = append(w.marks, windowMark{rev: rev, time: now, written: w.written})
	}
}

// recoverWindows finds the window and the history of a store that is being opened. How much was written since they began
// is taken from what the revisions say.
func (s *Store) recoverWindows(r *reader) error {
	s.window.bounds = windowBounds{
		revisions: windowRevisions, age: vfs.Time(windowAge), bytes: windowBytes, every: discardEvery,
	}
	err := r.get([]byte{keyWindow}, func(b []byte) error {
		v, err := uvarints(b, 1)
		if err == nil {
			s.reading.start = vfs.Rev(v[0])
		}
		return err
	})
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	if err := s.recoverHistory(r); err != nil {
		return err
	}
	low := min(s.reading.start, s.reading.kept)
	if low == 0 {
		low = max(s.reading.start, s.reading.kept)
	}
	if low == 0 {
		return nil
	}
	return r.scan([]byte{keyRevision}, keyOfRevision(low), true, func(key, value []byte) (bool, error) {
		rec, err := decodeRevision(value)
		if err != nil || len(key) != 9 {
			return false, fmt.Errorf("revision %x: %w", key, errors.Join(vfs.ErrCorrupt, err))
		}
		rev := vfs.Rev(binary.BigEndian.Uint64(key[1:]))
		s.noteBoth(rev, rec.time, rec.records()*recordCost/4)
		return true, nil
	})
}

// noteBoth counts a revision for the window and for the history, as far as they reach back to it.
func (s *Store) noteBoth(rev vfs.Rev, now vfs.Time, bytes uint64) {
	if start := s.windowStart(); start > 0 && rev >= start {
		s.window.note(rev, now, bytes)
	}
	if kept := s.historyStart(); kept > 0 && rev >= kept {
		s.history.note(rev, now, bytes)
	}
}

// note counts what a revision has written.
func (v *revision) note(all []kv) {
	if v.store.windowStart() == 0 && v.store.historyStart() == 0 {
		return
	}
	bytes := uint64(0)
	for _, e := range all {
		bytes += uint64(len(e.key) + len(e.value))
	}
	v.store.noteBoth(v.rev, v.store.now(), bytes)
}

// readerSince returns a reader of a revision from which on the store still has everything, or nil.
func (s *Store) readerSince(rev vfs.Rev) *reader {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	if s.reading.start == 0 || rev < s.reading.start || rev > s.head() {
		return nil
	}
	return s.readerLocked(rev, rev)
}

// publish makes a revision the head, together with where it leaves the workspaces that are served.
func (v *revision) publish() {
	s := v.store
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	s.publish(v.rev)
	if v.format > 0 {
		s.format = v.format
	}
	if v.snapshots {
		s.snapshotsChanged()
	}
	if v.start > 0 {
		s.reading.start = v.start
	}
	if v.history != nil {
		s.reading.kept, s.reading.keep = v.history.start, v.history.keep
	}
	for _, p := range v.pins {
		s.reading.pins.add(p)
	}
	for _, f := range v.forked {
		s.setFork(f.ws, f.forkRecord, v.rev)
		if len(f.layers) > s.flattener.over {
			s.flattener.hint()
		}
	}
	for _, ws := range v.unforked {
		s.dropFork(ws)
	}
	for w, st := range v.standings {
		if st.rev == v.rev {
			w.served.set(st)
			w.served.add(v.recents[w])
		} else {
			w.served.standing, w.served.saved = st, true
		}
	}
}
