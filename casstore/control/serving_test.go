package control_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// stage serves nothing, but says what it was asked.
type stage struct {
	asked  control.ServeOptions
	served control.Served
	ended  chan struct{} // closed when Serve has returned
	tokens int
	fail   error
}

func (s *stage) Serve(ctx context.Context, o control.ServeOptions, ready func(control.Served)) error {
	defer close(s.ended)
	if s.fail != nil {
		return s.fail
	}
	s.asked = o
	ready(s.served)
	<-ctx.Done()
	return nil
}

func (s *stage) Served(context.Context) ([]control.Served, error) {
	return []control.Served{s.served}, s.fail
}

func (s *stage) TokensChanged(context.Context) error {
	s.tokens++
	return s.fail
}

func newStage() *stage {
	return &stage{ended: make(chan struct{}), served: control.Served{
		ServeOptions: control.ServeOptions{Listen: "127.0.0.1:5", Unix: "/s/sync.sock"}, Host: "h", Fingerprint: "f",
		Since: time.Unix(7, 8).UTC(),
		Peers: []control.Peer{{Workspace: "w\xff", ID: vfs.PeerID{1}, Head: 9, Sent: 8, Acked: 7, Lag: time.Second}},
	}}
}

func offer(t *testing.T, s control.Serving) *control.Client {
	t.Helper()
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := control.NewServer(newMemStore(), nil, nil)
	server.Offer(s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return dial(t, dir)
}

// Serving goes on until the one who asked for it gives it up, or is gone.
func TestServe(t *testing.T) {
	for name, end := range map[string]func(*control.Client, context.CancelFunc) error{
		"given up": func(_ *control.Client, cancel context.CancelFunc) error {
			cancel()
			return nil
		},
		"gone": func(c *control.Client, _ context.CancelFunc) error { return c.Close() },
	} {
		s := newStage()
		c := offer(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		ready, done := make(chan control.Served, 1), make(chan error, 1)
		want := control.ServeOptions{Workspaces: []string{"a\xff"}, Listen: ":1", TLS: ":2", Unix: "/u", Metrics: ":3"}
		go func() { done <- c.Serve(ctx, want, func(now control.Served) { ready <- now }) }()
		if got := <-ready; !reflect.DeepEqual(got, s.served) {
			t.Errorf("%s: served %+v, want %+v", name, got, s.served)
		}
		if !reflect.DeepEqual(s.asked, want) {
			t.Errorf("%s: asked for %+v, want %+v", name, s.asked, want)
		}
		if err := end(c, cancel); err != nil {
			t.Error(err)
		}
		<-s.ended
		if err := <-done; name == "given up" && err != nil || name == "gone" && !errors.Is(err, vfs.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestServed(t *testing.T) {
	s := newStage()
	c := offer(t, s)
	if got, err := c.Served(t.Context()); err != nil || !reflect.DeepEqual(got, []control.Served{s.served}) {
		t.Errorf("Served = %+v, %v", got, err)
	}
	if err := c.TokensChanged(t.Context()); err != nil || s.tokens != 1 {
		t.Errorf("TokensChanged: %v, %d times", err, s.tokens)
	}
	s.fail = vfs.ErrBusy
	if err := c.Serve(t.Context(), control.ServeOptions{}, nil); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("Serve: %v, want ErrBusy", err)
	}
}

// An owner that serves nothing has no session that a token could end.
func TestNothingServed(t *testing.T) {
	dir, _ := serve(t, newMemStore(), nil)
	c := dial(t, dir)
	if got, err := c.Served(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("Served = %+v, %v", got, err)
	}
	if err := c.TokensChanged(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Serve(t.Context(), control.ServeOptions{}, nil); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("Serve: %v, want ErrNotSupported", err)
	}
}
