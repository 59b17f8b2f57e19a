package casstore

import (
	"fmt"
	"testing"

	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestTrimTables: Badger's memory for building tables can be found and given back.
func TestTrimTables(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	for i := range 30_000 {
		if _, err := w.Create(bg, vfs.RootIno, fmt.Sprint("a name of some length, so that tables are built ", i), vfs.NewNode{}); err != nil {
			t.Fatal(err)
		}
		if i%10_000 == 9_999 {
			if _, err := w.Commit(bg); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.pushMemtable(bg); err != nil {
		t.Fatal(err)
	}
	pool := tablePool(s.db)
	if pool == nil {
		t.Fatal("this Badger has no pool of that name")
	}
	// What Badger itself has in it now it may let go at any time.
	kept := z.NewAllocator(1<<20, "test")
	pool.Return(kept)
	s.trimTables()
	next := pool.Get(1, "test")
	defer next.Release()
	if next == kept {
		t.Error("the pool keeps what is returned to it")
	}
}
