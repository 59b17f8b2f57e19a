package serving

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

func newTestShelf(t *testing.T, only ...string) *shelf {
	t.Helper()
	store, err := casstore.Open(filepath.Join(t.TempDir(), "store"), casstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateWorkspace(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	s := newShelf(store, only)
	t.Cleanup(func() {
		if err := errors.Join(s.close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A workspace without sessions is closed after a while, so that it can be removed, and opened again.
func TestIdleWorkspace(t *testing.T) {
	s := newTestShelf(t)
	ctx, now := t.Context(), time.Now()
	for range 2 { // two sessions
		if _, err := s.open(ctx, "demo"); err != nil {
			t.Fatal(err)
		}
	}
	used := map[string]struct{}{"demo": {}}
	later := func(d time.Duration, inUse map[string]struct{}) {
		t.Helper()
		now = now.Add(d)
		if err := s.sample(ctx, inUse, now); err != nil {
			t.Error(err)
		}
	}
	later(2*idleWorkspace, used)
	later(idleWorkspace, nil)
	if err := s.store.RemoveWorkspace(ctx, "demo"); !errors.Is(err, vfs.ErrWorkspaceBusy) {
		t.Errorf("while it may be used again: %v", err)
	}
	later(time.Second, nil)
	if err := s.store.RemoveWorkspace(ctx, "demo"); err != nil {
		t.Errorf("when it has been idle: %v", err)
	}
	if _, err := s.open(ctx, "demo"); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("open what was removed: %v", err)
	}
}

// Who comes by the old name of a workspace does not get it, but what has the name now.
func TestRenamedWorkspace(t *testing.T) {
	s := newTestShelf(t, "demo")
	ctx := t.Context()
	if _, err := s.open(ctx, "demo"); err != nil {
		t.Fatal(err)
	}
	if err := s.store.RenameWorkspace(ctx, "demo", "private"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"demo", "private"} {
		if _, err := s.open(ctx, name); !errors.Is(err, vfs.ErrNoWorkspace) {
			t.Errorf("open %q: %v, want ErrNoWorkspace", name, err)
		}
	}
	if _, err := s.store.CreateWorkspace(ctx, "demo"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(ctx, "demo"); err != nil {
		t.Error(err)
	}
	if err := s.sample(ctx, nil, time.Now()); err != nil {
		t.Error(err)
	}
	if len(s.books) != 2 {
		t.Errorf("%d workspaces are open", len(s.books))
	}
	if s.head("demo") == 0 {
		t.Error("it is not known where the workspace is")
	}
}

// Who is behind lacks the revisions of its workspace, not those of others, since the oldest of them was made.
func TestLack(t *testing.T) {
	s := newTestShelf(t)
	ctx := t.Context()
	a, err := s.open(ctx, "demo")
	if err != nil {
		t.Fatal(err)
	}
	acked, err := a.Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second", "third"} {
		if _, err := s.store.CreateWorkspace(ctx, "not-"+name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.byName["demo"].tree.Mkdir(ctx, vfs.RootIno, name, vfs.NewNode{Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Barrier(ctx); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Hour)
	if err := s.sample(ctx, map[string]struct{}{"demo": {}}, later); err != nil {
		t.Fatal(err)
	}
	if n, lag := s.lack("demo", acked.Rev, later); n != 3 || lag < time.Hour {
		t.Errorf("%d revisions and %v behind, want 3 and an hour", n, lag)
	}
}
