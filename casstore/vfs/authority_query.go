package vfs

import (
	"fmt"
	"iter"
)

// Query says which records a Read yields.
type Query struct {
	// Since leaves out what has not changed after it, and adds the tombstones of what was removed after it. With the
	// zero Cursor, and only then, everything is yielded and no tombstone: a snapshot.
	Since Cursor

	// Range leaves out the records of other inodes: AllInos for none.
	Range InoRange
}

// Check returns ErrVoidCursor when the changes that q asks for cannot be told by a workspace that stands at p.
func (q *Query) Check(p Position) error {
	since := q.Since
	if since != (Cursor{}) && (since.Epoch != p.Epoch || since.Rev > p.Rev || since.Rev < p.Oldest) {
		return fmt.Errorf("read since %d: %w", since.Rev, ErrVoidCursor)
	}
	return nil
}

// Wants reports whether q asks for a record, which has its revision.
func (q *Query) Wants(r *Record) bool {
	return q.Range.Contains(r.Ino) && r.Rev > q.Since.Rev && (r.Value != nil || q.Since != Cursor{})
}

// Select is a Read of an authority that stands at p and that has all its records, tombstones too, in order of their keys.
func (q *Query) Select(p Position, all iter.Seq[Record], yield func(Record) error) (Position, error) {
	if err := q.Check(p); err != nil {
		return Position{}, err
	}
	for r := range all {
		if !q.Wants(&r) {
			continue
		}
		if err := yield(r); err != nil {
			return Position{}, err
		}
	}
	return p, nil
}

// SumsOf is a Sums of an authority that has all its records, in any order.
func SumsOf(all iter.Seq[Record], ranges []InoRange) []Digest {
	sums := make([]Digest, len(ranges))
	for r := range all {
		for i, in := range ranges {
			if in.Contains(r.Ino) {
				sums[i].Add(&r)
			}
		}
	}
	return sums
}
