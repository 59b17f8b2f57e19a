package js_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// Each bound has an end of its own, and the backend goes on.
func TestBounds(t *testing.T) {
	k := newKit(t)
	k.put("/big", strings.Repeat("x", worker.MaxFile+1))
	for _, tt := range []struct {
		name, source, reason, errs string
		limits                     execd.Limits
		oom                        bool
		code                       int
	}{
		{name: "memory", source: "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))", limits: execd.Limits{Memory: 32 << 20},
			reason: "more than 33554432 bytes of memory", oom: true, code: 137},
		{name: "memory of text", source: "let s = 'x'; for (;;) s += s + '.'", limits: execd.Limits{Memory: 32 << 20}, code: 1},
		{name: "value", source: "export default 'x'.repeat(5 << 20)", reason: "the result value has 5242882 bytes, of at most 4194304", code: 1},
		{name: "value that is none", source: "const a = {}; a.a = a; export default a", errs: "circular", code: 1},
		{name: "stack", source: "const f = () => [f()]; f()", errs: "stack overflow", code: 1},
		{name: "stack that is caught", source: "const f = () => [f()]; try { f() } catch (e) { console.error('caught ' + e.message) }",
			errs: "caught stack overflow"},
		{name: "file", source: "import fs from 'fs'; fs.readFileSync('/big')", errs: "EFBIG", code: 1},
		{name: "file made", source: "import fs from 'fs'; const s = 'x'.repeat(1 << 20); fs.writeFileSync('/made', s.repeat(33))", errs: "EFBIG", code: 1},
		{name: "timers", source: "for (;;) setTimeout(() => {}, 1e6)", errs: "more than 10000 timers", code: 1},
		{name: "deep JSON", source: "export default JSON.parse('['.repeat(1e6))", code: 1},
		{name: "regular expression", source: "/(a*)*$/.test('a'.repeat(14) + 'b')"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, _, errs := k.run(execd.Spec{Source: tt.source, Limits: tt.limits})
			if x.OOM != tt.oom && tt.name != "memory of text" || x.Code != tt.code && !x.OOM || !strings.Contains(x.Reason, tt.reason) ||
				!strings.Contains(errs, tt.errs) {
				t.Errorf("exit %+v, errors %.300q", x, errs)
			}
		})
	}
	if x, _, errs := k.run(execd.Spec{Source: "export default 1"}); string(x.Value) != "1" {
		t.Errorf("afterwards: %+v %s", x, errs)
	}
}

func TestRefused(t *testing.T) {
	k := newKit(t)
	for _, tt := range []struct {
		spec execd.Spec
		err  error
	}{
		{execd.Spec{Args: []string{"none.mjs"}}, vfs.ErrNotExist},
		{execd.Spec{Args: []string{"/"}}, vfs.ErrNotExist},
		{execd.Spec{Source: "1", TTY: &execd.Size{}}, vfs.ErrNotSupported},
		{execd.Spec{Source: "1", Net: "host"}, vfs.ErrNotSupported},
		{execd.Spec{Source: "1", Limits: execd.Limits{Pids: 1}}, vfs.ErrNotSupported},
		{execd.Spec{Source: "1", Limits: execd.Limits{Memory: 1}}, vfs.ErrInvalid},
		{execd.Spec{Source: "1", Limits: execd.Limits{Memory: 1 << 40}}, vfs.ErrInvalid},
	} {
		tt.spec.Dir = "/"
		_, err := k.Start(t.Context(), execd.Job{Spec: tt.spec, Tree: k.fs.Tree}, &output{})
		if !errors.Is(err, tt.err) {
			t.Errorf("%+v: %v, want %v", tt.spec, err, tt.err)
		}
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := k.Start(t.Context(), execd.Job{Spec: execd.Spec{Source: "1", Dir: "/"}, Tree: k.fs.Tree}, &output{})
	if !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// started is an output that says when the first byte came.
type started struct {
	output
	once sync.Once
	came chan struct{}
}

func (s *started) Write(stream execd.Stream, p []byte) {
	s.output.Write(stream, p)
	s.once.Do(func() { close(s.came) })
}

// A module that never ends is ended by a signal, whatever it does.
func TestSignal(t *testing.T) {
	k := newKit(t)
	for _, source := range []string{
		"console.log(1); for (;;);", "console.log(1); await new Promise((r) => setTimeout(r, 1e9))",
		"console.log(1); for await (const c of process.stdin);", "for (;;) console.log(1)",
		"console.log(1); for (;;) try { for (;;); } finally { continue }",
	} {
		o := &started{came: make(chan struct{})}
		p := k.start(execd.Spec{Source: source, Open: true}, o)
		<-o.came
		if err := p.Signal(int(syscall.SIGWINCH)); err != nil {
			t.Error(err)
		}
		if err := p.Signal(int(syscall.SIGKILL)); err != nil {
			t.Error(err)
		}
		if x := p.Wait(); x.Code != 137 || x.Signal != int(syscall.SIGKILL) {
			t.Errorf("%s: %+v", source, x)
		}
	}
}

// workers are the processes that this one has started and that still run.
func workers(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(s)))
		if err == nil && fields[1] == strconv.Itoa(os.Getpid()) && fields[0] != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A worker that dies is told, and takes nothing with it, whether it was running or waiting.
func TestWorkerDies(t *testing.T) {
	k := newKit(t)
	for range 3 {
		o := &started{came: make(chan struct{})}
		p := k.start(execd.Spec{Source: "console.log(1); for (;;);"}, o)
		ended := make(chan struct{})
		go func() { p.Wait(); close(ended) }()
		select {
		case <-o.came:
		case <-ended:
			t.Fatal("it has ended by itself")
		}
		for _, pid := range workers(t) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
		}
		if x := p.Wait(); x.Code != execd.CodeNotRun || !strings.Contains(x.Reason, "the worker ended") {
			t.Errorf("%+v", x)
		}
	}
	if x, _, errs := k.run(execd.Spec{Source: "export default 1"}); string(x.Value) != "1" { // those that waited were killed too
		t.Errorf("afterwards: %+v %s", x, errs)
	}
}

// Many at once all run, each alone.
func TestMany(t *testing.T) {
	k := newKit(t)
	const n = 24
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			x, out, errs := k.run(execd.Spec{Source: fmt.Sprintf("import fs from 'fs'; fs.writeFileSync('/f%d', '%d'); console.log(%d); export default %d", i, i, i, i)})
			if string(x.Value) != strconv.Itoa(i) || out != strconv.Itoa(i)+"\n" {
				t.Errorf("%d: %+v %q %q", i, x, out, errs)
			}
		})
	}
	group.Wait()
	entries, err := k.fs.ReadDir(context.Background(), "/")
	if err != nil || len(entries) != n {
		t.Errorf("%d files, %v", len(entries), err)
	}
}
