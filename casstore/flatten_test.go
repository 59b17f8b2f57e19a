package casstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// forkChain makes a fork of a fork of a fork, each of which changes something and closes, and returns what each shows. The first
// is ws itself, the others are f1, f2 and so on.
func forkChain(t *testing.T, s *Store, n int) (want []map[string]vfstest.Node) {
	t.Helper()
	w := openWorkspace(t, s, "ws")
	for i := range 40 {
		makeFile(t, w, fmt.Sprint("file", i), fmt.Sprint("file ", i))
	}
	makeFile(t, w, "chunked", bulk(1)[:20_000])
	want = append(want, viewOf(t, w))
	for i := 1; i <= n; i++ {
		f := openFork(t, s, w.nameOf(t), "", fmt.Sprint("f", i))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		changeFork(t, f, i)
		commitTree(t, f)
		want = append(want, viewOf(t, f))
		w = f
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return want
}

// changeFork does what the i-th fork of a chain does: it changes a file, makes one, removes what the one before has made, brings
// back a name that was removed two before, and sets an attribute and an atime.
func changeFork(t *testing.T, f *Workspace, i int) {
	t.Helper()
	changed, err := f.Lookup(bg, vfs.RootIno, fmt.Sprint("file", i%40))
	if err == nil {
		err = f.WriteAt(bg, changed.Ino, []byte(fmt.Sprint("fork ", i)), 0, false)
	}
	if err == nil {
		err = f.SetXattr(bg, changed.Ino, "user.fork", []byte{byte(i)}, 0)
	}
	if err == nil {
		_, err = f.SetAttr(bg, changed.Ino, vfs.AttrSet{Mask: vfs.SetAtime, Atime: vfs.Time(i)})
	}
	if err != nil {
		t.Fatal(err)
	}
	makeFile(t, f, fmt.Sprint("made", i), fmt.Sprint("made by ", i))
	if i > 1 {
		if err := f.Unlink(bg, vfs.RootIno, fmt.Sprint("made", i-1)); err != nil {
			t.Fatal(err)
		}
	}
	if i > 2 {
		makeFile(t, f, fmt.Sprint("made", i-2), "again")
	}
}

func chainName(i int) string {
	if i == 0 {
		return "ws"
	}
	return fmt.Sprint("f", i)
}

// checkChain compares what the workspaces of a chain show, but for those that were removed.
func checkChain(t *testing.T, s *Store, want []map[string]vfstest.Node, removed ...int) {
	t.Helper()
	for i := range want {
		if slices.Contains(removed, i) {
			continue
		}
		w := openWorkspace(t, s, chainName(i))
		if d := vfstest.DiffTimes(want[i], viewOf(t, w)); d != "" {
			t.Fatalf("%s differs:\n%.2000s", chainName(i), d)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlatten makes a chain of forks that is longer than the format has layers for, and looks at all of them.
func TestFlatten(t *testing.T) {
	const n = maxOrigins + 20
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true, packSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	want := forkChain(t, s, n)
	if err := s.flattener.all(bg, nil); err != nil {
		t.Fatal(err)
	}
	if l := len(s.flattener.longest()); l > flattenOver {
		t.Errorf("%d layers", l)
	}
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	s.space.recordsWritten.Store(1 << 30)
	if err := s.compactNow(bg); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{packSize: 1 << 20})
	checkChain(t, s, want)
	if s.format != secondFormat {
		t.Errorf("the store is of version %d", s.format)
	}
	// Any two of the chain can be compared.
	for _, pair := range [][2]int{{0, n}, {n, 1}, {n / 2, n}, {7, 8}, {n - 1, n}} {
		list := diffOf(t, s, chainName(pair[0]), chainName(pair[1]))
		checkDiff(t, list, want[pair[0]], want[pair[1]])
	}
}

// TestFlattenCost counts the records that are copied as a chain grows: each change some times, however long it gets.
func TestFlattenCost(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{flattenOver: 6})
	w := openWorkspace(t, s, "ws")
	for i := range 200 {
		makeFile(t, w, fmt.Sprint("file", i), "")
	}
	commitTree(t, w)
	changes := uint64(0)
	for i := range 120 {
		f := openFork(t, s, w.nameOf(t), "", fmt.Sprint("f", i))
		name := w.nameOf(t)
		if err := errors.Join(w.Close(), s.RemoveWorkspace(bg, name)); err != nil {
			t.Fatal(err)
		}
		a, err := f.Lookup(bg, vfs.RootIno, fmt.Sprint("file", i))
		if err == nil {
			err = f.WriteAt(bg, a.Ino, []byte("x"), 0, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		commitTree(t, f)
		changes++
		if err := s.flattener.all(bg, nil); err != nil {
			t.Fatal(err)
		}
		if n := len(s.origins(f.id)); n > 7 {
			t.Fatalf("fork %d has %d layers", i, n)
		}
		w = f
	}
	s.flattener.hold(t)
	copied := s.flattener.copied
	s.flattener.turn.give()
	if copied > 30*changes {
		t.Errorf("%d records were copied for %d changes", copied, changes)
	}
	// What was merged and merged again is gone, and so are the workspaces. What was in use when the layer above it was made, by a
	// fork that has been removed since, goes with a collection.
	if ids := s.withRecords(); len(ids) > 12 {
		t.Errorf("records under %v", ids)
	}
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	used := s.usedLayers()
	for _, id := range s.withRecords() {
		if id != w.id && !used[id] {
			t.Errorf("records under %d, which nothing uses; in use are %v", id, used)
		}
	}
}

// TestFlattenUnpins lets a fork outlive what it was made of, until nothing is kept for that any more.
func TestFlattenUnpins(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "large", bulk(1))
	f := openFork(t, s, "ws", "", "fork")
	aside := openFork(t, s, "ws", "", "aside")
	makeFile(t, f, "own", "x")
	want := viewOf(t, f)
	old := s.origins(f.id)[0].rev
	for range 20 {
		commitTree(t, f)
		makeFile(t, f, fmt.Sprint("more", s.head()), "")
	}
	commitTree(t, f)
	s.flattener.hold(t)
	s.flattener.age = 3
	s.flattener.turn.give()
	pinned := func() bool {
		s.letGoOld()
		s.reading.mu.Lock()
		defer s.reading.mu.Unlock()
		low := s.reading.pins.lowest()
		return low > 0 && low <= old
	}
	if err := s.flattener.all(bg, nil); err != nil {
		t.Fatal(err)
	}
	if !pinned() {
		t.Fatal("what two forks were made of, which is there, is pinned no more")
	}
	if err := errors.Join(w.Close(), s.RemoveWorkspace(bg, "ws")); err != nil {
		t.Fatal(err)
	}
	if err := s.flattener.all(bg, nil); err != nil {
		t.Fatal(err)
	}
	if !pinned() {
		t.Fatal("what two forks began with is pinned no more")
	}
	if err := errors.Join(aside.Close(), s.RemoveWorkspace(bg, "aside")); err != nil {
		t.Fatal(err)
	}
	if err := s.flattener.all(bg, nil); err != nil {
		t.Fatal(err)
	}
	if pinned() {
		t.Fatalf("still pinned: %v", s.reading.pins)
	}
	s.space.recordsWritten.Store(1 << 30)
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	if err := s.compactNow(bg); err != nil {
		t.Fatal(err)
	}
	f.forgetAll()
	got := viewOf(t, f)
	for path, n := range want {
		if path != "/" && got[path].Content != n.Content {
			t.Errorf("%s has changed", path)
		}
	}
}

// TestFlattenMerge merges forks whose last state in common is in the middle of what was put into one layer.
func TestFlattenMerge(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{flattenOver: 2})
	want := forkChain(t, s, 8)
	side := openFork(t, s, "f4", "", "side")
	makeFile(t, side, "beside", "it")
	edited, err := side.Lookup(bg, vfs.RootIno, "file3") // which f3 has written to
	if err == nil {
		err = side.WriteAt(bg, edited.Ino, []byte("side"), 0, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{4, 5, 6} { // f4 stays known, because f8 and side were made of it
		if err := s.RemoveWorkspace(bg, chainName(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.flattener.all(bg, nil); err != nil {
		t.Fatal(err)
	}
	report, err := s.Merge(bg, "side", "f8", false)
	if err != nil || len(report.Conflicts) > 0 {
		t.Fatalf("%v, %s", err, conflictText(report.Conflicts))
	}
	w := openWorkspace(t, s, "f8")
	if got := contentOf(w, "beside"); got != "it" {
		t.Errorf("beside is %q", got)
	}
	if got := contentOf(w, "file3"); got != "side 3" {
		t.Errorf("file3 is %q", got)
	}
	if got := contentOf(w, "file7"); got != "fork 7" {
		t.Errorf("file7 is %q", got)
	}
	checkChain(t, s, want[:8], 4, 5, 6)
}

// TestFamily removes what forks were made of, and looks who is known to come from whom.
func TestFamily(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	root := openWorkspace(t, s, "ws")
	makeFile(t, root, "file", "x")
	made := func(from, name string) workspaceID {
		f := openFork(t, s, from, "", name)
		makeFile(t, f, name, name)
		commitTree(t, f)
		id := f.id
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return id
	}
	//	ws ── a ── b ── c
	//	      └─── d
	a, b := made("ws", "a"), made("a", "b")
	c, d := made("b", "c"), made("a", "d")
	parents := func(want map[workspaceID]workspaceID) {
		t.Helper()
		got := make(map[workspaceID]workspaceID)
		for ws, f := range s.family() {
			got[ws] = f.parent.ws
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("parents %v, want %v", got, want)
		}
	}
	remove := func(name string) {
		t.Helper()
		if err := s.RemoveWorkspace(bg, name); err != nil {
			t.Fatal(err)
		}
	}
	parents(map[workspaceID]workspaceID{a: root.id, b: a, c: b, d: a})
	remove("a") // two come from it
	parents(map[workspaceID]workspaceID{a: root.id, b: a, c: b, d: a})
	remove("b")
	parents(map[workspaceID]workspaceID{a: root.id, c: a, d: a})
	if o, ok := s.commonForebear(c, d); !ok || o.ws != a {
		t.Errorf("%d and %d have %v in common", c, d, o)
	}
	if got := contentOf(openWorkspace(t, s, "c"), "b"); got != "b" {
		t.Errorf("c has %q of b", got)
	}
	remove("d")
	parents(map[workspaceID]workspaceID{c: root.id})
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	remove("ws")
	parents(map[workspaceID]workspaceID{c: 0})
	if in, err := s.Info(bg, "c"); err != nil || in.Origin != uint64(b) {
		t.Errorf("%+v, %v", in, err)
	}
	// What is made of it now has it in common with it.
	e := openFork(t, s, "c", "", "e")
	if o, ok := s.commonForebear(e.id, c); !ok || o.ws != c {
		t.Errorf("%d and %d have %v in common", e.id, c, o)
	}
}

// TestOldForks opens a store in which what forks were made of was forgotten, as it was before there were families.
func TestOldForks(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	forkChain(t, s, 3)
	side := openFork(t, s, "f2", "", "side")
	makeFile(t, side, "beside", "it")
	err = errors.Join(side.Close(), s.RemoveWorkspace(bg, "f2"), s.edit(bg, func(v *revision) error {
		f2, _ := s.forkOf(side.id - 2)
		if f2.parent.ws == 0 {
			return errors.New("no such fork")
		}
		v.kvs = append(v.kvs, kv{key: keyOfFork(side.id - 2)})
		return nil
	}), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	if report, err := s.Merge(bg, "side", "f3", false); err != nil || len(report.Conflicts) > 0 {
		t.Errorf("%v, %s", err, conflictText(report.Conflicts))
	}
	if s.format != firstFormat {
		t.Errorf("the store is of version %d", s.format)
	}
}

// TestTornFlatten ends the merging of layers, and what comes after it, before each write.
func TestTornFlatten(t *testing.T) {
	began := t.TempDir()
	s, err := Open(began, Options{Create: true, CommitEvery: time.Hour, flattenOver: maxOrigins, packSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	want := forkChain(t, s, 6)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n, done := 0, false; !done; n++ {
		dir := t.TempDir()
		copyStore(t, dir, began)
		hook, crashed := crashAt(n)
		if s, err = Open(dir, Options{CommitEvery: time.Hour, flattenOver: maxOrigins, packSize: 1 << 20, hook: hook}); err != nil {
			t.Fatal(err)
		}
		s.flattener.hold(t)
		s.flattener.over = 3
		s.flattener.turn.give()
		removed := false
		for i, step := range []func() error{
			func() error { return s.flattener.all(bg, nil) },
			func() error { removed = true; return s.RemoveWorkspace(bg, "f3") },
			func() error { return s.flattener.all(bg, nil) },
			func() error { _, err := s.GC(bg); return err },
		} {
			if err := step(); err != nil {
				if !errors.Is(err, errCrash) {
					t.Fatalf("step %d of crash %d: %v", i, n, err)
				}
				break
			}
		}
		done = !crashed()
		_ = s.Close() // it can commit nothing
		s = openStore(t, dir, Options{CommitEvery: time.Hour, flattenOver: 3, packSize: 1 << 20})
		if removed {
			checkChain(t, s, want, 3)
		} else {
			checkChain(t, s, want)
		}
		if err := s.flattener.all(bg, nil); err != nil {
			t.Fatalf("crash %d: %v", n, err)
		}
		if removed {
			checkChain(t, s, want, 3)
		} else {
			checkChain(t, s, want)
		}
		if loads, err := s.loads(); err != nil || len(loads) > 0 {
			t.Errorf("crash %d: left behind: %v, %v", n, loads, err)
		}
	}
}

// TestFlattenDiff compares workspaces when all of the tree has gone into a layer that only one of them has.
func TestFlattenDiff(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{flattenOver: 1})
	want := forkChain(t, s, 4)
	if err := s.flattener.all(bg, nil); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		for j := range want {
			checkDiff(t, diffOf(t, s, chainName(i), chainName(j)), want[i], want[j])
		}
	}
	other := openWorkspace(t, s, "other")
	if err := s.Diff(bg, "other", "f4", func(DiffEntry) error { return nil }); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("what has nothing in common: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}
