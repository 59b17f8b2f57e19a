package casstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// gcWorld is a store in which a collection has everything to do that one may have, and what each of its trees must show whatever
// becomes of that.
type gcWorld struct {
	*testing.T
	dir     string
	content *rand.ChaCha8
	want    map[string]map[string]vfstest.Node
	gone    []byte // the bytes of a file that was removed
	least   int64  // bytes in packs after a collection that was not disturbed
}

func gcOptions() Options {
	return Options{CommitEvery: time.Hour, packSize: 1 << 20, reserve: 8 << 20}
}

// newGCWorld makes one:
//
//	1, 2  packs of a file that lives and one that is dead; of the second, the bytes come back while it is collected
//	3     the chunks of a file of many, all of which live
//	4     the nodes of its manifest, moved there by a change, and dead bytes
//	5     what only forks show, of which one has nothing of its own, and dead bytes
//	6     what a fork has itself, and dead bytes
//	7     what only a snapshot shows, and dead bytes
//	8     nothing that lives
//	9     what only history shows, and dead bytes
func newGCWorld(t *testing.T) *gcWorld {
	// In memory: the syncs of all these runs would take most of a minute.
	g := &gcWorld{T: t, dir: filepath.Join(smallDiskDir(t, 1<<30), "began"), content: rand.NewChaCha8([32]byte{7})}
	o := gcOptions()
	o.Create = true
	s, err := Open(g.dir, o)
	g.fails(err)
	w := openWorkspace(t, s, "ws")
	for i := range 2 {
		g.file(w, fmt.Sprint("kept", i))
		g.gone = g.dying(s, w)
	}
	sparse, _ := sparseFile(t, w, "sparse")
	g.fails(s.packs.Seal())
	g.fails(w.WriteAt(bg, sparse, []byte("changed"), 4*minHole, false))
	g.dying(s, w)
	g.file(w, "forked")
	g.dying(s, w)
	g.unlink(w, "dying")
	f := openFork(t, s, "ws", "", "fork")
	g.file(f, "own")
	g.dying(s, f)
	g.file(w, "snapped")
	g.dying(s, w)
	g.dying(s, w)
	g.unlink(f, "dying")
	g.unlink(w, "dying", "forked")
	takeSnapshot(t, s, "ws", "then")
	openFork(t, s, "fork", "", "second")
	g.file(w, "past")
	g.dying(s, w)
	g.unlink(w, "dying", "snapped")
	g.fails(s.KeepHistory(bg, time.Hour))
	makeFile(t, w, "since", "history is kept")
	before := commitTree(t, w)
	g.unlink(w, "past")
	commitTree(t, w)
	g.want = make(map[string]map[string]vfstest.Node)
	for _, place := range []string{"ws", "fork", "second", "ws@then", fmt.Sprint("ws@", before)} {
		g.want[place] = g.view(s, place)
	}
	g.fails(s.Close())
	return g
}

func (g *gcWorld) fails(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// temp is a directory that is not there, on the world's disk.
func (g *gcWorld) temp(name string) string {
	g.Helper()
	path := filepath.Join(filepath.Dir(g.dir), name)
	g.fails(os.RemoveAll(path))
	return path
}

func (g *gcWorld) bytes(n int) []byte {
	b := make([]byte, n)
	_, err := io.ReadFull(g.content, b)
	g.fails(err)
	return b
}

// file stores a file of one chunk.
func (g *gcWorld) file(w *Workspace, name string) { storedFile(g.T, w, name, g.bytes(50<<10)) }

// dying stores a file that is to be removed, which replaces the one before, and ends the pack.
func (g *gcWorld) dying(s *Store, w *Workspace) (b []byte) {
	b = g.bytes(200 << 10)
	storedFile(g.T, w, "new", b)
	g.fails(w.Rename(bg, vfs.RootIno, "new", vfs.RootIno, "dying", 0))
	g.fails(s.packs.Seal())
	return b
}

func (g *gcWorld) unlink(w *Workspace, names ...string) {
	for _, name := range names {
		g.fails(w.Unlink(bg, vfs.RootIno, name))
	}
	commitTree(g.T, w)
}

func (g *gcWorld) view(s *Store, place string) map[string]vfstest.Node {
	g.Helper()
	if workspace, when, ok := SplitMoment(place); ok {
		v, err := s.OpenView(bg, workspace, when)
		g.fails(err)
		defer v.Close()
		return viewOf(g.T, v)
	}
	w, err := s.OpenWorkspace(bg, place)
	g.fails(err)
	defer w.leave()
	return viewOf(g.T, w)
}

func (g *gcWorld) look(s *Store, when string, want map[string]map[string]vfstest.Node) {
	g.Helper()
	for place := range want {
		if d := vfstest.DiffTimes(want[place], g.view(s, place)); d != "" {
			g.Fatalf("%s: %s differs:\n%.2000s", when, place, d)
		}
	}
}

// gcSteps are the steps of a collection: those of commits, and operations that change packs.
type gcSteps struct {
	mu      sync.Mutex
	taken   int
	fail    func(step int) error // called with mu held; nil: steps are not counted
	reading sync.Once
	read    func() // called before the first chunk is copied
}

func (st *gcSteps) step(string) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.fail == nil {
		return nil
	}
	st.taken++
	return st.fail(st.taken)
}

