package casstore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// openFork forks a workspace and opens the fork.
func openFork(t testing.TB, s *Store, workspace, when, name string) *Workspace {
	t.Helper()
	if _, err := s.Fork(bg, workspace, when, name); err != nil {
		t.Fatal(err)
	}
	return openWorkspace(t, s, name)
}

func viewOf(t *testing.T, tree vfs.Tree) map[string]vfstest.Node {
	t.Helper()
	m, err := vfstest.Snapshot(bg, tree)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestForkReadOnlyConforms(t *testing.T) {
	vfstest.RunReadOnly(t, func(t *testing.T, fill func(vfs.Tree)) vfs.Tree {
		s := openStore(t, t.TempDir(), Options{})
		w := openWorkspace(t, s, "ws")
		fill(w)
		openFork(t, s, "ws", "", "fork")
		takeSnapshot(t, s, "fork", "then")
		return openView(t, s, "fork", "then")
	})
}

func TestForkStandsByItself(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	w := openWorkspace(t, s, "ws")
	large := makeFile(t, w, "large", bulk(1))
	small := makeFile(t, w, "small", "one")
	if err := w.SetXattr(bg, small, "user.a", []byte("b"), 0); err != nil {
		t.Fatal(err)
	}
	f := openFork(t, s, "ws", "", "fork")
	began := viewOf(t, w)
	if d := vfstest.DiffTimes(began, viewOf(t, f)); d != "" {
		t.Fatalf("the fork differs from what it was made of:\n%s", d)
	}
	// The fork changes, and its origin does not.
	err := errors.Join(f.Unlink(bg, vfs.RootIno, "small"), f.WriteAt(bg, large, []byte("x"), 5, false), f.Sync(bg))
	if err != nil {
		t.Fatal(err)
	}
	f.forgetAll()
	if got := contentOf(f, "small"); got != vfs.ErrNotExist.Error() {
		t.Errorf("what was removed of the fork is there: %q", got)
	}
	if d := vfstest.DiffTimes(began, viewOf(t, w)); d != "" {
		t.Fatalf("the origin has changed with the fork:\n%s", d)
	}
	// The origin changes, and goes.
	forked := viewOf(t, f)
	err = errors.Join(w.Unlink(bg, vfs.RootIno, "large"), w.Sync(bg), w.Close(), s.RemoveWorkspace(bg, "ws"))
	if err != nil {
		t.Fatal(err)
	}
	makeFile(t, f, "own", bulk(2))
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	s.space.recordsWritten.Store(1 << 30)
	if err := s.compactNow(bg); err != nil {
		t.Fatal(err)
	}
	f.forgetAll()
	if err := f.Unlink(bg, vfs.RootIno, "own"); err != nil {
		t.Fatal(err)
	}
	got := viewOf(t, f)
	root := got["/"]
	root.Mtime = forked["/"].Mtime
	got["/"] = root
	if d := vfstest.DiffTimes(forked, got); d != "" {
		t.Fatalf("the fork has changed with its origin:\n%s", d)
	}
	second := openFork(t, s, "fork", "", "second")
	if err := errors.Join(f.Close(), s.RemoveWorkspace(bg, "fork")); err != nil {
		t.Fatal(err)
	}
	if d := vfstest.DiffTimes(viewOf(t, second), got); d == "" {
		t.Error("the root's time is compared, so this cannot be")
	}
	if err := errors.Join(second.Close(), s.RemoveWorkspace(bg, "second")); err != nil {
		t.Fatal(err)
	}
	if len(s.reading.pins) > 0 {
		t.Errorf("pinned when all is gone: %v", s.reading.pins)
	}
	if r, err := s.GC(bg); err != nil || r.Live > 0 {
		t.Errorf("live when all is gone: %+v, %v", r, err)
	}
}

func TestForkOfRevision(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "file", "one")
	sn := takeSnapshot(t, s, "ws", "first")
	if err := w.Unlink(bg, vfs.RootIno, "file"); err != nil {
		t.Fatal(err)
	}
	f := openFork(t, s, "ws", "first", "fork")
	if err := s.RemoveSnapshot(bg, "ws", "first"); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(f, "file"); got != "one" {
		t.Errorf("the fork has %q", got)
	}
	if _, err := s.Fork(bg, "ws", fmt.Sprint(sn.Rev-1), "other"); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("fork of a revision that is not kept: %v", err)
	}
	if _, err := s.OpenView(bg, "fork", fmt.Sprint(sn.Rev)); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("a view from before the fork: %v", err)
	}
	if _, err := s.Fork(bg, "ws", "", "fork"); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("fork to a name that is taken: %v", err)
	}
	for i := range maxOrigins + 5 { // forks of what was not changed do not add up
		name := fmt.Sprint("f", i)
		if _, err := s.Fork(bg, "fork", "", name); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveWorkspace(bg, "fork"); err != nil {
			t.Fatal(err)
		}
		if err := s.RenameWorkspace(bg, name, "fork"); err != nil {
			t.Fatal(err)
		}
		f = openWorkspace(t, s, "fork")
	}
	if n := len(s.origins(f.id)); n != 1 {
		t.Errorf("%d origins", n)
	}
}

