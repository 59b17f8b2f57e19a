package lookback

import (
	"context"
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestStore looks back in a real store.
func TestStore(t *testing.T) {
	ctx := context.Background()
	s, err := casstore.Open(t.TempDir(), casstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CreateWorkspace(ctx, "ws"); err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWorkspace(ctx, "ws")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tree := Over(w)
	defer tree.Close()
	a := put(t, tree, vfs.RootIno, "file", "one")
	if _, err := s.CreateSnapshot(ctx, "ws", "first", ""); err != nil {
		t.Fatal(err)
	}
	if err := tree.WriteAt(ctx, a.Ino, []byte("two"), 0, false); err != nil {
		t.Fatal(err)
	}
	file := find(t, tree, Name, "snapshots", "first", "file")
	if got := content(t, tree, file); got != "one" {
		t.Errorf("the snapshot holds %q", got)
	}
	rev := content(t, tree, find(t, tree, Name, "rev"))
	v, err := s.OpenView(ctx, "ws", rev[:len(rev)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if got := content(t, v, find(t, v, "file")); got != "two" {
		t.Errorf("at revision %q it holds %q", rev, got)
	}
	past := Over(v)
	defer past.Close()
	if got := content(t, past, find(t, past, Name, "rev")); got != rev {
		t.Errorf("a view of revision %q says %q", rev, got)
	}
	find(t, past, Name, "snapshots", "first", "file")
	if err := s.RemoveSnapshot(ctx, "ws", "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.ReadAt(ctx, file.Ino, make([]byte, 3), 0); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("of a snapshot that was removed: %v", err)
	}
}
