package casstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// openView opens a view that is closed when the test ends.
func openView(t *testing.T, s *Store, workspace, when string) *View {
	t.Helper()
	v, err := s.OpenView(bg, workspace, when)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func makeFile(t testing.TB, w vfs.Tree, name, content string) vfs.Ino {
	t.Helper()
	a, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
	if err == nil {
		err = w.WriteAt(bg, a.Ino, []byte(content), 0, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.Ino
}

// contentOf is what a file of the root directory holds, or the error.
func contentOf(w vfs.Tree, name string) string {
	a, err := w.Lookup(bg, vfs.RootIno, name)
	if err != nil {
		return errors.Unwrap(err).Error()
	}
	b := make([]byte, a.Size)
	if _, err := w.ReadAt(bg, a.Ino, b, 0); err != nil {
		return err.Error()
	}
	return string(b)
}

func commitTree(t *testing.T, w *Workspace) vfs.Rev {
	t.Helper()
	rev, err := w.Commit(bg)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func takeSnapshot(t testing.TB, s *Store, workspace, name string) Snapshot {
	t.Helper()
	sn, err := s.CreateSnapshot(bg, workspace, name, "")
	if err != nil {
		t.Fatal(err)
	}
	return sn
}

func TestViewConforms(t *testing.T) {
	vfstest.RunReadOnly(t, func(t *testing.T, fill func(vfs.Tree)) vfs.Tree {
		s := openStore(t, t.TempDir(), Options{})
		w := openWorkspace(t, s, "ws")
		fill(w)
		takeSnapshot(t, s, "ws", "then")
		return openView(t, s, "ws", "then")
	})
}

// bulk is content that makes chunks, and does not compress.
func bulk(seed byte) string {
	b := make([]byte, 600_000)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{packSize: 1 << 20})
	w := openWorkspace(t, s, "ws")
	ino := makeFile(t, w, "large", bulk(1))
	makeFile(t, w, "small", "one")
	takeSnapshot(t, s, "ws", "first")
	if err := w.WriteAt(bg, ino, []byte(bulk(2)), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Unlink(bg, vfs.RootIno, "small"); err != nil {
		t.Fatal(err)
	}
	takeSnapshot(t, s, "ws", "second")
	if err := w.Unlink(bg, vfs.RootIno, "large"); err != nil {
		t.Fatal(err)
	}
	for range 3 * discardEvery { // Badger is told what it may drop, and what it may not
		makeFile(t, w, "other", "")
		commitTree(t, w)
		if err := w.Unlink(bg, vfs.RootIno, "other"); err != nil {
			t.Fatal(err)
		}
		commitTree(t, w)
	}
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	if err := s.compactNow(bg); err != nil {
		t.Fatal(err)
	}
	look := func(s *Store) {
		first, second := openView(t, s, "ws", "first"), openView(t, s, "ws", "second")
		if got := contentOf(first, "large"); got != bulk(1) {
			t.Error("first: large has other bytes")
		}
		if got := contentOf(first, "small"); got != "one" {
			t.Errorf("first: small is %q", got)
		}
		if got := contentOf(second, "large"); got != bulk(2) {
			t.Error("second: large has other bytes")
		}
		if got := contentOf(second, "small"); got != vfs.ErrNotExist.Error() {
			t.Errorf("second: small is %q", got)
		}
		for _, v := range []*View{first, second} {
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	look(s)
	if err := errors.Join(w.Close(), s.RemoveSnapshot(bg, "ws", "second")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenView(bg, "ws", "second"); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("a snapshot that was removed: %v", err)
	}
	before, err := s.GC(bg)
	if err != nil || before.Removed == 0 {
		t.Errorf("collected %+v, %v: the chunks of the second snapshot are still there", before, err)
	}
	if got := contentOf(openView(t, s, "ws", "first"), "large"); got != bulk(1) {
		t.Error("first: large has other bytes after the second is gone")
	}
}

// TestSnapshotReopened looks at a snapshot in a store that was closed meanwhile, twice collected and compacted.
func TestSnapshotReopened(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true, packSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "large", bulk(1))
	takeSnapshot(t, s, "ws", "then")
	if err := errors.Join(w.Unlink(bg, vfs.RootIno, "large"), w.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{packSize: 1 << 20})
	w = openWorkspace(t, s, "ws")
	for range discardEvery {
		makeFile(t, w, "other", "")
		if err := w.Unlink(bg, vfs.RootIno, "other"); err != nil {
			t.Fatal(err)
		}
		makeFile(t, w, "other", "")
		commitTree(t, w)
		if err := w.Unlink(bg, vfs.RootIno, "other"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	s.space.recordsWritten.Store(1 << 30)
	if err := s.compactNow(bg); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(openView(t, s, "ws", "then"), "large"); got != bulk(1) {
		t.Errorf("large has %d other bytes", len(got))
	}
}

func TestHistory(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := openStore(t, t.TempDir(), Options{ // it commits when it is told to
		packSize: 1 << 20, CommitEvery: time.Hour, Clock: func() time.Time { return now },
	})
	w := openWorkspace(t, s, "ws")
	if err := s.KeepHistory(bg, time.Hour); err != nil {
		t.Fatal(err)
	}
	ino := makeFile(t, w, "file", bulk(0))
	revs := []vfs.Rev{commitTree(t, w)}
	for i := range byte(4) {
		now = now.Add(10 * time.Minute)
		if err := w.WriteAt(bg, ino, []byte(bulk(i+1)), 0, false); err != nil {
			t.Fatal(err)
		}
		revs = append(revs, commitTree(t, w))
	}
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	for i, rev := range revs {
		if got := contentOf(openView(t, s, "ws", fmt.Sprint(rev)), "file"); got != bulk(byte(i)) {
			t.Errorf("revision %d has other bytes", rev)
		}
	}
	if got := contentOf(openView(t, s, "ws", "25m"), "file"); got != bulk(1) {
		t.Error("25 minutes ago it had other bytes")
	}
	if _, err := s.OpenView(bg, "ws", "2h"); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("before the workspace was made: %v", err)
	}
	if _, err := s.OpenView(bg, "ws", fmt.Sprint(revs[4]+1000)); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("a revision to come: %v", err)
	}
	var log []string
	err := s.Log(bg, "ws", func(e LogEntry) bool {
		log = append(log, fmt.Sprint(e.Rev, e.Kind, e.Records, e.Readable))
		return len(log) < 2
	})
	if want := fmt.Sprintf("%d sync 1 true|%d sync 1 true", revs[4], revs[3]); err != nil || strings.Join(log, "|") != want {
		t.Errorf("log: %q, %v, want %q", log, err, want)
	}
}

// TestHistoryEnds lets time pass, and looks that what has passed is no longer kept.
func TestHistoryEnds(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := openStore(t, t.TempDir(), Options{
		packSize: 1 << 20, CommitEvery: time.Hour, Clock: func() time.Time { return now },
	})
	w := openWorkspace(t, s, "ws")
	if err := s.KeepHistory(bg, time.Hour); err != nil {
		t.Fatal(err)
	}
	makeFile(t, w, "file", bulk(0))
	old := commitTree(t, w)
	if err := w.Unlink(bg, vfs.RootIno, "file"); err != nil {
		t.Fatal(err)
	}
	for range 3 * discardEvery {
		now = now.Add(time.Minute)
		makeFile(t, w, "other", "")
		commitTree(t, w)
		if err := w.Unlink(bg, vfs.RootIno, "other"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.OpenView(bg, "ws", fmt.Sprint(old)); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("three hours ago: %v", err)
	}
	if report, err := s.GC(bg); err != nil || report.Removed == 0 {
		t.Errorf("collected %+v, %v: the chunks of what has passed are still there", report, err)
	}
	openView(t, s, "ws", "10m")
	// The history ends when it is to, and not before, also when nothing is committed any more.
	last := commitTree(t, w)
	now = now.Add(time.Minute)
	makeFile(t, w, "more", "")
	commitTree(t, w)
	for _, x := range []struct {
		wait time.Duration
		want error
	}{{59 * time.Minute, nil}, {2 * time.Minute, vfs.ErrNoRevision}} {
		now = now.Add(x.wait)
		if _, err := s.GC(bg); err != nil {
			t.Fatal(err)
		}
		v, err := s.OpenView(bg, "ws", fmt.Sprint(last))
		if !errors.Is(err, x.want) {
			t.Errorf("after %v: %v, want %v", x.wait, err, x.want)
		}
		if err != nil {
			continue
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWindowChoose looks where a window begins.
func TestWindowChoose(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds windowBounds
		want   vfs.Rev // it begins with, when it may be shorter
	}{
		{"nothing bounds it", windowBounds{revisions: 1000, age: 1000, bytes: 1000}, 0},
		{"its age, and what was there then", windowBounds{revisions: 1000, age: 25, bytes: 1000}, 30},
		{"its age, to the moment", windowBounds{revisions: 1000, age: 20, bytes: 1000}, 30},
		{"its age alone, which is less than that of the last mark", windowBounds{revisions: 1000, age: 1, bytes: 1000}, 50},
		{"its age, of which little more has passed", windowBounds{revisions: 1000, age: 25, bytes: 1000, slack: 26}, 0},
		{"its age, of which enough has passed", windowBounds{revisions: 1000, age: 25, bytes: 1000, slack: 25}, 30},
		{"its revisions", windowBounds{revisions: 25, age: 1000, bytes: 1000}, 40},
		{"its bytes", windowBounds{revisions: 1000, age: 1000, bytes: 5}, 50},
		{"and the last stays", windowBounds{}, 50},
	} {
		w := window{bounds: c.bounds, written: 50}
		for i := range vfs.Rev(5) {
			w.marks = append(w.marks, windowMark{rev: 10 * (i + 1), time: vfs.Time(10 * (i + 1)), written: uint64(10 * (i + 1))})
		}
		if got := w.choose(60, 60, c.bounds.bytes); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestHistoryGivesWay fills a disk with what is only history.
func TestHistoryGivesWay(t *testing.T) {
	s := openStore(t, smallDiskDir(t, 192<<20), Options{packSize: 1 << 20, reserve: 32 << 20})
	w := openWorkspace(t, s, "ws")
	if err := s.KeepHistory(bg, time.Hour); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat(bulk(3), 20)
	for i := range byte(20) {
		name := fmt.Sprint("file", i)
		makeFile(t, w, name, bulk(i)+big[int(i)*1000:])
		commitTree(t, w)
		if err := w.Unlink(bg, vfs.RootIno, name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnapshotNames(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	openWorkspace(t, s, "ws")
	for name, want := range map[string]error{
		"ok": nil, "v1.2": nil, "17": vfs.ErrInvalid, "2h": vfs.ErrInvalid, "3d": vfs.ErrInvalid, "a@b": vfs.ErrInvalid,
		"a:b": vfs.ErrInvalid, "": vfs.ErrInvalid, "/": vfs.ErrInvalid, "before-the-2h": nil,
	} {
		if _, err := s.CreateSnapshot(bg, "ws", name, "why"); !errors.Is(err, want) {
			t.Errorf("snapshot %q: %v, want %v", name, err, want)
		}
	}
	if _, err := s.CreateSnapshot(bg, "ws", "ok", ""); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("the same name: %v", err)
	}
	if _, err := s.CreateSnapshot(bg, "none", "ok", ""); !isNoWorkspace(err) {
		t.Errorf("of no workspace: %v", err)
	}
	list, err := s.Snapshots(bg, "ws")
	if err != nil || len(list) != 3 || list[0].Message != "why" || list[0].Rev != list[2].Rev {
		t.Errorf("snapshots %+v, %v", list, err)
	}
}

func TestRestore(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	d := &diffCase{t, openWorkspace(t, s, "ws")}
	d.mkdir("/dir")
	d.mkdir("/dir/sub")
	d.file("/dir/sub/a", bulk(1))
	d.file("/b", "b")
	d.link("/b", "/dir/b")
	d.xattr("/b", "user.x", "y")
	takeSnapshot(t, s, "ws", "then")
	want := viewOf(t, d.w)
	held := d.find("/b") // a program has it open
	d.w.Hold(held)
	defer d.w.Release(held, 1)
	d.unlink("/b")
	d.unlink("/dir/b")
	d.rename("/dir/sub", "/moved")
	d.write("/moved/a", bulk(2))
	d.file("/new", "new")
	d.set("/dir", vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o700})
	after := takeSnapshot(t, s, "ws", "after")
	changed := viewOf(t, d.w)
	d.write("/new", "newer, and never committed")
	for range 2 { // once more changes nothing
		if err := s.Restore(bg, "ws", "then", ""); err != nil {
			t.Fatal(err)
		}
		if diff := vfstest.DiffTimes(want, viewOf(t, d.w)); diff != "" {
			t.Fatalf("restored, it differs:\n%s", diff)
		}
	}
	d.w.forgetAll()
	if diff := vfstest.DiffTimes(want, viewOf(t, d.w)); diff != "" {
		t.Fatalf("restored and read anew, it differs:\n%s", diff)
	}
	if list := diffOf(t, s, "ws@then", "ws"); len(list) > 0 {
		t.Errorf("diff: %s", diffText(list))
	}
	if err := s.Restore(bg, "ws", fmt.Sprint(after.Rev), ""); err != nil {
		t.Fatal(err)
	}
	if diff := vfstest.DiffTimes(changed, viewOf(t, d.w)); diff != "" {
		t.Fatalf("and back, it differs:\n%s", diff)
	}
	if err := s.Restore(bg, "ws", "none", ""); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("to no revision: %v", err)
	}
	if err := s.Log(bg, "ws", func(e LogEntry) bool {
		if e.Kind != RevisionRestore {
			t.Errorf("the newest revision is %v", e.Kind)
		}
		return false
	}); err != nil {
		t.Error(err)
	}
}

// TestRestoreFork restores a fork to what it began with.
func TestRestoreFork(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "file", "one")
	f := openFork(t, s, "ws", "", "fork")
	takeSnapshot(t, s, "fork", "began")
	want := viewOf(t, f)
	if err := f.Unlink(bg, vfs.RootIno, "file"); err != nil {
		t.Fatal(err)
	}
	makeFile(t, f, "other", "two")
	if err := s.Restore(bg, "fork", "began", ""); err != nil {
		t.Fatal(err)
	}
	f.forgetAll()
	if diff := vfstest.DiffTimes(want, viewOf(t, f)); diff != "" {
		t.Fatalf("restored, it differs:\n%s", diff)
	}
}
