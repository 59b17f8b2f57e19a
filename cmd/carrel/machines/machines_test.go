package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/syncwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// pipe is a stream in memory.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error         { return nil }
func (p pipe) Peer() syncwire.StreamPeer { return syncwire.StreamPeer{} }

// peer is the client of a machine, in one process with the book.
type peer struct {
	book  *Book
	id    vfs.PeerID
	group sync.WaitGroup

	mu   sync.Mutex
	ends []net.Conn
}

// OpenService implements Opener.
func (p *peer) OpenService(_ context.Context, name string) (syncwire.Stream, error) {
	ours, theirs := net.Pipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, theirs)
	p.group.Go(func() {
		defer theirs.Close()
		_ = p.book.Service().Serve(context.Background(), syncwire.ServiceStream{Stream: pipe{theirs}, Workspace: "demo", Peer: p.id})
	})
	return pipe{ours}, nil
}

// lose breaks the connection.
func (p *peer) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.ends {
		c.Close()
	}
	p.ends = nil
}

// workspace is one in memory.
type workspace struct{ execd.Workspace }

func (workspace) Tree() vfs.Tree                          { return vfstest.NewTree() }
func (workspace) Before(context.Context) (vfs.Rev, error) { return 1, nil }
func (workspace) After(context.Context) (vfs.Rev, error)  { return 2, nil }
func (workspace) Settle(context.Context)                  {}
func (workspace) Close() error                            { return nil }
func (workspace) Changes(context.Context, vfs.Rev, vfs.Rev) (execd.Changes, error) {
	return execd.Changes{}, nil
}

// builder is a machine that offers itself as "builder". What runs there says how many have, and then what it reads.
type builder struct {
	peer
	runs   atomic.Int64
	tokens atomic.Int64 // requests that came with one
}

func newBuilder(t *testing.T, book *Book) *builder {
	t.Helper()
	m := &builder{peer: peer{book: book, id: vfs.PeerID{1}}}
	run := func(_ context.Context, _ execd.Job, stdin io.Reader, out execd.Output) execd.Exit {
		fmt.Fprintf(execd.Writer(out, execd.Stdout), "run %d\n", m.runs.Add(1))
		_, err := io.Copy(execd.Writer(out, execd.Stdout), stdin)
		return execd.Exit{Code: map[bool]int{true: 0, false: 1}[err == nil]}
	}
	execs, err := execd.Open(execd.Config{
		Dir: t.TempDir(), Backends: map[string]execd.Backend{"echo": execd.Func(run)}, Default: "echo", Log: quiet,
		Open: func(context.Context, string) (execd.Workspace, error) { return workspace{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	api.Register(mux.Handle, api.Config{Execs: execs, Access: Access})
	server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
			m.tokens.Add(1)
		}
		mux.ServeHTTP(w, r)
	}), quiet)
	served := make(chan error, 1)
	l := Listen(&m.peer, "builder", quiet)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		check(t, execs.Close())
		check(t, server.Shutdown(context.Background()))
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		m.lose()
		m.group.Wait()
	})
	return m
}

// clientOf is of the machine "builder", at a server that lets in as access says. It waits until the machine is there.
func clientOf(t *testing.T, book *Book, access api.Access) *api.Client {
	t.Helper()
	mux := http.NewServeMux()
	book.Register(mux.Handle, access)
	withToken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Cookie", "secret")
		mux.ServeHTTP(w, r)
	})
	server := httptest.NewServer(withToken)
	t.Cleanup(server.Close)
	c := api.NewClientAt(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}, Path("demo", "builder"))
	t.Cleanup(c.Close)
	return c
}

// ready calls until the machine answers.
func ready(t *testing.T, c *api.Client) {
	t.Helper()
	for {
		_, err := c.List(t.Context(), "demo")
		if err == nil {
			return
		}
		if !errors.Is(err, api.ErrNoMachine) && !errors.Is(err, vfs.ErrClosed) {
			t.Fatal(err)
		}
	}
}

// next is the next event of a kind that has a number.
func next(t *testing.T, events *api.Events) (seq uint64, out string) {
	t.Helper()
	e, err := events.Next()
	if err != nil {
		t.Fatal(err)
	}
	if e.GetExit() != nil {
		return e.GetSeq(), fmt.Sprintf("exit %d", e.GetExit().GetCode())
	}
	return e.GetSeq(), string(e.GetStdout())
}

// A connection that breaks while something runs ends nothing and starts nothing: the output is taken up where it was.
func TestConnectionBreaks(t *testing.T) {
	book := NewBook(quiet)
	m := newBuilder(t, book)
	c := clientOf(t, book, nil)
	ready(t, c)
	spec := execd.Spec{ID: "x", Workspace: "demo", Args: []string{"echo"}, Open: true}
	events, err := c.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if first, err := events.Next(); err != nil || first.GetStarted() != "x" {
		t.Fatal(first, err)
	}
	if seq, out := next(t, events); seq != 1 || out != "run 1\n" {
		t.Errorf("event %d: %q", seq, out)
	}
	m.lose()
	if e, err := events.Next(); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("over a connection that broke: %v, %v", e, err)
	}
	events.Close()
	ready(t, c)
	check(t, c.Input(t.Context(), "x", []byte("more\n"), true))
	again, err := c.Start(t.Context(), spec) // whose answer may have been what was lost
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	events, err = c.Attach(t.Context(), "x", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for i, want := range []string{"more\n", "exit 0"} {
		if seq, out := next(t, events); seq != uint64(i)+2 || out != want {
			t.Errorf("event %d: %q, want %q", seq, out, want)
		}
	}
	if n := m.runs.Load(); n != 1 {
		t.Errorf("it has run %d times", n)
	}
	if n := m.tokens.Load(); n != 0 {
		t.Errorf("the machine was shown the token of who asked %d times", n)
	}
}

