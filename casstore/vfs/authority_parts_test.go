package vfs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Who waits for a revision has it when it is made, and not before.
func TestHeadWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Head
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan Rev, 3)
		for _, after := range []Rev{0, 1} {
			go func() {
				p, err := h.Wait(ctx, after)
				if err != nil {
					t.Error(err)
				}
				got <- p.Rev
			}()
		}
		for rev := Rev(1); rev <= 2; rev++ {
			synctest.Wait()
			if len(got) > 0 {
				t.Fatalf("before revision %d somebody has %d", rev, <-got)
			}
			h.Set(Position{Cursor: Cursor{Rev: rev}})
			if r := <-got; r != rev {
				t.Errorf("revision %d, want %d", r, rev)
			}
		}
		cancel()
		if _, err := h.Wait(ctx, 2); !errors.Is(err, ErrInterrupted) {
			t.Error(err)
		}
		if p, err := h.Wait(ctx, 1); err != nil || p.Rev != 2 {
			t.Errorf("%v, %v: it is there", p, err)
		}
	})
}

func TestQuerySelect(t *testing.T) {
	epoch := Epoch{1}
	stands := Position{Cursor: Cursor{Epoch: epoch, Rev: 9}, Oldest: 3}
	all := []Record{
		{Key: Key{KeyInode, 1, ""}, Value: []byte{}, Rev: 2}, {Key: Key{KeyDirent, 1, "gone"}, Rev: 6},
		{Key: Key{KeyInode, 5, ""}, Value: []byte{1}, Rev: 9},
	}
	for name, tt := range map[string]struct {
		q    Query
		want []int
		err  error
	}{
		"a snapshot":       {Query{Range: AllInos}, []int{0, 2}, nil},
		"a part of it":     {Query{Range: InoRange{1, 4}}, []int{0}, nil},
		"since":            {Query{Range: AllInos, Since: Cursor{epoch, 5}}, []int{1, 2}, nil},
		"since the oldest": {Query{Range: AllInos, Since: Cursor{epoch, 3}}, []int{1, 2}, nil},
		"since the newest": {Query{Range: AllInos, Since: Cursor{epoch, 9}}, nil, nil},
		"from the future":  {Query{Range: AllInos, Since: Cursor{epoch, 10}}, nil, ErrVoidCursor},
		"too old":          {Query{Range: AllInos, Since: Cursor{epoch, 2}}, nil, ErrVoidCursor},
		"another epoch":    {Query{Range: AllInos, Since: Cursor{Epoch{2}, 9}}, nil, ErrVoidCursor},
		"of no epoch":      {Query{Range: AllInos, Since: Cursor{Rev: 9}}, nil, ErrVoidCursor},
	} {
		var got []int
		at, err := tt.q.Select(stands, slices.Values(all), func(r Record) error {
			got = append(got, slices.IndexFunc(all, func(o Record) bool { return o.Same(&r) }))
			return nil
		})
		if !errors.Is(err, tt.err) || !slices.Equal(got, tt.want) || err == nil && at != stands {
			t.Errorf("%s: %v at %v, %v", name, got, at, err)
		}
	}
	enough := errors.New("enough")
	q := Query{Range: AllInos}
	if _, err := q.Select(stands, slices.Values(all), func(Record) error { return enough }); err != enough {
		t.Error(err)
	}
}

// A push is answered as before while it is among the newest, to its peer only.
func TestPushLog(t *testing.T) {
	var l PushLog
	peer, other := PeerID{1}, PeerID{2}
	push := func(n int) *Push { return &Push{ID: PushID{byte(n)}} }
	for n := range PushMemory + 1 {
		l.Add(peer, push(n), Outcome{Prev: Rev(n)})
	}
	for n := range PushMemory + 1 {
		o, known, err := l.Find(peer, push(n))
		if known != (n > 0) || err != nil || known && o.Prev != Rev(n) {
			t.Errorf("push %d: %v, %t, %v", n, o, known, err)
		}
	}
	changed := push(5)
	changed.Records = []PushRecord{{}}
	if _, known, err := l.Find(peer, changed); !known || !errors.Is(err, ErrPushReused) {
		t.Errorf("another push under its id: %t, %v", known, err)
	}
	if _, known, err := l.Find(other, changed); known || err != nil {
		t.Errorf("of another peer: %t, %v", known, err)
	}
}