// TestForkDigest compares the digest of a fork as it is found from its origin's with that of its records.
func TestForkDigest(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	ino := makeFile(t, w, "file", "one")
	if err := w.SetXattr(bg, ino, "user.a", nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Authority().Barrier(bg); err != nil {
		t.Fatal(err)
	}
	makeFile(t, w, "more", "two")
	for depth := range 4 {
		f := openFork(t, s, w.nameOf(t), "", fmt.Sprint("fork", depth))
		makeFile(t, f, fmt.Sprint("own", depth), "three")
		if depth == 1 {
			if err := f.Unlink(bg, vfs.RootIno, "file"); err != nil {
				t.Fatal(err)
			}
		}
		commitTree(t, f)
		r := s.reader()
		want, err := r.digest(f.id, vfs.AllInos, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if got, found, err := s.inheritedDigest(f.id, r, func() error { return nil }); err != nil || !found || got != want {
			t.Errorf("depth %d: inherited %v, %v, %v, want %v", depth, got, found, err, want)
		}
		r.Close()
		if p, err := f.Authority().Barrier(bg); depth%2 == 0 && (err != nil || p.Digest != want) {
			t.Errorf("depth %d: %+v, %v, want %v", depth, p, err, want)
		}
		w = f
	}
}

func (w *Workspace) nameOf(t *testing.T) string {
	t.Helper()
	list, err := w.store.Workspaces(bg)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range list {
		if workspaceID(in.ID) == w.id {
			return in.Name
		}
	}
	t.Fatal("no such workspace")
	return ""
}

// TestTornFork ends the making of a fork and of a snapshot, and the removal of what they were made of, before each write.
func TestTornFork(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		dir := t.TempDir()
		s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		w := openWorkspace(t, s, "ws")
		makeFile(t, w, "file", bulk(1))
		makeFile(t, w, "gone", "x")
		before := viewOf(t, w)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		hook, crashed := crashAt(n)
		if s, err = Open(dir, Options{CommitEvery: time.Hour, hook: hook}); err != nil {
			t.Fatal(err)
		}
		steps := 0
		for _, step := range []func() error{
			func() error { _, err := s.CreateSnapshot(bg, "ws", "then", ""); return err },
			func() error { _, err := s.Fork(bg, "ws", "", "fork"); return err },
			func() error { return openWorkspace(t, s, "fork").Unlink(bg, vfs.RootIno, "gone") },
			func() error { _, err := s.Fork(bg, "fork", "", "second"); return err },
			func() error { return s.RemoveWorkspace(bg, "ws") },
			func() error { _, err := s.GC(bg); return err },
		} {
			if err := step(); err != nil {
				if !errors.Is(err, errCrash) {
					t.Fatalf("step %d: %v", n, err)
				}
				break
			}
			steps++
		}
		done = !crashed()
		_ = s.Close() // it cannot commit what is dirty
		s = openStore(t, dir, Options{CommitEvery: time.Hour})
		for i, name := range []string{"ws@then", "fork", "", "second"} {
			if steps > i && name != "" && (name != "ws@then" || steps < 4) {
				lookAfterCrash(t, s, n, name, before)
			}
		}
	}
}

func lookAfterCrash(t *testing.T, s *Store, n int, name string, before map[string]vfstest.Node) {
	t.Helper()
	var tree vfs.Tree
	if workspace, when, ok := SplitMoment(name); ok {
		tree = openView(t, s, workspace, when)
	} else {
		w, err := s.OpenWorkspace(bg, name)
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		tree = w
	}
	got := viewOf(t, tree)
	if name == "second" || got["/gone"].Type == 0 && name == "fork" {
		for _, path := range []string{"/gone", "/"} {
			got[path] = before[path]
		}
	}
	if d := vfstest.DiffTimes(before, got); d != "" {
		t.Fatalf("step %d: %s differs:\n%s", n, name, d)
	}
}

// kept is what a revision must show for as long as it is kept.
type kept struct {
	workspace, when string
	want            map[string]vfstest.Node
}

// TestRandomForks does random operations to a workspace beside a model, goes on with forks of it, takes snapshots, and looks
// at what they show, with collections, compactions, removals and reopenings between them.
func TestRandomForks(t *testing.T) {
	seed := vfstest.Seed(t)
	t.Logf("VFSTEST_SEED=%d", seed)
	r := &forkRun{T: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 2)), name: "ws"}
	r.open()
	r.w = openWorkspace(t, r.s, r.name)
	vfstest.Random(t, seed, 800, r.w, vfstest.NewTree(), func(_ int, tree vfs.Tree) vfs.Tree {
		if r.rnd.IntN(12) > 0 {
			return tree
		}
		return r.something(tree)
	})
	for i := range r.kept {
		r.look(i)
	}
	checkStore(t, r.s)
	r.fails(r.s.Close())
}

