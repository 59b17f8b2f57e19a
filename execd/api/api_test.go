package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// workspace is one in memory.
type workspace struct {
	tree vfs.Tree
	news chan execd.News // what its followers are told
}

// Follow implements execd.Watched. It begins with revision 7 when it is not to go on from another.
func (w workspace) Follow(ctx context.Context, after vfs.Rev, f func(execd.News) error) error {
	n := execd.News{Rev: max(after, 7)}
	for {
		if err := f(n); err != nil {
			return err
		}
		select {
		case n = <-w.news:
		case <-ctx.Done():
			return fmt.Errorf("follow: %w", vfs.ErrInterrupted)
		}
	}
}

func (w workspace) Tree() vfs.Tree                          { return w.tree }
func (w workspace) Before(context.Context) (vfs.Rev, error) { return 1, nil }
func (w workspace) After(context.Context) (vfs.Rev, error)  { return 2, nil }
func (workspace) Settle(context.Context)                    {}
func (w workspace) Close() error                            { return nil }
func (w workspace) Changes(context.Context, vfs.Rev, vfs.Rev) (execd.Changes, error) {
	return execd.Changes{Added: 3}, nil
}

// Differences implements execd.Watched: from a revision, each up to the other has added a file of its number.
func (w workspace) Differences(_ context.Context, from, to vfs.Rev, yield func(execd.Difference) error) (vfs.Rev, error) {
	if from == 0 {
		return 0, fmt.Errorf("revision 0: %w", vfs.ErrNoRevision)
	}
	if to == 0 {
		to = 12
	}
	for rev := from + 1; rev <= to; rev++ {
		if err := yield(execd.Difference{Kind: execd.Added, Path: fmt.Sprintf("/%d/f", rev%2)}); err != nil {
			return to, err
		}
	}
	return to, nil
}

// desk is an API over a registry with a fake backend, and a client of it.
type desk struct {
	*Client
	url  string
	http *http.Client
	news chan execd.News // what changes in "ws"
}

func newDesk(t *testing.T, access Access) *desk {
	t.Helper()
	ws := workspace{vfstest.NewTree(), make(chan execd.News)}
	open := func(_ context.Context, name string) (execd.Workspace, error) {
		switch name {
		case "ws":
			return ws, nil
		case "unwatched":
			return struct{ execd.Workspace }{ws}, nil
		}
		return nil, vfs.ErrNoWorkspace
	}
	backend := execd.Func(func(ctx context.Context, j execd.Job, stdin io.Reader, out execd.Output) execd.Exit {
		switch j.Args[0] {
		case "cat":
			if _, err := io.Copy(execd.Writer(out, execd.Stdout), stdin); err != nil {
				return execd.Exit{Code: 1}
			}
		case "raw":
			out.Write(execd.Stderr, []byte{0xff, 'x'})
		case "much":
			out.Write(execd.Stdout, make([]byte, maxOutput+1))
		case "sleep":
			<-ctx.Done()
		}
		return execd.Exit{Code: len(j.Args)}
	})
	execs, err := execd.Open(execd.Config{
		Dir: filepath.Join(t.TempDir(), "exec"), Backends: map[string]execd.Backend{"fake": backend}, Default: "fake", Open: open,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	Register(mux.Handle, Config{Execs: execs, Open: open, Access: access})
	server := httptest.NewServer(mux)
	client := NewClient(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	})
	t.Cleanup(func() {
		client.Close()
		if err := execs.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return &desk{client, server.URL, server.Client(), ws.news}
}

// do makes a plain request and returns the status and the body.
func (d *desk) do(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := d.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// Every sentinel has its place in the table, its own name, and comes back from the wire as itself.
func TestStatuses(t *testing.T) {
	names := map[string]bool{}
	for _, s := range append(vfs.Errors(), ErrUnknown, execd.ErrNoProgram, execd.ErrNotRunnable) {
		if name := statusOf(fmt.Errorf("x: %w", s)).name; name == "" || names[name] {
			t.Errorf("%v has the name %q", s, name)
		} else {
			names[name] = true
		}
		if back := Error(wireError(fmt.Errorf("x: %w", s))); !errors.Is(back, s) {
			t.Errorf("%v comes back as %v", s, back)
		}
		w := httptest.NewRecorder()
		HTTPError(w, fmt.Errorf("x: %w", s))
		if back := PlainError(w.Header(), w.Body.String()); !errors.Is(back, s) || back.Error() != "x: "+s.Error() {
			t.Errorf("%v comes back by plain HTTP as %v", s, back)
		}
	}
	if got := statusOf(errors.New("x")).http; got != http.StatusInternalServerError {
		t.Errorf("an unknown error is %d", got)
	}
}

// A daemon that is killed before it has read all resets the connection. That is no interruption: who follows something asks again.
func TestConnectionReset(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "sock"))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer l.Close()
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			conn.Close()
		}
	})
	x := NewClient(func(context.Context) (net.Conn, error) { return net.Dial("unix", l.Addr().String()) })
	defer x.Close()
	if _, err := x.List(t.Context(), "ws"); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("a call: %v", err)
	}
	news, err := x.Watch(t.Context(), "ws", "/", 0)
	if err == nil {
		_, err = news.Next()
		news.Close()
	}
	if !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("a stream: %v", err)
	}
}

