package casstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// backUp returns a backup of a store.
func backUp(t testing.TB, s *Store, o BackupOptions) ([]byte, BackupReport) {
	t.Helper()
	var b bytes.Buffer
	r, err := s.Backup(bg, o, &b)
	if err != nil {
		t.Fatal(err)
	}
	if r.Bytes != uint64(b.Len()) {
		t.Errorf("%d bytes in the report, %d written", r.Bytes, b.Len())
	}
	return b.Bytes(), r
}

func load(t *testing.T, s *Store, stream []byte, o LoadOptions) LoadReport {
	t.Helper()
	r, err := s.Load(bg, o, bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// everything is what a store shows: each workspace and each snapshot.
func everything(t *testing.T, s *Store) map[string]map[string]vfstest.Node {
	t.Helper()
	list, err := s.Workspaces(bg)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]map[string]vfstest.Node)
	for _, in := range list {
		w := openWorkspace(t, s, in.Name)
		all[in.Name] = viewOf(t, w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		snapshots, err := s.Snapshots(bg, in.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sn := range snapshots {
			v, err := s.OpenView(bg, in.Name, sn.Name)
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s@%s %d %q", in.Name, sn.Name, sn.Created, sn.Message)] = viewOf(t, v)
			_ = v.Close()
		}
	}
	return all
}

func compareAll(t *testing.T, want, got map[string]map[string]vfstest.Node) {
	t.Helper()
	for name := range want {
		if got[name] == nil {
			t.Errorf("%s is missing", name)
		} else if d := vfstest.DiffTimes(want[name], got[name]); d != "" {
			t.Errorf("%s differs:\n%.1000s", name, d)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d trees, want %d", len(got), len(want))
	}
}

// richStore fills a store with every kind of body, snapshots, and forks that have changed and have not.
func richStore(t *testing.T, s *Store) {
	t.Helper()
	w := openWorkspace(t, s, "ws")
	for i := range 12 {
		makeFile(t, w, fmt.Sprintf("f%d", i), bulk(9)[:i*i*600])
		if _, err := w.Mkdir(bg, vfs.RootIno, fmt.Sprintf("d%d", i), vfs.NewNode{Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Symlink(bg, vfs.RootIno, "link", "f1", vfs.NewNode{Mode: 0o777}); err != nil {
		t.Fatal(err)
	}
	large := makeFile(t, w, "large", bulk(1))
	if _, err := s.CreateSnapshot(bg, "ws", "before", "all there\nis"); err != nil {
		t.Fatal(err)
	}
	_, linkErr := w.Link(bg, large, vfs.RootIno, "second name")
	err := errors.Join(linkErr, w.WriteAt(bg, large, []byte("x"), 5, false), w.Unlink(bg, vfs.RootIno, "f4"),
		w.RemoveXattr(bg, large-1, "user.none"))
	if !errors.Is(err, vfs.ErrNoXattr) && err != nil {
		t.Fatal(err)
	}
	takeSnapshot(t, s, "ws", "after")
	f := openFork(t, s, "ws", "before", "fork")
	if err := errors.Join(f.Unlink(bg, vfs.RootIno, "f1"), f.Rename(bg, vfs.RootIno, "d1", vfs.RootIno, "moved", 0)); err != nil {
		t.Fatal(err)
	}
	takeSnapshot(t, s, "fork", "mine")
	makeFile(t, f, "only here", bulk(2))
	second := openFork(t, s, "fork", "", "second")
	makeFile(t, second, "f1", "again, with another number")
	openFork(t, s, "second", "", "same")
	makeFile(t, w, "last", "of all")
}

func TestBackupRoundTrip(t *testing.T) {
	from := openStore(t, t.TempDir(), Options{packSize: 4 << 20})
	richStore(t, from)
	w := openWorkspace(t, from, "ws")
	makeFile(t, w, "with a manifest in chunks", strings.Repeat(bulk(4), 9))
	stream, r := backUp(t, from, BackupOptions{})
	if r.Workspaces != 4 || r.States != 9 {
		t.Errorf("%+v", r)
	}
	to := openStore(t, t.TempDir(), Options{})
	got := load(t, to, stream, LoadOptions{})
	if got.Workspaces != r.Workspaces || got.States != r.States || got.Records != r.Records || got.Chunks != r.Chunks {
		t.Errorf("loaded %+v of %+v", got, r)
	}
	want := everything(t, from)
	compareAll(t, want, everything(t, to))
	if in, err := to.Info(bg, "second"); err != nil || in.Origin == 0 {
		t.Errorf("a fork is none any more: %+v, %v", in, err)
	}
	// What has been loaded is like any workspace.
	if _, err := to.GC(bg); err != nil {
		t.Fatal(err)
	}
	again, _ := backUp(t, to, BackupOptions{})
	third := openStore(t, t.TempDir(), Options{})
	load(t, third, again, LoadOptions{})
	compareAll(t, want, everything(t, third))
	w = openWorkspace(t, to, "same")
	makeFile(t, w, "new", "x")
	commitTree(t, w)
}

func TestBackupOfSome(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	richStore(t, s)
	stream, r := backUp(t, s, BackupOptions{Workspaces: []string{"second"}})
	if r.Workspaces != 1 || r.States != 1 {
		t.Errorf("%+v", r)
	}
	// Beside what it was made of, under another name.
	if _, err := s.Load(bg, LoadOptions{}, bytes.NewReader(stream)); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("load where it is: %v", err)
	}
	load(t, s, stream, LoadOptions{As: "copy"})
	all := everything(t, s)
	if d := vfstest.DiffTimes(all["second"], all["copy"]); d != "" {
		t.Errorf("it differs:\n%.1000s", d)
	}
	if err := s.RemoveWorkspace(bg, "copy"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backup(bg, BackupOptions{Workspaces: []string{"none"}}, io.Discard); !errors.Is(err, vfs.ErrNoWorkspace) {
		t.Errorf("backup of none: %v", err)
	}
}

func TestBackupSince(t *testing.T) {
	from := openStore(t, t.TempDir(), Options{DefaultHistory: time.Hour})
	richStore(t, from)
	to := openStore(t, t.TempDir(), Options{})
	first, r := backUp(t, from, BackupOptions{})
	load(t, to, first, LoadOptions{})
	r0 := r.Records
	for round := range 2 {
		w := openWorkspace(t, from, "ws")
		f := openWorkspace(t, from, "fork")
		a, err := w.Lookup(bg, vfs.RootIno, "large")
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(w.Unlink(bg, vfs.RootIno, fmt.Sprintf("f%d", round)), w.WriteAt(bg, a.Ino, []byte(bulk(byte(round))), 9e6, false),
			f.Rename(bg, vfs.RootIno, fmt.Sprintf("d%d", round+5), vfs.RootIno, fmt.Sprintf("x%d", round), 0))
		if err != nil {
			t.Fatal(err)
		}
		makeFile(t, f, fmt.Sprintf("n%d", round), bulk(byte(10+round)))
		openFork(t, from, "ws", "", fmt.Sprintf("new%d", round))
		stream, next := backUp(t, from, BackupOptions{Since: strconv.FormatUint(uint64(r.Rev), 10)})
		if next.Records >= r0 || next.Workspaces != uint64(5+round) {
			t.Errorf("changes: %+v", next)
		}
		openedFork := openWorkspace(t, to, "fork")
		if _, err := to.Load(bg, LoadOptions{}, bytes.NewReader(stream)); !errors.Is(err, vfs.ErrWorkspaceBusy) {
			t.Errorf("load into a workspace that is open: %v", err)
		}
		if err := openedFork.Close(); err != nil {
			t.Fatal(err)
		}
		load(t, to, stream, LoadOptions{})
		compareAll(t, everything(t, from), everything(t, to))
		if _, err := to.Load(bg, LoadOptions{}, bytes.NewReader(stream)); !errors.Is(err, vfs.ErrNoRevision) {
			t.Errorf("load again: %v", err)
		}
		r = next
	}
	if _, err := from.Backup(bg, BackupOptions{Since: "1"}, io.Discard); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("since what is not kept: %v", err)
	}
}

// smallStream is a backup of a few records and chunks, with where its frames end.
func smallStream(t testing.TB) (stream []byte, ends []int) {
	t.Helper()
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	a := makeFile(t, w, "file", bulk(1)[:200_000])
	if err := w.SetXattr(bg, a, "user.a", []byte("b"), 0); err != nil {
		t.Fatal(err)
	}
	takeSnapshot(t, s, "ws", "then")
	makeFile(t, w, "small", "in line")
	f := openFork(t, s, "ws", "", "fork")
	if err := f.Unlink(bg, vfs.RootIno, "file"); err != nil {
		t.Fatal(err)
	}
	for name, tree := range map[string]*Workspace{"ws": w, "fork": f} { // a conflict, when they are merged
		a, err := tree.Lookup(bg, vfs.RootIno, "small")
		if err == nil {
			err = tree.WriteAt(bg, a.Ino, []byte(name), 0, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if report, err := s.Merge(bg, "fork", "ws", false); err != nil || len(report.Conflicts) != 1 {
		t.Fatal(report, err)
	}
	stream, _ = backUp(t, s, BackupOptions{})
	for at := len(backupMagic) + 1; at < len(stream); {
		n, size := binary.Uvarint(stream[at+1:])
		at += 1 + size + int(n)
		ends = append(ends, at)
	}
	return stream, ends
}

// TestLoadDamaged loads streams that are damaged: each is refused, and the store is as it was.
func TestLoadDamaged(t *testing.T) {
	stream, ends := smallStream(t)
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "mine")
	makeFile(t, w, "file", bulk(3)[:100_000])
	want := viewOf(t, w)
	keys := func() (n int) {
		r := s.reader()
		defer r.Close()
		for _, kind := range []byte{keyWorkspace, keyInode, keyDirent, keyXattr, keyFork, keySnapshot, keyLoad, keyNote, keyMerge} {
			if err := r.scan([]byte{kind}, nil, false, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	commitTree(t, w)
	before := keys()
	refuse := func(what string, damaged []byte) {
		t.Helper()
		_, err := s.Load(bg, LoadOptions{}, bytes.NewReader(damaged))
		if !errors.Is(err, vfs.ErrCorrupt) && !errors.Is(err, vfs.ErrNewerFormat) {
			t.Fatalf("%s: load: %v", what, err)
		}
		if n := keys(); n != before || len(s.reading.pins) > 0 {
			t.Fatalf("%s: %d keys instead of %d, pinned %v, after %v", what, n, before, s.reading.pins, err)
		}
	}
	for i, end := range ends {
		start := len(backupMagic) + 1
		if i > 0 {
			start = ends[i-1]
		}
		for _, at := range []int{start, start + 1, (start + end) / 2, end - 1} {
			if at < len(stream) {
				refuse(fmt.Sprintf("cut at %d", at), stream[:at])
			}
			flipped := bytes.Clone(stream)
			flipped[min(at, len(stream)-1)] ^= 1 << (i % 8)
			refuse(fmt.Sprintf("bit %d of byte %d", i%8, at), flipped)
		}
		// A frame that is missing, or twice.
		refuse(fmt.Sprintf("without %d to %d", start, end), append(bytes.Clone(stream[:start]), stream[end:]...))
		refuse(fmt.Sprintf("%d to %d twice", start, end), append(bytes.Clone(stream[:end]), stream[start:]...))
	}
	refuse("nothing", nil)
	refuse("more behind it", append(bytes.Clone(stream), 0))
	if d := vfstest.DiffTimes(want, viewOf(t, w)); d != "" {
		t.Errorf("a workspace has changed:\n%.1000s", d)
	}
	load(t, s, stream, LoadOptions{})
}

// TestLoadCrash ends a load before each of its writes. The store then opens with nothing of it, or with all.
func TestLoadCrash(t *testing.T) {
	stream, _ := smallStream(t)
	dir := t.TempDir()
	open := func(hook func(string) error) *Store {
		s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour, hook: hook, loadLoose: 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := open(nil).Close(); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		hook, crashed := crashAt(n)
		s := open(hook)
		_, err := s.Load(bg, LoadOptions{}, bytes.NewReader(stream))
		if (err != nil) != crashed() {
			t.Fatalf("step %d: load: %v", n, err)
		}
		_ = s.Close() // it cannot remove what is left

		s = open(nil)
		checkStore(t, s)
		list, err := s.Workspaces(bg)
		if err != nil {
			t.Fatal(err)
		}
		left := s.reader()
		err = left.scan([]byte{keyLoad}, nil, false, func(key, _ []byte) (bool, error) {
			return false, fmt.Errorf("key %x is left", key)
		})
		left.Close()
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if !crashed() && len(list) != 2 || crashed() && len(list) > 0 && len(list) != 2 {
			t.Fatalf("step %d: %d workspaces", n, len(list))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if len(list) == 2 {
			if n < 8 {
				t.Fatalf("the load took %d steps only", n)
			}
			return
		}
	}
}

// TestBackupFails backs up what is damaged, and to what takes no more.
func TestBackupFails(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	makeFile(t, openWorkspace(t, s, "ws"), "file", bulk(1))
	if _, err := s.Backup(bg, BackupOptions{}, failingWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("backup to what does not take it: %v", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, packDir, "00000001.pack"), os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("damaged"), 100_000)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backup(bg, BackupOptions{}, io.Discard); !errors.Is(err, vfs.ErrCorrupt) {
		t.Errorf("backup of a damaged chunk: %v", err)
	}
	if len(s.reading.pins) > 0 {
		t.Errorf("pinned: %v", s.reading.pins)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backup(bg, BackupOptions{}, io.Discard); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("backup of a closed store: %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
