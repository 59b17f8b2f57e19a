package chunk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// chunkOf returns the entry of some chunk. Every fourth n has an id that may end a node.
func chunkOf(n uint64, size uint64) Entry {
	id := Sum(fmt.Append(nil, n))
	id[IDSize-1] = byte(n % 4)
	return Entry{ID: id, Len: size}
}

// chunksOf returns n entries with ids as they are in real life.
func chunksOf(n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{ID: Sum(fmt.Append(nil, "chunk ", i)), Len: AvgSize + uint64(i%1000)}
	}
	return entries
}

// model is a manifest as a plain list.
type model []Entry

func (m model) size() (n uint64) {
	for _, e := range m {
		n += e.Len
	}
	return n
}

func (m model) stored() (n uint64) {
	for _, e := range m {
		if !e.Hole {
			n += e.Len
		}
	}
	return n
}

// cut returns the parts of m before and after off.
func (m model) cut(off uint64) (before, after model) {
	for i, e := range m {
		if off < e.Len {
			if off > 0 {
				before, after = append(before, HoleOf(off)), append(after, HoleOf(e.Len-off))
				i++
			}
			return before, append(after, m[i:]...)
		}
		off -= e.Len
		before = append(before, e)
	}
	return before, nil
}

func (m model) splice(start, end uint64, entries []Entry) model {
	before, _ := m.cut(start)
	_, after := m.cut(end)
	var out model
	for _, e := range slices.Concat(before, entries, after) {
		if k := len(out) - 1; k >= 0 && e.Hole && out[k].Hole {
			out[k].Len += e.Len
		} else {
			out = append(out, e)
		}
	}
	return out
}

// verify compares a manifest with the model, in all that its methods say.
func (m model) verify(t rapid.TB, got Manifest) {
	t.Helper()
	if !slices.Equal(got.Entries(), m) {
		t.Fatalf("entries\n%v\nwant\n%v", dumpEntries(got.Entries()), dumpEntries(m))
	}
	if got.Len() != len(m) || got.Size() != m.size() || got.Stored() != m.stored() {
		t.Fatalf("%d entries of %d bytes, %d stored", got.Len(), got.Size(), got.Stored())
	}
	if _, ok := got.Find(got.Size()); ok {
		t.Fatal("found an entry at the end")
	}
	i, off := 0, uint64(0)
	for p := range got.From(0) {
		if want := (Position{Entry: m[i], Index: i, Start: off}); p != want {
			t.Fatalf("entry %d is %v, want %v", i, p, want)
		}
		if last, ok := got.Find(p.End() - 1); !ok || last != p {
			t.Fatalf("Find(%d) = %v", p.End()-1, last)
		}
		if first, ok := got.Find(off); !ok || first != p {
			t.Fatalf("Find(%d) = %v", off, first)
		}
		i, off = i+1, p.End()
	}
	sameLeaves(t, got, NewManifest(m))
}

// sameLeaves holds manifests of equal entries to equal leaves, whatever splices they came from.
func sameLeaves(t rapid.TB, a, b Manifest) {
	t.Helper()
	if !slices.EqualFunc(a.leaves, b.leaves, func(x, y leafRef) bool {
		return x.start == y.start && x.stored == y.stored && x.index == y.index && slices.Equal(x.entries, y.entries)
	}) {
		t.Fatal("equal entries lie in other leaves")
	}
}

// drawEntries returns up to max entries that may stand in a manifest, holes beside each other among them.
func drawEntries(t *rapid.T, max int, label string) []Entry {
	// rapid draws small numbers more often than not, and then hardly any list would have two leaves.
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label), 0))
	n := r.IntN(max + 1)
	few := r.IntN(2) == 0 // ids that repeat, so that no leaf ends by content or every one does
	var entries []Entry
	for range n {
		switch {
		case r.IntN(8) == 0:
			entries = append(entries, HoleOf(1+r.Uint64N(100)))
		case few:
			entries = append(entries, chunkOf(4*r.Uint64N(2)+1, 1+r.Uint64N(100)))
		default:
			entries = append(entries, chunkOf(r.Uint64(), 1+r.Uint64N(100)))
		}
	}
	return entries
}

