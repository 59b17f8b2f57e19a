package casstore

import (
	"math/rand/v2"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// TestHeldIsWhatIsThere: what a change adds to and takes from the number of bytes that are not in holes comes to what
// counting all of them does, whatever of the file is in which layer, and so does what stat shows.
func TestHeldIsWhatIsThere(t *testing.T) {
	w := openWorkspace(t, openStore(t, t.TempDir(), Options{}), "ws")
	r := rand.New(rand.NewPCG(vfstest.Seed(t), 11))
	ino := mustCreate(t, w, "f", "")
	n, err := w.acquire(bg, ino)
	if err != nil {
		t.Fatal(err)
	}
	defer w.release(n)
	const most = 3 << 20
	for step := range 2000 {
		what := "write"
		off, size := r.Uint64N(most), 1+r.Uint64N(1<<(4+r.UintN(14)))
		switch r.IntN(12) {
		case 0:
			what = "truncate"
			_, err = w.SetAttr(bg, ino, vfs.AttrSet{Mask: vfs.SetSize, Size: off})
		case 1, 2:
			what = "punch"
			err = w.Allocate(bg, ino, vfs.AllocPunchHole, off, size)
		case 3:
			what = "zero"
			err = w.Allocate(bg, ino, vfs.AllocZeroRange, off, size)
		case 4:
			what = "extend"
			err = w.Allocate(bg, ino, 0, off, size)
		case 5:
			what = "fsync"
			err = w.Fsync(bg, ino)
		case 6:
			if what = "commit"; r.IntN(4) == 0 {
				_, err = w.Commit(bg)
			}
		case 7:
			what = "flush"
			w.store.flusher.flushDirty()
		default:
			err = w.WriteAt(bg, ino, noise(uint64(step), int(size)), off, false)
		}
		if err != nil {
			t.Fatalf("step %d: %s: %v", step, what, err)
		}
		compareHeld(t, w, n, step, what)
	}
}

func compareHeld(t *testing.T, w *Workspace, n *inode, step int, what string) {
	t.Helper()
	f := n.file
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.held
	f.count()
	w.mu.Lock()
	defer w.mu.Unlock()
	if kept != f.held || n.attr.Blocks != f.blocks() {
		t.Fatalf("step %d: after %s of %d bytes: held %d, counted %d; %d blocks, %d shown",
			step, what, f.size, kept, f.held, f.blocks(), n.attr.Blocks)
	}
}
