package vfstest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var contentBehaviours = []behaviour{
	{"ReadsWhatWasWritten", readsWhatWasWritten},
	{"ReadStopsAtTheEnd", readStopsAtTheEnd},
	{"WriteSetsTimes", writeSetsTimes},
	{"ReadKeepsMtimeAndCtime", readKeepsTimes},
	{"WriteOfNothing", writeOfNothing},
	{"OverlappingWrites", overlappingWrites},
	{"WritePastTheEndLeavesZeros", writePastTheEndLeavesZeros},
	{"SparseFileOfTebibytes", sparseFileOfTebibytes},
	{"FileSizeHasALimit", fileSizeHasALimit},
	{"TruncateDownAndUpLeavesZeros", truncateDownAndUpLeavesZeros},
	{"TruncateThenRewriteTheGap", truncateThenRewriteTheGap},
	{"InlineToLargeAndBack", inlineToLargeAndBack},
	{"AppendInSmallSteps", appendInSmallSteps},
	{"RandomOverwrites", randomOverwrites},
	{"InsertionShiftsEverything", insertionShiftsEverything},
	{"SameBytesInManyFiles", sameBytesInManyFiles},
	{"BlocksCountBytesNotHoles", blocksCountBytesNotHoles},
	{"ReplaceByWritingAgain", replaceByWritingAgain},
}

// pattern returns n bytes that depend on the seed, compress badly and hold no zero, so that holes show.
func pattern(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	p := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		v := r.Uint64()
		for j := range 8 {
			p[i+j] = byte(v>>(8*j)) | 1
		}
	}
	return p[:n]
}

// edgeSizes lie around the sizes at which a store changes how it keeps bytes.
var edgeSizes = []int{
	0, 1, 2, 511, 512, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, 131072, 524287, 524288, 524289,
	1 << 20, 3<<20 + 17,
}

// settled runs f as two subtests: on bytes as they are written, and with a commit wherever f calls settle.
func (s *suite) settled(f func(s *suite, dir vfs.Ino, settle func())) {
	for _, mode := range []string{"live", "committed"} {
		dir := s.mkdir(s.dir, mode).Ino
		s.Run(mode, func(t *testing.T) {
			sub := *s
			sub.T = t
			f(&sub, dir, func() {
				if mode == "committed" {
					sub.commit()
				}
			})
		})
	}
}

func readsWhatWasWritten(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		for _, size := range edgeSizes {
			ino := s.create(dir, fmt.Sprint(size)).Ino
			want := pattern(size, uint64(size))
			s.write(ino, 0, want)
			settle()
			s.holds(ino, want)
			for _, at := range []int{0, 1, size / 3, size / 2, size - 1} {
				if at >= 0 && at < size {
					s.reads(ino, uint64(at), want[at:min(size, at+5000)])
				}
			}
		}
	})
}

func readStopsAtTheEnd(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(6000, 1))
	p := make([]byte, 100)
	for _, c := range []struct {
		off  uint64
		want int
	}{
		{5900, 100}, {5901, 99}, {5999, 1}, {6000, 0}, {6001, 0}, {1 << 40, 0}, {vfs.MaxFileSize, 0}, {1 << 63, 0},
		{math.MaxUint64, 0}, {math.MaxUint64 - 50, 0},
	} {
		if n, err := s.tree.ReadAt(s.ctx(), ino, p, c.off); n != c.want || err != nil {
			s.Errorf("read %d bytes at %d (%v), want %d", n, c.off, err, c.want)
		}
	}
	if n, err := s.tree.ReadAt(s.ctx(), ino, nil, 10); n != 0 || err != nil {
		s.Errorf("read %d bytes into nothing (%v)", n, err)
	}
}

func writeSetsTimes(s *suite) {
	ino := s.create(s.dir, "f").Ino
	for _, off := range []uint64{0, 0, 3, 1 << 20} {
		s.commit()
		before, work, then := s.stat(ino), s.stat(s.dir), s.tick()
		s.write(ino, off, []byte("bytes"))
		s.touched(fmt.Sprintf("write at %d", off), before, then, mtime|ctime)
		s.touched("its directory", work, then, 0)
	}
}

func readKeepsTimes(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, []byte("bytes"))
	before, then := s.stat(ino), s.tick()
	s.holds(ino, []byte("bytes"))
	s.touched("read", before, then, 0)
}

func writeOfNothing(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, nil)
	s.write(ino, 1000, []byte{})
	s.holds(ino, nil)
	s.write(ino, 0, []byte("bytes"))
	s.write(ino, 2, nil)
	s.holds(ino, []byte("bytes"))
}

func overlappingWrites(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		var model []byte
		for i, w := range []struct{ off, n int }{
			{0, 10000}, {5000, 10000}, {4000, 100}, {3999, 102}, {0, 1}, {14999, 1}, {14999, 2}, {4096, 4096}, {4095, 4098},
			{2000, 12000}, {0, 20000}, {7, 3}, {8, 1}, {19990, 20}, {0, 300000}, {131071, 2}, {65536, 131072}, {299999, 4097},
		} {
			p := pattern(w.n, uint64(i))
			s.write(ino, uint64(w.off), p)
			model = overwrite(model, w.off, p)
			s.holds(ino, model)
			settle()
			s.holds(ino, model)
		}
	})
}

