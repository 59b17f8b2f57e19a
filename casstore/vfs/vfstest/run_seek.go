package vfstest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var seekBehaviours = []behaviour{
	{"FileWithoutHoles", seekInAFileWithoutHoles},
	{"PastTheEndFails", seekPastTheEndFails},
	{"EmptyFileFails", seekInAnEmptyFileFails},
	{"SparseFile", seekInASparseFile},
	{"FileOfOneHole", seekInAFileOfOneHole},
	{"AnyFileAgainstAModel", seekAgainstAModel},
	{"BadWhenceFails", badWhenceFails},
}

// seekGrain is how far a tree's idea of where a hole ends may be from the bytes, in bytes: it keeps bytes in blocks or
// chunks of its own.
const seekGrain = 1 << 20

// seeksData reports unless the first data at or after off starts between from and to.
func (s *suite) seeksData(ino vfs.Ino, off, from, to uint64) {
	s.Helper()
	if at, err := s.tree.Seek(s.ctx(), ino, off, vfs.SeekData); err != nil || at < from || at > to {
		s.Errorf("data after %d at %d (%v), want it from %d to %d", off, at, err, from, to)
	}
}

// seeksHole reports unless the first hole at or after off starts between from and to.
func (s *suite) seeksHole(ino vfs.Ino, off, from, to uint64) {
	s.Helper()
	if at, err := s.tree.Seek(s.ctx(), ino, off, vfs.SeekHole); err != nil || at < from || at > to {
		s.Errorf("hole after %d at %d (%v), want it from %d to %d", off, at, err, from, to)
	}
}

func seekInAFileWithoutHoles(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		for _, n := range edgeSizes {
			size := uint64(n)
			ino := s.create(dir, fmt.Sprint(size)).Ino
			s.write(ino, 0, pattern(n, 1))
			settle()
			for _, off := range []uint64{0, 1, size / 2, size - 1} {
				if off < size {
					s.seeksData(ino, off, off, off)
					s.seeksHole(ino, off, size, size)
				}
			}
		}
	})
}

func seekPastTheEndFails(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		s.write(ino, 0, pattern(5000, 1))
		settle()
		for _, off := range []uint64{5000, 5001, 8192, 1 << 40, vfs.MaxFileSize, 1 << 63, math.MaxUint64} {
			for _, whence := range []vfs.Whence{vfs.SeekData, vfs.SeekHole} {
				_, err := s.tree.Seek(s.ctx(), ino, off, whence)
				s.fails(err, vfs.ErrNoData)
			}
		}
	})
}

func seekInAnEmptyFileFails(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, whence := range []vfs.Whence{vfs.SeekData, vfs.SeekHole} {
		_, err := s.tree.Seek(s.ctx(), ino, 0, whence)
		s.fails(err, vfs.ErrNoData)
	}
}

func seekInASparseFile(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		const first, second, size = 1 << 30, 1 << 40, 2 << 40
		ino := s.create(dir, "f").Ino
		s.write(ino, second, pattern(1<<20, 2))
		s.write(ino, first, pattern(1<<20, 1))
		s.truncate(ino, size)
		settle()
		s.seeksHole(ino, 0, 0, 0)
		s.seeksData(ino, 0, first-seekGrain, first)
		s.seeksData(ino, first, first, first)
		s.seeksHole(ino, first, first+1<<20, first+1<<20+seekGrain)
		s.seeksData(ino, first+3<<20, second-seekGrain, second)
		s.seeksHole(ino, second+5, second+1<<20, second+1<<20+seekGrain)
		_, err := s.tree.Seek(s.ctx(), ino, second+3<<20, vfs.SeekData)
		s.fails(err, vfs.ErrNoData)
		s.seeksHole(ino, size-1, size-1, size-1)
	})
}

func seekInAFileOfOneHole(s *suite) {
	for _, size := range []uint64{1, 4096, 4097, 1 << 20, vfs.MaxFileSize} {
		ino := s.create(s.dir, fmt.Sprint(size)).Ino
		s.truncate(ino, size)
		s.commit()
		s.seeksHole(ino, 0, 0, size)
		if size >= 1<<20 { // a small file may be kept as bytes, whatever they are
			s.seeksHole(ino, size/2, size/2, size/2)
			_, err := s.tree.Seek(s.ctx(), ino, 0, vfs.SeekData)
			s.fails(err, vfs.ErrNoData)
		}
	}
}

func seekAgainstAModel(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		model := make([]byte, 6<<20)
		s.truncate(ino, uint64(len(model)))
		for i, r := range []struct{ off, n int }{
			{0, 10}, {100_000, 300_000}, {2 << 20, 1}, {3<<20 - 1, 1 << 20}, {6<<20 - 1, 1},
		} {
			p := pattern(r.n, uint64(i))
			s.write(ino, uint64(r.off), p)
			model = overwrite(model, r.off, p)
		}
		s.allocate(ino, vfs.AllocPunchHole, 3<<20, 300_000)
		model = allocated(model, vfs.AllocPunchHole, 3<<20, 300_000)
		settle()
		for off := 0; off < len(model); off += 99_991 {
			s.seekIsRight(ino, uint64(off), model)
		}
		for _, off := range []int{
			9, 10, 99_999, 100_000, 399_999, 400_000, 2 << 20, 2<<20 + 1, 3 << 20, 6<<20 - 2, 6<<20 - 1,
		} {
			s.seekIsRight(ino, uint64(off), model)
		}
	})
}

// seekIsRight reports when what Seek leaves out, or calls a hole, has bytes other than zero in the model.
func (s *suite) seekIsRight(ino vfs.Ino, off uint64, model []byte) {
	s.Helper()
	size := uint64(len(model))
	data, err := s.tree.Seek(s.ctx(), ino, off, vfs.SeekData)
	if errors.Is(err, vfs.ErrNoData) {
		data, err = size, nil
	}
	s.ok(err)
	if data < off || data > size {
		s.Fatalf("data after %d at %d of %d", off, data, size)
	}
	if i := slices.IndexFunc(model[off:data], func(b byte) bool { return b != 0 }); i >= 0 {
		s.Errorf("data after %d at %d, but there is some at %d", off, data, off+uint64(i))
	}
	hole, err := s.tree.Seek(s.ctx(), ino, off, vfs.SeekHole)
	s.ok(err)
	if hole < off || hole > size {
		s.Fatalf("hole after %d at %d of %d", off, hole, size)
	}
	if hole < size && model[hole] != 0 {
		s.Errorf("hole after %d at %d, but there is data", off, hole)
	}
}

func badWhenceFails(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, []byte("bytes"))
	_, err := s.tree.Seek(s.ctx(), ino, 0, vfs.SeekHole+1)
	s.fails(err, vfs.ErrInvalid)
}
