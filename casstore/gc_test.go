package casstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// dyingPacks makes packs of a megabyte, of each of which nothing lives but a file of 64 KiB, which it returns with their bytes.
func dyingPacks(t *testing.T, s *Store, w *Workspace, n int) (files map[vfs.Ino][]byte) {
	t.Helper()
	files = make(map[vfs.Ino][]byte)
	all := random.bytes(n << 20)
	for i := range n {
		b := all[i<<20:][:1<<20]
		files[storedFile(t, w, fmt.Sprint("kept", i), b[:64<<10])] = b[:64<<10]
		storedFile(t, w, fmt.Sprint("gone", i), b[64<<10:])
		if err := s.packs.Seal(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if err := w.Unlink(bg, vfs.RootIno, fmt.Sprint("gone", i)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestCollectTogether empties several packs by one revision.
func TestCollectTogether(t *testing.T) {
	const n = 5
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	files := dyingPacks(t, s, w, n)
	commitTree(t, w)
	before := s.head()
	report, err := s.GC(bg)
	if err != nil || report.Removed != n || report.Moved < n*64<<10 || report.Freed < n*900<<10 {
		t.Errorf("%+v, %v", report, err)
	}
	if s.head() != before+1 {
		t.Errorf("%d revisions were made", s.head()-before)
	}
	for ino, want := range files {
		readParts(t, w, ino, want, 4<<10)
	}
}

// TestCollectDamaged: a pack in which something is damaged that lives stays, and the others are emptied.
func TestCollectDamaged(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := openWorkspace(t, s, "ws")
	dyingPacks(t, s, w, 3)
	second := s.packs.Packs()[1]
	flipBit(t, filepath.Join(dir, packDir, fmt.Sprintf("%08d.pack", second.ID)), 100)
	for _, removed := range []uint64{2, 0} {
		if report, err := s.GC(bg); err != nil || report.Removed != removed {
			t.Errorf("%+v, %v", report, err)
		}
	}
	if packs := s.packs.Packs(); len(packs) != 2 || packs[0].ID != second.ID {
		t.Errorf("packs %+v", packs)
	}
}

func TestPace(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	storedFile(t, w, "file", random.bytes(1<<20))
	c := s.collector
	for _, x := range []struct {
		kept, dead int64
		want       time.Duration
	}{
		{0, 0, 0},
		{-1 << 30, 0, 0},             // the packs are too large, and nothing has died: all that was written lives
		{0, 1 << 30, 0},              // much has died, and the packs are small
		{-1 << 30, 1 << 30, gcBrake}, // both
		{-gcBehind*gcStepLeast - 7<<20, 1 << 30, gcBrake / 2},
	} {
		c.pacer.kept.Store(x.kept)
		s.space.garbage.Store(x.dead)
		c.look()
		if got := time.Duration(c.pacer.brake.Load()); got < x.want*9/10 || got > x.want*11/10 {
			t.Errorf("kept %d, dead %d: %v for a megabyte, want %v", x.kept, x.dead, got, x.want)
		}
	}
	s.space.garbage.Store(0)
	c.pacer.brake.Store(int64(time.Hour))
	ctx, cancel := context.WithCancel(bg)
	cancel()
	c.pacer.wait(ctx, 1<<20)
	if _, err := s.GC(bg); err != nil || c.pacer.brake.Load() != 0 {
		t.Errorf("after a collection: %v, %v", c.pacer.brake.Load(), err)
	}
}

// sparseFile stores a file of a few bytes here and there, whose manifest is a tree.
func sparseFile(t *testing.T, w *Workspace, name string) (ino vfs.Ino, content []byte) {
	t.Helper()
	a, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
	if err != nil {
		t.Fatal(err)
	}
	content = make([]byte, chunk.MaxInline*4*minHole)
	for i := range chunk.MaxInline {
		piece := content[i*4*minHole:][:100]
		copy(piece, random.bytes(len(piece) + i)[i:])
		if err := w.WriteAt(bg, a.Ino, piece, uint64(i)*4*minHole, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.SetAttr(bg, a.Ino, vfs.AttrSet{Mask: vfs.SetSize, Size: uint64(len(content))}); err != nil {
		t.Fatal(err)
	}
	commitTree(t, w)
	return a.Ino, content
}

// TestCollectUnreadable: nothing that was stored before a manifest was found to be unreadable is collected, since it may be of that;
// what came later is. When the manifest is back, the file is, and when the file is gone, everything is collected.
func TestCollectUnreadable(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	collect := func(when string, unreadable, removed uint64) {
		t.Helper()
		report, err := s.GC(bg)
		if err != nil || report.Unreadable != unreadable || (report.Spared > 0) != (unreadable > 0) || report.Removed != removed {
			t.Errorf("%s: %+v, %v", when, report, err)
		}
	}
	seed := byte(0)
	commitDying := func() { // two packs
		t.Helper()
		for range 2 {
			seed++
			storedFile(t, w, "gone", []byte(bulk(seed)))
			if err := errors.Join(s.packs.Seal(), w.Unlink(bg, vfs.RootIno, "gone")); err != nil {
				t.Fatal(err)
			}
		}
		commitTree(t, w)
	}
	ino, content := sparseFile(t, w, "sparse")
	commitDying()
	w.forgetAll()
	flipNode(t, w, ino)
	collect("when it is found", 1, 0)
	if report, err := s.Check(bg, CheckOptions{}); err != nil || len(report.Problems) != 1 {
		t.Errorf("check: %+v, %v", report.Problems, err)
	}
	commitDying()
	if _, err := w.SetAttr(bg, ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o600}); err != nil { // another record of it
		t.Fatal(err)
	}
	commitTree(t, w)
	collect("what came later", 1, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	if s, err = Open(s.dir, Options{CommitEvery: time.Hour}); err != nil {
		t.Fatal(err)
	}
	w = openWorkspace(t, s, "ws")
	commitDying()
	collect("of another process", 1, 0)
	flipNode(t, w, ino)
	readParts(t, w, ino, content, 8<<10)
	checkStore(t, s)
	w.forgetAll()
	flipNode(t, w, ino)
	if err := w.Unlink(bg, vfs.RootIno, "sparse"); err != nil {
		t.Fatal(err)
	}
	commitTree(t, w)
	collect("when it is gone", 0, uint64(len(s.packs.Packs())))
	checkStore(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
