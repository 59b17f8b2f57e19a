package vfstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var watchBehaviours = []behaviour{
	{"TellsEveryEntryChange", watchTellsEveryEntryChange},
	{"TellsAttributeChanges", watchTellsAttributeChanges},
	{"TellsDataChanges", watchTellsDataChanges},
	{"TellsOrigin", watchTellsOrigin},
	{"TellsNothingOfWhatFailed", watchTellsNothingOfWhatFailed},
	{"InOrder", watchInOrder},
	{"FlushDelivers", watchFlushDelivers},
	{"AfterItIsVisible", watchAfterItIsVisible},
	{"ReplayGivesTheTree", watchReplayGivesTheTree},
	{"LeavesOutSkipped", watchLeavesOutSkipped},
	{"EveryWatcherHearsAll", everyWatcherHearsAll},
	{"WatcherMayCallTheTree", watcherMayCallTheTree},
	{"WatcherHoldsNobodyUp", watcherHoldsNobodyUp},
	{"StopStops", watchStopStops},
	{"StopWaits", watchStopWaits},
}

// watchDeadline is how long a change may be on its way to a watcher. A test that passes does not wait for it.
const watchDeadline = time.Minute

// recorder collects the changes of a tree.
type recorder struct {
	*suite
	stop    func()
	calls   atomic.Int32 // under way
	markers int

	mu      sync.Mutex
	changes []vfs.Change
	more    chan struct{} // holds a token after a change came in
}

func (s *suite) watch() *recorder { return s.watchOthers(nil) }

// watchOthers leaves out the changes of an origin.
func (s *suite) watchOthers(skip any) *recorder {
	r := &recorder{suite: s, more: make(chan struct{}, 1)}
	r.stop = s.tree.Watch(skip, r.record)
	s.Cleanup(r.stop)
	return r
}

func (r *recorder) record(c vfs.Change) {
	if r.calls.Add(1) > 1 {
		r.Error("a watcher was called while it ran")
	}
	r.mu.Lock()
	r.changes = append(r.changes, c)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
	r.calls.Add(-1)
}

// take returns the changes since the last take. It makes a file in the root and waits until it hears of that.
func (r *recorder) take() []vfs.Change {
	r.Helper()
	r.markers++
	name := fmt.Sprintf("marker %p %d", r, r.markers)
	ino := r.create(vfs.RootIno, name).Ino
	marker := func(c vfs.Change) bool { return c.Kind == vfs.ChangeEntry && c.Name == name }
	deadline := time.After(watchDeadline)
	for {
		if taken, ok := r.upTo(marker); ok {
			return slices.DeleteFunc(taken, func(c vfs.Change) bool { return c.Ino == ino || c.Ino == vfs.RootIno })
		}
		select {
		case <-r.more:
		case <-deadline:
			r.Fatal("a change has not reached its watcher")
		}
	}
}

func (r *recorder) upTo(marker func(vfs.Change) bool) ([]vfs.Change, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.changes, marker)
	if i < 0 {
		return nil, false
	}
	taken := r.changes[:i:i]
	r.changes = r.changes[i+1:]
	return taken, true
}

// entryChanges returns those changes that are about names.
func entryChanges(changes []vfs.Change) []vfs.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c vfs.Change) bool { return c.Kind != vfs.ChangeEntry })
}

func entryChange(dir vfs.Ino, name string, ino vfs.Ino) vfs.Change {
	return vfs.Change{Kind: vfs.ChangeEntry, Dir: dir, Name: name, Ino: ino}
}

// tells reports unless the changes of names since the last time are those wanted, in any order.
func (r *recorder) tells(what string, want ...vfs.Change) {
	r.Helper()
	got := entryChanges(r.take())
	same := len(got) == len(want)
	for _, w := range want {
		same = same && slices.Contains(got, w)
	}
	if !same {
		r.Errorf("%s: changes %+v, want %+v", what, got, want)
	}
}

func watchTellsEveryEntryChange(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	r := s.watch()
	ino := s.create(s.dir, "f").Ino
	r.tells("create", entryChange(s.dir, "f", ino))
	dir := s.mkdir(s.dir, "dir").Ino
	r.tells("mkdir", entryChange(s.dir, "dir", dir))
	l := s.symlink(d, "l", "target").Ino
	r.tells("symlink", entryChange(d, "l", l))
	p := s.mknod(d, "p", vfs.TypeFIFO).Ino
	r.tells("mknod", entryChange(d, "p", p))
	s.link(ino, d, "g")
	r.tells("link", entryChange(d, "g", ino))
	s.rename(s.dir, "f", d, "h")
	r.tells("rename", entryChange(s.dir, "f", 0), entryChange(d, "h", ino))
	s.rename(d, "l", d, "h")
	r.tells("rename over", entryChange(d, "l", 0), entryChange(d, "h", l))
	s.exchange(d, "p", s.dir, "dir")
	r.tells("exchange", entryChange(d, "p", dir), entryChange(s.dir, "dir", p))
	s.unlink(d, "g")
	r.tells("unlink", entryChange(d, "g", 0))
	s.rmdir(d, "p")
	r.tells("rmdir", entryChange(d, "p", 0))
}

