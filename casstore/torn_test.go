package casstore

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

var errCrash = errors.New("crash")

// crashAt returns a hook that fails the n-th step and all after it, as the death of the process does.
func crashAt(n int) (hook func(string) error, crashed func() bool) {
	step := 0
	return func(string) error {
		if step++; step > n {
			return errCrash
		}
		return nil
	}, func() bool { return step > n }
}

// tornStore is a store with a tree, and a large change of it.
type tornStore struct {
	t   *testing.T
	dir string
	key []byte
}

func (ts tornStore) open(hook func(string) error) (*Store, *Workspace) {
	ts.t.Helper()
	s, err := Open(ts.dir, Options{Create: true, CommitEvery: time.Hour, Key: ts.key, hook: hook})
	if err != nil {
		ts.t.Fatal(err)
	}
	return s, openWorkspace(ts.t, s, "ws")
}

// change replaces every file, removes some, renames the directory, and adds more: several transactions of Badger.
func (ts tornStore) change(w *Workspace, round byte) {
	ts.t.Helper()
	var err error
	check := func(e error) { err = errors.Join(err, e) }
	old, e := w.Lookup(bg, vfs.RootIno, fmt.Sprintf("dir%d", round-1))
	if e != nil {
		old, e = w.Mkdir(bg, vfs.RootIno, fmt.Sprintf("dir%d", round-1), vfs.NewNode{Mode: 0o755})
	}
	check(e)
	for i := range 2500 {
		name := fmt.Sprintf("f%d", i)
		a, e := w.Lookup(bg, old.Ino, name)
		if e != nil {
			a, e = w.Create(bg, old.Ino, name, vfs.NewNode{Mode: 0o644})
		}
		check(e)
		check(w.WriteAt(bg, a.Ino, bytes.Repeat([]byte{round, byte(i)}, 1500), 0, false))
		if i%10 == int(round)%10 {
			check(w.Unlink(bg, old.Ino, name))
		}
	}
	big, e := w.Create(bg, old.Ino, fmt.Sprintf("big%d", round), vfs.NewNode{Mode: 0o600})
	check(e)
	check(w.WriteAt(bg, big.Ino, bytes.Repeat([]byte{round, 7, 9}, 1<<20), 12345, false))
	check(w.SetXattr(bg, big.Ino, "user.round", []byte{round}, 0))
	check(w.Rename(bg, vfs.RootIno, fmt.Sprintf("dir%d", round-1), vfs.RootIno, fmt.Sprintf("dir%d", round), 0))
	if err != nil {
		ts.t.Fatal(err)
	}
}

func snapshotOf(t *testing.T, w *Workspace) map[string]vfstest.Node {
	t.Helper()
	snap, err := vfstest.Snapshot(bg, w)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestTornCommit ends a large commit before each of its writes. The store then opens with the tree as it was before,
// or, when the head had been written, as it was to be.
func TestTornCommit(t *testing.T) { testTornCommit(tornStore{t: t, dir: t.TempDir()}, 1) }

// testTornCommit does so before every so many writes.
func testTornCommit(ts tornStore, every int) {
	t := ts.t
	s, w := ts.open(nil)
	ts.change(w, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n += every {
		hook, crashed := crashAt(n)
		s, w := ts.open(hook)
		before := snapshotOf(t, w)
		ts.change(w, 2)
		after := snapshotOf(t, w)
		if _, err := w.Commit(bg); (err != nil) != crashed() {
			t.Fatalf("step %d: commit: %v", n, err)
		}
		_ = s.Close() // it cannot commit what is dirty

		s, w = ts.open(nil)
		got := snapshotOf(t, w)
		checkStore(t, s)
		want := before
		if !crashed() {
			want = after
		}
		if d := vfstest.DiffTimes(want, got); d != "" {
			t.Fatalf("step %d: the tree differs:\n%.2000s", n, d)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !crashed() {
			if n < 4 {
				t.Fatalf("the commit took %d steps only", n)
			}
			return
		}
	}
}

// TestTornUndo also ends the undoing of a torn commit before each of its writes.
func TestTornUndo(t *testing.T) {
	ts := tornStore{t: t, dir: t.TempDir()}
	s, w := ts.open(nil)
	ts.change(w, 1)
	before := snapshotOf(t, w)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	hook, _ := crashAt(3) // in the middle of the writes
	s, w = ts.open(hook)
	ts.change(w, 2)
	if _, err := w.Commit(bg); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	_ = s.Close()

	crashes := 0
	for n := 0; ; n++ {
		hook, crashed := crashAt(n)
		s, err := Open(ts.dir, Options{hook: hook})
		if crashed() {
			crashes++
			if !errors.Is(err, errCrash) {
				t.Fatalf("step %d: open: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		w := openWorkspace(t, s, "ws")
		if d := vfstest.DiffTimes(before, snapshotOf(t, w)); d != "" {
			t.Fatalf("step %d: the tree differs:\n%.2000s", n, d)
		}
		checkStore(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		break
	}
	if crashes < 2 {
		t.Fatalf("the undo took %d steps only", crashes)
	}
}