// Who asks needs the right at the server, and the machine gives nobody more than what it has offered.
func TestRights(t *testing.T) {
	book := NewBook(quiet)
	m := newBuilder(t, book)
	var allowed atomic.Bool
	c := clientOf(t, book, func(ctx context.Context, _ http.Header, ws string, r api.Right) (context.Context, error) {
		if ws != "demo" || r != api.Exec || !allowed.Load() {
			return nil, vfs.ErrNotPermitted
		}
		return ctx, nil
	})
	if _, err := c.List(t.Context(), "demo"); !errors.Is(err, vfs.ErrNotPermitted) {
		t.Errorf("without the right: %v", err)
	}
	allowed.Store(true)
	ready(t, c)
	for _, spec := range []execd.Spec{{Net: "host"}, {Root: "/"}} {
		spec.Workspace, spec.Args = "demo", []string{"echo"}
		events, err := c.Start(t.Context(), spec)
		if err == nil {
			_, err = events.Next()
			events.Close()
		}
		if !errors.Is(err, vfs.ErrNotPermitted) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if n := m.runs.Load(); n != 0 {
		t.Errorf("it has run %d times", n)
	}
	for _, r := range []api.Right{api.Read, api.Write, api.Admin} {
		if _, err := Access(t.Context(), nil, "demo", r); !errors.Is(err, vfs.ErrNotPermitted) {
			t.Errorf("right %d: %v", r, err)
		}
	}
}

// A name is of the first that has it, and of its peer's next connection.
func TestNames(t *testing.T) {
	book := NewBook(quiet)
	m := newBuilder(t, book)
	c := clientOf(t, book, nil)
	ready(t, c)
	other := &peer{book: book, id: vfs.PeerID{2}}
	defer other.group.Wait()
	defer other.lose()
	for _, name := range []string{"builder", "other"} {
		l := Listen(other, name, quiet)
		got, err := l.offer()
		if taken := errors.Is(err, vfs.ErrExist); taken != (name == "builder") || !taken && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got != nil {
			defer got.Close()
		}
		check(t, l.Close())
	}
	if name := book.Name("demo", m.id); name != "builder" {
		t.Errorf("the peer is known as %q", name)
	}
	if name := book.Name("another", m.id); name != "" {
		t.Errorf("on another workspace it is known as %q", name)
	}
	_, err := book.find(place{"demo", "third"})
	if !errors.Is(err, api.ErrNoMachine) || !strings.Contains(err.Error(), "builder, other") {
		t.Error(err)
	}
	l := Listen(&m.peer, "builder", quiet) // as after a crash that the server has not noticed yet
	got, err := l.offer()
	if err != nil {
		t.Fatal(err)
	}
	check(t, got.Close())
	check(t, l.Close())
	ready(t, c) // it offers itself again
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "Build-7.example_org": true, strings.Repeat("x", maxName): true, "": false, strings.Repeat("x", maxName+1): false,
		"-a": false, ".": false, "a/b": false, "a:b": false, "ä": false, "a b": false, "a\x00": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Input that is under way when the connection breaks, before its call arrives, in the middle or before its answer does, is given
// again, and taken once.
func TestInputOverBreaks(t *testing.T) {
	const pieces, size = 60, 10_000
	book := NewBook(quiet)
	m := newBuilder(t, book)
	c := clientOf(t, book, nil)
	ready(t, c)
	events, err := c.Start(t.Context(), execd.Spec{ID: "x", Workspace: "demo", Args: []string{"echo"}, Open: true})
	if err != nil {
		t.Fatal(err)
	}
	events.Close()
	var all []byte
	again := 0
	for i := range pieces {
		piece := bytes.Repeat([]byte{byte('a' + i%26)}, size)
		broken := make(chan struct{})
		if i%5 == 0 {
			m.lose()
			close(broken)
		} else {
			delay := time.Duration(rand.N(1000)) * time.Microsecond
			go func() {
				defer close(broken)
				time.Sleep(delay) // into the middle of the call, if it can be
				m.lose()
			}()
		}
		for {
			err := c.Feed(t.Context(), "x", "f", uint64(len(all)), piece, i == pieces-1)
			if err == nil {
				break
			}
			again++
			// Once the last was taken the exec may have ended.
			if last := i == pieces-1; last && errors.Is(err, vfs.ErrClosed) && !errors.Is(err, api.ErrBroken) {
				break
			}
			if !errors.Is(err, api.ErrBroken) && !errors.Is(err, api.ErrNoMachine) && !errors.Is(err, vfs.ErrInterrupted) {
				t.Fatal(err)
			}
		}
		<-broken
		all = append(all, piece...)
	}
	ready(t, c)
	if events, err = c.Attach(t.Context(), "x", 1, false); err != nil { // after what it says first
		t.Fatal(err)
	}
	defer events.Close()
	var got []byte
	for {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetExit() != nil {
			break
		}
		got = append(got, e.GetStdout()...)
	}
	if !bytes.Equal(got, all) {
		t.Errorf("%d bytes came of %d, or others", len(got), len(all))
	}
	if again == 0 {
		t.Error("no call was made again")
	}
	t.Logf("%d calls were made again", again)
}