// hears reports unless there was a change of a kind about each of the inodes since the last time.
func (r *recorder) hears(what string, kind vfs.ChangeKind, inos ...vfs.Ino) {
	r.Helper()
	got := r.take()
	for _, ino := range inos {
		if !slices.ContainsFunc(got, func(c vfs.Change) bool { return c.Kind == kind && c.Ino == ino }) {
			r.Errorf("%s: no change of kind %d about inode %d in %+v", what, kind, ino, got)
		}
	}
}

func watchTellsAttributeChanges(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	e := s.mkdir(s.dir, "e").Ino
	ino, old := s.create(d, "f").Ino, s.create(e, "old").Ino
	s.link(old, e, "old2")
	r := s.watch()
	s.chmod(ino, 0o600)
	r.hears("chmod", vfs.ChangeAttr, ino)
	s.setXattr(ino, "user.x", "v")
	r.hears("setxattr", vfs.ChangeAttr, ino)
	s.ok(s.tree.RemoveXattr(s.ctx(), ino, "user.x"))
	r.hears("removexattr", vfs.ChangeAttr, ino)
	s.create(d, "g")
	r.hears("create", vfs.ChangeAttr, d)
	s.link(ino, e, "h")
	r.hears("link", vfs.ChangeAttr, ino, e)
	s.unlink(e, "h")
	r.hears("unlink", vfs.ChangeAttr, ino, e)
	s.rename(d, "f", e, "old")
	r.hears("rename", vfs.ChangeAttr, ino, d, e, old)
	sub := s.mkdir(d, "sub").Ino
	r.hears("mkdir", vfs.ChangeAttr, d)
	s.rename(d, "sub", e, "sub")
	r.hears("rename of a directory", vfs.ChangeAttr, d, e, sub)
	s.rmdir(e, "sub")
	r.hears("rmdir", vfs.ChangeAttr, e)
}

func watchTellsDataChanges(s *suite) {
	ino := s.create(s.dir, "f").Ino
	r := s.watch()
	s.write(ino, 0, []byte("bytes"))
	r.hears("write", vfs.ChangeData, ino)
	s.truncate(ino, 3)
	r.hears("truncate", vfs.ChangeData, ino)
	s.allocate(ino, vfs.AllocZeroRange, 0, 100)
	r.hears("allocate", vfs.ChangeData, ino)
	s.tree.Hold(ino)
	s.unlink(s.dir, "f")
	r.take()
	s.write(ino, 0, []byte("bytes"))
	r.hears("write to a file without a name", vfs.ChangeData, ino)
	s.tree.Release(ino, 1)
}

func watchTellsOrigin(s *suite) {
	type caller string
	r := s.watch()
	for _, origin := range []any{caller("a"), nil, caller("b"), caller("a"), 7} {
		ctx := s.ctx()
		if origin != nil {
			ctx = vfs.WithOrigin(ctx, origin)
		}
		a, err := s.tree.Create(ctx, s.dir, "f", fileNode)
		s.ok(err)
		s.ok(s.tree.WriteAt(ctx, a.Ino, []byte("bytes"), 0, false))
		_, err = s.tree.SetAttr(ctx, a.Ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o600})
		s.ok(err)
		s.ok(s.tree.Rename(ctx, s.dir, "f", s.dir, "g", 0))
		s.ok(s.tree.Unlink(ctx, s.dir, "g"))
		for _, c := range r.take() {
			if c.Origin != origin {
				s.Errorf("change %+v, want origin %v", c, origin)
			}
		}
	}
}

func watchLeavesOutSkipped(s *suite) {
	type caller string
	r := s.watchOthers(caller("a"))
	for _, origin := range []caller{"a", "b"} {
		ctx := vfs.WithOrigin(s.ctx(), origin)
		_, err := s.tree.Create(ctx, s.dir, "by "+string(origin), fileNode)
		s.ok(err)
	}
	heard := 0
	for _, c := range r.take() {
		if c.Origin == caller("a") {
			s.Errorf("change %+v was to be left out", c)
		}
		if c.Origin == caller("b") {
			heard++
		}
	}
	if heard == 0 {
		s.Errorf("nothing was heard of another origin")
	}
}

