package execs

import (
	"context"
	"errors"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// watcher is somebody who follows a workspace.
type watcher struct {
	t    *testing.T
	news chan execd.News
	last execd.News
	stop context.CancelFunc
	done chan error
}

func (s *site) watch(after vfs.Rev) *watcher {
	s.t.Helper()
	ws, err := s.places.open(s.t.Context(), "demo")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &watcher{t: s.t, news: make(chan execd.News), stop: stop, done: make(chan error, 1)}
	go func() {
		err := ws.(execd.Watched).Follow(ctx, after, func(n execd.News) error {
			select {
			case w.news <- n:
				return nil
			case <-ctx.Done():
				return vfs.ErrInterrupted
			}
		})
		w.done <- errors.Join(err, ws.Close())
	}()
	return w
}

// next returns the next news.
func (w *watcher) next() execd.News {
	w.t.Helper()
	select {
	case n := <-w.news:
		if n.Rev < w.last.Rev {
			w.t.Errorf("revision %d after %d", n.Rev, w.last.Rev)
		}
		w.last = n
		return n
	case err := <-w.done:
		w.t.Fatalf("it has ended: %v", err)
	}
	panic("unreachable")
}

// sees waits for a difference: one change of a file may be told as two.
func (w *watcher) sees(want execd.Difference) {
	w.t.Helper()
	for {
		for _, d := range w.next().Changed {
			if d.Kind == want.Kind && d.Path == want.Path && d.From == want.From && d.Type == want.Type {
				return
			}
		}
	}
}

func (w *watcher) end(want error) {
	w.t.Helper()
	w.stop()
	if err := <-w.done; !errors.Is(err, want) {
		w.t.Errorf("it ends with %v, want %v", err, want)
	}
}

// What changes is told once, with a place to go on from, and nothing of before.
func TestFollow(t *testing.T) {
	s := newSite(t)
	fs, ctx := s.files(), t.Context()
	check(t, fs.WriteFile(ctx, "/before", []byte("x"), 0o644)) // no revision has it yet
	w := s.watch(0)
	if n := w.next(); len(n.Changed) != 0 || n.Rev == 0 {
		t.Errorf("it begins with %+v", n)
	}
	check(t, fs.Mkdir(ctx, "/d", 0o755))
	w.sees(execd.Difference{Kind: execd.Added, Path: "/d", Type: vfs.TypeDir})
	check(t, fs.WriteFile(ctx, "/d/f", []byte("text"), 0o644))
	w.sees(execd.Difference{Kind: execd.Added, Path: "/d/f", Type: vfs.TypeRegular})
	check(t, fs.Chmod(ctx, "/d/f", 0o600))
	w.sees(execd.Difference{Kind: execd.Modified, Path: "/d/f", Type: vfs.TypeRegular})
	check(t, fs.Rename(ctx, "/d", "/e"))
	w.sees(execd.Difference{Kind: execd.Renamed, From: "/d", Path: "/e", Type: vfs.TypeDir})
	check(t, fs.Remove(ctx, "/e/f"))
	w.sees(execd.Difference{Kind: execd.Removed, Path: "/e/f", Type: vfs.TypeRegular})
	w.end(vfs.ErrInterrupted)

	check(t, fs.WriteFile(ctx, "/after", []byte("y"), 0o644))
	check(t, s.ws.Sync(ctx))
	again := s.watch(w.last.Rev)
	if n := again.next(); len(n.Changed) != 1 || n.Changed[0].Path != "/after" || n.Changed[0].Size != 1 {
		t.Errorf("it goes on with %+v", n)
	}
	again.end(vfs.ErrInterrupted)

	s.watch(1 << 40).end(vfs.ErrNoRevision)
}

// What is different between two revisions, the later of which may be now.
func TestDifferences(t *testing.T) {
	s := newSite(t)
	ws, err := s.places.open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { check(t, ws.Close()) }()
	before, err := ws.Before(t.Context())
	check(t, err)
	check(t, s.files().WriteFile(t.Context(), "/f", []byte("x"), 0o644))
	var last vfs.Rev
	for range 2 {
		to := last // now, and then what that was
		var paths []string
		last, err = ws.(execd.Watched).Differences(t.Context(), before, to, func(d execd.Difference) error {
			paths = append(paths, d.Path)
			return nil
		})
		if err != nil || len(paths) != 1 || paths[0] != "/f" || last <= before {
			t.Errorf("from %d to %d: %q up to %d, %v", before, to, paths, last, err)
		}
	}
	stop := errors.New("enough")
	if _, err := ws.(execd.Watched).Differences(t.Context(), before, last, func(execd.Difference) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("who has enough: %v", err)
	}
	if _, err := ws.(execd.Watched).Differences(t.Context(), before, 1<<40, nil); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("what is to come: %v", err)
	}
}

// Who follows keeps the daemon there, but not from ending.
func TestFollowEnds(t *testing.T) {
	s := newSite(t)
	w := s.watch(0)
	w.next()
	if n := s.kept.Load(); n != 1 {
		t.Errorf("the daemon is kept there %d times", n)
	}
	check(t, s.Service.Close())
	if err := <-w.done; !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("it ends with %v", err)
	}
}
