package writebuf

import (
	"context"
	"math/rand/v2"
	"testing"
)

// dirtyLimit is how much a benchmark leaves dirty before it stores (that is, drops) everything, in bytes.
const dirtyLimit = 64 << 20

// benchmarkWrites writes size bytes at the offsets that next gives.
func benchmarkWrites(b *testing.B, size int, next func(i int) uint64) {
	pool, buf := newTestBuffer()
	p := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := pool.Admit(context.Background(), size); err != nil {
			b.Fatal(err)
		}
		buf.Write(p, next(i))
		if buf.Dirty() > dirtyLimit {
			buf.Drop(buf.Freeze())
		}
	}
}

func BenchmarkSequential128K(b *testing.B) {
	benchmarkWrites(b, 128<<10, func(i int) uint64 { return uint64(i) * 128 << 10 })
}

func BenchmarkSequential1M(b *testing.B) {
	benchmarkWrites(b, 1<<20, func(i int) uint64 { return uint64(i) << 20 })
}

func BenchmarkAppend100(b *testing.B) {
	benchmarkWrites(b, 100, func(i int) uint64 { return uint64(i) * 100 })
}

func BenchmarkRandom4K(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	benchmarkWrites(b, 4<<10, func(int) uint64 { return uint64(r.IntN(1<<20)) << 12 })
}

func BenchmarkOverwrite4K(b *testing.B) {
	benchmarkWrites(b, 4<<10, func(i int) uint64 { return uint64(i%1024) << 12 })
}

// benchmarkReads reads size bytes at random from 64 MiB that are held in extents of the given length.
func benchmarkReads(b *testing.B, size, extent int) {
	_, buf := newTestBuffer()
	r := rand.New(rand.NewPCG(1, 1))
	page := make([]byte, extent)
	for _, i := range r.Perm(dirtyLimit / extent) {
		buf.Write(page, uint64(i*extent))
	}
	p := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		buf.Read(nil, p, uint64(r.IntN(dirtyLimit-size)))
	}
}

func BenchmarkRead4KOfPages(b *testing.B)   { benchmarkReads(b, 4<<10, 4<<10) }
func BenchmarkRead128KOfPages(b *testing.B) { benchmarkReads(b, 128<<10, 4<<10) }
func BenchmarkRead128KOfSlabs(b *testing.B) { benchmarkReads(b, 128<<10, 128<<10) }

// BenchmarkWalkPages is one walk over 16,384 extents, as counting a file's blocks needs it.
func BenchmarkWalkPages(b *testing.B) {
	_, buf := newTestBuffer()
	for i := range uint64(16384) {
		buf.Write(make([]byte, 4096), i*8192)
	}
	b.ReportAllocs()
	for b.Loop() {
		buf.Walk(0, 128<<20, func(_, _ uint64, _ Kind) bool { return true })
	}
}
