package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// comparison finds what is different between a snapshot, which comes in the order of inode numbers, and what the mirror
// knows of the authority.
type comparison struct {
	m       *Mirror
	loading bool    // not all metadata is here: what is not is written as it comes
	next    vfs.Ino // all below are compared
	held    []vfs.Record
	changes []vfs.Record
}

func newComparison(m *Mirror) *comparison { return &comparison{m: m, loading: !m.loader.isWhole()} }

// add takes in records of the snapshot. Those of the last inode are held back, because more of it may come.
func (c *comparison) add(ctx context.Context, got []vfs.Record) error {
	for _, r := range got {
		r.Value = bytes.Clone(r.Value)
		c.held = append(c.held, r)
	}
	last := c.held[len(c.held)-1].Ino
	if last == c.held[0].Ino || len(c.held) < compareBatch {
		return nil
	}
	n := len(c.held)
	for c.held[n-1].Ino == last {
		n--
	}
	whole := c.held[:n]
	c.held = append([]vfs.Record(nil), c.held[n:]...)
	return c.upTo(ctx, whole, last-1)
}

// compareBatch is how many records are compared at a time.
const compareBatch = 4096

// finish compares the rest of a snapshot, and returns what is different: but for what was fetched by itself and is newer. The
// feed then brings what has changed in between.
func (c *comparison) finish(ctx context.Context, rev vfs.Rev) ([]vfs.Record, error) {
	err := c.upTo(ctx, c.held, math.MaxUint64)
	if c.loading {
		c.changes = slices.DeleteFunc(c.changes, func(r vfs.Record) bool { return c.m.loader.isNewer(r.Key, rev) })
	}
	return c.changes, err
}

// upTo compares the inodes up to a number, of which the snapshot has some records.
func (c *comparison) upTo(ctx context.Context, theirs []vfs.Record, last vfs.Ino) error {
	if c.loading {
		if err := c.m.loader.turn.take(ctx); err != nil {
			return err
		}
		defer c.m.loader.turn.giveBack()
		if err := c.m.loader.arrive(ctx, theirs, last); err != nil {
			return fmt.Errorf("compare: %w", err)
		}
	}
	known := make(map[vfs.Key][]byte)
	err := c.m.replica.ReadTheirs(ctx, vfs.InoRange{First: c.next, Last: last}, func(r vfs.Record) error {
		known[r.Key] = bytes.Clone(r.Value)
		return nil
	})
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	for _, r := range theirs {
		if value, ok := known[r.Key]; !ok || !bytes.Equal(value, r.Value) {
			c.changes = append(c.changes, r)
		}
		delete(known, r.Key)
	}
	for k := range known {
		c.changes = append(c.changes, vfs.Record{Key: k})
	}
	c.next = last + 1
	return nil
}

// errStale is for a merge that must be made again.
var errStale = errors.New("the tree has changed meanwhile")

// mergeTries is how often a merge is made again because the tree has changed meanwhile, before those who change it must wait.
const mergeTries = 3