// A whole exec through the client: input, events in order, the result, and the errors.
func TestService(t *testing.T) {
	d := newDesk(t, nil)
	ctx := t.Context()
	events, err := d.Start(ctx, execd.Spec{ID: "one", Workspace: "ws", Args: []string{"cat"}, Stdin: []byte("a"), Open: true})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if e, err := events.Next(); err != nil || e.GetStarted() != "one" {
		t.Fatal(e, err)
	}
	if e, err := events.Next(); err != nil || string(e.GetStdout()) != "a" || e.GetSeq() != 1 {
		t.Fatal(e, err)
	}
	if err := d.Input(ctx, "one", []byte("b"), true); err != nil {
		t.Fatal(err)
	}
	if e, err := events.Next(); err != nil || string(e.GetStdout()) != "b" {
		t.Fatal(e, err)
	}
	e, err := events.Next()
	if err != nil || e.GetExit() == nil {
		t.Fatal(e, err)
	}
	if r := Result(e.GetExit()); r.Code != 1 || r.Status != execd.StatusExited || r.After != 2 || r.Changes.Added != 3 || r.Output != 2 {
		t.Errorf("%+v", r)
	}
	if _, err := events.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	again, err := d.Attach(ctx, "one", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if e, err := again.Next(); err != nil || e.GetExit() == nil || e.GetSeq() != 3 {
		t.Errorf("%v, %v", e, err)
	}
	if err := d.Signal(ctx, "one", "TERM"); !errors.Is(err, vfs.ErrClosed) {
		t.Error(err)
	}
	if list, err := d.List(ctx, "ws"); err != nil || len(list) != 1 || list[0].GetState() != "exited" {
		t.Error(list, err)
	}
	if err := errors.Join(d.Dispose(ctx, "one")); err != nil {
		t.Error(err)
	}
	if err := d.Dispose(ctx, "one"); !errors.Is(err, vfs.ErrNotExist) {
		t.Error(err)
	}
}

// Errors of a start, and a kill while it streams.
func TestServiceErrors(t *testing.T) {
	d := newDesk(t, nil)
	for _, tt := range []struct {
		spec execd.Spec
		want error
	}{
		{execd.Spec{Workspace: "other", Args: []string{"cat"}}, vfs.ErrNoWorkspace},
		{execd.Spec{Workspace: "ws"}, vfs.ErrInvalid},
		{execd.Spec{Workspace: "ws", Args: []string{"cat"}, Backend: "x"}, vfs.ErrNotSupported},
		{execd.Spec{Workspace: "ws", Args: []string{"cat"}, TTY: &execd.Size{}}, vfs.ErrNotSupported},
	} {
		events, err := d.Start(t.Context(), tt.spec)
		if err == nil {
			_, err = events.Next()
			events.Close()
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.spec, err, tt.want)
		}
	}
	events, err := d.Start(t.Context(), execd.Spec{ID: "s", Workspace: "ws", Args: []string{"sleep"}})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if _, err := events.Next(); err != nil {
		t.Fatal(err)
	}
	if err := d.Resize(t.Context(), "s", execd.Size{Rows: 1, Cols: 1}); !errors.Is(err, vfs.ErrNotSupported) {
		t.Error(err)
	}
	if err := d.Signal(t.Context(), "s", "NONE"); !errors.Is(err, vfs.ErrInvalid) {
		t.Error(err)
	}
	if err := d.Signal(t.Context(), "s", "hup"); err != nil {
		t.Error(err)
	}
	if e, err := events.Next(); err != nil || e.GetExit().GetCode() != 129 || e.GetExit().GetSignal() != "SIGHUP" {
		t.Errorf("%v %v", e, err)
	}
}

