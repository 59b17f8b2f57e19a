package mirror

import (
	"context"
	"fmt"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// BenchmarkFsync is a small write that is durable at the authority, over a unix socket.
func BenchmarkFsync(b *testing.B) {
	l := newLab(b, 1)
	tree := l.nodes[0].Tree()
	ino := on(b, tree).write("/f", "x")
	l.settle()
	for b.Loop() {
		if err := tree.WriteAt(context.Background(), ino, []byte("hello"), 0, false); err != nil {
			b.Fatal(err)
		}
		if err := tree.Fsync(context.Background(), ino); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVisible is from a write on one mirror, which nobody syncs, to its being seen on another.
func BenchmarkVisible(b *testing.B) {
	l := newLab(b, 2)
	tree, other := l.nodes[0].Tree(), l.nodes[1].Tree()
	ino := on(b, tree).write("/f", "x")
	l.settle()
	seen := make(chan struct{}, 1)
	stop := other.Watch(nil, func(c vfs.Change) {
		if c.Kind == vfs.ChangeData && c.Ino == ino {
			seen <- struct{}{}
		}
	})
	defer stop()
	size := uint64(1)
	for b.Loop() {
		size++
		if err := tree.WriteAt(context.Background(), ino, []byte("y"), size-1, false); err != nil {
			b.Fatal(err)
		}
		<-seen
		if a, err := other.Stat(context.Background(), ino); err != nil || a.Size != size {
			b.Fatalf("size %d, want %d, %v", a.Size, size, err)
		}
	}
}

// BenchmarkPushFiles makes files in one directory until the authority has them all; the cost of each must not grow.
func BenchmarkPushFiles(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000, 8000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLab(b, 1)
			f := on(b, l.nodes[0].Tree())
			round := 0
			for b.Loop() {
				round++
				dir := fmt.Sprint("/d", round)
				f.mkdir(dir)
				ino := f.ino(dir)
				for i := range n {
					a, err := f.tree.Create(context.Background(), ino, fmt.Sprint(i), vfs.NewNode{Mode: 0o644})
					if err == nil {
						err = f.tree.WriteAt(context.Background(), a.Ino, []byte("new file"), 0, false)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				if err := l.nodes[0].Push(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/file")
		})
	}
}
