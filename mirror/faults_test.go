package mirror

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// The tests of this file are named after faults that systems of this kind had. None may be found here.

func TestNothingNewSaysNothing(t *testing.T) {
	l := newLab(t, 2)
	on(t, l.nodes[0].Tree()).write("/f", "1")
	l.settle()
	at, err := l.ws.Authority().Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var before [2]Status
	for i, n := range l.nodes {
		before[i], _ = n.Status(t.Context())
	}
	l.settle()
	now, err := l.ws.Authority().Position(t.Context())
	if err != nil || now.Rev != at.Rev {
		t.Errorf("revision %d, then %d, %v", at.Rev, now.Rev, err)
	}
	for i, n := range l.nodes {
		st, err := n.Status(t.Context())
		if err != nil || st.Records != before[i].Records || st.Pushes != before[i].Pushes {
			t.Errorf("mirror %d: %+v, then %+v, %v", i, before[i], st, err)
		}
	}
}

func TestChunksThatWereLostAreSentAgain(t *testing.T) {
	l := newLab(t, 1)
	n := l.nodes[0]
	lost := 0
	n.spy.write = func(list []vfs.Chunk) []vfs.Chunk {
		if lost == 0 {
			lost = len(list)
			return nil
		}
		return list
	}
	a, large := on(t, n.Tree()), text(3, 2<<20)
	a.write("/large", large)
	a.fsync("/large")
	on(t, l.ws).want("/large", large)
	if lost == 0 {
		t.Error("nothing was lost")
	}
}

func TestPoisonedChunkIsNotTaken(t *testing.T) {
	l := newLab(t, 1)
	large := text(4, 1<<20)
	on(t, l.ws).write("/large", large)
	n := l.nodes[0]
	n.sync()
	var poisoned atomic.Int64
	n.spy.read = func(c *vfs.Chunk) bool {
		if poisoned.Add(1) > 1 {
			return false
		}
		c.Stored = slices.Clone(c.Stored)
		c.Stored[0]++
		return false
	}
	a := on(t, n.Tree())
	if _, err := n.Tree().ReadAt(t.Context(), a.ino("/large"), make([]byte, 100), 0); !errors.Is(err, vfs.ErrCorrupt) {
		t.Errorf("the first read gives %v", err)
	}
	a.want("/large", large)
}

// A reader who gives up takes no other reader with it that waits for some of the same chunks.
func TestFetchOutlivesWhoGaveUp(t *testing.T) {
	l := newLab(t, 1)
	large := text(7, 3<<20)
	on(t, l.ws).write("/large", large)
	n := l.nodes[0]
	n.sync()
	ino := on(t, n.Tree()).ino("/large")
	var first atomic.Bool
	begun, release := make(chan struct{}), make(chan struct{})
	n.spy.read = func(*vfs.Chunk) bool {
		if first.CompareAndSwap(false, true) {
			close(begun)
			<-release
		}
		return false
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { _, _ = n.Tree().ReadAt(ctx, ino, make([]byte, 10), uint64(len(large)-10)) }) // it gives up
	<-begun
	group.Go(func() {
		got := make([]byte, len(large))
		if k, err := n.Tree().ReadAt(t.Context(), ino, got, 0); err != nil || string(got[:k]) != large {
			t.Errorf("%d bytes, %v", k, err)
		}
	})
	for n.stats.fetched.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	close(release)
	group.Wait()
}

// Writers who wait for the link because too much is not pushed go on when it is lost.
func TestWritersGoOnWhenTheLinkIsLost(t *testing.T) {
	l := newLab(t, 1)
	n := l.nodes[0]
	a := on(t, n.Tree())
	ino := a.write("/f", "1")
	l.settle()
	entered, release := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	n.spy.pushed = func(vfs.Push) {
		if held.CompareAndSwap(false, true) {
			close(entered)
			<-release
		}
	}
	a.write("/f", "on its way")
	<-entered
	n.written.Add(2 * dirtyMost)
	done := make(chan error, 1)
	waits := make(waiting, 1)
	ctx := context.WithValue(t.Context(), vfs.BlockHookKey, waits)
	go func() { done <- n.Tree().WriteAt(ctx, ino, []byte("2"), 0, false) }()
	<-waits
	n.wire.cut()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it waits")
	}
	n.wire.mend()
	close(release)
	l.settle()
}

// waiting hears that a call is about to wait.
type waiting chan struct{}

