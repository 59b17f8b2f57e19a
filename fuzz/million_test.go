package fuzz

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

const (
	// maxMillionMount is how long a mount of a million files may take, from the start of the process. Fewer files are mounted
	// on machines that are busy, with patience.
	maxMillionMount = time.Second
	patientMount    = 10 * time.Second

	// maxMillionMemory is what the daemon may take at its most while all of it is walked.
	maxMillionMemory = 300 << 20
)

// TestMillion makes a workspace of very many small files by the library, mounts it, and walks it all. A million take
// minutes, so that many are made only when CARREL_MILLION says so.
func TestMillion(t *testing.T) {
	files := number(t, "CARREL_MILLION", 20_000)
	store := tempDir(t)
	start := time.Now()
	fillStore(t, store, files)
	t.Logf("%d files made in %v", files, time.Since(start).Round(time.Millisecond))
	d := serve(t, store, tempDir(t))
	t.Logf("mounted %v after the start of the process, with %d MiB", d.took, d.memory("VmRSS")>>20)
	if d.took > patientMount || files >= 1_000_000 && d.took > maxMillionMount {
		t.Errorf("a mount takes %v", d.took)
	}
	for _, tests := range [][]string{
		{"-type", "f"}, // names and types only
		{"-type", "f", "-size", "1"},
		{"-type", "f", "-size", "1"}, // from the kernel's caches
	} {
		start = time.Now()
		argv := append(append([]string{"find", "."}, tests...), "-printf", "x\\n")
		found := strings.Count(d.do("", argv...), "\n")
		most := d.memory("VmHWM")
		t.Logf("find %s: %v, %d files, VmHWM %d MiB, VmRSS %d MiB", tests, time.Since(start).Round(time.Millisecond), found,
			most>>20, d.memory("VmRSS")>>20)
		if found != files {
			t.Errorf("find finds %d files of %d", found, files)
		}
		if most > maxMillionMemory {
			t.Errorf("the daemon took %d MiB", most>>20)
		}
	}
}

// fillStore makes a workspace of so many files of a few bytes, a thousand in each directory.
func fillStore(t testing.TB, dir string, files int) {
	t.Helper()
	s, w, err := openStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := makeFiles(t, w, files); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func makeFiles(t testing.TB, w *casstore.Workspace, files int) error {
	ctx := t.Context()
	var dir vfs.Attr
	for i := range files {
		var err error
		if i%1000 == 0 {
			if dir, err = w.Mkdir(ctx, vfs.RootIno, fmt.Sprintf("dir-%04d", i/1000), vfs.NewNode{Mode: 0o755}); err != nil {
				return err
			}
		}
		f, err := w.Create(ctx, dir.Ino, fmt.Sprintf("file-%d", i), vfs.NewNode{Mode: 0o644})
		if err != nil {
			return err
		}
		if err := w.WriteAt(ctx, f.Ino, fmt.Appendf(nil, "file %d\n", i), 0, false); err != nil {
			return err
		}
	}
	return nil
}
