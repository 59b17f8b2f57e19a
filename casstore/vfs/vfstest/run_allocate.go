package vfstest

import (
	"fmt"
	"math"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var allocateBehaviours = []behaviour{
	{"EveryModeAgainstAModel", allocateAgainstAModel},
	{"AllocateExtends", allocateExtends},
	{"KeepSizeDoesNotExtend", keepSizeDoesNotExtend},
	{"PunchedHolesHoldNoBytes", punchedHolesHoldNoBytes},
	{"HugeRanges", allocateHugeRanges},
	{"AllocateSetsTimes", allocateSetsTimes},
	{"BadArgumentsFail", allocateBadArguments},
}

// allocateModes are the modes that a tree must know.
var allocateModes = []vfs.AllocMode{
	0, vfs.AllocKeepSize, vfs.AllocPunchHole, vfs.AllocPunchHole | vfs.AllocKeepSize, vfs.AllocZeroRange,
	vfs.AllocZeroRange | vfs.AllocKeepSize,
}

// allocated does to a slice what Allocate does to a file.
func allocated(model []byte, mode vfs.AllocMode, off, n int) []byte {
	if mode&(vfs.AllocPunchHole|vfs.AllocZeroRange) != 0 && off < len(model) {
		clear(model[off:min(len(model), off+n)])
	}
	if mode&(vfs.AllocPunchHole|vfs.AllocKeepSize) == 0 && off+n > len(model) {
		model = resized(model, off+n)
	}
	return model
}

func allocateAgainstAModel(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		for _, mode := range allocateModes {
			for _, size := range []int{0, 10, 4096, 4097, 300_000} {
				ino := s.create(dir, fmt.Sprint(mode, "-", size)).Ino
				var model []byte
				for i, r := range []struct{ off, n int }{
					{0, 1}, {5, 3}, {0, 4096}, {1, 4096}, {4095, 2}, {size / 2, size/4 + 1}, {size - size/3, size + 1}, {size, 10},
					{size + 5000, 100}, {0, size + 1}, {4096, 8192}, {65536, 65536},
				} {
					p := pattern(size, uint64(i))
					s.write(ino, 0, p)
					model = overwrite(model, 0, p)
					settle()
					s.allocate(ino, mode, uint64(r.off), uint64(r.n))
					model = allocated(model, mode, r.off, r.n)
					s.holds(ino, model)
					settle()
					s.holds(ino, model)
				}
			}
		}
	})
}

func allocateExtends(s *suite) {
	for _, mode := range []vfs.AllocMode{0, vfs.AllocZeroRange} {
		ino := s.create(s.dir, fmt.Sprint(mode)).Ino
		s.write(ino, 0, []byte("bytes"))
		s.allocate(ino, mode, 100, 50)
		s.holds(ino, append([]byte("bytes"), make([]byte, 145)...))
		s.allocate(ino, mode, 10, 20)
		s.holds(ino, append([]byte("bytes"), make([]byte, 145)...))
		s.write(ino, 140, []byte("x"))
		s.reads(ino, 139, []byte("\x00x\x00"))
	}
}

func keepSizeDoesNotExtend(s *suite) {
	for _, mode := range allocateModes {
		if mode&(vfs.AllocKeepSize|vfs.AllocPunchHole) == 0 {
			continue
		}
		ino := s.create(s.dir, fmt.Sprint(mode)).Ino
		s.write(ino, 0, []byte("bytes"))
		for _, off := range []uint64{5, 6, 4096, 1 << 40} {
			s.allocate(ino, mode, off, 4096)
			s.holds(ino, []byte("bytes"))
		}
		s.truncate(ino, 10)
		s.holds(ino, []byte("bytes\x00\x00\x00\x00\x00"))
	}
}

func punchedHolesHoldNoBytes(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		model := pattern(8<<20, 1)
		s.write(ino, 0, model)
		settle()
		s.allocate(ino, vfs.AllocPunchHole|vfs.AllocKeepSize, 1<<20, 6<<20)
		settle()
		s.holds(ino, allocated(model, vfs.AllocPunchHole, 1<<20, 6<<20))
		if held := s.stat(ino).Blocks * 512; held < 2<<20 || held > 4<<20 {
			s.Errorf("2 MiB of bytes are held in blocks of %d bytes", held)
		}
		s.seeksData(ino, 2<<20, 6<<20, 7<<20)
		s.allocate(ino, vfs.AllocPunchHole, 0, 8<<20)
		settle()
		if held := s.stat(ino).Blocks * 512; held != 0 {
			s.Errorf("a file of one hole is held in blocks of %d bytes", held)
		}
		_, err := s.tree.Seek(s.ctx(), ino, 0, vfs.SeekData)
		s.fails(err, vfs.ErrNoData)
	})
}

func allocateHugeRanges(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(10_000, 1))
	s.write(ino, 1<<40, []byte("far"))
	s.allocate(ino, vfs.AllocPunchHole, 5000, vfs.MaxFileSize-5000)
	want := append(pattern(10_000, 1)[:5000:5000], make([]byte, 5000)...)
	s.reads(ino, 0, want)
	s.reads(ino, 1<<40, []byte{0, 0, 0})
	if size := s.stat(ino).Size; size != 1<<40+3 {
		s.Errorf("size %d, want %d", size, 1<<40+3)
	}
	s.allocate(ino, vfs.AllocZeroRange, 0, vfs.MaxFileSize)
	s.reads(ino, 0, make([]byte, 10_000))
	if size := s.stat(ino).Size; size != vfs.MaxFileSize {
		s.Errorf("size %d, want %d", size, uint64(vfs.MaxFileSize))
	}
}

func allocateSetsTimes(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(100, 1))
	for _, c := range []struct {
		what   string
		mode   vfs.AllocMode
		off, n uint64
	}{
		{"extending", 0, 0, 1000},
		{"punching", vfs.AllocPunchHole | vfs.AllocKeepSize, 0, 10},
		{"zeroing", vfs.AllocZeroRange, 20, 10},
	} {
		before, then := s.stat(ino), s.tick()
		s.allocate(ino, c.mode, c.off, c.n)
		s.touched(c.what, before, then, mtime|ctime)
	}
}

func allocateBadArguments(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, []byte("bytes"))
	before, then := s.stat(ino), s.tick()
	for _, mode := range allocateModes {
		s.fails(s.tree.Allocate(s.ctx(), ino, mode, 0, 0), vfs.ErrInvalid)
		for _, r := range []struct{ off, n uint64 }{
			{0, vfs.MaxFileSize + 1}, {vfs.MaxFileSize, 1}, {1 << 63, 1 << 63}, {math.MaxUint64, 1}, {1, math.MaxUint64},
			{math.MaxUint64, math.MaxUint64},
		} {
			s.fails(s.tree.Allocate(s.ctx(), ino, mode, r.off, r.n), vfs.ErrTooBig)
		}
	}
	both := vfs.AllocPunchHole | vfs.AllocZeroRange
	for _, mode := range []vfs.AllocMode{both, both | vfs.AllocKeepSize, 8, 1 << 31} {
		s.fails(s.tree.Allocate(s.ctx(), ino, mode, 0, 5), vfs.ErrInvalid, vfs.ErrNotSupported)
	}
	s.holds(ino, []byte("bytes"))
	s.touched("what failed", before, then, 0)
}