func watchTellsNothingOfWhatFailed(s *suite) {
	d := s.mkdir(s.dir, "d").Ino
	s.create(d, "f")
	r := s.watch()
	_, err := s.tree.Create(s.ctx(), d, "f", fileNode)
	s.fails(err, vfs.ErrExist)
	s.fails(s.tree.Unlink(s.ctx(), d, "g"), vfs.ErrNotExist)
	s.fails(s.tree.Rmdir(s.ctx(), s.dir, "d"), vfs.ErrNotEmpty)
	s.fails(s.tree.Rename(s.ctx(), s.dir, "d", d, "e", 0), vfs.ErrInvalid)
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	s.fails(s.tree.Unlink(ctx, d, "f"), vfs.ErrInterrupted)
	r.tells("what failed")
}

// A flush waits for a watcher that takes its time, and for one that has nothing to hear.
func watchFlushDelivers(s *suite) {
	f, ok := s.tree.(vfs.WatchFlusher)
	if !ok {
		return // no tree must be one
	}
	var told atomic.Int32
	s.Cleanup(s.tree.Watch(nil, func(vfs.Change) {
		time.Sleep(time.Millisecond)
		told.Add(1)
	}))
	s.Cleanup(s.tree.Watch(s, func(vfs.Change) {}))
	for i := range 20 {
		s.create(vfs.RootIno, fmt.Sprint(i))
		s.ok(f.FlushWatch(s.ctx()))
		if n := told.Swap(0); n == 0 {
			s.Fatal("a flush returned before a change had been told")
		}
	}
	ended, end := context.WithCancel(s.ctx())
	end()
	s.create(vfs.RootIno, "last")
	if err := f.FlushWatch(ended); err != nil {
		s.fails(err, vfs.ErrInterrupted)
	}
}

func watchInOrder(s *suite) {
	r := s.watch()
	var want []vfs.Change
	for i := range 500 {
		ino := s.create(s.dir, "n").Ino
		want = append(want, entryChange(s.dir, "n", ino))
		if i%100 == 0 {
			s.commit()
		}
		s.unlink(s.dir, "n")
		want = append(want, entryChange(s.dir, "n", 0))
	}
	if got := entryChanges(r.take()); !slices.Equal(got, want) {
		s.Errorf("%d changes that are not the %d wanted, in their order", len(got), len(want))
	}
}

func watchAfterItIsVisible(s *suite) {
	var heard atomic.Int32
	done := make(chan struct{})
	stop := s.tree.Watch(nil, func(c vfs.Change) {
		if c.Kind != vfs.ChangeEntry || c.Dir != s.dir {
			return
		}
		if a, err := s.tree.Lookup(s.ctx(), c.Dir, c.Name); err != nil || a.Ino != c.Ino {
			s.Errorf("when it was told of, %q led to %d (%v), not %d", c.Name, a.Ino, err, c.Ino)
		}
		if heard.Add(1) == 200 {
			close(done)
		}
	})
	defer stop()
	s.fill(s.dir, "f", 200)
	select {
	case <-done:
	case <-time.After(watchDeadline):
		s.Fatal("changes have not reached their watcher")
	}
}

// watchReplayGivesTheTree applies the changes of names, in the order in which they were told, and compares.
func watchReplayGivesTheTree(s *suite) {
	dirs := []vfs.Ino{s.dir, s.mkdir(vfs.RootIno, "other").Ino}
	r := s.watch()
	s.storm(dirs, 6, 400)
	type place struct {
		dir  vfs.Ino
		name string
	}
	replayed := make(map[place]vfs.Ino)
	for _, c := range entryChanges(r.take()) {
		replayed[place{c.Dir, c.Name}] = c.Ino
		if c.Ino == 0 {
			delete(replayed, place{c.Dir, c.Name})
		}
	}
	listed := 0
	for _, dir := range dirs {
		for _, e := range s.list(dir) {
			listed++
			if ino := replayed[place{dir, e.Name}]; ino != e.Ino {
				s.Errorf("%d/%q leads to %d, by what was told to %d", dir, e.Name, e.Ino, ino)
			}
		}
	}
	if listed != len(replayed) {
		s.Errorf("%d entries, by what was told %d", listed, len(replayed))
	}
}

