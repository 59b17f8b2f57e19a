package casstore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestStats looks at what the sums say as files are shared, kept for a snapshot, and removed.
func TestStats(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	w := openWorkspace(t, s, "ws")
	for name, seed := range map[string]byte{"a": 1, "b": 1, "c": 2} {
		makeFile(t, w, name, bulk(seed))
	}
	stats := func() Stats {
		t.Helper()
		commitTree(t, w)
		st, err := s.Stats(bg)
		if err != nil {
			t.Fatal(err)
		}
		if st.SampledOf != 1 {
			t.Errorf("one of %d chunks was looked at", st.SampledOf)
		}
		return st
	}
	const file = 600_000
	about := func(what string, got, want uint64) {
		t.Helper()
		if got < want || got > want+file/100 {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	st := stats()
	about("data", st.DataBytes, 3*file)
	about("unique", st.UniqueBytes, 2*file)
	about("stored", st.StoredBytes, 2*file)
	about("reclaimable", st.Reclaimable, 0)
	takeSnapshot(t, s, "ws", "then")
	if err := w.Unlink(bg, vfs.RootIno, "c"); err != nil {
		t.Fatal(err)
	}
	st = stats()
	about("data", st.DataBytes, 2*file)
	about("unique", st.UniqueBytes, file)
	about("past", st.PastBytes, file)
	about("reclaimable", st.Reclaimable, 0)
	if err := s.RemoveSnapshot(bg, "ws", "then"); err != nil {
		t.Fatal(err)
	}
	st = stats()
	about("past", st.PastBytes, 0)
	about("reclaimable", st.Reclaimable, file)
	if err := errors.Join(w.Unlink(bg, vfs.RootIno, "a"), w.Unlink(bg, vfs.RootIno, "b")); err != nil {
		t.Fatal(err)
	}
	commitTree(t, w)
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	st = stats()
	about("data", st.DataBytes, 0)
	about("reclaimable", st.Reclaimable, 0)
}

// TestStatsOfDamaged counts what there is beside a file of whose manifest a node is damaged.
func TestStatsOfDamaged(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := openWorkspace(t, s, "ws")
	hurt := storedFile(t, w, "hurt", random.bytes(16<<20))
	storedFile(t, w, "sound", []byte(bulk(2)))
	flipNode(t, w, hurt)
	st, err := s.Stats(bg)
	if err != nil {
		t.Fatal(err)
	}
	if st.Damaged != 1 || st.Inodes != 3 || st.DataBytes < 600_000 || st.Reclaimable != 0 {
		t.Errorf("%+v", st)
	}
}

// flipNode flips a bit of the root of a file's manifest, which is a tree.
func flipNode(t *testing.T, w *Workspace, ino vfs.Ino) {
	t.Helper()
	s := w.store
	r := s.reader()
	defer r.Close()
	rec, err := r.inode(w.id, ino)
	if err != nil || rec.Body.Kind != vfs.BodyTree {
		t.Fatal(rec.Body.Kind, err)
	}
	root, err := decodeRoot(rec.Body.Data)
	if err != nil {
		t.Fatal(err)
	}
	loc, err := s.chunks.locate(root.ID)
	if err != nil {
		t.Fatal(err)
	}
	flipBit(t, filepath.Join(s.dir, packDir, fmt.Sprintf("%08d.pack", loc.Pack)), int64(loc.Off+loc.Len/2))
}

// TestUsageSamples marks many more chunks than are remembered.
func TestUsageSamples(t *testing.T) {
	u := newUsage()
	u.most = 2_000
	id := func(i uint64) chunk.ID { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, i)) }
	const n, plain = 100_000, 1000
	for range 2 {
		for i := range uint64(n) {
			u.mark(chunk.Entry{ID: id(i), Len: plain}, usageClass(i%2))
		}
	}
	if len(u.marks) > u.most || u.bits == 0 {
		t.Fatalf("%d marks, %d bits", len(u.marks), u.bits)
	}
	for i := range uint64(n) {
		u.frame(id(i), pack.Loc{Pack: 1, Off: 100, Len: 500})
	}
	about := func(what string, got, want uint64) {
		t.Helper()
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("%s: %d, want about %d", what, got, want)
		}
	}
	about("unique", u.unique()<<u.bits, n/2*plain)
	about("in use", u.stored[inUse]<<u.bits, n/2*500)
	about("past", u.stored[inPast]<<u.bits, n/2*500)
}
