package casstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

const (
	// forkFile is how long a file of TestForksCostLittle is, in bytes: none of it is in a record.
	forkFile = 10 << 10

	// forkMost is what a fork may take on the disk.
	forkMost = 16 << 10

	// fullFork is the number of files from which on the times count: less is there on machines that are busy.
	fullFork = 100_000
	forkTime = 5 * time.Millisecond
)

// TestForksCostLittle forks a workspace often, and looks at what that has added to the store on the disk, which is closed before and
// after it: what Badger and packs set aside ahead is gone then. Each fork can be written to. CARREL_FORK_FILES is of how many files
// (1,000) the workspace is, and a hundredth of that how many forks are made, but 50 at the least.
func TestForksCostLittle(t *testing.T) {
	files := envNumber(t, "CARREL_FORK_FILES", 1_000)
	forks := max(50, files/100)
	dir := t.TempDir()
	s := manyFiles(t, dir, files)
	before := closedSize(t, s)
	s = reopen(t, dir)
	openWorkspace(t, s, "ws") // as it is while it is mounted
	took := make([]time.Duration, forks)
	began := time.Now()
	for i := range took {
		start := time.Now()
		if _, err := s.Fork(bg, "ws", "", fmt.Sprint("fork", i)); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	all := time.Since(began)
	each := (closedSize(t, s) - before) / int64(forks)
	slices.Sort(took)
	median := took[forks/2]
	t.Logf("%d forks of %d files: %v, half of them in at most %v, %d bytes each; the store had %d MiB", forks, files,
		all.Round(time.Millisecond), median.Round(time.Microsecond), each, before>>20)
	if each >= forkMost {
		t.Errorf("%d bytes each", each)
	}
	if files >= fullFork && (median >= forkTime || all >= forkTime*time.Duration(forks)) {
		t.Errorf("they took %v, half of them at most %v", all, median)
	}
	s = reopen(t, dir)
	defer func() {
		checkStore(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range forks {
		writeFork(t, s, i, forks)
	}
}

// writeFork changes a fork, looks at it, and removes it, but for some that are there when the store is checked.
func writeFork(t *testing.T, s *Store, i, forks int) {
	t.Helper()
	name := fmt.Sprint("fork", i)
	f := openWorkspace(t, s, name)
	makeFile(t, f, "own", name)
	err := f.Unlink(bg, vfs.RootIno, "dir0-gone")
	if err != nil {
		t.Fatal(err)
	}
	commitTree(t, f)
	f.forgetAll()
	if got := contentOf(f, "own"); got != name {
		t.Errorf("%s holds %q", name, got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if i%(forks/5) > 0 {
		if err := s.RemoveWorkspace(bg, name); err != nil {
			t.Fatal(err)
		}
	}
}

// manyFiles makes a store with a workspace of so many files, a hundred in a directory.
func manyFiles(t *testing.T, dir string, n int) *Store {
	t.Helper()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "dir0-gone", "x")
	content, b := rand.NewChaCha8([32]byte{3}), make([]byte, forkFile)
	var parent vfs.Attr
	for i := range n {
		if i%100 == 0 {
			parent, err = w.Mkdir(bg, vfs.RootIno, fmt.Sprint("dir", i/100), vfs.NewNode{Mode: 0o755})
		}
		_, readErr := content.Read(b)
		a, createErr := w.Create(bg, parent.Ino, fmt.Sprint("file", i%100), vfs.NewNode{Mode: 0o644})
		if err := errors.Join(err, readErr, createErr, w.WriteAt(bg, a.Ino, b, 0, false)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

func reopen(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closedSize closes a store, and returns what its files take on the disk then.
func closedSize(t *testing.T, s *Store) (n int64) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		n += st.Blocks * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