// drawOffset returns an offset at which m may be spliced.
func (m model) drawOffset(t *rapid.T, label string) uint64 {
	i := rapid.IntRange(0, len(m)).Draw(t, label)
	off := m[:i].size()
	if i < len(m) && m[i].Hole {
		off += rapid.Uint64Range(0, m[i].Len).Draw(t, label+" in hole")
	}
	return off
}

func TestManifestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawEntries(t, 3000, "first")
		want := model(nil).splice(0, 0, first)
		got := NewManifest(first)
		want.verify(t, got)
		for range rapid.IntRange(1, 6).Draw(t, "splices") {
			start, end := want.drawOffset(t, "start"), want.drawOffset(t, "end")
			if start > end {
				start, end = end, start
			}
			entries := drawEntries(t, 40, "entries")
			before, old := got.Entries(), got
			want, got = want.splice(start, end, entries), got.Splice(start, end, entries)
			want.verify(t, got)
			if !slices.Equal(old.Entries(), before) {
				t.Fatal("the old manifest changed")
			}
		}
	})
}

// TestSpliceAll compares many splices at once with the same ones by one.
func TestSpliceAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := model(nil).splice(0, 0, drawEntries(t, 3000, "first"))
		got := NewManifest(want)
		var at []uint64
		for range 2 * rapid.IntRange(0, 30).Draw(t, "patches") {
			at = append(at, want.drawOffset(t, "offset"))
		}
		slices.Sort(at)
		var patches []Patch
		for i := 0; i < len(at); i += 2 {
			patches = append(patches, Patch{Start: at[i], End: at[i+1], Entries: drawEntries(t, 30, "entries")})
		}
		before := slices.Clone(got.Entries())
		all := got.SpliceAll(patches)
		for _, p := range slices.Backward(patches) { // offsets before a splice stay what they are
			want = want.splice(p.Start, p.End, p.Entries)
		}
		want.verify(t, all)
		if !slices.Equal(got.Entries(), before) {
			t.Fatal("the old manifest changed")
		}
	})
}

func TestManifestFromTheMiddle(t *testing.T) {
	m := NewManifest(chunksOf(3000))
	for _, off := range []uint64{0, 1, m.Size() / 2, m.Size() - 1} {
		at, _ := m.Find(off)
		next := at.Index
		for p := range m.From(off) {
			if p.Index != next {
				t.Fatalf("from %d: entry %d after %d", off, p.Index, next-1)
			}
			next++
		}
		if next != m.Len() {
			t.Errorf("from %d: ends after entry %d", off, next-1)
		}
	}
	for range m.From(m.Size()) {
		t.Error("an entry past the end")
	}
	for p := range m.From(5) { // a caller may stop
		if p.Index == 400 {
			break
		}
	}
}

func TestTruncate(t *testing.T) {
	m := NewManifest([]Entry{chunkOf(1, 100), HoleOf(50), chunkOf(2, 7)})
	cases := []struct {
		size uint64
		want []Entry
	}{
		{0, nil},
		{100, []Entry{chunkOf(1, 100)}},
		{120, []Entry{chunkOf(1, 100), HoleOf(20)}},
		{157, []Entry{chunkOf(1, 100), HoleOf(50), chunkOf(2, 7)}},
		{200, []Entry{chunkOf(1, 100), HoleOf(50), chunkOf(2, 7), HoleOf(43)}},
	}
	for _, c := range cases {
		model(c.want).verify(t, m.Truncate(c.size))
	}
	model{chunkOf(1, 100), HoleOf(90)}.verify(t, m.Truncate(120).Truncate(190))
}

// TestStoredIn compares it with the sum over all entries, for ranges in one leaf, over many, and past the end.
func TestStoredIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewManifest(drawEntries(t, 3000, "entries"))
		for range 20 {
			off := rapid.Uint64Range(0, m.Size()+10).Draw(t, "off")
			end := rapid.Uint64Range(off, m.Size()+20).Draw(t, "end")
			want := uint64(0)
			for p := range m.From(0) {
				if from, to := max(off, p.Start), min(end, p.End()); !p.Hole && from < to {
					want += to - from
				}
			}
			if got := m.StoredIn(off, end); got != want {
				t.Fatalf("%d bytes in [%d, %d), want %d", got, off, end, want)
			}
		}
	})
}