// overwrite does to a slice what a write does to a file.
func overwrite(model []byte, off int, p []byte) []byte {
	if end := off + len(p); end > len(model) {
		model = resized(model, end)
	}
	copy(model[off:], p)
	return model
}

// resized does to a slice what a truncation does to a file.
func resized(model []byte, size int) []byte {
	if size <= len(model) {
		return model[:size:size]
	}
	return append(model[:len(model):len(model)], make([]byte, size-len(model))...)
}

func writePastTheEndLeavesZeros(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		for i, gap := range []int{1, 100, 4095, 4096, 4097, 60_000, 300_000, 2 << 20} {
			for j, size := range []int{0, 1, 4000, 4096, 70_000} {
				ino := s.create(dir, fmt.Sprint(i, "-", j)).Ino
				model := pattern(size, 1)
				s.write(ino, 0, model)
				settle()
				model = overwrite(model, size+gap, []byte("after the gap"))
				s.write(ino, uint64(size+gap), []byte("after the gap"))
				s.holds(ino, model)
				settle()
				s.holds(ino, model)
			}
		}
	})
}

func sparseFileOfTebibytes(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		marks := []uint64{0, 1 << 20, 1<<32 - 5, 1 << 32, 1 << 40, 10<<40 + 12345, vfs.MaxFileSize - 5}
		for i, off := range marks {
			s.write(ino, off, fmt.Appendf(nil, "mark%d", i))
			settle()
		}
		for i, off := range marks {
			s.reads(ino, off, fmt.Appendf(nil, "mark%d", i))
			if off > 1<<20 && off != 1<<32 {
				s.reads(ino, off-4096, make([]byte, 4096))
			}
		}
		s.reads(ino, 5<<40, make([]byte, 1<<20))
		if a := s.stat(ino); a.Size != vfs.MaxFileSize || a.Blocks*512 > 8<<20 {
			s.Errorf("size %d in %d blocks of 512 bytes", a.Size, a.Blocks)
		}
		s.truncate(ino, 1<<32+1)
		settle()
		s.reads(ino, 1<<32-5, []byte("mark2m"))
		s.truncate(ino, 0)
		s.holds(ino, nil)
	})
}

func fileSizeHasALimit(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, []byte("bytes"))
	before, then := s.stat(ino), s.tick()
	for _, off := range []uint64{
		vfs.MaxFileSize - 4, vfs.MaxFileSize, vfs.MaxFileSize + 1, 1 << 50, 1 << 63, math.MaxUint64 - 4, math.MaxUint64,
	} {
		s.fails(s.tree.WriteAt(s.ctx(), ino, []byte("bytes"), off, true), vfs.ErrTooBig)
	}
	s.touched("a write that failed", before, then, 0)
	s.holds(ino, []byte("bytes"))
	s.write(ino, vfs.MaxFileSize-5, []byte("bytes"))
	s.reads(ino, vfs.MaxFileSize-6, []byte("\x00bytes"))
}

func truncateDownAndUpLeavesZeros(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		for _, size := range edgeSizes {
			for i, cut := range []int{0, size / 2, size - 1, size - 4096} {
				if cut < 0 {
					continue
				}
				ino := s.create(dir, fmt.Sprint(size, "-", i)).Ino
				model := pattern(size, 1)
				s.write(ino, 0, model)
				settle()
				s.truncate(ino, uint64(cut))
				model = resized(model, cut)
				s.holds(ino, model)
				settle()
				s.truncate(ino, uint64(size+5000))
				model = resized(model, size+5000)
				s.holds(ino, model)
				settle()
				s.holds(ino, model)
			}
		}
	})
}

func truncateThenRewriteTheGap(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		for i, c := range []struct{ size, cut, at, n, grow int }{
			{10_000, 100, 5000, 10, 12_000},
			{10_000, 4096, 4097, 1, 9000},
			{4096, 0, 4095, 1, 4096},
			{4097, 4096, 4096, 1, 4098},
			{300_000, 1000, 200_000, 1000, 300_001},
			{300_000, 131_072, 131_073, 70_000, 400_000},
			{1 << 20, 3, 1 << 19, 1 << 18, 2 << 20},
			{1 << 20, 1<<20 - 1, 1 << 20, 5, 1<<20 + 5},
		} {
			ino := s.create(dir, fmt.Sprint(i)).Ino
			model := pattern(c.size, 1)
			s.write(ino, 0, model)
			settle()
			s.truncate(ino, uint64(c.cut))
			settle()
			s.write(ino, uint64(c.at), pattern(c.n, 2))
			model = overwrite(resized(model, c.cut), c.at, pattern(c.n, 2))
			s.holds(ino, model)
			settle()
			s.truncate(ino, uint64(c.grow))
			model = resized(model, c.grow)
			s.holds(ino, model)
			settle()
			s.holds(ino, model)
		}
	})
}

