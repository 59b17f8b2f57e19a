package control_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// memStore is a store whose workspaces are trees in memory.
type memStore struct {
	mu    sync.Mutex
	trees map[string]*vfstest.Tree
	open  map[string]int
	fail  error // what Stats returns
}

func newMemStore() *memStore {
	return &memStore{trees: map[string]*vfstest.Tree{}, open: map[string]int{}}
}

func (m *memStore) CreateWorkspace(_ context.Context, name string) (casstore.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trees[name] != nil {
		return casstore.Info{}, fmt.Errorf("create workspace %q: %w", name, vfs.ErrExist)
	}
	m.trees[name] = vfstest.NewTree()
	return casstore.Info{Name: name, ID: uint64(len(m.trees))}, nil
}

func (m *memStore) Workspaces(context.Context) ([]casstore.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var infos []casstore.Info
	for name := range m.trees {
		infos = append(infos, casstore.Info{Name: name})
	}
	return infos, nil
}

func (m *memStore) tree(name string) (*vfstest.Tree, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.trees[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("workspace %q: %w", name, vfs.ErrNoWorkspace)
}

func (m *memStore) Info(_ context.Context, name string) (casstore.Info, error) {
	_, err := m.tree(name)
	return casstore.Info{Name: name, Rev: 7}, err
}

func (m *memStore) RenameWorkspace(_ context.Context, old, name string) error {
	t, err := m.tree(old)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.trees, old)
	m.trees[name] = t
	return nil
}

func (m *memStore) RemoveWorkspace(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[name] > 0 {
		return fmt.Errorf("remove workspace %q: %w", name, vfs.ErrWorkspaceBusy)
	}
	delete(m.trees, name)
	return nil
}

func (m *memStore) OpenWorkspace(_ context.Context, name string) (control.Workspace, error) {
	t, err := m.tree(name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[name]++
	return &memWorkspace{Tree: t, store: m, name: name}, nil
}

func (m *memStore) opened(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open[name]
}

func (m *memStore) Check(_ context.Context, o casstore.CheckOptions) (casstore.CheckReport, error) {
	for i := range uint64(3) {
		o.Progress(i+1, 3)
	}
	return casstore.CheckReport{Records: 3, Problems: []casstore.Problem{{Where: "chunk 1", What: "gone"}}}, nil
}

func (m *memStore) Stats(context.Context) (casstore.Stats, error) { return casstore.Stats{}, m.fail }

func (m *memStore) GC(context.Context) (casstore.GCReport, error) { return casstore.GCReport{}, nil }

type memWorkspace struct {
	*vfstest.Tree
	store *memStore
	name  string
	once  sync.Once
}

func (w *memWorkspace) Close() error {
	w.once.Do(func() {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.open[w.name]--
	})
	return nil
}

// serve serves a store in a new directory until the test ends.
func serve(t testing.TB, store control.Store, mounts control.Mounts) (dir string, server *control.Server) {
	t.Helper()
	return serveIn(t, t.TempDir(), store, mounts)
}

func serveIn(t testing.TB, dir string, store control.Store, mounts control.Mounts) (string, *control.Server) {
	t.Helper()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := control.NewServer(store, mounts, nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return dir, server
}

func dial(t testing.TB, dir string) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// openRemote serves a store with one workspace and opens it through the socket.
func openRemote(t *testing.T) (*memStore, control.Workspace, *control.Client) {
	t.Helper()
	store := newMemStore()
	dir, _ := serve(t, store, nil)
	c := dial(t, dir)
	if _, err := c.CreateWorkspace(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	w, err := c.OpenWorkspace(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	return store, w, c
}

// longDir returns a directory whose path does not fit a socket's address.
func longDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for len(dir) < 300 {
		dir = filepath.Join(dir, "a-directory-with-quite-a-long-name-to-make-the-path-long")
	}
	return dir
}