// Files as scripts see them.
func TestFiles(t *testing.T) {
	d := newDesk(t, nil)
	for _, tt := range []struct {
		method, path, body string
		headers            []string
		code               int
		answer             string
	}{
		{"GET", "/c/ws/file/a", "", nil, 404, "not found"},
		{"PUT", "/c/ws/file/a", "hello", nil, 201, ""},
		{"GET", "/c/ws/file/a", "", nil, 200, "hello"},
		{"GET", "/c/ws/file/a", "", []string{"Range", "bytes=1-3"}, 206, "ell"},
		{"GET", "/c/ws/file/a", "", []string{"Range", "bytes=9-"}, 416, "invalid range"},
		{"PUT", "/c/ws/file/a", "bye", nil, 204, ""},
		{"GET", "/c/ws/file/a", "", nil, 200, "bye"},
		{"PUT", "/c/ws/file/d/e/f", "x", nil, 404, "no such"},
		{"PUT", "/c/ws/file/d/e/f?parents=true&mode=755", "x", nil, 201, ""},
		{"GET", "/c/ws/file/d/e", "", nil, 200, `"name":"f","type":"file","mode":"0755","size":1`},
		{"PUT", "/c/ws/file/d", "x", nil, 409, "dir"},
		{"PUT", "/c/ws/file/m?mode=9", "x", nil, 400, "mode"},
		{"DELETE", "/c/ws/file/d", "", nil, 409, "not empty"},
		{"DELETE", "/c/ws/file/d?recursive=true", "", nil, 204, ""},
		{"DELETE", "/c/ws/file/d", "", nil, 404, ""},
		{"PUT", "/c/ws/file/%ff%0a", "odd", nil, 201, ""},
		{"GET", "/c/ws/file/%ff%0a", "", nil, 200, "odd"},
		{"GET", "/c/ws/file/", "", nil, 200, `"name_base64":"/wo="`},
		{"GET", "/c/none/file/a", "", nil, 404, "no such workspace"},
		{"POST", "/c/ws/file/a", "", nil, 405, ""},
	} {
		code, answer := d.do(t, tt.method, tt.path, tt.body, tt.headers...)
		if tt.code == 404 && tt.answer == "not found" {
			tt.answer = "no such file"
		}
		if code != tt.code || !strings.Contains(answer, tt.answer) {
			t.Errorf("%s %s %v: %d %q, want %d with %q", tt.method, tt.path, tt.headers, code, answer, tt.code, tt.answer)
		}
	}
}

// Execs as scripts see them.
func TestRun(t *testing.T) {
	d := newDesk(t, nil)
	for _, tt := range []struct {
		path, body string
		code       int
		want       answer
	}{
		{"/c/ws/exec?arg=cat&arg=x", "in", 200, answer{Stdout: "in", Result: execd.Result{Code: 2}}},
		{"/c/ws/exec", `{"args": ["cat"], "stdin": "aW4="}`, 200, answer{Stdout: "in", Result: execd.Result{Code: 1}}},
		{"/c/ws/exec?arg=raw", "", 200, answer{Stderr: "\uFFFDx", StderrBase64: []byte{0xff, 'x'}, Result: execd.Result{Code: 1}}},
		{"/c/ws/exec?arg=much", "", 200, answer{Stdout: string(make([]byte, maxOutput)), Truncated: true, Result: execd.Result{Code: 1}}},
		{"/c/ws/exec", `{"args": "cat"}`, 400, answer{}},
		{"/c/ws/exec", `{}`, 400, answer{}},
		{"/c/none/exec?arg=cat", "", 404, answer{}},
	} {
		code, body := d.do(t, "POST", tt.path, tt.body)
		if code != tt.code {
			t.Errorf("%s: %d %q", tt.path, code, body)
		}
		if code != 200 {
			continue
		}
		var got answer
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if got.Stdout != tt.want.Stdout || got.Stderr != tt.want.Stderr || got.Code != tt.want.Code ||
			got.Truncated != tt.want.Truncated || string(got.StderrBase64) != string(tt.want.StderrBase64) {
			t.Errorf("%s: %.200s", tt.path, body)
		}
	}
}

