package container

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/execd"
)

// desk is a backend for a test, on directories in place of mounts.
type desk struct {
	*Backend
	dir string // holds a directory for each workspace
}

func newDesk(t testing.TB, change func(*Config)) *desk {
	t.Helper()
	d := &desk{dir: t.TempDir()}
	config := Config{Mount: func(_ context.Context, name string) (string, func() error, error) {
		dir := filepath.Join(d.dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", nil, err
		}
		return dir, func() error { return nil }, nil
	}}
	if change != nil {
		change(&config)
	}
	d.Backend = New(config)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// patience is how long a test waits for what another goroutine or process does.
const patience = 2 * time.Minute

// log keeps what a command writes, and lets tests wait for some of it.
type log struct {
	mu   sync.Mutex
	all  map[execd.Stream]*bytes.Buffer
	more chan struct{}
}

func newLog() *log {
	return &log{
		all:  map[execd.Stream]*bytes.Buffer{execd.Stdout: {}, execd.Stderr: {}},
		more: make(chan struct{}, 1),
	}
}

func (l *log) Write(s execd.Stream, p []byte) {
	l.mu.Lock()
	l.all[s].Write(p)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *log) text(s execd.Stream) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[s].String()
}

// expect waits until some text has been written.
func (l *log) expect(t testing.TB, text string) {
	t.Helper()
	late := time.After(patience)
	for !strings.Contains(l.text(execd.Stdout), text) {
		select {
		case <-l.more:
		case <-late:
			t.Fatalf("%q was not written: %q, stderr %q", text, l.text(execd.Stdout), l.text(execd.Stderr))
		}
	}
}

func (d *desk) start(t testing.TB, s execd.Spec) (execd.Process, *log) {
	t.Helper()
	out := newLog()
	if s.Workspace == "" {
		s.Workspace = "ws"
	}
	p, err := d.Start(context.Background(), execd.Job{Spec: s}, out)
	if err != nil {
		t.Fatal(err)
	}
	return p, out
}

// sh runs a script to its end.
func (d *desk) sh(t testing.TB, script string) (execd.Exit, string) {
	t.Helper()
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", script}})
	x := p.Wait()
	return x, out.text(execd.Stdout) + out.text(execd.Stderr)
}