type forkRun struct {
	*testing.T
	dir  string
	rnd  *rand.Rand
	s    *Store
	w    *Workspace
	name string
	made int
	kept []kept
	left atomic.Int64 // steps of commits before the next crash
}

func (r *forkRun) open() {
	r.left.Store(1 << 60)
	s, err := Open(r.dir, Options{
		Create: true, packSize: 1 << 20, BufferBytes: 4 << 20, CommitEvery: 20 * time.Millisecond, flattenOver: 3,
		hook: func(string) error {
			if r.left.Add(-1) < 0 {
				return errCrash
			}
			return nil
		},
	})
	r.fails(err)
	r.s = s
}

func (r *forkRun) fails(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *forkRun) something(tree vfs.Tree) vfs.Tree {
	r.made++
	switch r.rnd.IntN(16) {
	case 0, 1: // go on with a fork
		name := fmt.Sprint("fork", r.made)
		_, err := r.s.Fork(bg, r.name, "", name)
		r.fails(err)
		r.kept = append(r.kept, kept{workspace: r.name, want: viewOf(r.T, r.w)})
		if r.rnd.IntN(3) == 0 {
			r.remove(r.name)
		} else {
			r.fails(r.w.Close())
		}
		r.name, r.w = name, openWorkspace(r.T, r.s, name)
		return r.w
	case 2, 3:
		sn := takeSnapshot(r.T, r.s, r.name, fmt.Sprint("s", r.made))
		r.kept = append(r.kept, kept{workspace: r.name, when: sn.Name, want: viewOf(r.T, r.w)})
	case 4: // a fork of a snapshot, which then is not needed
		if i := r.any(); i >= 0 && r.kept[i].when != "" {
			k := r.kept[i]
			name := fmt.Sprint("aside", r.made)
			_, err := r.s.Fork(bg, k.workspace, k.when, name)
			r.fails(err)
			r.fails(r.s.RemoveSnapshot(bg, k.workspace, k.when))
			r.kept[i] = kept{workspace: name, want: k.want}
		}
	case 5:
		if i := r.any(); i >= 0 {
			r.look(i)
		}
	case 6:
		_, err := r.s.GC(bg)
		r.fails(err)
	case 7:
		if r.rnd.IntN(4) == 0 {
			r.s.space.recordsWritten.Store(1 << 30)
			r.fails(r.s.compactNow(bg))
		}
		r.s.letGoOld()
	case 8:
		r.w.forgetAll()
	case 15:
		r.fails(r.s.flattener.all(bg, nil))
	case 10, 11:
		r.diff()
	case 13:
		r.restore()
	case 14:
		r.merge()
	case 12:
		if r.rnd.IntN(3) == 0 {
			return r.crash()
		}
	case 9:
		if r.rnd.IntN(3) == 0 {
			r.fails(r.s.Close())
			r.open()
			r.w = openWorkspace(r.T, r.s, r.name)
			return r.w
		}
	}
	return tree
}

// restore makes a workspace that is not in use, or a path of it, what it was at a snapshot.
func (r *forkRun) restore() {
	for i := range r.kept {
		for _, sn := range r.kept {
			if k := &r.kept[i]; k.when == "" && sn.when != "" && k.workspace == sn.workspace && r.rnd.IntN(2) == 0 {
				if r.rnd.IntN(2) == 0 {
					r.fails(r.s.Restore(bg, k.workspace, sn.when, ""))
					k.want = sn.want
				} else {
					r.restorePath(k, sn)
				}
				return
			}
		}
	}
}