func inlineToLargeAndBack(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		var model []byte
		for i, size := range []int{10, 4096, 4097, 4096, 600_000, 4095, 70_000, 1, 4097, 0, 3 << 20, 4096, 5} {
			switch {
			case size > len(model):
				p := pattern(size-len(model), uint64(i))
				s.write(ino, uint64(len(model)), p)
				model = append(model, p...)
			default:
				s.truncate(ino, uint64(size))
				model = resized(model, size)
			}
			s.holds(ino, model)
			settle()
			s.holds(ino, model)
		}
	})
}

func appendInSmallSteps(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		var model []byte
		for i := range 400 {
			p := pattern(1+i*7%1500, uint64(i))
			s.write(ino, uint64(len(model)), p)
			model = append(model, p...)
			if i%37 == 0 {
				settle()
			}
		}
		s.holds(ino, model)
	})
}

func randomOverwrites(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		for _, size := range []int{1, 4095, 4096, 4097, 65536, 524288, 4<<20 + 3} {
			s.Run(fmt.Sprint(size), func(t *testing.T) {
				sub := *s
				sub.T = t
				sub.overwriteAtRandom(sub.create(dir, fmt.Sprint(size)).Ino, size, settle)
			})
		}
	})
}

// overwriteAtRandom compares a file with a slice through random writes and truncations about a size.
func (s *suite) overwriteAtRandom(ino vfs.Ino, size int, settle func()) {
	r := rand.New(rand.NewPCG(uint64(size), 1))
	model := pattern(size, 0)
	s.write(ino, 0, model)
	for i := range 120 {
		switch off := r.IntN(size + 1); r.IntN(8) {
		case 0:
			to := r.IntN(size + size/2 + 2)
			s.truncate(ino, uint64(to))
			model = resized(model, to)
		case 1:
			settle()
		default:
			p := pattern(1+r.IntN(min(size, 100_000)), uint64(i))
			s.write(ino, uint64(off), p)
			model = overwrite(model, off, p)
		}
		if at := r.IntN(len(model) + 1); at < len(model) {
			s.reads(ino, uint64(at), model[at:min(len(model), at+10_000)])
		}
	}
	s.holds(ino, model)
	settle()
	s.holds(ino, model)
}

func insertionShiftsEverything(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		model := pattern(2<<20, 1)
		s.write(ino, 0, model)
		settle()
		model = slices.Concat([]byte("inserted"), model)
		s.write(ino, 0, model)
		settle()
		s.holds(ino, model)
	})
}

func sameBytesInManyFiles(s *suite) {
	inos := make([]vfs.Ino, 10)
	want := pattern(700_000, 1)
	for i := range inos {
		inos[i] = s.create(s.dir, fmt.Sprint(i)).Ino
		s.write(inos[i], 0, want)
	}
	s.commit()
	s.write(inos[3], 1000, []byte("only here"))
	s.unlink(s.dir, "4")
	s.commit()
	for i, ino := range inos {
		switch i {
		case 3:
			s.holds(ino, overwrite(slices.Clone(want), 1000, []byte("only here")))
		case 4:
			s.gone(ino)
		default:
			s.holds(ino, want)
		}
	}
}

func blocksCountBytesNotHoles(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		bytesHeld := func(what string, least, most uint64) {
			s.Helper()
			settle()
			if held := s.stat(ino).Blocks * 512; held < least || held > most {
				s.Errorf("%s: blocks of %d bytes in all, want %d to %d", what, held, least, most)
			}
		}
		bytesHeld("empty", 0, 0)
		s.write(ino, 0, pattern(1<<20, 1))
		bytesHeld("1 MiB of bytes", 1<<20, 2<<20)
		s.truncate(ino, 1<<30)
		bytesHeld("1 GiB with 1 MiB of bytes", 1<<20, 2<<20)
		s.write(ino, 1<<29, []byte("x"))
		bytesHeld("and one byte more", 1<<20+1, 3<<20)
		s.truncate(ino, 0)
		bytesHeld("empty again", 0, 0)
		s.write(ino, 0, []byte("x"))
		bytesHeld("one byte", 1, 1<<20)
		s.write(ino, 0, pattern(10_000, 2))
		bytesHeld("10,000 bytes", 10_000, 1<<20)
		s.truncate(ino, 0)
		bytesHeld("empty for the last time", 0, 0)
	})
}

func replaceByWritingAgain(s *suite) {
	s.settled(func(s *suite, dir vfs.Ino, settle func()) {
		ino := s.create(dir, "f").Ino
		for i := range 20 {
			want := pattern(1000*(i*i%23)+i, uint64(i))
			s.truncate(ino, 0)
			s.write(ino, 0, want)
			settle()
			s.holds(ino, want)
		}
	})
}
