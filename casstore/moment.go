package casstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// A moment of a workspace is written WORKSPACE@WHEN, where WHEN is a revision (12345), the name of a snapshot, or how long
// ago (90s, 2h30m, 3d, 1w).

// SplitMoment parts a workspace's name from a moment. ok is false when there is none. No workspace has an @ in its name.
func SplitMoment(name string) (workspace, when string, ok bool) { return strings.Cut(name, "@") }

func parseRevision(when string) (vfs.Rev, bool) {
	rev, err := strconv.ParseUint(when, 10, 64)
	return vfs.Rev(rev), err == nil
}

// parseAge reads a duration, which may also be in whole days or weeks.
func parseAge(when string) (time.Duration, bool) {
	const day = 24 * time.Hour
	unit := time.Duration(0)
	switch {
	case strings.HasSuffix(when, "d"):
		unit = day
	case strings.HasSuffix(when, "w"):
		unit = 7 * day
	default:
		d, err := time.ParseDuration(when)
		return d, err == nil && d >= 0
	}
	n, err := strconv.ParseUint(when[:len(when)-1], 10, 16)
	return time.Duration(n) * unit, err == nil
}

// held are pins of a view: of the revision that it shows, and of the origins that show through.
type held struct {
	pin
	origins []origin
}

// newest stands for the head of the moment in which it is held.
const newest = vfs.Rev(1<<64 - 1)

// resolve finds the workspace and the revision that a moment means, and holds it.
func (s *Store) resolve(workspace, when string) (h held, err error) {
	info, err := s.find(workspace)
	if err != nil {
		return h, err
	}
	h.pin = pin{ws: workspaceID(info.ID), n: 1}
	r := s.reader() // at the head, so nothing that it leads to is let go meanwhile
	defer r.Close()
	h.origins = s.origins(h.ws)
	age, isAge := parseAge(when)
	rev, isRev := parseRevision(when)
	switch {
	case when == "" || isAge && age == 0:
		h.rev = newest
	case isRev:
		h.rev = rev
	case isAge:
		h.rev, err = r.revisionAt(s.now() - vfs.Time(age))
	default:
		var sn snapshotRecord
		sn, err = s.snapshot(h.ws, when)
		h.rev = sn.rev
	}
	if err != nil {
		return h, err
	}
	return h, s.hold(&h)
}

// hold pins a revision if it is kept: else ErrNoRevision.
func (s *Store) hold(h *held) error {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	if h.rev == newest {
		h.rev = s.head()
	}
	switch {
	case s.readableLocked(h.ws, h.rev):
		s.reading.pins.addAll(h.pin, h.origins)
		return nil
	case h.rev > s.head():
		return fmt.Errorf("revision %d is to come, the newest is %d: %w", h.rev, s.head(), vfs.ErrNoRevision)
	case s.reading.kept == 0:
		return fmt.Errorf("revision %d: no history is kept but snapshots: %w", h.rev, vfs.ErrNoRevision)
	}
	return fmt.Errorf("revision %d: history is kept from revision %d on: %w", h.rev, s.reading.kept, vfs.ErrNoRevision)
}

// hold holds a workspace as the revision leaves it: the head does, when no tree has changed.
func (v *revision) hold(ws workspaceID) held {
	s := v.store
	h := held{pin: pin{ws: ws, rev: v.rev, n: 1}, origins: s.origins(ws)}
	if len(v.cuts) > 0 {
		v.kind = RevisionSync
		v.pins = append(v.pins, h.pin)
		for _, o := range h.origins {
			v.pins = append(v.pins, pin{o.ws, o.rev, 1})
		}
		return h
	}
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	h.rev = s.head()
	s.reading.pins.addAll(h.pin, h.origins)
	return h
}

// letGoOf is the end of hold.
func (s *Store) letGoOf(h held) {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	s.reading.pins.addAll(pin{h.ws, h.rev, -h.n}, h.origins)
}

// revisionAt returns the newest revision that was made at a time or before.
func (r *reader) revisionAt(t vfs.Time) (found vfs.Rev, err error) {
	err = r.revisions(r.rev, func(rev vfs.Rev, rec revisionRecord) (bool, error) {
		if rec.time > t {
			return true, nil
		}
		found = rev
		return false, nil
	})
	if err == nil && found == 0 {
		err = fmt.Errorf("the log does not reach back to %s: %w", t.Go().Format(time.RFC3339), vfs.ErrNoRevision)
	}
	return found, err
}
