package casstore

import (
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestLockOut has two lock one workspace: the second cannot, and ends nothing when it gives up.
func TestLockOut(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	if err := s.lockOut(w.id); !errors.Is(err, vfs.ErrWorkspaceBusy) {
		t.Errorf("lock what is open: %v", err)
	}
	if err := errors.Join(w.Close(), s.lockOut(w.id)); err != nil {
		t.Fatal(err)
	}
	if err := s.lockOut(w.id); !errors.Is(err, vfs.ErrWorkspaceBusy) {
		t.Errorf("lock what is locked: %v", err)
	}
	(&loader{store: s, spaces: []*loadedSpace{{}}}).unlock()
	if _, err := s.OpenWorkspace(bg, "ws"); !errors.Is(err, vfs.ErrWorkspaceBusy) {
		t.Errorf("open what is locked: %v", err)
	}
	s.unlock(w.id)
	openWorkspace(t, s, "ws")
}

// TestOwnChangesAreBounded reads the changes of a fork with more and with less room for them than they take.
func TestOwnChangesAreBounded(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	openWorkspace(t, s, "ws")
	f := openFork(t, s, "ws", "", "fork")
	makeFile(t, f, "file", bulk(1)[:1000])
	commitTree(t, f)
	r := s.reader()
	defer r.Close()
	all := changeBudget{10, 10_000}
	kvs, err := ownChanges(r, f.id, 1, &all)
	if err != nil || len(kvs) != 3 || all.keys != 7 || all.bytes > 9_000 {
		t.Fatalf("%d changes, %+v left, %v", len(kvs), all, err)
	}
	for _, left := range []changeBudget{{2, 10_000}, {10, 1000}} {
		if _, err := ownChanges(r, f.id, 1, &left); !errors.Is(err, vfs.ErrTooBig) || errors.Is(err, vfs.ErrCorrupt) {
			t.Errorf("with less room: %v", err)
		}
	}
}