// A browser's view of an exec, and of its rest after a reconnect.
func TestServerSentEvents(t *testing.T) {
	d := newDesk(t, nil)
	if code, body := d.do(t, "POST", "/c/ws/exec?arg=cat&id=sse", "text"); code != 200 {
		t.Fatal(code, body)
	}
	code, body := d.do(t, "GET", "/c/ws/exec/sse/events", "")
	var lines []string
	for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); {
		lines = append(lines, s.Text())
	}
	if code != 200 || len(lines) != 8 || lines[0] != "id: 1" || lines[1] != "event: stdout" ||
		!strings.Contains(lines[2], `"dGV4dA=="`) || lines[5] != "event: exit" {
		t.Errorf("%d %q", code, lines)
	}
	if _, body := d.do(t, "GET", "/c/ws/exec/sse/events", "", "Last-Event-ID", "1"); !strings.HasPrefix(body, "id: 2\nevent: exit\n") {
		t.Errorf("%q", body)
	}
	if code, _ := d.do(t, "GET", "/c/ws/exec/none/events", ""); code != 404 {
		t.Error(code)
	}
	if code, _ := d.do(t, "GET", "/c/ws/exec/sse/events?after=x", ""); code != 400 {
		t.Error(code)
	}
}

// Nothing is done, and nothing is told, without the right for it.
func TestAccess(t *testing.T) {
	allowed := map[string]Right{"reader": Read, "writer": Write, "runner": Exec}
	d := newDesk(t, func(ctx context.Context, h http.Header, workspace string, right Right) (context.Context, error) {
		token := strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
		switch has, ok := allowed[token]; {
		case !ok:
			return nil, ErrUnknown
		case has != right:
			return nil, vfs.ErrNotPermitted
		}
		return ctx, nil
	})
	for _, tt := range []struct {
		token, method, path, body string
		code                      int
	}{
		{"", "GET", "/c/ws/file/", "", 401},
		{"x", "GET", "/c/ws/file/", "", 401},
		{"reader", "GET", "/c/ws/file/", "", 200},
		{"reader", "PUT", "/c/ws/file/a", "", 403},
		{"writer", "PUT", "/c/ws/file/a", "", 201},
		{"writer", "GET", "/c/ws/file/a", "", 403},
		{"reader", "DELETE", "/c/ws/file/a", "", 403},
		{"writer", "POST", "/c/ws/exec?arg=cat", "", 403},
		{"runner", "POST", "/c/ws/exec?arg=cat&id=x", "", 200},
		{"runner", "POST", "/c/ws/exec", `{"args": ["cat"], "net": "host"}`, 403},
		{"runner", "POST", "/c/ws/exec", `{"args": ["cat"], "root": "/"}`, 403},
		{"writer", "GET", "/c/ws/exec/x/events", "", 403},
		{"runner", "GET", "/c/ws/exec/x/events", "", 200},
		{"", "GET", "/c/ws/find", "", 401},
		{"reader", "GET", "/c/ws/find", "", 200},
		{"writer", "GET", "/c/ws/grep?pattern=x", "", 403},
		{"writer", "GET", "/c/ws/watch", "", 403},
		{"reader", "POST", "/carrel.v1.FilesService/Stat", `{"workspace": "ws"}`, 200},
		{"writer", "POST", "/carrel.v1.FilesService/Stat", `{"workspace": "ws"}`, 403},
		{"writer", "POST", "/carrel.v1.FilesService/Find", `{"workspace": "ws"}`, 403},
		{"writer", "POST", "/carrel.v1.FilesService/Diff", `{"workspace": "ws", "from_revision": 1}`, 403},
		{"reader", "POST", "/carrel.v1.FilesService/WriteFile", `{"workspace": "ws", "path": "x"}`, 403},
		{"reader", "POST", "/carrel.v1.FilesService/Remove", `{"workspace": "ws", "path": "x"}`, 403},
		{"", "POST", "/carrel.v1.ExecService/Get", `{"id": "x"}`, 401},
		{"writer", "POST", "/carrel.v1.ExecService/Get", `{"id": "x"}`, 403},
		{"runner", "POST", "/carrel.v1.ExecService/Get", `{"id": "x"}`, 200},
		{"", "POST", "/carrel.v1.ExecService/List", `{}`, 401},
		{"runner", "POST", "/carrel.v1.ExecService/List", `{}`, 200},
		{"writer", "POST", "/carrel.v1.ExecService/Signal", `{"id": "x"}`, 403},
		{"writer", "POST", "/carrel.v1.ExecService/Dispose", `{"id": "x"}`, 403},
	} {
		code, body := d.do(t, tt.method, tt.path, tt.body, "Authorization", "Bearer "+tt.token, "Content-Type", "application/json")
		if code != tt.code {
			t.Errorf("%s %s %s: %d %s, want %d", tt.token, tt.method, tt.path, code, body, tt.code)
		}
	}
}

