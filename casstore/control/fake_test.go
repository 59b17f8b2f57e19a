package control_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// memStore is a store whose workspaces are trees in memory.
type memStore struct {
	mu    sync.Mutex
	trees map[string]*vfstest.Tree
	open  map[string]int
	fail  error // what Stats returns

	snapshots []casstore.Snapshot
	history   casstore.History
	quota     casstore.QuotaUse
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

func (m *memStore) Fork(_ context.Context, workspace, when, name string) (casstore.Info, error) {
	return casstore.Info{Name: workspace + "@" + when + ">" + name}, nil
}

func (m *memStore) Diff(_ context.Context, from, to string, yield func(casstore.DiffEntry) error) error {
	for i := range 1000 {
		e := casstore.DiffEntry{Kind: casstore.DiffRenamed, From: from, Path: fmt.Sprint(to, i)}
		if err := yield(e); err != nil {
			return err
		}
	}
	return nil
}

func (m *memStore) Restore(_ context.Context, workspace, when, path string) error {
	return fmt.Errorf("%s of %s to %s: %w", path, workspace, when, vfs.ErrTooBig)
}

func (m *memStore) Merge(_ context.Context, from, into string, try bool) (casstore.MergeReport, error) {
	report := casstore.MergeReport{Rev: 7, Conflicts: []reconcile.Listed{{Number: 1, Path: fmt.Sprint(try)}}}
	for n := range 100 {
		report.Changes = append(report.Changes, casstore.DiffEntry{Path: fmt.Sprint(from, into, n)})
	}
	return report, m.fail
}

func (m *memStore) Conflicts(_ context.Context, workspace string) ([]reconcile.Listed, error) {
	list := make([]reconcile.Listed, 100)
	list[99].Path = workspace
	return list, m.fail
}

func (m *memStore) ResolveConflict(_ context.Context, workspace string, number uint64, how reconcile.Resolution) error {
	return fmt.Errorf("%s %d %s: %w", workspace, number, how, vfs.ErrNotExist)
}

func (m *memStore) CreateSnapshot(_ context.Context, workspace, name, message string) (casstore.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sn := casstore.Snapshot{Name: workspace + "/" + name, Message: message}
	m.snapshots = append(m.snapshots, sn)
	return sn, nil
}

func (m *memStore) Snapshots(context.Context, string) ([]casstore.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.snapshots), nil
}

func (m *memStore) RemoveSnapshot(_ context.Context, workspace, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.snapshots, func(sn casstore.Snapshot) bool { return sn.Name == workspace+"/"+name })
	if i < 0 {
		return vfs.ErrNoRevision
	}
	m.snapshots = slices.Delete(m.snapshots, i, i+1)
	return nil
}

func (m *memStore) Log(_ context.Context, workspace string, yield func(casstore.LogEntry) bool) error {
	if _, err := m.tree(workspace); err != nil {
		return err
	}
	for rev := vfs.Rev(1000); rev > 0 && yield(casstore.LogEntry{Rev: rev}); rev-- {
	}
	return nil
}

func (m *memStore) History(context.Context) (casstore.History, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.history, nil
}

func (m *memStore) KeepHistory(_ context.Context, d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = casstore.History{Told: true, Keep: d, Start: 5}
	return nil
}

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
