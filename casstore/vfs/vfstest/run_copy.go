package vfstest

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/carrelfs/carrel/casstore/vfs"
)

var copyBehaviours = []behaviour{
	{"CopiesBytes", copyCopiesBytes},
	{"RandomRanges", copyRandomRanges},
	{"EndsWithSource", copyEndsWithSource},
	{"KeepsHoles", copyKeepsHoles},
	{"LaterWritesStayApart", copyLaterWritesStayApart},
	{"OverlapFails", copyOverlapFails},
	{"SetsTimes", copySetsTimes},
	{"OfOtherThanFilesFails", copyOfOtherThanFilesFails},
}

func (s *suite) copy(src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n, want uint64) {
	s.Helper()
	got, err := s.tree.CopyRange(s.ctx(), src, off, dst, dstOff, n)
	s.ok(err)
	if got != want {
		s.Errorf("%d bytes were copied, want %d", got, want)
	}
}

func copyCopiesBytes(s *suite) {
	for _, size := range []int{1, 4096, 4097, 100_000, 600_000, 5 << 20} {
		model := pattern(size, 3)
		src := s.create(s.dir, fmt.Sprint("src", size)).Ino
		dst := s.create(s.dir, fmt.Sprint("dst", size)).Ino
		s.write(src, 0, model)
		s.copy(src, 0, dst, 0, uint64(size), uint64(size))
		s.holds(dst, model)
		s.holds(src, model)
	}
}

// copyRandomRanges copies between two files and within one, at offsets that are no chunk's, over what is there.
func copyRandomRanges(s *suite) {
	rnd := rand.New(rand.NewPCG(5, 6))
	models := [][]byte{pattern(3<<20, 1), pattern(2<<20, 2)}
	inos := []vfs.Ino{s.create(s.dir, "a").Ino, s.create(s.dir, "b").Ino}
	for i, m := range models {
		s.write(inos[i], 0, m)
	}
	for range 40 {
		i, j := rnd.IntN(2), rnd.IntN(2)
		n := rnd.IntN(1 << 20)
		off := rnd.IntN(len(models[i]) - n)
		to := rnd.IntN(len(models[j]) + 1<<16)
		if i == j && off < to+n && to < off+n {
			continue
		}
		s.copy(inos[i], uint64(off), inos[j], uint64(to), uint64(n), uint64(n))
		if grow := to + n - len(models[j]); grow > 0 && n > 0 {
			models[j] = append(models[j], make([]byte, grow)...)
		}
		copy(models[j][min(to, len(models[j])):], bytes.Clone(models[i][off:off+n]))
		s.holds(inos[j], models[j])
	}
	s.holds(inos[0], models[0])
}

func copyEndsWithSource(s *suite) {
	model := pattern(700_000, 4)
	src, dst := s.create(s.dir, "src").Ino, s.create(s.dir, "dst").Ino
	s.write(src, 0, model)
	s.copy(src, 600_000, dst, 0, 1<<30, 100_000)
	s.copy(src, 700_000, dst, 0, 1<<30, 0)
	s.copy(src, 0, dst, 0, 0, 0)
	s.holds(dst, model[600_000:])
}

func copyKeepsHoles(s *suite) {
	src, dst := s.create(s.dir, "src").Ino, s.create(s.dir, "dst").Ino
	model := make([]byte, 4<<20)
	copy(model[3<<20:], pattern(1<<20, 5))
	s.write(src, 3<<20, model[3<<20:])
	s.copy(src, 0, dst, 0, 4<<20, 4<<20)
	s.holds(dst, model)
}

func copyLaterWritesStayApart(s *suite) {
	model := pattern(2<<20, 6)
	src, dst := s.create(s.dir, "src").Ino, s.create(s.dir, "dst").Ino
	s.write(src, 0, model)
	s.copy(src, 0, dst, 0, 2<<20, 2<<20)
	s.write(src, 1<<20, []byte("in the source"))
	changed := bytes.Clone(model)
	copy(changed[1<<19:], "in the copy")
	s.write(dst, 1<<19, []byte("in the copy"))
	s.holds(dst, changed)
	copy(model[1<<20:], "in the source")
	s.holds(src, model)
}

func copyOverlapFails(s *suite) {
	ino := s.create(s.dir, "f").Ino
	s.write(ino, 0, pattern(1<<20, 7))
	for _, to := range []uint64{0, 1, 299_999} {
		_, err := s.tree.CopyRange(s.ctx(), ino, 0, ino, to, 300_000)
		s.fails(err, vfs.ErrInvalid)
	}
	_, err := s.tree.CopyRange(s.ctx(), ino, 0, ino, vfs.MaxFileSize-10, 300_000)
	s.fails(err, vfs.ErrTooBig)
	s.copy(ino, 0, ino, 300_000, 300_000, 300_000)
}

func copySetsTimes(s *suite) {
	src, dst := s.create(s.dir, "src").Ino, s.create(s.dir, "dst").Ino
	s.write(src, 0, pattern(1<<20, 8))
	before := s.stat(dst)
	s.tick()
	s.copy(src, 0, dst, 0, 1<<20, 1<<20)
	if after := s.stat(dst); after.Mtime <= before.Mtime || after.Ctime <= before.Ctime || after.Size != 1<<20 {
		s.Errorf("attributes %+v, before %+v", after, before)
	}
}

func copyOfOtherThanFilesFails(s *suite) {
	file, dir := s.create(s.dir, "f").Ino, s.mkdir(s.dir, "d").Ino
	s.write(file, 0, pattern(1<<20, 9))
	for _, pair := range [][2]vfs.Ino{{file, dir}, {dir, file}} {
		_, err := s.tree.CopyRange(s.ctx(), pair[0], 0, pair[1], 0, 1<<20)
		s.fails(err, vfs.ErrIsDir, vfs.ErrInvalid)
	}
}
