package bench

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Benchmarks of what a request costs behind the kernel, for benchstat:
//
//	go test -run '^$' -bench Tree -count 10 ./bench

const treeFiles = 1000

// benchTree calls f with a workspace that has a file, and treeFiles empty ones in a directory.
func benchTree(b *testing.B, f func(w *casstore.Workspace, dir, file vfs.Ino)) {
	b.ReportAllocs()
	s, err := casstore.Open(filepath.Join(b.TempDir(), "store"), casstore.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.CreateWorkspace(b.Context(), "w"); err != nil {
		b.Fatal(err)
	}
	w, err := s.OpenWorkspace(b.Context(), "w")
	if err != nil {
		b.Fatal(err)
	}
	dir := must(b)(w.Mkdir(b.Context(), vfs.RootIno, "dir", vfs.NewNode{Mode: 0o755}))
	for i := range treeFiles {
		must(b)(w.Create(b.Context(), dir, strconv.Itoa(i), vfs.NewNode{Mode: 0o644}))
	}
	f(w, dir, must(b)(w.Create(b.Context(), vfs.RootIno, "file", vfs.NewNode{Mode: 0o644})))
	b.StopTimer()
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func must(b *testing.B) func(vfs.Attr, error) vfs.Ino {
	return func(a vfs.Attr, err error) vfs.Ino {
		if err != nil {
			b.Fatal(err)
		}
		return a.Ino
	}
}

func BenchmarkTreeLookup(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, dir, _ vfs.Ino) {
		ctx := context.Background()
		for b.Loop() {
			if _, err := w.Lookup(ctx, dir, "500"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTreeLookupMissing(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, dir, _ vfs.Ino) {
		ctx := context.Background()
		for b.Loop() {
			if _, err := w.Lookup(ctx, dir, "missing"); err == nil {
				b.Fatal("it is there")
			}
		}
	})
}

func BenchmarkTreeStat(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, _, file vfs.Ino) {
		ctx := context.Background()
		for b.Loop() {
			if _, err := w.Stat(ctx, file); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTreeReadDir lists all names once an iteration.
func BenchmarkTreeReadDir(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, dir, _ vfs.Ino) {
		ctx := context.Background()
		for b.Loop() {
			n := 0
			err := w.ReadDir(ctx, dir, 0, func(vfs.Dirent) bool { n++; return true })
			if err != nil || n != treeFiles {
				b.Fatal(n, err)
			}
		}
	})
}

// BenchmarkTreeCreate makes and removes a file, so that the tree does not grow.
func BenchmarkTreeCreate(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, dir, _ vfs.Ino) {
		ctx := context.Background()
		for b.Loop() {
			must(b)(w.Create(ctx, dir, "new", vfs.NewNode{Mode: 0o644}))
			if err := w.Unlink(ctx, dir, "new"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTreeRename(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, dir, _ vfs.Ino) {
		ctx := context.Background()
		names := [2]string{"1", "new"}
		for i := 0; b.Loop(); i++ {
			if err := w.Rename(ctx, dir, names[i%2], dir, names[(i+1)%2], 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchWrite writes over the same megabytes again and again.
func benchWrite(b *testing.B, size int) {
	benchTree(b, func(w *casstore.Workspace, _, file vfs.Ino) {
		ctx, p, at := context.Background(), make([]byte, size), uint64(0)
		b.SetBytes(int64(size))
		for b.Loop() {
			p[0]++
			if err := w.WriteAt(ctx, file, p, at, false); err != nil {
				b.Fatal(err)
			}
			at = (at + uint64(size)) % (16 << 20)
		}
	})
}

func BenchmarkTreeWrite4K(b *testing.B)   { benchWrite(b, 4<<10) }
func BenchmarkTreeWrite128K(b *testing.B) { benchWrite(b, 128<<10) }

// BenchmarkTreeRead128K reads what is in memory.
func BenchmarkTreeRead128K(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, _, file vfs.Ino) {
		ctx, p := context.Background(), make([]byte, 128<<10)
		if err := w.WriteAt(ctx, file, p, 0, false); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			if n, err := w.ReadAt(ctx, file, p, 0); n != len(p) || err != nil {
				b.Fatal(n, err)
			}
		}
	})
}

// BenchmarkTreeFsync appends a byte and waits for the disk.
func BenchmarkTreeFsync(b *testing.B) {
	benchTree(b, func(w *casstore.Workspace, _, file vfs.Ino) {
		ctx := context.Background()
		for at := uint64(0); b.Loop(); at++ {
			if err := w.WriteAt(ctx, file, []byte{'x'}, at, false); err != nil {
				b.Fatal(err)
			}
			if err := w.Fsync(ctx, file); err != nil {
				b.Fatal(err)
			}
		}
	})
}
