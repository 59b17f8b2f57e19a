package casstore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// benchWorkspace opens a workspace that commits only when it is told to.
func benchWorkspace(b *testing.B) *Workspace {
	b.Helper()
	s, err := Open(b.TempDir(), Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if _, err := s.CreateWorkspace(bg, "ws"); err != nil {
		b.Fatal(err)
	}
	w, err := s.OpenWorkspace(bg, "ws")
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func benchFile(b *testing.B, w *Workspace, size int) vfs.Ino {
	b.Helper()
	a, err := w.Create(bg, vfs.RootIno, fmt.Sprint("file of ", size), vfs.NewNode{Mode: 0o644})
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(p)
	if err := w.WriteAt(bg, a.Ino, p, 0, false); err != nil {
		b.Fatal(err)
	}
	return a.Ino
}

// BenchmarkCreateUnlink makes and removes an empty file in a directory that is in memory.
func BenchmarkCreateUnlink(b *testing.B) {
	w := benchWorkspace(b)
	dir, err := w.Mkdir(bg, vfs.RootIno, "d", vfs.NewNode{Mode: 0o755})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Create(bg, dir.Ino, "f", vfs.NewNode{Mode: 0o644}); err != nil {
			b.Fatal(err)
		}
		if err := w.Unlink(bg, dir.Ino, "f"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	w := benchWorkspace(b)
	benchFile(b, w, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Lookup(bg, vfs.RootIno, "file of 1"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLookupCold looks up a name of which nothing is in memory.
func BenchmarkLookupCold(b *testing.B) {
	w := benchWorkspace(b)
	benchFile(b, w, 1)
	if _, err := w.Commit(bg); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.forgetAll()
		if _, err := w.Lookup(bg, vfs.RootIno, "file of 1"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads a file of 64 MiB that the operating system has in its cache and the store in chunks: all of it,
// one piece after the other, from a store that has read none of it, and pages at random from one that has.
func BenchmarkRead(b *testing.B) {
	for _, content := range []content{random, text} {
		w, ino := benchStored(b, content)
		for _, size := range []int{128 << 10, 512 << 10, 1 << 20} {
			b.Run(fmt.Sprint(content, "/", size>>10, "KiB"), func(b *testing.B) { benchSequential(b, w, ino, size) })
		}
		b.Run(fmt.Sprint(content, "/random4KiB"), func(b *testing.B) { benchPages(b, w, ino) })
	}
}

const benchSize = 64 << 20

func benchStored(b *testing.B, content content) (*Workspace, vfs.Ino) {
	b.Helper()
	w := benchWorkspace(b)
	ino := benchFile(b, w, 1)
	if err := w.WriteAt(bg, ino, content.bytes(benchSize), 0, false); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Commit(bg); err != nil {
		b.Fatal(err)
	}
	return w, ino
}

func benchSequential(b *testing.B, w *Workspace, ino vfs.Ino, size int) {
	p := make([]byte, size)
	b.SetBytes(benchSize)
	b.ReportAllocs()
	for b.Loop() {
		w.store.chunks.forget()
		for off := uint64(0); off < benchSize; off += uint64(size) {
			if _, err := w.ReadAt(bg, ino, p, off); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func benchPages(b *testing.B, w *Workspace, ino vfs.Ino) {
	p := make([]byte, 4<<10)
	rnd := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.ReadAt(bg, ino, p, uint64(rnd.IntN(benchSize/len(p))*len(p))); err != nil {
			b.Fatal(err)
		}
	}
}

// content is a kind of bytes.
type content string

const (
	random content = "random" // does not compress
	text   content = "text"   // compresses like source code
)

// bytes returns n bytes, the same each time.
func (c content) bytes(n int) []byte {
	p := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{})
	rnd.Read(p)
	if c == text {
		words := strings.Fields("func return err nil if range context name store chunk size offset { } ( ) := == \n\t")
		for at := 0; at < n; {
			at += copy(p[at:], words[rnd.Uint64()%uint64(len(words))]+" ")
		}
	}
	return p
}

// BenchmarkFlush writes a file of 64 MiB in pieces of 1 MiB and of 128 KiB and waits for it to be durable. Setting up
// and removing the file is not counted. It also says what processors do for that, all together, for each 128 KiB.
func BenchmarkFlush(b *testing.B) {
	for _, content := range []content{random, text} {
		for _, size := range []int{128 << 10, 1 << 20} {
			b.Run(fmt.Sprint(content, "/", size>>10, "KiB"), func(b *testing.B) {
				benchFlush(b, content.bytes(benchSize), size)
			})
		}
	}
}

func benchFlush(b *testing.B, all []byte, size int) {
	w := benchWorkspace(b)
	b.SetBytes(benchSize)
	b.ReportAllocs()
	var busy time.Duration
	rounds := uint64(0)
	for ; b.Loop(); rounds++ {
		b.StopTimer()
		i := rounds
		for at := 0; at < len(all); at += 4 << 10 { // no chunk is one that is there
			binary.LittleEndian.PutUint64(all[at:], i+1)
		}
		ino := benchFile(b, w, 1)
		busy -= cpuTime(b)
		b.StartTimer()
		for off := 0; off < len(all); off += size {
			if err := w.WriteAt(bg, ino, all[off:][:size], uint64(off), false); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Fsync(bg, ino); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		busy += cpuTime(b)
		if err := w.Unlink(bg, vfs.RootIno, "file of 1"); err != nil {
			b.Fatal(err)
		}
		if i%8 == 7 {
			if _, err := w.store.GC(bg); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(busy.Microseconds())/float64(rounds*benchSize/chunk.AvgSize), "µs-CPU/128KiB")
}

// cpuTime is how long processors have worked for this process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkWrite rewrites a file of 8 MiB in memory, so that nothing is flushed.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{4 << 10, 128 << 10} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			w := benchWorkspace(b)
			ino := benchFile(b, w, 8<<20)
			p := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for off := uint64(0); b.Loop(); off = (off + uint64(size)) % (8 << 20) {
				if err := w.WriteAt(bg, ino, p, off, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPunch punches a hole into a file that has ever more of them, which must not make it slower.
func BenchmarkPunch(b *testing.B) {
	for _, holes := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("holes=", holes), func(b *testing.B) {
			w := benchWorkspace(b)
			const step = 4096
			ino := benchFile(b, w, 2*step*holes)
			punch := func(i int) {
				if err := w.Allocate(bg, ino, vfs.AllocPunchHole, uint64(2*step*i), step); err != nil {
					b.Fatal(err)
				}
			}
			for i := range holes {
				punch(i)
			}
			p := make([]byte, step)
			for i := 0; b.Loop(); i = (i + 1) % holes {
				if err := w.WriteAt(bg, ino, p, uint64(2*step*i), false); err != nil {
					b.Fatal(err)
				}
				punch(i)
			}
		})
	}
}

// BenchmarkSetXattr sets an attribute of a file that has ever more of them, and removes it.
func BenchmarkSetXattr(b *testing.B) {
	for _, others := range []int{0, 100, 4000} {
		b.Run(fmt.Sprint("others=", others), func(b *testing.B) {
			w := benchWorkspace(b)
			ino := benchFile(b, w, 0)
			set := func(name string) {
				if err := w.SetXattr(bg, ino, name, []byte("value"), 0); err != nil {
					b.Fatal(err)
				}
			}
			for i := range others {
				set(fmt.Sprint("user.", i))
			}
			for b.Loop() {
				set("user.new")
				if err := w.RemoveXattr(bg, ino, "user.new"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStore writes random bytes in pieces of 1 MiB and waits for all of them to be durable.
func BenchmarkStore(b *testing.B) {
	w := benchWorkspace(b)
	ino := benchFile(b, w, 1)
	p := make([]byte, 1<<20)
	src := rand.NewChaCha8([32]byte{1})
	b.SetBytes(int64(len(p)))
	off := uint64(0)
	for b.Loop() {
		src.Read(p)
		if err := w.WriteAt(bg, ino, p, off, false); err != nil {
			b.Fatal(err)
		}
		off += uint64(len(p))
	}
	if err := w.Fsync(bg, ino); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFsync writes 100 bytes and waits for them to be durable: the cost of one revision.
func BenchmarkFsync(b *testing.B) {
	w := benchWorkspace(b)
	ino := benchFile(b, w, 100)
	p := make([]byte, 100)
	for b.Loop() {
		if err := w.WriteAt(bg, ino, p, 0, false); err != nil {
			b.Fatal(err)
		}
		if err := w.Fsync(bg, ino); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommitNames commits 1,000 new files.
func BenchmarkCommitNames(b *testing.B) {
	w := benchWorkspace(b)
	n := 0
	for b.Loop() {
		for range 1000 {
			n++
			if _, err := w.Create(bg, vfs.RootIno, fmt.Sprint(n), vfs.NewNode{Mode: 0o644}); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.Commit(bg); err != nil {
			b.Fatal(err)
		}
	}
}
