package casstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func TestLimitsAgree(t *testing.T) {
	if chunk.MaxFileSize != vfs.MaxFileSize {
		t.Errorf("chunk.MaxFileSize is %d, vfs.MaxFileSize %d", uint64(chunk.MaxFileSize), uint64(vfs.MaxFileSize))
	}
}

// sample makes a small tree with every kind of body.
func sample(t *testing.T, w *Workspace) {
	t.Helper()
	rnd := rand.NewChaCha8([32]byte{1})
	var err error
	check := func(e error) { err = errors.Join(err, e) }
	for i, size := range []int{0, 100, 5000, 300_000, 9 << 20} {
		a, e := w.Create(bg, vfs.RootIno, fmt.Sprintf("f%d", i), vfs.NewNode{Mode: 0o644})
		check(e)
		b := make([]byte, size)
		_, e = rnd.Read(b)
		check(e)
		check(w.WriteAt(bg, a.Ino, b, 0, false))
		check(w.SetXattr(bg, a.Ino, "user.n", []byte{byte(i)}, 0))
	}
	for i := range 300 {
		a, e := w.Mkdir(bg, vfs.RootIno, fmt.Sprintf("d%d", i), vfs.NewNode{Mode: 0o755})
		check(e)
		_, e = w.Symlink(bg, a.Ino, "link", "../f1", vfs.NewNode{Mode: 0o777})
		check(e)
	}
	if _, e := w.Commit(bg); err != nil || e != nil {
		t.Fatal(err, e)
	}
}

// copyStore copies a store's files as they are, open or not: what a crash would leave.
func copyStore(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		return copySparse(filepath.Join(to, rel), path)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sampleStores returns two stores that hold the same tree: one that was closed, and one as a crash leaves it.
func sampleStores(t *testing.T, key []byte) (closed, crashed string, want map[string]vfstest.Node) {
	t.Helper()
	closed = t.TempDir()
	s, err := Open(closed, Options{Create: true, CommitEvery: time.Hour, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	sample(t, w)
	want = snapshotOf(t, w)
	crashed = filepath.Join(t.TempDir(), "crashed")
	copyStore(t, crashed, closed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return closed, crashed, want
}

// TestDamage changes single bytes of a store's files, of one that was closed and of one that was not. Then either
// opening it says so, or reading or checking it does, or nothing is different: never is other data given out.
func TestDamage(t *testing.T) { testDamage(t, nil) }

func testDamage(t *testing.T, key []byte) {
	closed, crashed, want := sampleStores(t, key)
	for name, store := range map[string]string{"closed": closed, "crashed": crashed} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for _, path := range storeFiles(t, store) {
				found += damageFile(t, store, path, key, want)
			}
			if found < 10 {
				t.Errorf("only %d damages were noticed", found)
			}
		})
	}
}

func storeFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"badger/*", "packs/*", "HEAD", encryptionFile} {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			rel, _ := filepath.Rel(dir, f)
			files = append(files, rel)
		}
	}
	return files
}

