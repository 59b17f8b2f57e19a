package wiretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Subject is an implementation under test: the authority of one empty workspace.
type Subject struct {
	// Peer returns the authority as the n-th peer has it (n from 0), and the id under which that peer calls it. All peers
	// have the same workspace.
	Peer func(n int) (vfs.Authority, vfs.PeerID)

	// Write, if set, makes the file name in the root hold data, from beside the authority and not by a push.
	Write func(ctx context.Context, name string, data []byte) error

	// Reopen, if set, closes the authority and opens it again, as after a restart. Peer then returns the new one.
	Reopen func() error
}

// Check is one thing that every authority does.
type Check struct {
	Name string
	run  func(*kit)
}

// Checks returns the kit.
func Checks() []Check { return slices.Concat(pushChecks, readChecks, otherChecks) }

// Run runs the kit, each check on a subject of its own.
func Run(t *testing.T, fresh func(t *testing.T) Subject) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Try(t.Context(), fresh(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// errSkipped is for a check that needs what the subject does not have.
var errSkipped = errors.New("skipped")

// patience bounds a check: what waits longer waits for ever.
const patience = time.Minute

// Try runs a check, and whatever it does, a comparison of everything that the authority says of its state. The error
// says what is wrong.
func (c Check) Try(ctx context.Context, s Subject) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k := &kit{ctx: ctx, Subject: s}
	defer func() {
		if f, ok := recover().(failed); ok {
			err = f.err
			if errors.Is(err, errSkipped) {
				err = nil
			}
		} else if f != (failed{}) {
			panic(f)
		}
	}()
	k.authority, k.id = s.Peer(0)
	c.run(k)
	k.audit()
	return nil
}

// failed is the panic that ends a check.
type failed struct{ err error }

// kit is a check that runs.
type kit struct {
	Subject
	ctx       context.Context
	authority vfs.Authority // of peer 0
	id        vfs.PeerID
}

func (k *kit) fail(format string, args ...any) { panic(failed{fmt.Errorf(format, args...)}) }

func (k *kit) must(err error, doing string) {
	if err != nil {
		k.fail("%s: %w", doing, err)
	}
}

func (k *kit) want(err, want error, doing string) {
	if !errors.Is(err, want) {
		k.fail("%s: %v, want %v", doing, err, want)
	}
}

// state is a workspace's records, without tombstones.
type state map[vfs.Key]vfs.Record

func (s state) digest() (d vfs.Digest) {
	for _, r := range s {
		d.Add(&r)
	}
	return d
}

// apply takes over what a Read has yielded.
func (s state) apply(records []vfs.Record) {
	for _, r := range records {
		if r.Value == nil {
			delete(s, r.Key)
		} else {
			s[r.Key] = r
		}
	}
}

// same reports whether both have the same values; revisions do not count.
func (s state) same(o state) bool {
	return maps.EqualFunc(s, o, func(a, b vfs.Record) bool { return bytes.Equal(a.Value, b.Value) })
}

// read collects what a query yields, and checks what holds for every query.
func (k *kit) read(q vfs.Query) ([]vfs.Record, vfs.Position) {
	var out []vfs.Record
	position, err := k.authority.Read(k.ctx, q, func(r vfs.Record) error {
		value := bytes.Clone(r.Value)
		out = append(out, vfs.Record{Key: r.Key, Value: value, Rev: r.Rev})
		return nil
	})
	k.must(err, fmt.Sprintf("read since %d of %v", q.Since.Rev, q.Range))
	for i, r := range out {
		switch {
		case i > 0 && !inOrder(out[i-1].Key, r.Key):
			k.fail("read: %v after %v", r.Key, out[i-1].Key)
		case q.Since == vfs.Cursor{} && r.Value == nil:
			k.fail("read: a snapshot has the tombstone of %v", r.Key)
		case r.Rev <= q.Since.Rev || r.Rev > position.Rev:
			k.fail("read since %d at %d: %v is of revision %d", q.Since.Rev, position.Rev, r.Key, r.Rev)
		case !q.Range.Contains(r.Ino):
			k.fail("read of %v: %v", q.Range, r.Key)
		}
	}
	if keys := slices.Compact(slices.SortedFunc(keysOf(out), vfs.Key.Compare)); len(keys) != len(out) {
		k.fail("read: %d records of %d keys", len(out), len(keys))
	}
	return out, position
}

func keysOf(records []vfs.Record) func(func(vfs.Key) bool) {
	return func(yield func(vfs.Key) bool) {
		for _, r := range records {
			if !yield(r.Key) {
				return
			}
		}
	}
}

// inOrder reports whether b may follow a: names of one inode are in an order of the authority's own.
func inOrder(a, b vfs.Key) bool {
	a.Name, b.Name = "", ""
	return a.Compare(b) <= 0
}

// snapshot reads everything.
func (k *kit) snapshot() (state, vfs.Position) {
	s := make(state)
	records, position := k.read(vfs.Query{Range: vfs.AllInos})
	s.apply(records)
	return s, position
}

// sameState reports whether two positions are of one state. What is oldest may change with time.
func sameState(a, b vfs.Position) bool { return a.Cursor == b.Cursor && a.Digest == b.Digest }

// audit compares what the authority says of its state in different ways, and checks that the state is a tree.
func (k *kit) audit() {
	s, position := k.snapshot()
	if d := s.digest(); d != position.Digest {
		k.fail("the digest at revision %d is %v, of the records %v", position.Rev, position.Digest, d)
	}
	now, err := k.authority.Position(k.ctx)
	if k.must(err, "position"); !sameState(now, position) {
		k.fail("position %v, read at %v", now, position)
	}
	sums, rev, err := k.authority.Sums(k.ctx, []vfs.InoRange{vfs.AllInos})
	if k.must(err, "sums"); len(sums) != 1 || sums[0] != position.Digest || rev != position.Rev {
		k.fail("sum %v at %d, position %v", sums, rev, position)
	}
	// A tree from nothing is a push like any other, for whom every number is the peer's.
	var p vfs.Push
	for _, r := range s {
		p.Records = append(p.Records, vfs.PushRecord{Record: r})
	}
	stale, err := vfs.CheckPush(emptyView{}, &p)
	if k.must(err, "check the tree"); len(stale) > 0 {
		k.fail("check the tree: stale %v", stale)
	}
}

// emptyView is a workspace without anything.
type emptyView struct{}

func (emptyView) Value(vfs.Key) ([]byte, error)                            { return nil, nil }
func (emptyView) Names(vfs.KeyKind, vfs.Ino, func(name string) bool) error { return nil }
func (emptyView) MayMake(vfs.Ino) (bool, error)                            { return true, nil }
