package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// DefaultHistory is how long history is worth keeping for people: until they notice.
const DefaultHistory = 24 * time.Hour

// historyRecord says for how long the store keeps what was replaced and removed, chunks too, and from which revision on
// it has. Layout: keep, in nanoseconds | start, uvarints; both zero when it keeps none.
type historyRecord struct {
	keep  vfs.Time
	start vfs.Rev
}

func (r historyRecord) encode() []byte {
	return binary.AppendUvarint(uvarint(uint64(r.keep)), uint64(r.start))
}

func decodeHistory(b []byte) (historyRecord, error) {
	v, err := uvarints(b, 2)
	if err != nil {
		return historyRecord{}, fmt.Errorf("history record: %w", err)
	}
	return historyRecord{keep: vfs.Time(v[0]), start: vfs.Rev(v[1])}, nil
}

// KeepHistory has every revision of the last d be readable from now on; zero for none. What is older stays a little longer: for
// a 256th of d, a second at the least, and until something is committed or collected. It is at most a fifth of the disk,
// or less when space is needed. A store that was never told keeps none.
func (s *Store) KeepHistory(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("keep history for %v: %w", d, vfs.ErrInvalid)
	}
	return s.edit(ctx, func(v *revision) error {
		h := historyRecord{keep: vfs.Time(d), start: s.historyStart()}
		switch {
		case d == 0:
			h.start = 0
		case h.start == 0:
			h.start = v.rev
			s.history.marks = nil
		}
		s.history.bounds.keep(h.keep)
		v.setHistory(h)
		return nil
	})
}

// beginHistory keeps what is kept by default, when nobody has said.
func (s *Store) beginHistory(ctx context.Context) error {
	if s.opt.DefaultHistory <= 0 {
		return nil
	}
	h, err := s.History(ctx)
	if err == nil && !h.Told {
		err = s.KeepHistory(ctx, s.opt.DefaultHistory)
	}
	return err
}

// History is what a store keeps of what was.
type History struct {
	Told  bool          // somebody has said for how long
	Keep  time.Duration // zero for none
	Start vfs.Rev       // every revision from this one on can be read; zero while none is kept
}

// History says how much history is kept.
func (s *Store) History(context.Context) (History, error) {
	r := s.reader()
	defer r.Close()
	h, err := r.history()
	switch {
	case errors.Is(err, vfs.ErrNotExist):
		return History{}, nil
	case err != nil:
		return History{}, fmt.Errorf("history: %w", err)
	}
	return History{Told: true, Keep: time.Duration(h.keep), Start: h.start}, nil
}

func (r *reader) history() (h historyRecord, err error) {
	err = r.get([]byte{keyHistory}, func(b []byte) error {
		h, err = decodeHistory(b)
		return err
	})
	return h, err
}

func (v *revision) setHistory(h historyRecord) {
	v.history = &h
	v.kvs = append(v.kvs, kv{key: []byte{keyHistory}, value: h.encode()})
}

// historyStart is the revision from which on history is kept, or zero.
func (s *Store) historyStart() vfs.Rev {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	return s.reading.kept
}

// keep has the history be of an age, and a little more, so that it begins anew now and then only.
func (b *windowBounds) keep(age vfs.Time) {
	b.age, b.slack = age, max(vfs.Time(markApart), age/historySlack)
}

// slideHistory moves the start of the history on.
func (v *revision) slideHistory() {
	s := v.store
	old := s.historyStart()
	if old == 0 || v.history != nil {
		return
	}
	if start := s.history.choose(v.rev, s.now(), s.history.bounds.bytes); start > old {
		v.startHistory(start)
	}
}

// isHistoryLong reports whether a revision would move the start of the history on. It is for the committer's goroutine.
func (s *Store) isHistoryLong() bool {
	return s.historyStart() > 0 && s.history.isLong(s.head(), s.now(), s.history.bounds.bytes)
}

// startHistory has the history begin later.
func (v *revision) startHistory(start vfs.Rev) {
	s := v.store
	s.reading.mu.Lock()
	keep := s.reading.keep
	s.reading.mu.Unlock()
	v.setHistory(historyRecord{keep: keep, start: start})
}

// shortenHistory lets half of the history go, or all of it when less is left than there are marks for. It reports whether
// there was any.
func (s *Store) shortenHistory(ctx context.Context, all bool) (any bool, err error) {
	if s.historyStart() == 0 {
		return false, nil
	}
	err = s.edit(ctx, func(v *revision) error {
		start := v.rev
		if n := len(s.history.marks); n > 2 && !all {
			s.history.marks = s.history.marks[n/2:]
			start = s.history.marks[0].rev
		} else {
			s.history.marks = nil
		}
		any = s.historyStart() < s.head()
		v.startHistory(start)
		return nil
	})
	return any, err
}

// recoverHistory finds the history of a store that is being opened.
func (s *Store) recoverHistory(r *reader) error {
	h, err := r.history()
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	bytes := uint64(historyBytes)
	if disk, err := s.diskSize(); err == nil {
		bytes = min(bytes, disk*historyShare/100)
	}
	s.history.bounds = windowBounds{revisions: windowRevisions, bytes: bytes, apart: vfs.Time(markApart), every: 1}
	s.history.bounds.keep(h.keep)
	s.reading.kept, s.reading.keep = h.start, h.keep
	return nil
}
