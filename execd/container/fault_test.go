package container

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// What went wrong in other programs of this kind, on real processes through a registry.

// newRegistry returns a registry with real containers.
func newRegistry(t *testing.T, dir string) *execd.Registry {
	t.Helper()
	return newRegistryOf(t, newDesk(t, nil), dir, execd.MaxRunning)
}

// newRegistryOf returns one of the containers of a desk, in which at most so many execs run.
func newRegistryOf(t *testing.T, d *desk, dir string, most int) *execd.Registry {
	t.Helper()
	r, err := execd.Open(execd.Config{
		Dir: dir, MaxRunning: most, Backends: map[string]execd.Backend{"container": d}, Default: "container",
		Open: func(context.Context, string) (execd.Workspace, error) { return still{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// still is a workspace in which nothing happens but what containers do by themselves.
type still struct{}

func (still) Tree() vfs.Tree                          { return nil }
func (still) Before(context.Context) (vfs.Rev, error) { return 1, nil }
func (still) After(context.Context) (vfs.Rev, error)  { return 1, nil }
func (still) Settle(context.Context)                  {}
func (still) Close() error                            { return nil }
func (still) Changes(context.Context, vfs.Rev, vfs.Rev) (execd.Changes, error) {
	return execd.Changes{}, vfs.ErrNotSupported
}

func start(t *testing.T, r *execd.Registry, s execd.Spec) *execd.Exec {
	t.Helper()
	s.Workspace = "ws"
	e, err := r.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// tally reads to the end and returns the bytes of output, and those that were lost.
func tally(t *testing.T, r *execd.Reader) (output, lost uint64, last execd.Event) {
	t.Helper()
	defer r.Close()
	for seq := uint64(0); ; {
		e, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return output, lost, last
		}
		if err != nil {
			t.Fatal(err)
		}
		first := e.Seq
		if e.Stream == execd.Gap {
			first = e.First
			lost += e.Lost
		}
		if first != seq+1 {
			t.Fatalf("event %d after %d", first, seq)
		}
		if e.Stream == execd.Stdout {
			output += uint64(len(e.Data))
		}
		seq, last = e.Seq, e
	}
}

// 100 MB of output: a reader that holds has every byte, and the log keeps its size and says what fell out.
func TestHundredMegabytes(t *testing.T) {
	const size = 100_000_000
	dir := t.TempDir()
	r := newRegistry(t, dir)
	e := start(t, r, execd.Spec{Args: []string{"head", "-c", "100000000", "/dev/zero"}})
	if output, lost, last := tally(t, e.Attach(0, true)); output != size || lost != 0 || last.Stream != execd.Exited {
		t.Errorf("a reader that holds has %d bytes and has lost %d; the last is %s", output, lost, last.Stream)
	}
	if output, lost, last := tally(t, e.Attach(0, false)); output+lost != size || lost == 0 || last.Stream != execd.Exited {
		t.Errorf("the log has %d bytes and has lost %d; the last is %s", output, lost, last.Stream)
	}
	var disk int64
	files, err := filepath.Glob(filepath.Join(dir, e.ID(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		disk += info.Size()
	}
	if disk > execd.DefaultLogSize+1<<20 {
		t.Errorf("%d bytes on disk", disk)
	}
}

// The end of its time ends everything, and what was written until then is there.
func TestTimeoutEndsEverything(t *testing.T) {
	t.Parallel() // it is the one that takes its time
	r := newRegistry(t, t.TempDir())
	e := start(t, r, execd.Spec{
		Args:    []string{"sh", "-c", "echo begun; setsid nohup sleep 88888 & (sleep 88888 &) ; trap '' TERM; sleep 88888"},
		Timeout: 3 * time.Second,
	})
	result, err := e.Wait(t.Context())
	if err != nil || result.Status != execd.StatusTimeout || result.Code != execd.CodeTimeout {
		t.Errorf("%+v, %v", result, err)
	}
	if output, _, _ := tally(t, e.Attach(0, false)); output != uint64(len("begun\n")) {
		t.Errorf("%d bytes of output", output)
	}
	if n := processes(t, "sleep\x0088888\x00"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// A reader that holds and does not read keeps nothing from being killed.
func TestKillPastSlowReader(t *testing.T) {
	r := newRegistry(t, t.TempDir())
	e := start(t, r, execd.Spec{Args: []string{"cat", "/dev/zero"}})
	slow := e.Attach(0, true)
	defer slow.Close()
	for e.Info().Output < execd.DefaultLogSize/2 {
		time.Sleep(time.Millisecond) // another process writes
	}
	if err := e.Signal(9); err != nil {
		t.Fatal(err)
	}
	if result, err := e.Wait(t.Context()); err != nil || result.Code != 137 {
		t.Errorf("%+v, %v", result, err)
	}
}

// Closing a registry kills what runs, and says so in its result.
func TestCloseKills(t *testing.T) {
	r := newRegistry(t, t.TempDir())
	e := start(t, r, execd.Spec{Args: []string{"sh", "-c", "sleep 99999; sleep 99999"}})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if result, err := e.Wait(t.Context()); err != nil || result.Signal != "SIGKILL" {
		t.Errorf("%+v, %v", result, err)
	}
	if n := processes(t, "sleep\x0099999\x00"); n != 0 {
		t.Errorf("%d are left", n)
	}
}
