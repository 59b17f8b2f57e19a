package casstore

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// someChunks returns chunks of random bytes, every second of which can be compressed.
func someChunks(n int) []vfs.Chunk {
	out := make([]vfs.Chunk, n)
	src := rand.NewChaCha8([32]byte{byte(n)})
	for i := range out {
		plain := make([]byte, 100_000)
		src.Read(plain[:(i%2+1)*50_000])
		codec, stored := chunk.Encode(nil, plain)
		out[i] = vfs.Chunk{ID: chunk.Sum(plain), Codec: codec, PlainLen: len(plain), Stored: stored}
	}
	return out
}

func idsOf(list []vfs.Chunk) (ids []chunk.ID) {
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

func missing(t *testing.T, a *Authority, ids []chunk.ID) []chunk.ID {
	t.Helper()
	got, err := a.MissingChunks(bg, ids)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func readChunks(t *testing.T, a *Authority, ids []chunk.ID) (out []vfs.Chunk) {
	t.Helper()
	err := a.ReadChunks(bg, ids, func(c vfs.Chunk) error {
		c.Stored = bytes.Clone(c.Stored)
		out = append(out, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameChunk(a, b vfs.Chunk) bool {
	return a.ID == b.ID && a.Codec == b.Codec && a.PlainLen == b.PlainLen && bytes.Equal(a.Stored, b.Stored)
}

// TestChunksStay: chunks that a peer has written are there, through commits and collections, until their time is over.
func TestChunksStay(t *testing.T) {
	var now atomic.Int64
	clock := func() time.Time { return time.Unix(1<<30, now.Load()) }
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20, Clock: clock})
	w := openWorkspace(t, s, "ws")
	a := w.Authority()
	list := someChunks(40)
	ids := idsOf(list)
	if got := missing(t, a, ids); !slices.Equal(got, ids) {
		t.Fatalf("%d of %d are missing at first", len(got), len(ids))
	}
	bad := slices.Clone(list[:3])
	bad[2].ID[5] ^= 1
	if err := a.WriteChunks(bg, bad); !errors.Is(err, vfs.ErrCorrupt) {
		t.Fatal(err)
	}
	if got := missing(t, a, ids); len(got) != len(ids) {
		t.Fatal("a write that failed has kept something")
	}
	for range 2 { // the second time they are there
		if err := a.WriteChunks(bg, list); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		mustCreate(t, w, string(rune('a'+round)), "something to commit")
		if _, err := s.GC(bg); err != nil {
			t.Fatal(err)
		}
		if got := missing(t, a, ids); len(got) > 0 {
			t.Fatalf("round %d: %d are missing", round, len(got))
		}
		if got := readChunks(t, a, ids); !slices.EqualFunc(got, list, sameChunk) {
			t.Fatalf("round %d: %d of %d are read", round, len(got), len(list))
		}
		now.Add(int64(vfs.ChunkGrace) / 3)
	}
	now.Add(2 * int64(vfs.ChunkGrace))
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	if got := missing(t, a, ids); len(got) < len(ids)/2 {
		t.Errorf("only %d are missing after their time", len(got))
	}
}

// TestDamagedChunkIsRepaired: a chunk whose bytes are damaged is left out, counts as missing, and is whole again when it
// has been written anew.
func TestDamagedChunkIsRepaired(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	w := openWorkspace(t, s, "ws")
	a := w.Authority()
	list := someChunks(4)
	ids := idsOf(list)
	if err := a.WriteChunks(bg, list); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, w, "a", "something to commit")
	if _, err := a.Barrier(bg); err != nil {
		t.Fatal(err)
	}
	loc, err := s.chunks.locate(ids[2])
	if err != nil {
		t.Fatal(err)
	}
	flipBit(t, filepath.Join(dir, packDir, "00000001.pack"), int64(loc.Off+loc.Len/2))
	if got := readChunks(t, a, ids); len(got) != 3 || slices.ContainsFunc(got, func(c vfs.Chunk) bool { return c.ID == ids[2] }) {
		t.Fatalf("%d chunks", len(got))
	}
	if got := missing(t, a, ids); !slices.Equal(got, ids[2:3]) {
		t.Fatalf("missing are %v", got)
	}
	if err := a.WriteChunks(bg, list); err != nil {
		t.Fatal(err)
	}
	if got := readChunks(t, a, ids); !slices.EqualFunc(got, list, sameChunk) {
		t.Fatalf("%d chunks after the repair", len(got))
	}
	mustCreate(t, w, "b", "something to commit")
}

// TestGuestsAreBounded: peers cannot make the store remember more than so many chunks.
func TestGuestsAreBounded(t *testing.T) {
	var g guests
	list := make([]vfs.Chunk, maxGuests/4)
	for i := range list {
		list[i] = vfs.Chunk{ID: chunk.ID{byte(i), byte(i >> 8), byte(i >> 16)}, PlainLen: 1}
	}
	for n := range 4 {
		for i := range list {
			list[i].ID[9] = byte(n)
		}
		if err := g.add(0, list); err != nil {
			t.Fatal(err)
		}
	}
	list[0].ID[9] = 9
	if err := g.add(0, list[:1]); !errors.Is(err, vfs.ErrQuota) {
		t.Error(err)
	}
	g.settle(map[chunk.ID]struct{}{list[1].ID: {}, list[2].ID: {}})
	if err := g.add(0, list[:1]); err != nil {
		t.Error(err)
	}
}

// TestLeases: leases of all peers and numbers given here are apart, and stay so.
func TestLeases(t *testing.T) {
	dir := t.TempDir()
	var given []vfs.InoRange
	for range 3 {
		s, err := Open(dir, Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		w := openWorkspace(t, s, "ws")
		a := w.Authority()
		for peer := range byte(3) {
			in, err := a.LeaseInos(bg, vfs.PeerID{peer}, 10+uint64(peer))
			if err != nil || in.Last-in.First != vfs.Ino(9+peer) {
				t.Fatalf("%v, %v", in, err)
			}
			r := s.reader()
			l, err := r.lease(w.id, in.Last)
			r.Close()
			if err != nil || l != (lease{in, vfs.PeerID{peer}}) {
				t.Errorf("lease %v, %v, not %v", l, err, in)
			}
			own := mustCreate(t, w, string(rune('a'+len(given))), "")
			given = append(given, in, vfs.InoRange{First: own, Last: own})
		}
		if _, err := a.LeaseInos(bg, vfs.PeerID{}, vfs.MaxLease+1); !errors.Is(err, vfs.ErrInvalid) {
			t.Error(err)
		}
		checkStore(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(given, func(a, b vfs.InoRange) int { return int(a.First) - int(b.First) })
	for i := 1; i < len(given); i++ {
		if given[i].First <= given[i-1].Last {
			t.Errorf("%v and %v", given[i-1], given[i])
		}
	}
}