func (st *gcSteps) pack(op pack.Op) error {
	if op != pack.OpRead {
		return st.step(string(op))
	}
	if st.read != nil {
		st.reading.Do(st.read)
	}
	return nil
}

// gcRun is a collection that something happens to.
type gcRun struct {
	*gcWorld
	gcSteps
	s       *Store
	dir     string
	back    bool // the bytes that are gone were written again, and committed
	backErr error
	want    map[string]map[string]vfstest.Node // what is to be seen from then on
}

// begin opens a copy of the world. From then on steps fail as fail says.
func (g *gcWorld) begin(fail func(step int) error) *gcRun {
	c := &gcRun{gcWorld: g, dir: g.temp("store"), want: maps.Clone(g.want)}
	copyStore(g.T, c.dir, g.dir)
	o := gcOptions()
	o.hook, o.packHook = c.step, c.pack
	s, err := Open(c.dir, o)
	g.fails(err)
	c.s = s
	w := openWorkspace(g.T, s, "ws")
	c.read = func() { c.backErr = c.writeAgain(w) }
	c.fail = fail
	return c
}

// writeAgain makes a file of bytes that are dead, from within a collection.
func (c *gcRun) writeAgain(w *Workspace) error {
	a, err := w.Create(bg, vfs.RootIno, "back", vfs.NewNode{Mode: 0o644})
	if err == nil {
		err = w.WriteAt(bg, a.Ino, c.gone, 0, false)
	}
	if err == nil {
		_, err = w.Commit(bg)
	}
	c.back = err == nil
	return err
}

// collect empties packs, and has Badger drop what nobody needs, as compactNow does, but for history. It returns the error that
// has ended it.
func (c *gcRun) collect(ctx context.Context) error {
	_, err := c.s.GC(ctx)
	if err == nil {
		err = c.s.pushMemtable(ctx)
	}
	if err == nil {
		c.s.letGoOld()
		err = c.s.compactors.flatten()
	}
	if c.back {
		w := openWorkspace(c.T, c.s, "ws")
		if contentOf(w, "back") != string(c.gone) {
			c.Errorf("step %d: what was written again is something else", c.taken)
		}
		w.leave()
		c.want["ws"] = c.view(c.s, "ws")
	}
	return err
}

// takeUp collects to the end, and looks whether all is there and nothing too much.
func (c *gcRun) takeUp(s *Store, when string) {
	c.Helper()
	c.look(s, when, c.want)
	if _, err := s.GC(bg); err != nil {
		c.Fatalf("%s: collect: %v", when, err)
	}
	c.look(s, when+", and collected", c.want)
	checkStore(c.T, s)
	if n := s.packBytes(); c.least > 0 && n > c.least*(100+gcAskedShare)/100 {
		c.Errorf("%s: %d bytes in packs after a collection, %d when nothing happens to it", when, n, c.least)
	}
	if c.Failed() {
		c.FailNow()
	}
}

// undisturbed collects once with nothing in the way, and returns how many steps that takes.
func (g *gcWorld) undisturbed() int {
	c := g.begin(func(int) error { return nil })
	g.fails(c.collect(bg))
	g.fails(c.backErr)
	c.takeUp(c.s, "undisturbed")
	g.least = c.s.packBytes()
	g.fails(c.s.Close())
	return c.taken
}

// tornAll has each step of a collection be tried in all ways, and not only in one of them.
var tornAll = os.Getenv("CARREL_TORN") == "all"