func TestSpliceRefuses(t *testing.T) {
	m := NewManifest([]Entry{chunkOf(1, 100), HoleOf(50)})
	cases := map[string]func(){
		"start after end":  func() { m.Splice(100, 0, nil) },
		"past the end":     func() { m.Splice(0, 151, nil) },
		"out of order":     func() { m.SpliceAll([]Patch{{Start: 120, End: 130}, {Start: 125, End: 140}}) },
		"start in chunk":   func() { m.Splice(1, 100, nil) },
		"end in chunk":     func() { m.Splice(0, 99, nil) },
		"truncate a chunk": func() { m.Truncate(99) },
		"empty chunk":      func() { m.Splice(0, 0, []Entry{chunkOf(1, 0)}) },
		"empty hole":       func() { m.Splice(0, 0, []Entry{HoleOf(0)}) },
		"huge chunk":       func() { m.Splice(0, 0, []Entry{chunkOf(1, MaxSize+1)}) },
		"hole with an id":  func() { m.Splice(0, 0, []Entry{{ID: Sum(nil), Len: 1, Hole: true}}) },
		"huge file":        func() { m.Splice(0, 0, []Entry{HoleOf(MaxFileSize - 149)}) },
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			f()
		})
	}
}

// Whole leaves go from the front, the middle or the end.
func TestSpliceOutLeaves(t *testing.T) {
	entries := chunksOf(3000)
	m := NewManifest(entries)
	for i := range m.leaves {
		from, to := m.leaves[i], m.leaves[i].index+len(m.leaves[i].entries)
		want := model(slices.Concat(entries[:from.index], entries[to:]))
		want.verify(t, m.Splice(from.start, from.start+from.size(), nil))
	}
}

// A leaf that ends by number with a hole still grows by a hole that comes to stand behind it.
func TestHoleAcrossLeaves(t *testing.T) {
	entries := slices.Repeat([]Entry{chunkOf(1, 1)}, MaxNode)
	entries = append(entries, HoleOf(7), chunkOf(1, 1))
	got := NewManifest(entries).Splice(MaxNode-1, MaxNode, []Entry{HoleOf(5)})
	model(entries).splice(MaxNode-1, MaxNode, []Entry{HoleOf(5)}).verify(t, got)
}

// A splice shares the leaves that it does not touch.
func TestSpliceShares(t *testing.T) {
	m := NewManifest(chunksOf(1 << 16))
	at, _ := m.Find(m.Size() / 2)
	for name, got := range map[string]Manifest{
		"front":  m.Splice(0, 0, []Entry{chunkOf(1, 5)}),
		"middle": m.Splice(at.Start, at.End(), []Entry{chunkOf(1, 5), HoleOf(7)}),
		"end":    m.Splice(m.Size(), m.Size(), []Entry{chunkOf(1, 5)}),
		"both":   m.SpliceAll([]Patch{{Entries: []Entry{chunkOf(1, 5)}}, {Start: at.Start, End: at.End()}}),
	} {
		old := m.leafSet()
		fresh := 0
		for _, r := range got.leaves {
			if _, ok := old[r.leaf]; !ok {
				fresh++
			}
		}
		if fresh > 3 {
			t.Errorf("%s: %d new leaves of %d", name, fresh, len(got.leaves))
		}
	}
}

func BenchmarkManifest(b *testing.B) {
	m := NewManifest(chunksOf(1 << 16))
	one := []Entry{chunkOf(1, AvgSize)}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Splice(m.Size(), m.Size(), one)
		}
	})
	b.Run("replace", func(b *testing.B) {
		at, _ := m.Find(m.Size() / 2)
		b.ReportAllocs()
		for b.Loop() {
			m.Splice(at.Start, at.End(), one)
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for off := uint64(0); b.Loop(); off = (off + 12345678) % m.Size() {
			m.Find(off)
		}
	})
}
