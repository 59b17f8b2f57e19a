package execd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// fakeWorkspace is one whose barriers can be made to fail.
type fakeWorkspace struct {
	rev           atomic.Uint64
	before, after error
	closed        atomic.Int64
	opened        atomic.Int64
}

func (w *fakeWorkspace) Tree() vfs.Tree { return nil }
func (w *fakeWorkspace) Before(context.Context) (vfs.Rev, error) {
	return vfs.Rev(w.rev.Add(1)), w.before
}
func (w *fakeWorkspace) After(context.Context) (vfs.Rev, error) {
	return vfs.Rev(w.rev.Add(1)), w.after
}

func (*fakeWorkspace) Settle(context.Context) {}
func (w *fakeWorkspace) Changes(context.Context, vfs.Rev, vfs.Rev) (Changes, error) {
	return Changes{Added: 1}, nil
}
func (w *fakeWorkspace) Close() error {
	w.closed.Add(1)
	return nil
}

// desk is a registry for a test.
type desk struct {
	*Registry
	config Config
	ws     *fakeWorkspace
	runs   atomic.Int64
}

// program is what the fake backend does, by the first argument.
func (d *desk) program(ctx context.Context, j Job, stdin io.Reader, out Output) Exit {
	d.runs.Add(1)
	switch j.Args[0] {
	case "echo":
		out.Write(Stdout, []byte(strings.Join(j.Args[1:], " ")))
	case "cat":
		if _, err := io.Copy(Writer(out, Stdout), stdin); err != nil {
			return Exit{Code: 1}
		}
	case "fail":
		return Exit{Code: 7}
	case "panic":
		panic("on purpose")
	case "value":
		return Exit{Value: json.RawMessage(j.Args[1])}
	case "sleep":
		<-ctx.Done()
	}
	return Exit{}
}

func openDesk(t *testing.T, change func(*Config)) *desk {
	t.Helper()
	d := &desk{ws: &fakeWorkspace{}}
	d.config = Config{
		Dir: filepath.Join(t.TempDir(), "exec"), Backends: map[string]Backend{"fake": Func(d.program)}, Default: "fake",
		Open: func(_ context.Context, name string) (Workspace, error) {
			if name != "ws" {
				return nil, vfs.ErrNoWorkspace
			}
			d.ws.opened.Add(1)
			return d.ws, nil
		},
	}
	if change != nil {
		change(&d.config)
	}
	d.reopen(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if o, c := d.ws.opened.Load(), d.ws.closed.Load(); o != c {
			t.Errorf("workspaces: opened %d times, closed %d times", o, c)
		}
	})
	return d
}

