package casstore

import (
	"errors"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestOpenWhileRemoved opens a workspace while its removal is written: nobody gets a tree that is going.
func TestOpenWhileRemoved(t *testing.T) {
	var s *Store
	var opened []error
	watching := false
	s = openStore(t, t.TempDir(), Options{CommitEvery: time.Hour, hook: func(string) error {
		if watching {
			_, err := s.OpenWorkspace(bg, "ws")
			opened = append(opened, err)
		}
		return nil
	}})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "file", "x")
	if err := s.RemoveWorkspace(bg, "ws"); !errors.Is(err, vfs.ErrWorkspaceBusy) {
		t.Errorf("removed while it is open: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	watching = true
	err := s.RemoveWorkspace(bg, "ws")
	watching = false
	if err != nil || len(opened) == 0 {
		t.Fatal(err, opened)
	}
	for i, err := range opened {
		if busy := errors.Is(err, vfs.ErrWorkspaceBusy); !busy && !isNoWorkspace(err) || i == 0 && !busy {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if w, err := s.openNumber(w.id); w != nil || err != nil {
		t.Errorf("opened by number: %v, %v", w, err)
	}
}