// damageFile changes some bytes of a file, one at a time, each in a copy of the store, and counts how often that was
// noticed.
func damageFile(t *testing.T, store, path string, key []byte, want map[string]vfstest.Node) (noticed int) {
	t.Helper()
	whole, err := os.ReadFile(filepath.Join(store, path))
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(whole, "\x00"))
	if used == 0 {
		return 0
	}
	rnd := rand.New(rand.NewPCG(uint64(used), 7))
	for range 3 {
		at := rnd.IntN(used)
		dir := t.TempDir()
		copyStore(t, dir, store)
		b := bytes.Clone(whole)
		b[at] ^= byte(1 + rnd.IntN(255))
		if err := os.WriteFile(filepath.Join(dir, path), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(dir, key, want); err != nil {
			if !errors.Is(err, errOther) {
				noticed++
				continue
			}
			t.Errorf("%s, byte %d: %v", path, at, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	return noticed
}

var errOther = errors.New("other data, and no error")

// readAll opens a store and reads everything. It returns how damage was noticed, or errOther.
func readAll(dir string, key []byte, want map[string]vfstest.Node) error {
	s, err := Open(dir, Options{Key: key})
	if err != nil {
		return err
	}
	defer s.Close()
	report, err := s.Check(bg, CheckOptions{Bytes: true})
	if err != nil {
		return err
	}
	if len(report.Problems) > 0 {
		return fmt.Errorf("check: %v", report.Problems[0])
	}
	w, err := s.OpenWorkspace(bg, "ws")
	if err != nil {
		return fmt.Errorf("%w: %w", errOther, err)
	}
	got, err := vfstest.Snapshot(bg, w)
	if err != nil {
		return err
	}
	if d := vfstest.DiffTimes(want, got); d != "" {
		return fmt.Errorf("%w: %.500s", errOther, d)
	}
	return nil
}

// TestDamagedLogIsKept: a store whose log is damaged is refused, and nothing of the log is lost by trying.
func TestDamagedLogIsKept(t *testing.T) {
	_, crashed, want := sampleStores(t, nil)
	logs, err := filepath.Glob(filepath.Join(crashed, badgerDir, logPattern))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	whole, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	at := len(bytes.TrimRight(whole, "\x00")) / 2
	whole[at] ^= 1
	if err := os.WriteFile(logs[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(crashed, Options{}); !errors.Is(err, vfs.ErrCorrupt) {
			t.Fatalf("open: %v", err)
		}
	}
	whole[at] ^= 1
	if err := os.WriteFile(logs[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readAll(crashed, nil, want); err != nil {
		t.Fatalf("after the byte was mended: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	full := filepath.Join(dir, "full")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(full, 0o700),
		os.WriteFile(filepath.Join(full, "precious"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	used := filepath.Join(dir, "used")
	openStore(t, used, Options{})
	for _, c := range []struct {
		name, dir string
		create    bool
		want      error
	}{
		{"missing", filepath.Join(dir, "none"), false, vfs.ErrNotStore},
		{"a file", file, false, vfs.ErrNotStore},
		{"empty", t.TempDir(), false, vfs.ErrNotStore},
		{"something else", full, true, vfs.ErrNotStore},
		{"in use", used, true, vfs.ErrInUse},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s, err := Open(c.dir, Options{Create: c.create}); !errors.Is(err, c.want) {
				t.Fatalf("open: %v, %v", s, err)
			}
		})
	}
}

func TestNewerFormat(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	f := formatRecord{version: formatVersion + 1, epoch: s.epoch}
	head := headRecord{rev: 2, ino: 2, nextWS: 1}
	if err := s.apply(2, []kv{{key: []byte{keyFormat}, value: f.encode()}}, head); err != nil {
		t.Fatal(err)
	}
	s.publish(2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, vfs.ErrNewerFormat) {
		t.Fatalf("open: %v", err)
	}
}

// TestDamageOfOneFileStopsNoOther: bytes written into a chunk that has been damaged cannot be stored, and whoever asks
// for them is told; everything else is committed.
func TestDamageOfOneFileStopsNoOther(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	hurt, err := w.Create(bg, vfs.RootIno, "hurt", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100_000)
	rand.NewChaCha8([32]byte{}).Read(b)
	if err := w.WriteAt(bg, hurt.Ino, b, 0, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(dir, packDir, "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	whole, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	whole[len(whole)/2] ^= 1
	if err := os.WriteFile(packs[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}

	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	w = openWorkspace(t, s, "ws")
	if err := w.WriteAt(bg, hurt.Ino, []byte("new"), 10, false); err != nil {
		t.Fatal(err)
	}
	well, err := w.Create(bg, vfs.RootIno, "well", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt(bg, well.Ino, []byte("8 bytes."), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Fsync(bg, well.Ino); err != nil {
		t.Errorf("fsync of the other file: %v", err)
	}
	if err := w.Fsync(bg, hurt.Ino); err != nil {
		t.Errorf("fsync of the damaged file, which the journal takes: %v", err)
	}
	if err := w.Sync(bg); !errors.Is(err, vfs.ErrCorrupt) {
		t.Errorf("sync: %v", err)
	}
	if err := s.Close(); !errors.Is(err, vfs.ErrCorrupt) {
		t.Errorf("close: %v", err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	w = openWorkspace(t, s, "ws")
	if _, err := w.Lookup(bg, vfs.RootIno, "well"); err != nil {
		t.Errorf("the other file: %v", err)
	}
	p := make([]byte, 3)
	if n, err := w.ReadAt(bg, hurt.Ino, p, 10); string(p[:n]) != "new" {
		t.Errorf("what was fsynced: %q, %v", p[:n], err)
	}
	if err := w.Unlink(bg, vfs.RootIno, "hurt"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close without the damaged file: %v", err)
	}
}

// TestNamesOfWorkspacesAreUnique asks for one name from many goroutines, which a single revision may answer.
func TestNamesOfWorkspacesAreUnique(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	made := make(chan error)
	for range 20 {
		go func() {
			_, err := s.CreateWorkspace(bg, "one")
			made <- err
		}()
	}
	won := 0
	for range 20 {
		switch err := <-made; {
		case err == nil:
			won++
		case !errors.Is(err, vfs.ErrExist):
			t.Error(err)
		}
	}
	if list, err := s.Workspaces(bg); won != 1 || len(list) != 1 || err != nil {
		t.Errorf("%d made, %v, %v", won, list, err)
	}
}
