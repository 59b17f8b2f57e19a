package casstore

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// TestBackupOfMerges loads workspaces that were merged: their conflicts are there, and the next merge begins where the last one
// ended, or before it, when the workspace has become what it was before.
func TestBackupOfMerges(t *testing.T) {
	from := openStore(t, t.TempDir(), Options{})
	theirs := &diffCase{t, openWorkspace(t, from, "ws")}
	theirs.run("file f 1; file g 1; file \xff 1")
	mine := &diffCase{t, openFork(t, from, "ws", "", "fork")}
	mine.run("write f mine; write g 2; write \xff mine")
	theirs.run("write f theirs; write \xff theirs")
	takeSnapshot(t, from, "ws", "before")
	merge := func(s *Store, want string) {
		t.Helper()
		report, err := s.Merge(bg, "fork", "ws", false)
		if got := conflictText(report.Conflicts); err != nil || got != want {
			t.Fatalf("conflicts %q, %v, want %q", got, err, want)
		}
	}
	const conflicts = "bytes /f /f.conflict-fork-1; bytes /\xff /\xff.conflict-fork-1"
	merge(from, conflicts)
	takeSnapshot(t, from, "ws", "after")
	mine.run("write g 3")

	stream, _ := backUp(t, from, BackupOptions{})
	if v := stream[len(backupMagic)]; v != secondBackup {
		t.Errorf("a backup of version %d", v)
	}
	to := openStore(t, t.TempDir(), Options{})
	load(t, to, stream, LoadOptions{})
	compareAll(t, everything(t, from), everything(t, to))
	list, err := to.Conflicts(bg, "ws")
	if got := conflictText(list); err != nil || got != conflicts {
		t.Errorf("conflicts %q, %v", got, err)
	}
	for when, want := range map[string]string{"after": "", "before": conflicts} {
		s := openStore(t, t.TempDir(), Options{})
		load(t, s, stream, LoadOptions{})
		if err := s.Restore(bg, "ws", when, ""); err != nil {
			t.Fatal(err)
		}
		merge(s, want)
	}
	merge(to, "")
	if got := contentOf(openWorkspace(t, to, "ws"), "g"); got != "3" {
		t.Errorf("merged, g is %q", got)
	}
	// One of them alone was merged with nothing.
	alone, _ := backUp(t, from, BackupOptions{Workspaces: []string{"fork"}})
	if v := alone[len(backupMagic)]; v != firstBackup {
		t.Errorf("a backup of version %d without merges", v)
	}
	load(t, openStore(t, t.TempDir(), Options{}), alone, LoadOptions{})
}

// TestLoadMerges loads streams with merges and conflicts that none can have.
func TestLoadMerges(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	openWorkspace(t, s, "ws")
	stream, _ := backUp(t, s, BackupOptions{})
	for what, c := range map[string]struct {
		version, kind byte
		body          string
	}{
		"in an old version":         {firstBackup, frameMerge, "\x00\x00"},
		"a conflict in an old one":  {firstBackup, frameConflict, "\x01" + `{"Number":1}`},
		"of a workspace to itself":  {secondBackup, frameMerge, "\x00\x00"},
		"of no state":               {secondBackup, frameMerge, "\x05\x00"},
		"of half a number":          {secondBackup, frameMerge, "\x80"},
		"a conflict of two numbers": {secondBackup, frameConflict, "\x01" + `{"Number":2}`},
		"a conflict that is none":   {secondBackup, frameConflict, "\x01?"},
	} {
		body := stream[len(backupMagic)+1 : len(stream)-34]
		changed := append([]byte(backupMagic), c.version)
		changed = append(append(changed, body...), c.kind, byte(len(c.body)))
		changed = append(changed, c.body...)
		if _, err := s.Load(bg, LoadOptions{As: "copy"}, bytes.NewReader(changed)); !errors.Is(err, vfs.ErrCorrupt) ||
			strings.Contains(err.Error(), "too early") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLoadStandIns loads a file of many more chunks than may wait for the record that refers to them, while chunks are collected.
func TestLoadStandIns(t *testing.T) {
	from := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, from, "ws")
	sample(t, w)
	want := viewOf(t, w)
	stream, _ := backUp(t, from, BackupOptions{})
	to := openStore(t, t.TempDir(), Options{loadLoose: 8, packSize: 1 << 20})
	in := &collecting{Reader: bytes.NewReader(stream), store: to}
	if _, err := to.Load(bg, LoadOptions{}, in); err != nil {
		t.Fatal(err)
	}
	if in.times < 10 {
		t.Errorf("it was collected %d times", in.times)
	}
	if d := vfstest.DiffTimes(want, viewOf(t, openWorkspace(t, to, "ws"))); d != "" {
		t.Errorf("it differs:\n%.1000s", d)
	}
	r := to.reader()
	defer r.Close()
	err := r.scan([]byte{keyInode}, nil, false, func(key, _ []byte) (bool, error) {
		if _, ino := nodeOfKey(key); ino > maxIno {
			t.Errorf("stand-in %x is left", key)
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// collecting collects chunks as it is read, when the time of those has passed that peers have written.
type collecting struct {
	io.Reader
	store *Store
	times int
}

func (c *collecting) Read(p []byte) (int, error) {
	c.times++
	if _, err := c.store.GC(bg); err != nil {
		return 0, err
	}
	return c.Reader.Read(p[:min(len(p), 256<<10)])
}

// TestTornRestore ends restores of all and of a path before each write: each has happened, or has not.
func TestTornRestore(t *testing.T) {
	for _, path := range []string{"", "/d"} {
		for n, done := 0, false; !done; n++ {
			dir := t.TempDir()
			s, err := Open(dir, Options{Create: true, CommitEvery: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			d := &diffCase{t, openWorkspace(t, s, "ws")}
			d.run("mkdir d; file d/a 1; file d/b 1")
			then := d.listing()
			takeSnapshot(t, s, "ws", "then")
			d.run("rm d/a; write d/b 2; file d/c 3; chmod d 700")
			now := d.listing()
			d.ok(s.Close())
			hook, crashed := crashAt(n)
			if s, err = Open(dir, Options{CommitEvery: time.Hour, hook: hook}); err != nil {
				t.Fatal(err)
			}
			err = s.Restore(bg, "ws", "then", path)
			if err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("step %d: %v", n, err)
			}
			restored := err == nil
			done = !crashed()
			_ = s.Close() // it can commit nothing
			s = openStore(t, dir, Options{CommitEvery: time.Hour})
			d.w = openWorkspace(t, s, "ws")
			if got := d.listing(); got != then && (restored || got != now) {
				t.Fatalf("step %d, restored %v: it is %s", n, restored, got)
			}
			d.ok(s.Restore(bg, "ws", "then", path))
			if got := d.listing(); got != then {
				t.Fatalf("step %d, and restored then: it is %s", n, got)
			}
		}
	}
}
