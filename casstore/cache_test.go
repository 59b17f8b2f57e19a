package casstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// charged is what the cache should be charged for what is in it.
func (w *Workspace) charged() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.inodes {
		n += i.weight
		if i.dir != nil {
			n += i.dir.entries.Len()
		}
	}
	return n
}

func (w *Workspace) checkCost(t *testing.T, when string) {
	t.Helper()
	if want := w.charged(); w.cost != want {
		t.Errorf("%s: the cache is charged %d, and has %d", when, w.cost, want)
	}
}

// TestCacheCost: trees that come and go leave the cache charged for what is in it. A directory whose entries were still
// being committed when it was dropped gave them back twice, so that the bound was never reached again.
func TestCacheCost(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	inline := bytes.Repeat([]byte("x"), vfs.MaxInline)
	var before int
	for round := range 3 {
		d, err := w.Mkdir(bg, vfs.RootIno, "d", vfs.NewNode{Mode: 0o755})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			f, err := w.Create(bg, d.Ino, fmt.Sprint(i), vfs.NewNode{})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.WriteAt(bg, f.Ino, inline, 0, false); err != nil {
				t.Fatal(err)
			}
		}
		if round > 0 {
			commitNow(t, w)
			w.checkCost(t, "written")
			if least := 50 * vfs.MaxInline / costUnit; w.cost < least {
				t.Errorf("%d units for %d of bytes in line", w.cost, least)
			}
		}
		for i := range 50 {
			if err := w.Unlink(bg, d.Ino, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Rmdir(bg, vfs.RootIno, "d"); err != nil {
			t.Fatal(err)
		}
		commitNow(t, w)
		w.checkCost(t, "removed")
		if round > 0 && w.cost != before {
			t.Errorf("round %d: charged %d, and %d before", round, w.cost, before)
		}
		before = w.cost
	}
}

// TestCacheBound: files that are read are given up again when they are too many.
func TestCacheBound(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	inline := bytes.Repeat([]byte("x"), vfs.MaxInline)
	const room = 10 * cacheBatch // the rest of the cache is taken
	w.mu.Lock()
	w.cost += cacheCost - room
	w.mu.Unlock()
	const n = 2 * room * costUnit / vfs.MaxInline
	for i := range n {
		f, err := w.Create(bg, vfs.RootIno, fmt.Sprint(i), vfs.NewNode{})
		if err == nil {
			err = w.WriteAt(bg, f.Ino, inline, 0, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	commitNow(t, w)
	var p [1]byte
	for i := range n {
		f, err := w.Lookup(bg, vfs.RootIno, fmt.Sprint(i))
		if err == nil {
			_, err = w.ReadAt(bg, f.Ino, p[:], 0)
		}
		if err != nil || p[0] != 'x' {
			t.Fatalf("file %d: %q, %v", i, p, err)
		}
	}
	w.mu.Lock()
	w.cost -= cacheCost - room
	w.mu.Unlock()
	w.checkCost(t, "read")
	if w.cost > room+cacheBatch {
		t.Errorf("the cache is charged %d, more than %d", w.cost, room)
	}
}

func commitNow(t *testing.T, w *Workspace) {
	t.Helper()
	if _, err := w.Commit(bg); err != nil {
		t.Fatal(err)
	}
}
