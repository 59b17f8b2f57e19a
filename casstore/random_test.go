package casstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// forgetAll gives up everything that is clean, as eviction does when the cache is full.
func (w *Workspace) forgetAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.inodes {
		if w.idle(n) {
			w.drop(n)
		} else if n.dir != nil {
			w.forget(n.dir)
		}
	}
}

// randomRuns is how many seeds TestRandom takes. VFSTEST_SEED gives one, -count=N makes more.
const randomRuns = 2

// TestRandom runs random operations beside a model in memory, with commits, flushes, collections, evictions and
// reopenings between them.
func TestRandom(t *testing.T) {
	for i := range randomRuns {
		seed := vfstest.Seed(t)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			o := Options{Create: true, packSize: 1 << 20, BufferBytes: 4 << 20}
			if i%2 == 1 {
				o.cacheCost = 10 // next to nothing stays from one operation to the next
			}
			s, err := Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			w := openWorkspace(t, s, "ws")
			rnd := rand.New(rand.NewPCG(seed, 1))
			vfstest.Random(t, seed, 1500, w, vfstest.NewTree(), func(_ int, tree vfs.Tree) vfs.Tree {
				switch rnd.IntN(60) {
				case 0:
					if _, err := w.Commit(bg); err != nil {
						t.Fatal(err)
					}
				case 1:
					if err := w.Fsync(bg, vfs.RootIno); err != nil {
						t.Fatal(err)
					}
				case 2:
					w.forgetAll()
				case 3:
					s.flusher.pressure()
				case 4:
					if _, err := s.GC(bg); err != nil {
						t.Fatal(err)
					}
				case 5:
					if rnd.IntN(4) > 0 {
						break
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if s, err = Open(dir, o); err != nil {
						t.Fatal(err)
					}
					w = openWorkspace(t, s, "ws")
					return w
				}
				return tree
			})
			checkStore(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
