package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/tools"
)

// execs has one exec, with given events.
type execs struct {
	spec    execd.Spec
	events  []execd.Event
	running bool
	killed  bool
}

func (*execs) Backends() []string { return []string{"shell", "js", "container"} }

func (e *execs) Start(_ context.Context, spec execd.Spec) (string, error) {
	e.spec = spec
	return "x1", nil
}

func (e *execs) Follow(ctx context.Context, id string, after uint64, f func(execd.Event)) error {
	if id != "x1" {
		return fmt.Errorf("exec %q: %w", id, vfs.ErrNotExist)
	}
	for _, event := range e.events {
		if event.Seq > after {
			f(event)
		}
	}
	if e.running {
		<-ctx.Done()
		return vfs.ErrInterrupted
	}
	return nil
}

func (e *execs) Kill(context.Context, string) error {
	e.killed = true
	return nil
}

// wrote makes events of so many bytes each, and an exit.
func wrote(t *testing.T, sizes ...int) (events []execd.Event, all string) {
	t.Helper()
	var b strings.Builder
	for i, size := range sizes {
		data := strings.Repeat(string(rune('a'+i%26)), size)
		b.WriteString(data)
		events = append(events, execd.Event{Seq: uint64(i + 1), Stream: execd.Stdout, Data: []byte(data)})
	}
	data, err := json.Marshal(execd.Result{Status: execd.StatusExited, Code: 3, Value: json.RawMessage(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	return append(events, execd.Event{Seq: uint64(len(sizes) + 1), Stream: execd.Exited, Data: data}), b.String()
}

func TestExec(t *testing.T) {
	d := newDesk(t)
	e := &execs{}
	d.Execs = e
	e.events, _ = wrote(t, 5)
	r, err := d.Exec(t.Context(), tools.ExecArgs{Command: "make", Backend: "container", Cwd: "d", Args: []string{"x"},
		Env: map[string]string{"B": "2", "A": "1"}})
	d.ok(err)
	if r.Status != "exited" || *r.Code != 3 || r.Output != "aaaaa" || fmt.Sprintf("%s", r.Value) != `{"a":1}` || r.CutBytes != 0 {
		t.Errorf("%+v", r)
	}
	s := e.spec
	if !slices.Equal(s.Args, []string{"sh", "-c", "make", "sh", "x"}) || s.Dir != "/d" || s.Timeout != tools.DefaultTimeout ||
		!slices.Equal(s.Env, []string{"A=1", "B=2"}) {
		t.Errorf("spec %+v", s)
	}
	for _, a := range []tools.ExecArgs{{Source: "1"}, {Command: "true"}} {
		_, err = d.Exec(t.Context(), a)
		d.ok(err)
		if want := map[bool]string{true: "js", false: "shell"}[a.Source != ""]; e.spec.Backend != want {
			t.Errorf("%+v ran in %s", a, e.spec.Backend)
		}
	}
	for _, tt := range []struct {
		args tools.ExecArgs
		err  error
	}{
		{tools.ExecArgs{}, vfs.ErrInvalid},
		{tools.ExecArgs{Command: "a", Source: "b"}, vfs.ErrInvalid},
		{tools.ExecArgs{Command: "a", ID: "x1"}, vfs.ErrInvalid},
		{tools.ExecArgs{Command: "a", Backend: "vm"}, vfs.ErrNotSupported},
		{tools.ExecArgs{Command: "a", Timeout: -1}, vfs.ErrInvalid},
		{tools.ExecArgs{Command: "a", Wait: -1}, vfs.ErrInvalid},
		{tools.ExecArgs{Command: "a", Stdin: strings.Repeat("x", tools.MaxInput+1)}, vfs.ErrTooBig},
		{tools.ExecArgs{ID: "x2"}, vfs.ErrNotExist},
		{tools.ExecArgs{ID: "x1", After: "soon"}, vfs.ErrInvalid},
	} {
		_, err := d.Exec(t.Context(), tt.args)
		wantErr(t, fmt.Sprintf("%.80s", fmt.Sprintf("%+v", tt.args)), err, tt.err)
	}
	_, err = newDesk(t).Exec(t.Context(), tools.ExecArgs{Command: "a"})
	wantErr(t, "nothing runs", err, vfs.ErrNotSupported)
}

// An exec that has not ended is told as running, and is followed and killed by its id.
func TestExecRunning(t *testing.T) {
	d := newDesk(t)
	e := &execs{running: true}
	d.Execs = e
	events, _ := wrote(t, 3, 3)
	e.events = events[:1]
	r, err := d.Exec(t.Context(), tools.ExecArgs{Command: "sleep", Wait: 0.01})
	d.ok(err)
	if r.Status != "running" || r.Output != "aaa" || r.Next == "" {
		t.Errorf("%+v", r)
	}
	e.events, e.running = events, false
	r, err = d.Exec(t.Context(), tools.ExecArgs{ID: r.ID, After: r.Next, Kill: true})
	d.ok(err)
	if r.Status != "exited" || r.Output != "bbb" || !e.killed {
		t.Errorf("%+v, killed %t", r, e.killed)
	}
}

// A result has the beginning and the end of much output, and the middle can be had.
func TestExecMuchOutput(t *testing.T) {
	for _, sizes := range [][]int{{200_000}, slices.Repeat([]int{1000}, 300), {tools.MaxOutput}, {tools.MaxOutput + 1}, {8 << 10, 24 << 10, 1}} {
		d := newDesk(t)
		e := &execs{}
		d.Execs = e
		var all string
		e.events, all = wrote(t, sizes...)
		r, err := d.Exec(t.Context(), tools.ExecArgs{Command: "yes"})
		d.ok(err)
		if len(r.Output) > tools.MaxOutput+100 || !strings.HasPrefix(all, r.Output[:8<<10]) ||
			!strings.HasSuffix(all, r.Output[len(r.Output)-24<<10:]) {
			t.Fatalf("%v: %d bytes", sizes, len(r.Output))
		}
		got := r.Output
		if want := uint64(max(0, len(all)-tools.MaxOutput)); r.CutBytes != want {
			t.Errorf("%v: %d cut, want %d", sizes, r.CutBytes, want)
		}
		if r.CutBytes > 0 {
			got = got[:8<<10]
		}
		for r.CutAfter != "" {
			r, err = d.Exec(t.Context(), tools.ExecArgs{ID: "x1", After: r.CutAfter})
			d.ok(err)
			text, _, _ := strings.Cut(r.Output, "\n[…")
			got += text
		}
		if got != all {
			t.Errorf("%v: %d bytes in all, want %d", sizes, len(got), len(all))
		}
	}
}