// merge merges a workspace that is not in use into another, and that back: then both are the same, whatever was in them.
func (r *forkRun) merge() {
	i, j := r.any(), r.any()
	if i < 0 || r.kept[i].when != "" || r.kept[j].when != "" || r.kept[i].workspace == r.kept[j].workspace {
		return
	}
	a, b := &r.kept[i], &r.kept[j]
	_, err := r.s.Merge(bg, a.workspace, b.workspace, false)
	r.fails(err)
	back, err := r.s.Merge(bg, b.workspace, a.workspace, false)
	r.fails(err)
	if len(back.Conflicts) > 0 {
		r.Fatalf("%s and %s are merged, and are in conflict: %s", a.workspace, b.workspace, conflictText(back.Conflicts))
	}
	for _, k := range []*kept{a, b} {
		w := openWorkspace(r.T, r.s, k.workspace)
		k.want = viewOf(r.T, w)
		r.fails(w.Close())
	}
	if d := vfstest.DiffTimes(a.want, b.want); d != "" {
		r.Fatalf("%s and %s are merged, and differ:\n%.2000s", a.workspace, b.workspace, d)
	}
}

// restorePath makes a path of a workspace what it was.
func (r *forkRun) restorePath(k *kept, sn kept) {
	paths := slices.Sorted(maps.Keys(sn.want))
	top := paths[r.rnd.IntN(len(paths))]
	err := r.s.Restore(bg, k.workspace, sn.when, top)
	if dir, ok := k.want[path.Dir(top)]; !ok || dir.Type != vfs.TypeDir {
		if err == nil {
			r.Fatalf("%s was restored where there is no directory", top)
		}
		return
	}
	r.fails(err)
	w := openWorkspace(r.T, r.s, k.workspace)
	defer func() { r.fails(w.Close()) }()
	got := viewOf(r.T, w)
	checkRestored(r.T, top, sn.want, k.want, got)
	if r.Failed() {
		r.FailNow()
	}
	k.want = got
}

// crash ends the merging of layers, a collection, a fork and a snapshot after some steps, when all else is durable, as the death
// of the process does.
func (r *forkRun) crash() vfs.Tree {
	_, err := r.w.Commit(bg)
	r.fails(err)
	r.left.Store(int64(r.rnd.IntN(12)))
	name := fmt.Sprint("crashed", r.made)
	err0 := r.s.flattener.all(bg, nil)
	_, err1 := r.s.GC(bg)
	_, err2 := r.s.CreateSnapshot(bg, r.name, name, "")
	_, err3 := r.s.Fork(bg, r.name, "", name)
	for _, err := range []error{err0, err1, err2, err3} {
		if err != nil && !errors.Is(err, errCrash) {
			r.Fatal(err)
		}
	}
	r.left.Store(0)
	_ = r.s.Close() // it can commit nothing
	r.open()
	r.w = openWorkspace(r.T, r.s, r.name)
	if err3 == nil {
		r.kept = append(r.kept, kept{workspace: name, want: viewOf(r.T, r.w)})
	}
	return r.w
}

// diff compares two revisions that are kept, or one with what is now.
func (r *forkRun) diff() {
	i, j := r.any(), r.any()
	if i < 0 {
		return
	}
	to, want := r.name, viewOf(r.T, r.w)
	if r.rnd.IntN(2) == 0 {
		to, want = r.kept[j].place(), r.kept[j].want
	}
	from := r.kept[i]
	checkDiff(r.T, diffOf(r.T, r.s, from.place(), to), from.want, want)
	if r.Failed() {
		r.Fatalf("diff %s %s", from.place(), to)
	}
}

func (k kept) place() string {
	if k.when == "" {
		return k.workspace
	}
	return k.workspace + "@" + k.when
}

// any is some revision that is kept, or -1.
func (r *forkRun) any() int {
	if len(r.kept) == 0 {
		return -1
	}
	return r.rnd.IntN(len(r.kept))
}

// remove removes the workspace that is in use, with what is kept of it.
func (r *forkRun) remove(name string) {
	r.fails(r.w.Close())
	r.fails(r.s.RemoveWorkspace(bg, name))
	left := r.kept[:0]
	for _, k := range r.kept {
		if k.workspace != name {
			left = append(left, k)
		}
	}
	r.kept = left
}

// look compares what a revision shows.
func (r *forkRun) look(i int) {
	r.Helper()
	k := r.kept[i]
	var tree vfs.Tree
	if k.when == "" {
		w := openWorkspace(r.T, r.s, k.workspace)
		defer func() { r.fails(w.Close()) }()
		tree = w
	} else {
		v, err := r.s.OpenView(bg, k.workspace, k.when)
		r.fails(err)
		defer func() { r.fails(v.Close()) }()
		tree = v
	}
	if d := vfstest.DiffTimes(k.want, viewOf(r.T, tree)); d != "" {
		r.Fatalf("%s at %q differs:\n%.2000s", k.workspace, k.when, d)
	}
}
