package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile/reconciletest"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// editsOf are what makes one tree of another, in the order of keys.
func editsOf(theirs, mine reconciletest.Records) (edits []casstore.Edit) {
	for k, value := range mine {
		if !bytes.Equal(value, theirs[k]) {
			edits = append(edits, casstore.Edit{Key: k, Mine: value, Theirs: theirs[k]})
		}
	}
	for k, value := range theirs {
		if mine[k] == nil {
			edits = append(edits, casstore.Edit{Key: k, Theirs: value})
		}
	}
	slices.SortFunc(edits, func(a, b casstore.Edit) int { return a.Key.Compare(b.Key) })
	return edits
}

// apply makes edits of a tree, after they have passed for a push to it.
func apply(t *testing.T, tree reconciletest.Records, edits []casstore.Edit) reconciletest.Records {
	t.Helper()
	var push vfs.Push
	out := maps.Clone(tree)
	for _, e := range edits {
		old := vfs.Record{Key: e.Key, Value: e.Theirs}
		push.Records = append(push.Records, vfs.PushRecord{Record: vfs.Record{Key: e.Key, Value: e.Mine}, Base: old.Base()})
		if out[e.Key] = e.Mine; e.Mine == nil {
			delete(out, e.Key)
		}
	}
	if stale, err := vfs.CheckPush(tree, &push); err != nil || len(stale) > 0 {
		t.Fatalf("a part is no push: %v, stale %v", err, stale)
	}
	return out
}

// A change that is too large for one push goes in parts, each of which leaves a tree, and all of which leave the same one.
func TestParts(t *testing.T) {
	for n := range 600 {
		seed := uint64(n)
		rng := rand.New(rand.NewPCG(seed, 2))
		next, clock := vfs.Ino(1), vfs.Time(0)
		theirs := reconciletest.NewRecords()
		for range 25 {
			if line := reconciletest.RandomStep(reconciletest.Side{Records: theirs, Next: &next, Clock: &clock}, rng); line != "" {
				reconciletest.Side{Records: theirs, Next: &next, Clock: &clock}.Do(line)
			}
		}
		mine := reconciletest.Side{Records: maps.Clone(theirs), Next: &next, Clock: &clock}
		for range 5 + rng.IntN(40) {
			if line := reconciletest.RandomStep(mine, rng); line != "" {
				mine.Do(line)
			}
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			now, rest := theirs, editsOf(theirs, mine.Records)
			limit := 4 + rng.IntN(12)
			for parts := 0; len(rest) > 0; parts++ {
				part, left, err := firstPart(rest, limit, 1<<20, now.Value)
				if errors.Is(err, vfs.ErrTooBig) {
					limit *= 2
					continue
				}
				if err != nil || len(part) == 0 || parts > 100 {
					t.Fatalf("part %d: %d edits, %v", parts, len(part), err)
				}
				now, rest = apply(t, now, part), left
			}
			if !maps.EqualFunc(now, mine.Records, bytes.Equal) {
				t.Error("the parts do not add up")
			}
		})
		if t.Failed() {
			break
		}
	}
}

// Many files in many new directories go in parts of the size that was asked for.
func TestPartsFillUp(t *testing.T) {
	next, clock := vfs.Ino(1), vfs.Time(0)
	theirs := reconciletest.NewRecords()
	mine := reconciletest.Side{Records: maps.Clone(theirs), Next: &next, Clock: &clock}
	for d := range 20 {
		mine.Do(fmt.Sprint("mkdir d", d))
		for f := range 50 {
			mine.Do(fmt.Sprintf("create d%d/f%d x", d, f))
		}
	}
	now, rest, parts := theirs, editsOf(theirs, mine.Records), 0
	for ; len(rest) > 0; parts++ {
		part, left, err := firstPart(rest, 500, 1<<20, now.Value)
		if err != nil {
			t.Fatal(err)
		}
		now, rest = apply(t, now, part), left
	}
	if parts > 6 || !maps.EqualFunc(now, mine.Records, bytes.Equal) {
		t.Errorf("%d parts", parts)
	}
}

func TestFlightIsNoted(t *testing.T) {
	f := &flight{push: vfs.Push{ID: vfs.PushID{1, 2}}}
	for n := range 2000 {
		r := vfs.PushRecord{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.Ino(n), Name: fmt.Sprint(n)}}}
		switch n % 3 {
		case 0:
			r.Value = bytes.Repeat([]byte{byte(n)}, n)
		case 1:
			r.Value, r.Base = []byte{}, vfs.Base{byte(n)}
		}
		f.push.Records = append(f.push.Records, r)
	}
	notes := f.note()
	again, err := flightOf(notes)
	if err != nil || len(notes) < 2 || again.push.ID != f.push.ID || again.push.Sum() != f.push.Sum() {
		t.Errorf("%d notes, %v", len(notes), err)
	}
	notes[1].Value = notes[1].Value[:100]
	if _, err := flightOf(notes); !errors.Is(err, vfs.ErrCorrupt) {
		t.Errorf("of a damaged note: %v", err)
	}
}