func (d *desk) reopen(t *testing.T) {
	t.Helper()
	var err error
	if d.Registry, err = Open(d.config); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) mustStart(t *testing.T, s Spec) *Exec {
	t.Helper()
	s.Workspace = "ws"
	e, err := d.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wait(t *testing.T, e *Exec) Result {
	t.Helper()
	r, err := e.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// output is all that an exec wrote.
func output(t *testing.T, e *Exec) string {
	t.Helper()
	var b bytes.Buffer
	for _, ev := range readAll(t, e.log, 0) {
		if ev.Stream == Stdout || ev.Stream == Stderr {
			b.Write(ev.Data)
		}
	}
	return b.String()
}

func TestResults(t *testing.T) {
	d := openDesk(t, nil)
	for _, tt := range []struct {
		args   []string
		stdin  string
		status Status
		code   int
		value  string
		output string
	}{
		{args: []string{"echo", "a", "b"}, status: StatusExited, output: "a b"},
		{args: []string{"cat"}, stdin: "in", status: StatusExited, output: "in"},
		{args: []string{"fail"}, status: StatusExited, code: 7},
		{args: []string{"panic"}, status: StatusFailed, code: CodeNotRun},
		{args: []string{"value", `{"a":1}`}, status: StatusExited, value: `{"a":1}`},
		{args: []string{"value", `{"a":`}, status: StatusFailed, code: 1},
	} {
		e := d.mustStart(t, Spec{Args: tt.args, Stdin: []byte(tt.stdin)})
		r := wait(t, e)
		if r.Status != tt.status || r.Code != tt.code || string(r.Value) != tt.value {
			t.Errorf("%q: %+v", tt.args, r)
		}
		if got := output(t, e); got != tt.output || r.Output != uint64(len(got)) {
			t.Errorf("%q wrote %q, and says %d bytes", tt.args, got, r.Output)
		}
		if r.Before == 0 || r.After <= r.Before || r.Changes == nil || r.Pending != "" {
			t.Errorf("%q: barriers: %+v", tt.args, r)
		}
	}
}

// Every signal that ends a program ends an exec as 128+n.
func TestSignals(t *testing.T) {
	d := openDesk(t, nil)
	for n := 1; n <= maxSignal; n++ {
		e := d.mustStart(t, Spec{Args: []string{"sleep"}})
		if err := e.Signal(n); err != nil {
			t.Fatal(err)
		}
		want := Result{Status: StatusSignaled, Code: 128 + n, Signal: SignalName(n)}
		if ignoredByDefault(n) {
			if err := e.Signal(int(unix.SIGKILL)); err != nil {
				t.Fatal(err)
			}
			want = Result{Status: StatusSignaled, Code: 137, Signal: "SIGKILL"}
		}
		if r := wait(t, e); r.Status != want.Status || r.Code != want.Code || r.Signal != want.Signal {
			t.Errorf("signal %d: %+v, want %+v", n, r, want)
		}
		if err := e.Signal(n); !errors.Is(err, vfs.ErrClosed) {
			t.Errorf("signal %d after the end: %v", n, err)
		}
		if parsed, err := ParseSignal(SignalName(n)); err != nil || parsed != n {
			t.Errorf("signal %d is %s is %d, %v", n, SignalName(n), parsed, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDesk(t, nil)
		start := time.Now()
		e := d.mustStart(t, Spec{Args: []string{"sleep"}, Timeout: time.Hour})
		if r := wait(t, e); r.Status != StatusTimeout || r.Code != CodeTimeout || time.Since(start) != time.Hour {
			t.Errorf("%+v after %v", r, time.Since(start))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An id is run once, by however many at once, and says so when it was to do something else.
func TestIdempotentByID(t *testing.T) {
	d := openDesk(t, nil)
	spec := Spec{ID: "once", Args: []string{"echo", "x"}, Workspace: "ws"}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			e, err := d.Start(t.Context(), spec)
			if err != nil || e.ID() != "once" {
				t.Error(err)
				return
			}
			wait(t, e) // it is known before it runs
		})
	}
	group.Wait()
	if d.runs.Load() != 1 {
		t.Errorf("run %d times", d.runs.Load())
	}
	spec.Env = []string{"A=b"}
	if _, err := d.Start(t.Context(), spec); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("another spec of the same id: %v", err)
	}
}

// A choice that is left to the daemon is told, and a retry is of what was asked for, whatever is chosen then.
func TestChoice(t *testing.T) {
	d := openDesk(t, func(c *Config) {
		c.Choose = func(s *Spec) string {
			s.Backend, s.Args = "fake", append([]string{"echo"}, s.Args...)
			return "there is no other"
		}
	})
	for range 2 {
		r := wait(t, d.mustStart(t, Spec{ID: "id", Backend: Auto, Args: []string{"x"}}))
		if r.Backend != "fake" || r.Why != "there is no other" || r.Output != 1 {
			t.Errorf("%+v", r)
		}
	}
	if d.runs.Load() != 1 {
		t.Errorf("run %d times", d.runs.Load())
	}
	if r := wait(t, d.mustStart(t, Spec{Args: []string{"echo"}})); r.Backend != "fake" || r.Why != "" {
		t.Errorf("without a choice: %+v", r)
	}
}

// An exec whose barrier in fails is not started and may be tried again; one whose barrier out fails keeps its result.
func TestBarriers(t *testing.T) {
	d := openDesk(t, nil)
	d.ws.before = vfs.ErrClosed
	spec := Spec{ID: "id", Args: []string{"fail"}, Workspace: "ws"}
	if _, err := d.Start(t.Context(), spec); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("barrier in: %v", err)
	}
	if _, err := d.Get("id"); !errors.Is(err, vfs.ErrNotExist) || d.runs.Load() != 0 {
		t.Errorf("after it: %v, run %d times", err, d.runs.Load())
	}
	d.ws.before, d.ws.after = nil, vfs.ErrNoSpace
	r := wait(t, d.mustStart(t, spec))
	if r.Code != 7 || !strings.Contains(r.Pending, vfs.ErrNoSpace.Error()) || r.After != 0 {
		t.Errorf("barrier out: %+v", r)
	}
	d.mustStart(t, spec) // a retry of the connection, not of the command
	if d.runs.Load() != 1 {
		t.Errorf("run %d times", d.runs.Load())
	}
}

// What a registry refuses, with which error, and nothing of it is left.
func TestRefusals(t *testing.T) {
	d := openDesk(t, func(c *Config) { c.MaxRunning = 1 })
	busy := d.mustStart(t, Spec{Args: []string{"sleep"}})
	for _, tt := range []struct {
		name string
		spec Spec
		want error
	}{
		{"too many", Spec{Args: []string{"echo"}, Workspace: "ws"}, vfs.ErrBusy},
		{"nothing to run", Spec{Workspace: "ws"}, vfs.ErrInvalid},
		{"no workspace", Spec{Args: []string{"echo"}}, vfs.ErrInvalid},
		{"id with a slash", Spec{ID: "../x", Args: []string{"echo"}, Workspace: "ws"}, vfs.ErrInvalid},
		{"hidden id", Spec{ID: ".x", Args: []string{"echo"}, Workspace: "ws"}, vfs.ErrInvalid},
		{"long id", Spec{ID: strings.Repeat("x", MaxID+1), Args: []string{"echo"}, Workspace: "ws"}, vfs.ErrInvalid},
		{"NUL", Spec{Args: []string{"a\x00b"}, Workspace: "ws"}, vfs.ErrInvalid},
		{"relative directory", Spec{Args: []string{"echo"}, Dir: "x", Workspace: "ws"}, vfs.ErrInvalid},
		{"environment", Spec{Args: []string{"echo"}, Env: []string{"x"}, Workspace: "ws"}, vfs.ErrInvalid},
		{"input", Spec{Args: []string{"echo"}, Input: json.RawMessage("{"), Workspace: "ws"}, vfs.ErrInvalid},
		{"time limit", Spec{Args: []string{"echo"}, Timeout: -1, Workspace: "ws"}, vfs.ErrInvalid},
		{"large source", Spec{Source: strings.Repeat("x", MaxSource+1), Workspace: "ws"}, vfs.ErrTooBig},
		{"many arguments", Spec{Args: []string{strings.Repeat("x", MaxArgs)}, Workspace: "ws"}, vfs.ErrTooBig},
		{"backend", Spec{Args: []string{"echo"}, Backend: "other", Workspace: "ws"}, vfs.ErrNotSupported},
	} {
		if _, err := d.Start(t.Context(), tt.spec); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := d.Dispose(t.Context(), busy.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(t.Context(), Spec{Args: []string{"echo"}, Workspace: "other"}); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("no such workspace: %v", err)
	}
	if _, err := d.Start(t.Context(), Spec{Args: []string{"echo"}, Workspace: "ws", TTY: &Size{}}); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("terminal: %v", err)
	}
	left, err := os.ReadDir(d.config.Dir)
	if err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != spareName {
		t.Errorf("%v is left, %v", left, err)
	}
}

// Input that comes later, to its end.
func TestInput(t *testing.T) {
	d := openDesk(t, nil)
	e := d.mustStart(t, Spec{Args: []string{"cat"}, Stdin: []byte("a"), Open: true})
	for _, s := range []string{"b", "", "c"} {
		if err := e.Input(t.Context(), []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.CloseInput(); err != nil {
		t.Fatal(err)
	}
	wait(t, e)
	if got := output(t, e); got != "abc" {
		t.Errorf("got %q", got)
	}
	if err := e.Input(t.Context(), []byte("x")); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("input after the end: %v", err)
	}
}

// A daemon restart in the middle: what ran is lost, said so, and its log is there; what had ended is as it was.
func TestDaemonRestart(t *testing.T) {
	d := openDesk(t, nil)
	ended := d.mustStart(t, Spec{ID: "ended", Args: []string{"echo", "hello"}})
	before := wait(t, ended)
	running := d.mustStart(t, Spec{ID: "running", Args: []string{"sleep"}})
	running.log.Write(Stdout, []byte("so far"))
	for spared := false; !spared; { // nothing is being made while it is copied
		prepareDir(d.config.Dir)
		_, err := os.Lstat(filepath.Join(d.config.Dir, spareName))
		spared = err == nil
	}
	copied := filepath.Join(t.TempDir(), "copy") // what a daemon that dies now leaves
	if err := os.CopyFS(copied, os.DirFS(d.config.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(copied, "unborn"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d.config.Dir = copied
	d.reopen(t)
	e, err := d.Get("running")
	if err != nil {
		t.Fatal(err)
	}
	if r := wait(t, e); r.Status != StatusLost || e.Info().State != StateLost || output(t, e) != "so far" {
		t.Errorf("%+v, %q", r, output(t, e))
	}
	if again := d.mustStart(t, Spec{ID: "running", Args: []string{"sleep"}}); again != e {
		t.Error("a lost exec was started again")
	}
	if e, err = d.Get("ended"); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, e); output(t, e) != "hello" || r.Ended.Compare(before.Ended) != 0 || r.Code != before.Code {
		t.Errorf("%+v, %q, before %+v", r, output(t, e), before)
	}
	if n := len(d.List()); n != 2 {
		t.Errorf("%d execs, want 2", n)
	}
	if _, err := os.Stat(filepath.Join(copied, "unborn")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an exec that never began: %v", err)
	}
	if e := d.mustStart(t, Spec{ID: "next", Args: []string{"echo", "there"}}); wait(t, e).Code != 0 || output(t, e) != "there" {
		t.Errorf("after that: %q", output(t, e))
	}
}

// An exec is kept for its time, and the oldest of too many go first.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDesk(t, nil)
		e := d.mustStart(t, Spec{ID: "old", Args: []string{"echo"}})
		wait(t, e)
		time.Sleep(KeepFor - 2*sweepEvery)
		if _, err := d.Get("old"); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * sweepEvery)
		if _, err := d.Get("old"); !errors.Is(err, vfs.ErrNotExist) {
			t.Errorf("after its time: %v", err)
		}
		for i := range MaxKept + 3 {
			wait(t, d.mustStart(t, Spec{ID: fmt.Sprint(i), Args: []string{"fail"}}))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(sweepEvery)
		if _, err := d.Get("2"); !errors.Is(err, vfs.ErrNotExist) || len(d.List()) != MaxKept {
			t.Errorf("of too many: %v, %d are left", err, len(d.List()))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Two subscribers, and one that comes later, all see the same; none of them keeps the exec from ending.
func TestTwoSubscribers(t *testing.T) {
	d := openDesk(t, nil)
	e := d.mustStart(t, Spec{Args: []string{"cat"}, Open: true})
	readers := []*Reader{e.Attach(0, true), e.Attach(0, false)}
	const n = 100
	for i := range n {
		if err := e.Input(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		for _, r := range readers {
			if ev, err := r.Next(t.Context()); err != nil || string(ev.Data) != fmt.Sprint(i) {
				t.Fatalf("%q, %v, want %d", ev.Data, err, i)
			}
		}
	}
	if err := e.CloseInput(); err != nil {
		t.Fatal(err)
	}
	wait(t, e)
	for _, r := range append(readers, e.Attach(n, false)) {
		if ev, err := r.Next(t.Context()); err != nil || ev.Stream != Exited {
			t.Errorf("%s, %v", ev.Stream, err)
		}
		if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
