package casstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// benchFiles makes a store with a workspace of n files, in directories of 100.
func benchFiles(b *testing.B, n int) (*Store, *Workspace) {
	b.Helper()
	s, err := Open(b.TempDir(), Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, err := s.CreateWorkspace(bg, "ws"); err != nil {
		b.Fatal(err)
	}
	w, err := s.OpenWorkspace(bg, "ws")
	if err != nil {
		b.Fatal(err)
	}
	var dir vfs.Attr
	for i := range n {
		if i%100 == 0 {
			if dir, err = w.Mkdir(bg, vfs.RootIno, fmt.Sprint("dir", i/100), vfs.NewNode{Mode: 0o755}); err != nil {
				b.Fatal(err)
			}
		}
		a, err := w.Create(bg, dir.Ino, fmt.Sprint("file", i%100), vfs.NewNode{Mode: 0o644})
		if err == nil {
			err = w.WriteAt(bg, a.Ino, []byte(fmt.Sprint("file ", i)), 0, false)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Sync(bg); err != nil {
		b.Fatal(err)
	}
	return s, w
}

// BenchmarkFork forks a workspace of 100,000 files while it is open. What a fork takes on the disk, TestForksCostLittle says.
func BenchmarkFork(b *testing.B) {
	s, _ := benchFiles(b, 100_000)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := s.Fork(bg, "ws", "", fmt.Sprint("fork", len(took))); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
}

// BenchmarkDiff compares two forks of a workspace of 100,000 files that differ in ten.
func BenchmarkDiff(b *testing.B) {
	s, w := benchFiles(b, 100_000)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for i, name := range []string{"left", "right"} {
		if _, err := s.Fork(bg, "ws", "", name); err != nil {
			b.Fatal(err)
		}
		f, err := s.OpenWorkspace(bg, name)
		if err != nil {
			b.Fatal(err)
		}
		for j := range 5 {
			changeFile(b, f, 97*(j+1)+i, 40+j)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		n := 0
		err := s.Diff(bg, "left", "right", func(DiffEntry) error { n++; return nil })
		if err != nil || n != 10 {
			b.Fatal(n, err)
		}
	}
}

func changeFile(b *testing.B, w *Workspace, dir, file int) {
	b.Helper()
	d, err := w.Lookup(bg, vfs.RootIno, fmt.Sprint("dir", dir))
	if err != nil {
		b.Fatal(err)
	}
	a, err := w.Lookup(bg, d.Ino, fmt.Sprint("file", file))
	if err == nil {
		err = w.WriteAt(bg, a.Ino, []byte("changed"), 0, false)
	}
	if err != nil {
		b.Fatal(err)
	}
}
