package casstore

import (
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func wantGone(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("%s: %v, want %v", what, err, vfs.ErrNoRevision)
	}
}

// TestPast: what is opened of a snapshot ends with it, and keeps nothing then.
func TestPast(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "file", "one")
	past := w.Past()
	began := past.Changed()
	first := takeSnapshot(t, s, "ws", "first")
	made := past.Changed()
	if made <= began {
		t.Errorf("changed at %d, before the snapshot at %d", made, began)
	}
	if err := s.RenameWorkspace(bg, "ws", "renamed"); err != nil {
		t.Fatal(err)
	}
	if sn, err := past.Snapshot(bg, "first"); err != nil || sn != first {
		t.Fatalf("snapshot %+v, %v, want %+v", sn, err, first)
	}
	if list, err := past.Snapshots(bg); err != nil || len(list) != 1 || list[0] != first {
		t.Fatalf("snapshots %+v, %v", list, err)
	}
	_, err := past.Snapshot(bg, "second")
	wantGone(t, "a snapshot that there is not", err)

	v, err := past.Open(bg, first)
	if err != nil {
		t.Fatal(err)
	}
	if got := contentOf(v, "file"); got != "one" {
		t.Errorf("holds %q", got)
	}
	byName := openView(t, s, "renamed", "first") // which stays
	makeFile(t, w, "other", "two")
	commitTree(t, w)
	if err := s.RemoveSnapshot(bg, "renamed", "first"); err != nil {
		t.Fatal(err)
	}
	if now := past.Changed(); now <= made {
		t.Errorf("changed at %d, before the removal at %d", now, made)
	}
	_, err = v.Stat(bg, vfs.RootIno)
	wantGone(t, "what was open of a snapshot that was removed", err)
	_, err = past.Open(bg, first)
	wantGone(t, "a snapshot that was removed", err)
	if got := contentOf(byName, "file"); got != "one" {
		t.Errorf("the view that was opened by name holds %q", got)
	}
	if err := errors.Join(byName.Close(), v.Close()); err != nil {
		t.Error(err)
	}
	if s.readable(w.id, first.Rev) {
		t.Error("the revision is still kept")
	}

	takeSnapshot(t, s, "renamed", "first")
	_, err = past.Open(bg, first)
	wantGone(t, "a snapshot whose name another has", err)
}

// TestPastOfRemoved: with a workspace go its snapshots, and what is open of them.
func TestPastOfRemoved(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "file", "one")
	sn := takeSnapshot(t, s, "ws", "first")
	past := w.Past()
	v, err := past.Open(bg, sn)
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = s.RemoveWorkspace(bg, "ws")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Stat(bg, vfs.RootIno)
	wantGone(t, "a snapshot of a workspace that was removed", err)
	if list, err := past.Snapshots(bg); err != nil || len(list) > 0 {
		t.Errorf("snapshots %+v, %v", list, err)
	}
}