func TestLeaseLog(t *testing.T) {
	var l LeaseLog
	a, b := PeerID{1}, PeerID{2}
	if l.Holds(a, RootIno) {
		t.Error("the root is leased")
	}
	first, second, third := l.Lease(a, 10), l.Lease(b, 1), l.Lease(a, 5)
	if first != (InoRange{2, 11}) || second != (InoRange{12, 12}) || third != (InoRange{13, 17}) {
		t.Errorf("%v, %v, %v", first, second, third)
	}
	for ino, want := range map[Ino]PeerID{2: a, 11: a, 12: b, 13: a, 17: a, 18: {}, 1: {}} {
		if l.Holds(a, ino) != (want == a) || l.Holds(b, ino) != (want == b) {
			t.Errorf("number %d", ino)
		}
	}
}

func TestCheckChunks(t *testing.T) {
	ctx := t.Context()
	var m ChunkMap
	put := func(plain []byte) chunk.ID {
		codec, stored := chunk.Encode(nil, plain)
		id := chunk.Sum(plain)
		if err := m.WriteChunks(ctx, []Chunk{{ID: id, Codec: codec, PlainLen: len(plain), Stored: stored}}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	pushOf := func(kind BodyKind, size uint64, body []byte) *Push {
		n := InodeRecord{Type: TypeRegular, Nlink: 1, Size: size, Body: Body{Kind: kind, Data: body}}
		return &Push{Records: []PushRecord{
			{Record: Record{Key: Key{KeyInode, 9, ""}, Value: n.Append(nil)}}, {Record: Record{Key: Key{KeyInode, 8, ""}}},
		}}
	}
	extents := func(entries ...chunk.Entry) *Push {
		size := uint64(0)
		for _, e := range entries {
			size += e.Len
		}
		return pushOf(BodyExtents, size, chunk.AppendEntries(nil, entries))
	}
	there, absent := put(make([]byte, 5000)), chunk.Sum([]byte("absent"))
	var long []chunk.Entry
	for i := range 100 {
		long = append(long, chunk.Entry{ID: there, Len: 5000}, chunk.HoleOf(uint64(i+1)))
	}
	nodes := make(map[chunk.ID][]byte)
	root, err := chunk.BuildTree(chunk.NewManifest(long), chunk.Manifest{}, func(id chunk.ID, node []byte) error {
		nodes[id] = slices.Clone(node)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tree := pushOf(BodyTree, root.Size, chunk.AppendRoot(nil, root))
	check := func(name string, p *Push, want ...chunk.ID) {
		t.Helper()
		if missing, err := CheckChunks(p, m.Find); err != nil || !slices.Equal(missing, want) {
			t.Errorf("%s: %v, %v, want %v", name, missing, err, want)
		}
	}
	check("all is there", extents(chunk.Entry{ID: there, Len: 5000}, chunk.HoleOf(10_000)))
	check("another length", extents(chunk.Entry{ID: there, Len: 4999}), there)
	check("twice", extents(chunk.Entry{ID: absent, Len: 5000}, chunk.Entry{ID: absent, Len: 5000}), absent)
	check("a tree without its root", tree, root.ID)
	for _, node := range nodes {
		put(node)
	}
	check("a whole tree", tree)
	root.ID = there
	if _, err := CheckChunks(pushOf(BodyTree, root.Size, chunk.AppendRoot(nil, root)), m.Find); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a tree that is none: %v", err)
	}
}
