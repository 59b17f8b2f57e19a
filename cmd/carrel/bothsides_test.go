package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/cmd/carrel/execs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// site is a daemon with a workspace, "demo", which is used through its API alone: the daemon mounts it where its containers see it
// and nobody else does.
type site struct {
	t     *testing.T
	ctx   context.Context // of all that is done there
	execs *api.Client
	http  http.Client
}

func newSite(ctx context.Context, t *testing.T) *site {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store")
	if status, _, stderr := runIn(t.Context(), store, "", ownerPatience, "ws", "create", "demo"); status != exitDone {
		t.Fatal(stderr)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"carrel", "serve", "--store", store, "--listen", "127.0.0.1:0", "demo"}
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context) (net.Conn, error) { return control.DialSocket(ctx, store) }
	s := &site{t: t, ctx: ctx, execs: api.NewClient(dial)}
	s.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	t.Cleanup(func() {
		s.execs.Close()
		s.http.CloseIdleConnections()
		if err := errors.Join(cmd.Process.Signal(unix.SIGINT), cmd.Wait()); err != nil {
			t.Errorf("the daemon did not end well: %v", err)
		}
		if status, stdout, stderr := runIn(context.Background(), store, "", ownerPatience, "check", "--bytes"); status != exitDone {
			t.Errorf("check: %s%s", stdout, stderr)
		}
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // the URL: it serves
		t.Fatalf("the daemon has not come up: %v", err)
	}
	return s
}

