package casstore

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// TestMain looks for goroutines that were left. Those below are Badger's own: it does not end them when it fails to open.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).monitorCache"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*levelsController).runCompactor"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).updateSize"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4/y.(*WaterMark).process"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2.(*Cache[...]).processItems"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2.(*defaultPolicy[...]).processItems"))
}

var bg = context.Background()

// openStore opens a store that is checked and closed when the test ends.
func openStore(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	o.Create = true
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkStore(t, s)
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func checkStore(t testing.TB, s *Store) {
	t.Helper()
	if _, err := s.committer.commit(bg, request{}); err != nil {
		t.Errorf("commit: %v", err)
	}
	report, err := s.Check(bg, CheckOptions{Bytes: true})
	if err != nil {
		t.Errorf("check: %v", err)
	}
	for _, p := range report.Problems {
		t.Errorf("check: %s: %s", p.Where, p.What)
	}
}

func openWorkspace(t testing.TB, s *Store, name string) *Workspace {
	t.Helper()
	if _, err := s.find(name); isNoWorkspace(err) {
		if _, err := s.CreateWorkspace(bg, name); err != nil {
			t.Fatal(err)
		}
	}
	w, err := s.OpenWorkspace(bg, name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestConformance(t *testing.T) {
	vfstest.Run(t, workspacesOf(openStore(t, t.TempDir(), Options{})))
}

// workspacesOf opens a new workspace of one store each time: to make a store takes longer than most of what is done to a tree.
func workspacesOf(s *Store) func(*testing.T) vfs.Tree {
	n := 0
	return func(t *testing.T) vfs.Tree {
		n++
		w := openWorkspace(t, s, fmt.Sprint("ws", n))
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Errorf("close workspace: %v", err)
			}
		})
		return w
	}
}

// smallDiskDir mounts a filesystem of a number of bytes, as a store's disk. Without the right to, the test fails.
func smallDiskDir(t *testing.T, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatalf("mount tmpfs (as root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount tmpfs: %v", err)
		}
	})
	return dir
}

// TestConformanceFull fills a small disk.
func TestConformanceFull(t *testing.T) {
	vfstest.RunFull(t, func(t *testing.T) vfs.Tree {
		s := openStore(t, smallDiskDir(t, 128<<20), Options{})
		return openWorkspace(t, s, "ws")
	})
}