func (w waiting) WillBlock() {
	select {
	case w <- struct{}{}:
	default:
	}
}

func TestFailedFetchIsMadeAgain(t *testing.T) {
	l := newLab(t, 1)
	large := text(5, 1<<20)
	on(t, l.ws).write("/large", large)
	n := l.nodes[0]
	n.sync()
	var absent atomic.Bool
	absent.Store(true)
	n.spy.read = func(*vfs.Chunk) bool { return absent.Load() }
	a := on(t, n.Tree())
	if _, err := n.Tree().ReadAt(t.Context(), a.ino("/large"), make([]byte, 100), 0); err == nil {
		t.Error("bytes that are nowhere were read")
	}
	absent.Store(false)
	a.want("/large", large)
}

func TestCursorNeverGoesBack(t *testing.T) {
	l := newLab(t, 2)
	for i := range 20 {
		for _, n := range l.nodes {
			on(t, n.Tree()).write(fmt.Sprintf("/f%d-%d", n.n, i), "x")
			if i%7 == n.n {
				n.wire.cut()
				n.wire.mend()
			}
		}
	}
	l.settle()
	for _, n := range l.nodes {
		n.spy.mu.Lock()
		if !slices.IsSorted(n.spy.acked) {
			t.Errorf("mirror %d has acknowledged %v", n.n, n.spy.acked)
		}
		n.spy.mu.Unlock()
	}
}