// Streams end, and say why, when what let them in is not accepted any more. The exec goes on.
func TestAccessEnds(t *testing.T) {
	revoked := make(chan struct{})
	d := newDesk(t, func(ctx context.Context, _ http.Header, _ string, _ Right) (context.Context, error) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			select {
			case <-revoked:
			case <-ctx.Done():
			}
		}()
		return ctx, nil
	})
	started, err := d.Start(t.Context(), execd.Spec{ID: "long", Workspace: "ws", Args: []string{"sleep"}})
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	if _, err := started.Next(); err != nil {
		t.Fatal(err)
	}
	attached := make(chan error)
	go func() {
		events, err := d.Attach(t.Context(), "long", 0, false)
		if err == nil {
			defer events.Close()
			_, err = events.Next()
		}
		attached <- err
	}()
	ended := make(chan string)
	go func() {
		_, body := d.do(t, "GET", "/c/ws/exec/long/events", "")
		ended <- body
	}()
	go func() {
		_, body := d.do(t, "POST", "/c/ws/exec", `{"id": "long", "args": ["sleep"]}`)
		ended <- body
	}()
	close(revoked)
	if _, err := started.Next(); !errors.Is(err, vfs.ErrNotPermitted) {
		t.Errorf("start: %v", err)
	}
	if err := <-attached; !errors.Is(err, vfs.ErrNotPermitted) {
		t.Errorf("attach: %v", err)
	}
	for range 2 {
		if body := <-ended; strings.Contains(body, `"status"`) {
			t.Errorf("%q", body)
		}
	}
	if code, body := d.do(t, "POST", "/carrel.v1.ExecService/Get", `{"id": "long"}`, "Content-Type", "application/json"); code != 200 ||
		!strings.Contains(body, "RUNNING") && !strings.Contains(body, "running") {
		t.Errorf("%d %s", code, body)
	}
}

// Who attaches to what says nothing is told so at once, and not when it says something.
func TestAttachAtOnce(t *testing.T) {
	d := newDesk(t, nil)
	started, err := d.Start(t.Context(), execd.Spec{ID: "quiet", Workspace: "ws", Args: []string{"sleep"}})
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	events, err := d.Attach(t.Context(), "quiet", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", d.url+"/c/ws/exec/quiet/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := d.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := d.Signal(t.Context(), "quiet", "KILL"); err != nil {
		t.Fatal(err)
	}
	if e, err := events.Next(); err != nil || e.GetExit() == nil {
		t.Errorf("%v, %v", e, err)
	}
}
