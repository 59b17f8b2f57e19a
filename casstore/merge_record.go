package casstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// mergeRecord says what of a workspace was last merged into another one. Layout: rev | at, uvarints.
type mergeRecord struct {
	rev vfs.Rev // of the workspace that was merged, which is pinned
	at  vfs.Rev // of the merge
}

func (m mergeRecord) encode() []byte {
	return binary.AppendUvarint(uvarint(uint64(m.rev)), uint64(m.at))
}

func decodeMerge(b []byte) (m mergeRecord, err error) {
	v, err := allUvarints(b)
	if err != nil || len(v) != 2 {
		return m, fmt.Errorf("merge record %x: %w", b, vfs.ErrCorrupt)
	}
	return mergeRecord{vfs.Rev(v[0]), vfs.Rev(v[1])}, nil
}

// storedMerge is a merge's record with its key.
type storedMerge struct {
	mergeRecord
	into, from workspaceID
}

// merges calls fn for what was merged.
func (r *reader) merges(fn func(storedMerge) error) error {
	return r.scan([]byte{keyMerge}, nil, true, func(key, value []byte) (bool, error) {
		if len(key) != 17 {
			return false, fmt.Errorf("merge key %x: %w", key, vfs.ErrCorrupt)
		}
		rec, err := decodeMerge(value)
		if err != nil {
			return false, err
		}
		return true, fn(storedMerge{rec, workspaceOfKey(key), workspaceID(binary.BigEndian.Uint64(key[9:]))})
	})
}

// merge is what of one workspace was merged into another. ErrNotExist when nothing was.
func (r *reader) merge(from, into workspaceID) (m mergeRecord, err error) {
	err = r.get(keyOfMerge(into, from), func(b []byte) error {
		m, err = decodeMerge(b)
		return err
	})
	return m, err
}

// lastMerge is the state of one of two workspaces that the other got last, or nil.
func (s *Store) lastMerge(a, b workspaceID) (last *origin, err error) {
	r := s.reader()
	defer r.Close()
	for _, way := range [...][2]workspaceID{{a, b}, {b, a}} {
		m, err := r.merge(way[0], way[1])
		switch {
		case errors.Is(err, vfs.ErrNotExist):
		case err != nil:
			return nil, err
		case last == nil || m.rev > last.rev:
			last = &origin{ws: way[0], rev: m.rev}
		}
	}
	return last, nil
}

// mergedFrom has the revision say that a state of one workspace was merged into another, which is the next one's base.
func (v *revision) mergedFrom(from workspaceID, rev vfs.Rev, into workspaceID) error {
	switch err := v.store.isThere(from); {
	case isNoWorkspace(err):
		return nil // it was removed meanwhile
	case err != nil:
		return err
	}
	r := v.store.reader()
	defer r.Close()
	switch old, err := r.merge(from, into); {
	case err == nil:
		v.pins = append(v.pins, pin{from, old.rev, -1})
	case !errors.Is(err, vfs.ErrNotExist):
		return err
	}
	rec := mergeRecord{rev: rev, at: v.rev}
	v.pins = append(v.pins, pin{from, rev, 1})
	v.kvs = append(v.kvs, kv{key: keyOfMerge(into, from), value: rec.encode()})
	return nil
}

// dropMerges forgets some merges.
func (v *revision) dropMerges(which func(storedMerge) bool) error {
	r := v.store.reader()
	defer r.Close()
	return r.merges(func(m storedMerge) error {
		if which(m) {
			v.pins = append(v.pins, pin{m.from, m.rev, -1})
			v.kvs = append(v.kvs, kv{key: keyOfMerge(m.into, m.from)})
		}
		return nil
	})
}

// undoMerges has a workspace that becomes what it was know of merges what it knew then: the next one begins with what had
// been merged by then, if that is still kept, and else with the fork.
func (v *revision) undoMerges(into workspaceID, then *diffSide) error {
	r := v.store.reader()
	defer r.Close()
	return r.merges(func(m storedMerge) error {
		if m.into != into || m.at <= then.view.held.rev {
			return nil
		}
		was, err := then.r.merge(m.from, into)
		if err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
		e := kv{key: keyOfMerge(into, m.from)}
		if err == nil && v.store.readable(m.from, was.rev) {
			e.value = was.encode()
			v.pins = append(v.pins, pin{m.from, was.rev, 1})
		}
		v.pins = append(v.pins, pin{m.from, m.rev, -1})
		v.kvs = append(v.kvs, e)
		return nil
	})
}

// checkMerges: what was merged is a revision that there was, of a workspace that is there, and so is what it went into.
func (c *checker) checkMerges() error {
	return c.r.merges(func(m storedMerge) error {
		where := fmt.Sprintf("workspace %d, merge of %d", m.into, m.from)
		switch {
		case c.spaces[m.into] == "" || c.spaces[m.from] == "":
			c.problem(where, "is of a workspace that is not there")
			return nil
		case m.rev > c.r.rev || m.at > c.r.rev:
			c.problem(where, "is of revision %d at %d, which is to come", m.rev, m.at)
			return nil
		}
		at := c.store.readerAt(m.rev)
		defer at.Close()
		if _, err := at.inode(m.from, vfs.RootIno); err != nil {
			c.problem(where, "has no root: %v", err)
		}
		return nil
	})
}