// storm has many goroutines make, link, rename and remove the same few names. Errors that others cause are expected.
func (s *suite) storm(dirs []vfs.Ino, goroutines, steps int) {
	s.Helper()
	names := []string{"a", "b", "c", "d"}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 7))
			for range steps {
				dir, to := dirs[r.IntN(len(dirs))], dirs[r.IntN(len(dirs))]
				name, newName := names[r.IntN(len(names))], names[r.IntN(len(names))]
				s.stormed(s.stormStep(r, dir, name, to, newName))
			}
		})
	}
	all.Wait()
}

func (s *suite) stormStep(r *rand.Rand, dir vfs.Ino, name string, to vfs.Ino, newName string) error {
	switch r.IntN(9) {
	case 0:
		return s.tree.Rmdir(s.ctx(), dir, name)
	case 1:
		_, err := s.tree.Mkdir(s.ctx(), dir, name, dirNode)
		return err
	case 2:
		a, err := s.tree.Lookup(s.ctx(), dir, name)
		if err != nil {
			return err
		}
		_, err = s.tree.Link(s.ctx(), a.Ino, to, newName)
		return err
	case 3:
		return s.tree.Rename(s.ctx(), dir, name, to, newName, vfs.RenameExchange)
	case 4, 5:
		return s.tree.Rename(s.ctx(), dir, name, to, newName, 0)
	case 6:
		return s.tree.Unlink(s.ctx(), dir, name)
	}
	_, err := s.tree.Create(s.ctx(), dir, name, fileNode)
	return err
}

// stormed reports an error that others changing the same names do not explain.
func (s *suite) stormed(err error) {
	if err != nil {
		s.fails(err, vfs.ErrNotExist, vfs.ErrExist, vfs.ErrIsDir, vfs.ErrNotDir, vfs.ErrNotEmpty, vfs.ErrNotPermitted,
			vfs.ErrStale)
	}
}

func everyWatcherHearsAll(s *suite) {
	first, second := s.watch(), s.watch()
	s.fill(s.dir, "f", 50)
	a, b := entryChanges(first.take()), entryChanges(second.take())
	b = slices.DeleteFunc(b, func(c vfs.Change) bool { return c.Dir == vfs.RootIno }) // the marker of the first
	if len(a) != 50 || !slices.Equal(a, b) {
		s.Errorf("one watcher heard %d changes, the other %d, want the same 50", len(a), len(b))
	}
}

func watcherMayCallTheTree(s *suite) {
	done := make(chan error, 1)
	stop := s.tree.Watch(nil, func(c vfs.Change) {
		if c.Kind == vfs.ChangeEntry && c.Name == "from outside" {
			_, err := s.tree.Create(s.ctx(), s.dir, "from within", fileNode)
			done <- err
		}
	})
	defer stop()
	s.create(s.dir, "from outside")
	select {
	case err := <-done:
		s.ok(err)
	case <-time.After(watchDeadline):
		s.Fatal("a watcher that calls the tree does not come back")
	}
}

func watcherHoldsNobodyUp(s *suite) {
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := s.tree.Watch(nil, func(vfs.Change) {
		once.Do(func() {
			close(entered)
			<-release
		})
	})
	defer stop()
	s.create(s.dir, "f")
	<-entered
	// Were a lock held, none of these would return.
	ino := s.create(s.dir, "g").Ino
	s.write(ino, 0, []byte("bytes"))
	s.unlink(s.dir, "f")
	s.list(s.dir)
	s.commit()
	close(release)
}

func watchStopStops(s *suite) {
	var stopped atomic.Bool
	heard := make(chan struct{}, 1)
	stop := s.tree.Watch(nil, func(vfs.Change) {
		if stopped.Load() {
			s.Error("a watcher was called after it was stopped")
		}
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	var changer sync.WaitGroup
	changer.Go(func() {
		for i := range 300 {
			s.comeAndGo(s.dir, fmt.Sprint(i))
		}
	})
	<-heard
	stop()
	stopped.Store(true)
	changer.Wait()
	r := s.watch() // everything is told in order: when this one has heard, the stopped one would have
	s.create(s.dir, "last")
	r.take()
}

func watchStopWaits(s *suite) {
	entered := make(chan struct{})
	var once sync.Once
	var left atomic.Bool
	stop := s.tree.Watch(nil, func(vfs.Change) {
		once.Do(func() {
			close(entered)
			for range 200 { // long enough for a stop that does not wait to return
				if _, err := s.tree.Stat(s.ctx(), s.dir); err != nil {
					s.Error(err)
				}
				runtime.Gosched()
			}
			left.Store(true)
		})
	})
	s.create(s.dir, "f")
	<-entered
	stop()
	if !left.Load() {
		s.Error("stop returned while the watcher was running")
	}
}