// request does one on a file. Its errors are those of the connection.
func (s *site) request(method, path, ranged string, body []byte) (status int, got []byte, err error) {
	r, err := http.NewRequestWithContext(s.ctx, method, "http://carrel/c/demo/file"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if ranged != "" {
		r.Header.Set("Range", "bytes="+ranged)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	got, err = io.ReadAll(answer.Body)
	return answer.StatusCode, got, err
}

// put makes a file, with its directories, or replaces one.
func (s *site) put(path, text string) error {
	status, got, err := s.request(http.MethodPut, path+"?parents=true", "", []byte(text))
	if err == nil && status != http.StatusCreated && status != http.StatusNoContent {
		err = fmt.Errorf("put %s: %d %s", path, status, got)
	}
	return err
}

// has requires that a file, or a range of it, is what is given.
func (s *site) has(path, ranged, want string) error {
	status, got, err := s.request(http.MethodGet, path, ranged, nil)
	expected := http.StatusOK
	if ranged != "" {
		expected = http.StatusPartialContent
	}
	if err == nil && (status != expected || string(got) != want) {
		err = fmt.Errorf("through the API, %s %s is %d %q, not %q", path, ranged, status, short(string(got)), short(want))
	}
	return err
}

// hasNot requires that there is no such file.
func (s *site) hasNot(path string) error {
	status, got, err := s.request(http.MethodGet, path, "", nil)
	if err == nil && status != http.StatusNotFound {
		err = fmt.Errorf("through the API, %s is there still: %d %q", path, status, short(string(got)))
	}
	return err
}

// writeAt writes into a file that is there.
func (s *site) writeAt(path string, offset uint64, text string) error {
	_, err := s.execs.Files().WriteFile(s.ctx, connect.NewRequest(&carrelv1.WriteFileRequest{
		Workspace: "demo", Path: path, Offset: &offset, Data: []byte(text),
	}))
	return err
}

// size asks for the size of a file alone.
func (s *site) size(path string) (uint64, error) {
	n, err := s.execs.Files().Stat(s.ctx, connect.NewRequest(&carrelv1.StatRequest{Workspace: "demo", Path: path}))
	if err != nil {
		return 0, err
	}
	return n.Msg.GetSize(), nil
}

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

// worker is a script in a container of the workspace, which is spoken with by lines.
type worker struct {
	site   *site
	id     string
	events *api.Events
	out    []byte // of its output, what no line was made of
	errors []byte
}

// hire starts a script of sh in a directory of the workspace, which is made.
func (s *site) hire(id, script string) (*worker, error) {
	if err := s.put("/"+id+"/.here", ""); err != nil { // and with it the directory
		return nil, err
	}
	events, err := s.execs.Start(s.ctx, execd.Spec{
		ID: id, Workspace: "demo", Backend: execs.Container, Dir: "/" + id, Args: []string{"sh", "-ec", script}, Open: true, Env: gitQuiet,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	return &worker{site: s, id: id, events: events}, nil
}

// gitQuiet makes git independent of who runs it.
var gitQuiet = []string{
	"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.com",
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
}

// line is the next that the script prints.
func (w *worker) line() (string, error) {
	for {
		if line, rest, ok := bytes.Cut(w.out, []byte("\n")); ok {
			w.out = rest
			return string(line), nil
		}
		e, err := w.events.Next()
		if err != nil {
			return "", fmt.Errorf("%s: %w", w.id, err)
		}
		w.out = append(w.out, e.GetStdout()...)
		w.errors = append(w.errors, e.GetStderr()...)
		if x := e.GetExit(); x != nil {
			return "", fmt.Errorf("%s has ended with %d %s, and said %q, %q", w.id, x.GetCode(), x.GetReason(), w.out, w.errors)
		}
	}
}

// says requires the next line.
func (w *worker) says(want string) error {
	got, err := w.line()
	if err == nil && got != want {
		err = fmt.Errorf("in the container, %s says %q, not %q; %q", w.id, short(got), short(want), w.errors)
	}
	return err
}

// tell gives the script a line.
func (w *worker) tell(line string) error {
	return w.site.execs.Input(w.site.ctx, w.id, []byte(line+"\n"), false)
}

// ask is both.
func (w *worker) ask(line, want string) error {
	if err := w.tell(line); err != nil {
		return err
	}
	if err := w.says(want); err != nil {
		return fmt.Errorf("%s: %w", short(line), err)
	}
	return nil
}

// dismiss ends the script's input, and requires that it ends well.
func (w *worker) dismiss() error {
	defer w.events.Close()
	if err := w.site.execs.Input(w.site.ctx, w.id, nil, true); err != nil {
		return err
	}
	for {
		e, err := w.events.Next()
		if err != nil {
			return fmt.Errorf("%s: %w", w.id, err)
		}
		w.errors = append(w.errors, e.GetStderr()...)
		if x := e.GetExit(); x != nil {
			if x.GetCode() != 0 {
				return fmt.Errorf("%s has ended with %d %s: %q", w.id, x.GetCode(), x.GetReason(), w.errors)
			}
			return nil
		}
	}
}

// seen is what a watch has told of the workspace.
type seen struct {
	mu    sync.Mutex
	paths map[string]bool
	more  chan struct{}
}

// watch follows what changes.
func (s *site) watch() (*seen, error) {
	news, err := s.execs.Watch(s.t.Context(), "demo", "/", 0)
	if err != nil {
		return nil, err
	}
	if _, err := news.Next(); err != nil { // from where on
		return nil, err
	}
	w := &seen{paths: map[string]bool{}, more: make(chan struct{}, 1)}
	go func() { // ends with the test
		defer news.Close()
		for {
			m, err := news.Next()
			if err != nil {
				return
			}
			w.mu.Lock()
			for _, c := range m.GetChanges() {
				w.paths[c.GetPath()] = true
			}
			w.mu.Unlock()
			select {
			case w.more <- struct{}{}:
			default:
			}
		}
	}()
	return w, nil
}

// expect waits until a change of a path has been told, or of a directory that it is in, which tells that all in it is new.
func (w *seen) expect(path string) error {
	for late := time.After(scriptPatience); ; {
		w.mu.Lock()
		for p := path; p != "/"; p = filepath.Dir(p) {
			if w.paths[p] {
				w.mu.Unlock()
				return nil
			}
		}
		w.mu.Unlock()
		select {
		case <-w.more:
		case <-late:
			return fmt.Errorf("no watch has told of %s", path)
		}
	}
}

// Real tools build in containers on a workspace that is edited through the API at the same time. What one side has written the
// other sees at once, whole, and never anything older: nothing here waits, or tries again.
func TestBothSides(t *testing.T) {
	group, ctx := errgroup.WithContext(t.Context())
	s := newSite(ctx, t)
	changes, err := s.watch()
	if err != nil {
		t.Fatal(err)
	}
	var building sync.WaitGroup
	over := make(chan struct{})
	exchanges := 0
	group.Go(func() (err error) {
		exchanges, err = s.converse(over)
		return err
	})
	for name, build := range map[string]func(*site) error{
		"git": cloneAndPush, "npm": installAndTest, "go": testModule, "c": compileC, "tools": useTools,
	} {
		building.Add(1)
		group.Go(func() error {
			defer building.Done()
			start := time.Now()
			if err := build(s); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			t.Logf("%s: %v", name, time.Since(start))
			return nil
		})
	}
	building.Wait()
	close(over)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d exchanges meanwhile", exchanges)
	for _, path := range []string{"/git/clone/hello", "/npm/result.json", "/go/value.go", "/c/program", "/tools/db"} {
		if err := changes.expect(path); err != nil {
			t.Error(err)
		}
	}
}
