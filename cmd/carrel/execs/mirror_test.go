package execs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

func mustStart(t *testing.T, s *Service, spec execd.Spec) *execd.Exec {
	t.Helper()
	spec.Workspace = "demo"
	e, err := s.execs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wait(t *testing.T, e *execd.Exec) execd.Result {
	t.Helper()
	r, err := e.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *farSite) has(t *testing.T, path, text string) {
	t.Helper()
	b, err := f.files().ReadFile(t.Context(), path, 0)
	if err != nil || string(b) != text {
		t.Errorf("the authority has %q in %s, %v, want %q", b, path, err, text)
	}
}

// An exec on a mirror begins with everything that was written at the authority, and when its end is told, the authority has
// everything that it wrote.
func TestMirrorBracket(t *testing.T) {
	f := newFarSite(t)
	var before vfs.Rev
	for _, text := range []string{"one", "two", "three"} {
		check(t, f.files().WriteFile(t.Context(), "/in", []byte(text), 0o644))
		r := wait(t, mustStart(t, f.Service, execd.Spec{Source: `read -r x < in; echo "$x" > out`}))
		if r.Pending != "" || r.Changes != nil || r.Before <= before || r.After <= r.Before {
			t.Errorf("%+v", r)
		}
		f.has(t, "/out", text+"\n")
		before = r.Before
	}
	if _, err := f.execs.Start(t.Context(), execd.Spec{Workspace: "other", Source: "true"}); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("another workspace: %v", err)
	}
}

// Without the authority nothing is started, and nothing is known of it: it may be tried again.
func TestMirrorAway(t *testing.T) {
	f := newFarSite(t)
	check(t, f.mirror.AwaitWhole(t.Context()))
	f.wire.cut()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	spec := execd.Spec{ID: "x", Workspace: "demo", Source: "echo once >> count"}
	if e, err := f.execs.Start(ctx, spec); !errors.Is(err, vfs.ErrInterrupted) {
		t.Fatalf("started %v, %v", e, err)
	}
	if _, err := f.execs.Get("x"); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("what was not started is known: %v", err)
	}
	f.wire.mend()
	if r := wait(t, mustStart(t, f.Service, spec)); r.Code != 0 || r.Pending != "" {
		t.Errorf("%+v", r)
	}
	f.has(t, "/count", "once\n")
}

// A connection that breaks while an exec runs holds its end up, and does nothing else: it has run once.
func TestMirrorBreaks(t *testing.T) {
	f := newFarSite(t)
	spec := execd.Spec{ID: "x", Workspace: "demo", Source: "echo once >> count; echo ready; read -r x; echo $x >> count", Open: true}
	e := mustStart(t, f.Service, spec)
	events := e.Attach(0, false)
	defer events.Close()
	if ev, err := events.Next(t.Context()); err != nil || ev.Stream != execd.Stdout {
		t.Fatal(ev, err)
	}
	f.wire.cut()
	check(t, e.Input(t.Context(), []byte("more\n")))
	f.wire.mend()
	if r := wait(t, e); r.Code != 0 || r.Pending != "" {
		t.Errorf("%+v", r)
	}
	f.has(t, "/count", "once\nmore\n")
	if again := mustStart(t, f.Service, spec); again != e {
		t.Error("it was started again")
	}
	f.has(t, "/count", "once\nmore\n")
}

// A service that ends does not wait for an authority that is away: what is not there yet is said.
func TestMirrorEnds(t *testing.T) {
	f := newFarSite(t)
	e := mustStart(t, f.Service, execd.Spec{Source: "echo kept > file; echo ready; read -r x", Open: true})
	events := e.Attach(0, false)
	defer events.Close()
	if ev, err := events.Next(t.Context()); err != nil || ev.Stream != execd.Stdout {
		t.Fatal(ev, err)
	}
	f.wire.cut()
	check(t, f.Service.Close())
	if r := wait(t, e); r.Signal != "SIGKILL" || r.Pending == "" || r.After != 0 {
		t.Errorf("%+v", r)
	}
	f.wire.mend()
	check(t, f.mirror.Now(t.Context()))
	f.has(t, "/file", "kept\n")
}
