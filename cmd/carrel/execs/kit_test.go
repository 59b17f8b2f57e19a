package execs

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/mirror"
	"github.com/carrelfs/carrel/syncwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a store with a workspace, "demo", and a service that runs things on it.
type site struct {
	*Service
	t     *testing.T
	store *casstore.Store
	ws    *casstore.Workspace
	kept  atomic.Int64 // how often the daemon is kept there now
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	dir := t.TempDir()
	s.store = newStore(t, filepath.Join(dir, "store"))
	s.ws = openDemo(t, s.store)
	s.Service = openService(t, Config{Store: s.store, Dir: dir, Keep: func() (func(), error) {
		s.kept.Add(1)
		return func() { s.kept.Add(-1) }, nil
	}})
	t.Cleanup(func() {
		if n := s.kept.Load(); n != 0 {
			t.Errorf("the daemon is still kept there %d times", n)
		}
	})
	return s
}

// files are those of the workspace.
func (s *site) files() treepath.FS { return treepath.FS{Tree: s.ws} }

func newStore(t *testing.T, dir string) *casstore.Store {
	t.Helper()
	s, err := casstore.Open(dir, casstore.Options{Create: true, DefaultHistory: casstore.DefaultHistory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, s.Close()) })
	_, err = s.CreateWorkspace(t.Context(), "demo")
	check(t, err)
	return s
}

func openDemo(t *testing.T, s *casstore.Store) *casstore.Workspace {
	t.Helper()
	w, err := s.OpenWorkspace(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, w.Close()) })
	return w
}

func openService(t *testing.T, c Config) *Service {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// farSite is a service on a mirror of a workspace, and its authority, in one process.
type farSite struct {
	*Service
	authority *casstore.Workspace
	mirror    *mirror.Mirror
	wire      *wire
}

func newFarSite(t *testing.T) *farSite {
	t.Helper()
	dir := t.TempDir()
	f := &farSite{wire: &wire{path: filepath.Join(dir, "sync.sock")}}
	f.authority = openDemo(t, newStore(t, filepath.Join(dir, "authority")))
	serve(t, f.wire.path, f.authority)
	state := filepath.Join(dir, "mirror")
	id, err := mirror.Identity(state)
	if err != nil {
		t.Fatal(err)
	}
	client := syncwire.NewClient(syncwire.ClientConfig{
		Dialer: f.wire, Workspace: "demo", Mirror: id,
		Token: func(context.Context) ([]byte, error) { return []byte("token"), nil },
	})
	t.Cleanup(func() { check(t, client.Close()) })
	if f.mirror, err = mirror.Open(t.Context(), mirror.Config{Dir: state, Peer: client}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, f.mirror.Close()) })
	f.Service = openService(t, Config{Dir: state, Mirror: &Mirror{
		Mirror: f.mirror, Workspace: "demo",
	}})
	return f
}

// files are those that the authority has.
func (f *farSite) files() treepath.FS { return treepath.FS{Tree: f.authority} }

type anybody struct{}

func (anybody) Verify(context.Context, []byte, string) (syncwire.Grant, error) {
	return syncwire.Grant{Subject: "tester", Rights: syncwire.RightRead | syncwire.RightWrite}, nil
}

func serve(t *testing.T, socket string, w *casstore.Workspace) {
	t.Helper()
	l, err := syncwire.ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := syncwire.NewServer(syncwire.ServerConfig{
		Open:     func(context.Context, string) (vfs.Authority, error) { return w.Authority(), nil },
		Verifier: anybody{},
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		server.Close()
		check(t, <-served)
	})
}

// wire is a way to a server that can be cut.
type wire struct {
	path string

	mu    sync.Mutex
	down  bool
	links []syncwire.Link
}

// Dial implements syncwire.Dialer.
func (w *wire) Dial(ctx context.Context) (syncwire.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, vfs.ErrClosed
	}
	l, err := syncwire.DialUnix(w.path).Dial(ctx)
	if err == nil {
		w.links = append(w.links, l)
	}
	return l, err
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for _, l := range w.links {
		l.Close()
	}
	w.links = nil
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}