func TestRewritesCostOneEntry(t *testing.T) {
	l := newLab(t, 1)
	n := l.nodes[0]
	a := on(t, n.Tree())
	a.write("/f", "0")
	l.settle()
	n.wire.cut()
	for i := range 50 {
		a.write("/f", fmt.Sprint(i))
		if _, err := n.replica.Commit(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	a.write("/temporary", "x")
	a.remove("/temporary")
	if _, err := n.replica.Commit(t.Context(), 0); err != nil { // there may have been one between the two
		t.Fatal(err)
	}
	edits, _, err := n.edits()
	if err != nil || len(edits) > 2 { // the file, and the root's times
		t.Errorf("%d edits, %v", len(edits), err)
	}
	n.wire.mend()
	l.settle()
}

func TestDirectoryRenameIsAFewRecords(t *testing.T) {
	l := newLab(t, 2)
	a := on(t, l.nodes[0].Tree())
	a.mkdir("/d")
	for i := range 200 {
		a.write(fmt.Sprint("/d/", i), "x")
	}
	l.settle()
	var sent atomic.Int64
	l.nodes[0].spy.pushed = func(p vfs.Push) { sent.Add(int64(len(p.Records))) }
	a.rename("/d", "/e")
	l.settle()
	if sent.Load() > 4 {
		t.Errorf("%d records for one rename", sent.Load())
	}
}

func TestHardLinksStayHardLinks(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	ino := a.write("/f", "1")
	if _, err := l.nodes[0].Tree().Link(t.Context(), ino, vfs.RootIno, "g"); err != nil {
		t.Fatal(err)
	}
	l.settle()
	if b.ino("/f") != b.ino("/g") {
		t.Error("two files")
	}
	b.write("/g", "through the other name")
	l.settle()
	a.want("/f", "through the other name")
}

func TestModeAloneTravels(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	ino := a.write("/f", "1")
	l.settle()
	if _, err := l.nodes[0].Tree().SetAttr(t.Context(), ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o751}); err != nil {
		t.Fatal(err)
	}
	l.settle()
	if attr, err := l.nodes[1].Tree().Stat(t.Context(), b.ino("/f")); err != nil || attr.Mode != 0o751 {
		t.Errorf("mode %o, %v", attr.Mode, err)
	}
}

func TestSameSizeInTheSameSecondTravels(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	ino := a.write("/f", "aaaa")
	attr, err := l.nodes[0].Tree().Stat(t.Context(), ino)
	if err != nil {
		t.Fatal(err)
	}
	l.settle()
	a.write("/f", "bbbb")
	if _, err := l.nodes[0].Tree().SetAttr(t.Context(), ino, vfs.AttrSet{Mask: vfs.SetMtime, Mtime: attr.Mtime}); err != nil {
		t.Fatal(err)
	}
	l.settle()
	b.want("/f", "bbbb")
}

func TestEchoOverwritesNothing(t *testing.T) {
	l := newLab(t, 2)
	n := l.nodes[0]
	a := on(t, n.Tree())
	a.write("/f", "base")
	l.settle()
	// The answer to the first push is lost with the wire, and the file is written again meanwhile.
	var once sync.Once
	n.spy.answered = func(vfs.Outcome) (err error) {
		once.Do(func() {
			a.write("/f", "second")
			n.wire.cut()
			err = errCut
		})
		return err
	}
	a.write("/f", "first")
	if _, err := n.replica.Commit(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for n.wireUp() {
		time.Sleep(time.Millisecond)
	}
	n.wire.mend()
	l.settle()
	a.want("/f", "second")
	on(t, l.ws).want("/f", "second")
	if got := a.names("/"); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// The answer to a push is lost with the wire, others remove and rename what it has made, and the feed of the next session is
// faster than the push that is made again.
func TestLostAnswerResurrectsNothing(t *testing.T) {
	l := newLab(t, 1)
	on(t, l.nodes[0].Tree()).write("/stays", "1")
	l.settle()
	n := &node{lab: l, n: 1, wire: &wire{path: l.nodes[0].wire.path}}
	n.config = Config{Dir: filepath.Join(l.dir, "loses"), Name: "loses", Log: testLog(), commitEvery: time.Hour}
	l.nodes = append(l.nodes, n)
	var made, lost, mended, again atomic.Bool
	var once sync.Once
	fed := make(chan struct{})
	n.spy.answered = func(vfs.Outcome) error {
		if !lost.CompareAndSwap(false, true) {
			return nil
		}
		n.wire.cut()
		return errCut
	}
	n.spy.update = func() error {
		switch {
		case !made.Load():
		case !mended.Load():
			return errCut // the feed does not tell it either
		default:
			once.Do(func() { close(fed) })
		}
		return nil
	}
	n.spy.pushed = func(vfs.Push) {
		if lost.Load() && again.CompareAndSwap(false, true) {
			n.awaitFeed(fed)
		}
	}
	n.start()
	n.sync()
	made.Store(true)
	for _, name := range []string{"removed", "renamed"} { // both are in one push
		if _, err := n.Tree().Create(t.Context(), vfs.RootIno, name, vfs.NewNode{Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.replica.Commit(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for n.wireUp() {
		time.Sleep(time.Millisecond)
	}
	l.nodes[0].sync()
	b := on(t, l.nodes[0].Tree())
	b.remove("/removed")
	b.rename("/renamed", "/other")
	l.nodes[0].sync()
	mended.Store(true)
	n.wire.mend()
	l.settle()
	if got := b.names("/"); !slices.Equal(got, []string{"other", "stays"}) {
		t.Errorf("%v", got)
	}
	if list, err := n.Conflicts(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// awaitFeed waits until the feed has brought something, and waits for the answer to the push that is under way.
func (n *node) awaitFeed(fed <-chan struct{}) {
	select {
	case <-fed:
	case <-n.ctx.Done():
	}
	for waits := false; !waits && n.turn.take(n.ctx) == nil; time.Sleep(time.Millisecond) {
		waits = n.flying == nil || !n.flying.unsure
		n.turn.giveBack()
	}
}

func (n *node) wireUp() bool {
	n.wire.mu.Lock()
	defer n.wire.mu.Unlock()
	return !n.wire.down
}

func TestRemovingADirectoryKeepsWhatOthersPutThere(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.mkdir("/d")
	a.write("/d/old", "1")
	l.settle()
	l.nodes[0].wire.cut()
	a.remove("/d/old")
	if err := l.nodes[0].Tree().Rmdir(t.Context(), vfs.RootIno, "d"); err != nil {
		t.Fatal(err)
	}
	b.write("/d/new", "2")
	l.nodes[1].sync()
	l.nodes[0].wire.mend()
	l.settle()
	a.want("/d/new", "2")
	if got := a.names("/d"); !slices.Equal(got, []string{"new"}) {
		t.Errorf("%v", got)
	}
}

func TestDeleteAgainstEditKeepsTheEdit(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.write("/f", "1")
	a.write("/g", "1")
	l.settle()
	l.nodes[0].wire.cut()
	a.remove("/f")
	a.write("/g", "edited here")
	b.write("/f", "edited there")
	b.remove("/g")
	l.nodes[1].sync()
	l.nodes[0].wire.mend()
	l.settle()
	a.want("/f", "edited there")
	b.want("/g", "edited here")
}

// A program that writes to a file without a pause does not keep a conflict in it from being settled, nor others from syncing.
func TestConflictInAFileThatIsWrittenAllTheTime(t *testing.T) {
	l := newLab(t, 2)
	n := l.nodes[0]
	a, b := on(t, n.Tree()), on(t, l.nodes[1].Tree())
	ino := a.write("/f", "base")
	for i := range 1000 { // among which the name of the file is looked for
		a.write(fmt.Sprint("/other", i), "x")
	}
	l.settle()
	n.wire.cut()
	b.write("/f", "theirs")
	l.nodes[1].sync()
	begun, stop := make(chan struct{}, 1), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := n.Tree().WriteAt(t.Context(), ino, fmt.Appendf(nil, "mine %d", i), 0, false); err != nil {
				t.Error(err)
				return
			}
			select {
			case begun <- struct{}{}:
			default:
			}
		}
	})
	<-begun
	n.wire.mend()
	for began := time.Now(); !slices.Contains(a.names("/"), "f.conflict-m0-1"); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Error("the conflict is not settled")
			break
		}
	}
	close(stop)
	group.Wait()
	l.settle()
}

// Two mirrors make a file of one name and only then write to it: what either writes is found.
func TestFilesThatAreEmptyYetAreNotOne(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.write("/old", "the numbers have come")
	l.settle()
	l.nodes[0].wire.cut()
	made, err := l.nodes[0].Tree().Create(t.Context(), vfs.RootIno, "db", vfs.NewNode{Mode: 0o644})
	if err != nil {
		t.Fatal(err)
	}
	l.nodes[0].Tree().Hold(made.Ino) // it stays open
	defer l.nodes[0].Tree().Release(made.Ino, 1)
	if _, err := l.nodes[1].Tree().Create(t.Context(), vfs.RootIno, "db", vfs.NewNode{Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	l.nodes[1].sync()
	l.nodes[0].wire.mend()
	l.settle()
	if err := l.nodes[0].Tree().WriteAt(t.Context(), made.Ino, []byte("of a"), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := l.nodes[0].Tree().Fsync(t.Context(), made.Ino); err != nil {
		t.Fatal(err)
	}
	b.write("/db", "of b")
	l.settle()
	found := make(map[string]bool)
	for _, name := range a.names("/") {
		found[a.read("/"+name)] = true
	}
	if !found["of a"] || !found["of b"] {
		t.Errorf("%v", found)
	}
}

func TestSymlinkedParentMisdirectsNothing(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.mkdir("/d")
	a.write("/d/f", "in d")
	a.mkdir("/other")
	a.write("/other/f", "in other")
	l.settle()
	l.nodes[1].wire.cut()
	b.rename("/d", "/moved")
	if _, err := l.nodes[1].Tree().Symlink(t.Context(), vfs.RootIno, "d", "other", vfs.NewNode{Mode: 0o777}); err != nil {
		t.Fatal(err)
	}
	a.remove("/d/f")
	l.nodes[0].sync()
	l.nodes[1].wire.mend()
	l.settle()
	b.want("/other/f", "in other")
	if got := b.names("/moved"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestOfflineForLongResurrectsNothing(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.write("/gone", "1")
	a.write("/stays", "1")
	l.settle()
	n := l.nodes[0]
	n.wire.cut()
	a.write("/mine", "written offline")
	b.remove("/gone")
	l.nodes[1].sync()
	if err := n.compareAll(); err != nil { // as when the window has passed its cursor
		t.Fatal(err)
	}
	n.wire.mend()
	l.settle()
	if got := b.names("/"); !slices.Equal(got, []string{"mine", "stays"}) {
		t.Errorf("%v", got)
	}
}

// A push that was under way when a comparison began is applied after its snapshot was taken: what it has made is not removed.
func TestPushDuringAComparison(t *testing.T) {
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprint("others write ", others), func(t *testing.T) { pushDuringAComparison(t, others) })
	}
}

func pushDuringAComparison(t *testing.T, others bool) {
	l := newLab(t, 1)
	n := l.nodes[0]
	on(t, n.Tree()).write("/old", "1")
	l.settle()
	entered, release := make(chan struct{}), make(chan struct{})
	var held, taken atomic.Bool
	n.spy.pushed = func(vfs.Push) {
		if held.CompareAndSwap(false, true) {
			close(entered)
			<-release
		}
	}
	made, err := n.Tree().Create(t.Context(), vfs.RootIno, "new", vfs.NewNode{Mode: 0o644})
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	n.spy.records = func(got []vfs.Record) (int, error) {
		if !taken.CompareAndSwap(false, true) {
			return len(got), nil
		}
		if others {
			on(t, l.ws).write("/old", "2")
			l.commit()
		}
		close(release)
		for answered := false; !answered && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
			if n.turn.take(n.ctx) == nil {
				answered = n.flying == nil
				n.turn.giveBack()
			}
		}
		return len(got), nil
	}
	if err := n.compareAll(); err != nil {
		t.Fatal(err)
	}
	if err := n.await(t.Context(), func() (bool, error) { return !n.resync, nil }); err != nil {
		t.Fatal(err)
	}
	l.settle()
	if ino := on(t, n.Tree()).ino("/new"); ino != made.Ino || n.stats.lives.Load() > 0 {
		t.Errorf("inode %d is %d, in another life: %d", made.Ino, ino, n.stats.lives.Load())
	}
}

func TestMirrorThatLostItsDiskMissesNothing(t *testing.T) {
	l := newLab(t, 2)
	a := on(t, l.nodes[0].Tree())
	a.write("/one", "1")
	l.settle()
	n := l.nodes[1]
	n.leave()
	n.config.Dir = filepath.Join(l.dir, "anew")
	a.write("/two", "2")
	n.start()
	l.settle()
	on(t, n.Tree()).want("/two", "2")
	on(t, n.Tree()).write("/three", "3")
	l.settle()
	a.want("/three", "3")
}

func TestAuthorityPutBackLosesNothing(t *testing.T) { authorityPutBack(t, 1) }

// Its epoch is the same, and when the second mirror comes it seems to have everything.
func TestAuthorityCopiedBackLosesNothing(t *testing.T) { authorityPutBack(t, 0) }

func authorityPutBack(t *testing.T, life byte) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.write("/old", "1")
	a.write("/both", "1")
	l.settle()
	l.shut()
	dir := filepath.Join(l.dir, "authority")
	run(t, "cp -a --sparse=always %s %s", dir, dir+"-backup")
	l.open()
	a.write("/new", "after the backup")
	a.write("/both", "after the backup")
	a.mkdir("/d")
	a.write("/d/f", "after the backup")
	a.fsync("/d/f")
	l.settle()
	l.shut()
	run(t, "rm -rf %s && mv %s %[1]s", dir, dir+"-backup")
	l.life += life
	l.nodes[1].wire.cut()
	l.open()
	l.nodes[0].awaitLife()
	l.nodes[0].sync()
	for i := range 5 {
		a.write("/later", fmt.Sprint(i))
		l.nodes[0].sync()
	}
	l.nodes[1].wire.mend()
	l.nodes[1].awaitLife()
	l.settle()
	for _, f := range []files{a, b, on(t, l.ws)} {
		f.want("/new", "after the backup")
		f.want("/d/f", "after the backup")
		found := false
		for _, name := range f.names("/") {
			found = found || strings.HasPrefix(name, "both") && f.read("/"+name) == "after the backup"
		}
		if !found {
			t.Error("the newer version of /both is gone")
		}
	}
}

// In the life after the backup numbers are given again, to inodes of other types: what had them on the mirror gets others, with all
// that is in it.
func TestAuthorityPutBackGivesNumbersAgain(t *testing.T) {
	for _, life := range []byte{0, 1} {
		t.Run(fmt.Sprint("life ", life), func(t *testing.T) { numbersGivenAgain(t, life) })
	}
}

func numbersGivenAgain(t *testing.T, life byte) {
	l := newLab(t, 1)
	n := l.nodes[0]
	b := on(t, n.Tree())
	on(t, l.ws).write("/old", "1")
	l.commit()
	l.settle()
	l.shut()
	dir := filepath.Join(l.dir, "authority")
	run(t, "cp -a --sparse=always %s %s", dir, dir+"-backup")
	l.open()
	a := on(t, l.ws)
	a.write("/f", "a file")
	a.mkdir("/d")
	a.write("/d/x", "in a directory")
	a.mkdir("/d/sub")
	l.commit()
	l.settle()
	file, dirs := b.ino("/f"), []vfs.Ino{b.ino("/d"), b.ino("/d/sub")}
	n.Tree().Hold(file) // as who has it open does
	n.Tree().Hold(dirs[0])
	n.wire.cut()
	b.write("/f", "a file that was edited")
	b.write("/d/sub/y", "made offline")
	l.shut()
	run(t, "rm -rf %s && mv %s %[1]s", dir, dir+"-backup")
	l.life += life
	l.open()
	a = on(t, l.ws)
	a.mkdir("/d")                    // has the number of a file
	a.write("/f", "of another life") // and this that of a directory
	a.write("/d/x", "of another life")
	a.write("/g", "of another life")
	l.commit()
	if now := []vfs.Ino{a.ino("/f"), a.ino("/g")}; a.ino("/d") != file || !slices.Equal(now, dirs) {
		t.Fatalf("numbers %d and %v, not %d and %v", a.ino("/d"), now, file, dirs)
	}
	n.wire.mend()
	n.awaitLife()
	l.settle()
	b.want("/f", "of another life")
	b.want("/d/x", "of another life")
	b.want("/g", "of another life")
	b.want("/f.conflict-m0-1", "a file that was edited")
	b.want("/d.conflict-m0-1/x", "in a directory")
	b.want("/d.conflict-m0-1/sub/y", "made offline")
	n.Tree().Release(file, 1)
	n.Tree().Release(dirs[0], 1)
	b.write("/d/z", "2")
	l.settle()
	report, err := n.store.Check(t.Context(), casstore.CheckOptions{Bytes: true})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%+v, %v", report.Problems, err)
	}
}

// Of a file that nobody has read here the bytes are gone with the store that had them. It is not brought back, and does not hold up
// what can be.
func TestBytesThatAreNowhereHoldNothingUp(t *testing.T) {
	l := newLab(t, 2)
	n := l.nodes[1]
	a, b := on(t, l.nodes[0].Tree()), on(t, n.Tree())
	a.write("/old", "1")
	b.mkdir("/d")
	l.settle()
	l.shut()
	dir := filepath.Join(l.dir, "authority")
	run(t, "cp -a --sparse=always %s %s", dir, dir+"-backup")
	l.open()
	a.write("/large", text(9, 1<<20))
	a.write("/small", "after the backup")
	a.fsync("/large")
	n.sync()
	if got := b.names("/"); !slices.Equal(got, []string{"d", "large", "old", "small"}) {
		t.Errorf("%v", got)
	}
	l.nodes[0].leave()
	l.nodes = l.nodes[1:]
	l.shut()
	run(t, "rm -rf %s && mv %s %[1]s", dir, dir+"-backup")
	l.life++
	l.open()
	n.awaitLife()
	b.write("/later", "2")
	l.settle()
	b.want("/small", "after the backup")
	if got := b.names("/"); !slices.Equal(got, []string{"d", "later", "old", "small"}) {
		t.Errorf("%v", got)
	}
}

// A file was edited here while most of its bytes were not, and they are gone with the store that had them. What is left of it is a
// conflicting copy, and all else is pushed.
func TestEditOfBytesThatAreNowhere(t *testing.T) {
	l := newLab(t, 2)
	n := l.nodes[1]
	a, b := on(t, l.nodes[0].Tree()), on(t, n.Tree())
	a.write("/old", "1")
	l.settle()
	l.shut()
	dir := filepath.Join(l.dir, "authority")
	run(t, "cp -a --sparse=always %s %s", dir, dir+"-backup")
	l.open()
	large := text(9, 1<<20)
	a.write("/large", large)
	a.fsync("/large")
	n.sync()
	ino := b.ino("/large")
	if _, err := n.Tree().ReadAt(t.Context(), ino, make([]byte, 10), 0); err != nil {
		t.Fatal(err)
	}
	n.wire.cut()
	if err := n.Tree().WriteAt(t.Context(), ino, []byte("edited"), 0, false); err != nil {
		t.Fatal(err)
	}
	b.write("/small", "made offline")
	l.nodes[0].leave()
	l.nodes = l.nodes[1:]
	l.shut()
	run(t, "rm -rf %s && mv %s %[1]s", dir, dir+"-backup")
	l.life++
	l.open()
	n.wire.mend()
	n.awaitLife()
	l.settle()
	b.write("/later", "2")
	l.settle()
	b.want("/small", "made offline")
	if got := b.names("/"); !slices.Equal(got, []string{"large.conflict-m1-1", "later", "old", "small"}) {
		t.Errorf("%v", got)
	}
	left := b.read("/large.conflict-m1-1")
	if whole := "edited" + large[6:]; len(left) != len(whole) || left[:1000] != whole[:1000] || strings.Trim(left[len(left)-1000:], "\x00") != "" {
		t.Errorf("%d bytes, %.20q...%q", len(left), left, left[len(left)-20:])
	}
	list, err := n.Conflicts()
	if err != nil || len(list) != 1 || list[0].Kind != reconcile.ConflictLost {
		t.Errorf("%+v, %v", list, err)
	}
}

// Numbers that were leased after the backup are not the mirror's in the new life, though nothing else is different: what was made
// with them offline gets others, and is pushed.
func TestAuthorityPutBackForgetsLeases(t *testing.T) {
	for _, life := range []byte{0, 1} {
		t.Run(fmt.Sprint("life ", life), func(t *testing.T) { authorityForgetsLeases(t, life) })
	}
}

func authorityForgetsLeases(t *testing.T, life byte) {
	l := newLab(t, 0)
	on(t, l.ws).write("/old", "1")
	l.commit()
	if _, err := l.ws.Authority().Position(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.shut()
	dir := filepath.Join(l.dir, "authority")
	run(t, "cp -a --sparse=always %s %s", dir, dir+"-backup")
	l.open()
	n := l.join()
	n.sync()
	for n.replica.Numbers() == 0 {
		time.Sleep(time.Millisecond)
	}
	n.wire.cut()
	a := on(t, n.Tree())
	a.write("/gone", "its number is not used again")
	a.mkdir("/d")
	a.write("/d/f", "made offline")
	a.write("/mine", "made offline")
	a.remove("/gone")
	l.shut()
	run(t, "rm -rf %s && mv %s %[1]s", dir, dir+"-backup")
	l.life += life
	l.open()
	n.wire.mend()
	l.settle()
	for _, f := range []files{a, on(t, l.ws)} {
		f.want("/d/f", "made offline")
		f.want("/mine", "made offline")
		if got := f.names("/"); !slices.Equal(got, []string{"d", "mine", "old"}) {
			t.Errorf("%v", got)
		}
	}
}

// awaitLife waits until a mirror has seen that its authority was put back.
func (n *node) awaitLife() {
	for n.stats.lives.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
}

func run(t *testing.T, format string, args ...any) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", fmt.Sprintf(format, args...)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestWrongRecordIsFoundAndRepaired(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	ino := b.write("/f", "right")
	for i := range 50 {
		b.write(fmt.Sprint("/", i), "x")
	}
	l.settle()
	n := l.nodes[0]
	key := reconcile.InodeKey(ino)
	v, err := n.replica.Versions([]vfs.Key{key})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := reconcile.InodeOf(v[0].Mine)
	if err != nil {
		t.Fatal(err)
	}
	rec.Mode = 0o111
	wrong := vfs.Record{Key: key, Value: rec.Append(nil)}
	if err := n.replica.Settle(t.Context(), []vfs.Record{wrong}); err != nil {
		t.Fatal(err)
	}
	n.awaitRight(func(i int) { b.write("/g", fmt.Sprint("something new ", i)) })
	a.want("/f", "right")
}

// awaitRight waits until a mismatch of digests has been found and there is none, while others go on writing.
func (n *node) awaitRight(write func(i int)) {
	t := n.lab.t
	t.Helper()
	right := func() bool {
		st, err := n.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		sums, err := n.replica.Theirs(context.Background(), []vfs.InoRange{vfs.AllInos})
		if err != nil {
			t.Fatal(err)
		}
		p, _ := n.position()
		return st.Mismatches > 0 && sums[0] == p.Digest
	}
	for i := 0; !right(); i++ {
		if i == 100 {
			t.Fatal("it is still wrong")
		}
		if err := n.turn.take(n.ctx); err != nil {
			t.Fatal(err)
		}
		n.digest.next = time.Time{} // on a slow machine not each update is compared
		n.turn.giveBack()
		write(i)
		for _, n := range n.lab.nodes {
			n.sync()
		}
	}
}

// A wrong count cannot be set right by what is counted on from it.
func TestWrongCountIsRepaired(t *testing.T) {
	l := newLab(t, 2)
	b := on(t, l.nodes[1].Tree())
	ino := b.write("/f", "right")
	l.settle()
	n := l.nodes[0]
	n.leave()
	n.start() // with nothing of it in memory
	b.write("/g", "something new")
	l.nodes[1].sync()
	n.sync() // its feed goes on from where it was, which is looked at by itself
	v, err := n.replica.Versions([]vfs.Key{reconcile.InodeKey(ino)})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := reconcile.InodeOf(v[0].Mine)
	if err != nil {
		t.Fatal(err)
	}
	rec.Nlink = 2
	wrong := vfs.Record{Key: reconcile.InodeKey(ino), Value: rec.Append(nil)}
	if _, err := n.replica.Apply(t.Context(), casstore.Incoming{Raw: []vfs.Record{wrong}}); err != nil {
		t.Fatal(err)
	}
	n.awaitRight(func(i int) { b.write("/g", fmt.Sprint("something new ", i)) })
	on(t, n.Tree()).want("/f", "right")
}

func TestReadOnlyRejectsWrites(t *testing.T) {
	l := newLab(t, 1)
	on(t, l.nodes[0].Tree()).write("/f", "1")
	l.settle()
	n := l.join(func(c *Config) { c.ReadOnly = true })
	n.sync()
	on(t, n.Tree()).want("/f", "1")
	ino := on(t, n.Tree()).ino("/f")
	_, create := n.Tree().Create(t.Context(), vfs.RootIno, "x", vfs.NewNode{})
	for _, err := range []error{
		create, n.Tree().WriteAt(t.Context(), ino, []byte("x"), 0, false), n.Tree().Unlink(t.Context(), vfs.RootIno, "f"),
		n.Tree().Rename(t.Context(), vfs.RootIno, "f", vfs.RootIno, "g", 0),
	} {
		if !errors.Is(err, vfs.ErrReadOnly) {
			t.Errorf("%v", err)
		}
	}
}

func TestLargeFileInASmallCacheIsFetchedOnce(t *testing.T) {
	l := newLab(t, 0)
	large := text(6, 12<<20)
	on(t, l.ws).write("/large", large)
	if err := l.ws.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := l.join(func(c *Config) { c.CacheBytes = 4 << 20 })
	on(t, n.Tree()).want("/large", large)
	st, err := n.Status(t.Context())
	if err != nil || st.FetchedB > uint64(len(large))*5/4 {
		t.Errorf("%d bytes fetched of %d, %v", st.FetchedB, len(large), err)
	}
}

func TestLookupsDoNotWaitForTheSnapshot(t *testing.T) {
	l := newLab(t, 0)
	w := on(t, l.ws)
	w.mkdir("/d")
	w.write("/d/f", "here")
	if err := l.ws.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := &node{lab: l, wire: &wire{path: filepath.Join(l.dir, "sync.sock")}}
	n.config = Config{Dir: filepath.Join(l.dir, "lazy"), Name: "lazy", Log: testLog()}
	l.nodes = append(l.nodes, n)
	release := make(chan struct{})
	n.spy.follow = func(ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n.start()
	a := on(t, n.Tree())
	a.want("/d/f", "here")
	a.write("/d/f", "changed here")
	a.write("/d/new", "made here")
	a.fsync("/d/new")
	w.want("/d/f", "changed here")
	w.write("/d/f", "changed there")
	close(release)
	if err := n.AwaitWhole(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.write("/d/more", "made there")
	l.settle()
	a.want("/d/f", "changed there")
	a.want("/d/more", "made there")
	a.want("/d/new", "made here")
}

// Whoever reads while others write sees one version or another, whole: never a new size with old bytes.
func TestSizeAndBytesAreSeenTogether(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	version := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), 1+(i*7919)%9000) }
	a.write("/g", version(0))
	l.settle()
	ino := b.ino("/g")
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			p := make([]byte, 10_000)
			n, err := l.nodes[1].Tree().ReadAt(context.Background(), ino, p, 0)
			if s := string(p[:n]); err != nil || n > 0 && strings.Trim(s, s[:1]) != "" {
				t.Errorf("%d bytes, %.20q…, %v", n, s, err)
				return
			}
		}
	})
	for i := range 60 {
		a.write("/f.new", version(i))
		a.rename("/f.new", "/f")
		a.write("/g", version(i))
		if i%6 == 0 {
			l.nodes[0].sync()
			l.nodes[1].sync()
			b.want("/f", version(i))
			b.want("/g", version(i))
		}
	}
	close(stop)
	group.Wait()
	l.settle()
}