// TestTornGC ends a collection before each of its steps, and what opens the store then before one of its own. The store is
// opened as the process leaves it, as the loss of power does, and as closing it does: in one of these ways, or in all if
// CARREL_TORN is all.
func TestTornGC(t *testing.T) {
	g := newGCWorld(t)
	steps := g.undisturbed()
	for n := range steps {
		c := g.begin(func(step int) error {
			if step > n {
				return errCrash
			}
			return nil
		})
		if err := c.collect(bg); c.taken > n && !errors.Is(err, errCrash) {
			t.Fatalf("step %d of %d: %v", n, steps, err)
		}
		killed := g.temp("killed")
		copyStore(t, killed, c.dir)
		cut := g.temp("cut")
		copyStore(t, cut, c.dir)
		c.loseUnsynced(cut)
		_ = c.s.Close() // it can commit nothing
		for i, left := range []struct{ how, dir string }{{"killed", killed}, {"power lost", cut}, {"closed", c.dir}} {
			if tornAll || n%3 == i {
				c.reopen(left.dir, n, fmt.Sprintf("step %d of %d, %s", n, steps, left.how))
			}
		}
	}
}

// loseUnsynced makes of a copy of a store what the loss of power may: packs are as they were synced last, those that were
// not synced since they were made are not there, and those that were removed are again.
func (c *gcRun) loseUnsynced(dir string) {
	packs, ends := filepath.Join(dir, packDir), c.s.packs.Ends()
	for _, p := range c.s.packs.Packs() {
		path := filepath.Join(packs, fmt.Sprintf("%08d.pack", p.ID))
		if end, synced := ends[p.ID]; synced {
			c.fails(os.Truncate(path, int64(end)))
		} else {
			c.fails(os.Remove(path))
		}
	}
	began, err := filepath.Glob(filepath.Join(c.gcWorld.dir, packDir, "*.pack"))
	c.fails(err)
	for _, path := range began {
		if back := filepath.Join(packs, filepath.Base(path)); !exists(back) {
			c.fails(copySparse(back, path))
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reopen opens what a crash has left: first by a process that dies as well, after so many steps.
func (c *gcRun) reopen(dir string, n int, when string) {
	c.Helper()
	var again gcSteps
	again.fail = func(step int) error {
		if step > n%8 {
			return errCrash
		}
		return nil
	}
	o := gcOptions()
	o.hook, o.packHook = again.step, again.pack
	switch s, err := Open(dir, o); {
	case err == nil:
		_ = s.Close()
	case !errors.Is(err, errCrash):
		c.Fatalf("%s: open: %v", when, err)
	}
	s, err := Open(dir, gcOptions())
	if err != nil {
		c.Fatalf("%s: open: %v", when, err)
	}
	c.takeUp(s, when)
	c.fails(s.Close())
}

// TestGCGoesOn fails a step of a collection once, or has the one who asked for it give up there: at each second step, or at
// all of them and both if CARREL_TORN is all. The next one does what is left; when the store has failed, after it was opened again.
func TestGCGoesOn(t *testing.T) {
	g := newGCWorld(t)
	steps := g.undisturbed()
	for n := range steps {
		if tornAll || n%4 == 0 {
			g.failOnce(n, fmt.Sprintf("step %d of %d failed", n, steps))
		}
		if tornAll || n%4 == 2 {
			g.giveUp(n, fmt.Sprintf("given up at step %d of %d", n, steps))
		}
	}
}

func (g *gcWorld) failOnce(n int, when string) {
	g.Helper()
	c := g.begin(func(step int) error {
		if step == n+1 {
			return errOnce
		}
		return nil
	})
	if err := c.collect(bg); err != nil && !errors.Is(err, errOnce) {
		g.Fatalf("%s: %v", when, err)
	}
	c.goOn(when)
}

func (g *gcWorld) giveUp(n int, when string) {
	g.Helper()
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	c := g.begin(func(step int) error {
		if step == n+1 {
			cancel()
		}
		return nil
	})
	if err := c.collect(ctx); err != nil && !errors.Is(err, vfs.ErrInterrupted) {
		g.Fatalf("%s: %v", when, err)
	}
	c.goOn(when)
}

var errOnce = errors.New("it fails once")

func (c *gcRun) goOn(when string) {
	c.Helper()
	c.read = nil
	if c.s.failure() == nil {
		c.want["ws"] = c.view(c.s, "ws") // with what could not be committed then
		c.takeUp(c.s, when)
		c.fails(c.s.Close())
	} else {
		_ = c.s.Close()
	}
	s, err := Open(c.dir, gcOptions())
	if err != nil {
		c.Fatalf("%s: open: %v", when, err)
	}
	c.takeUp(s, when+", opened again")
	c.fails(s.Close())
}
