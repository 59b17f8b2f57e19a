package step

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"

	"golang.org/x/sys/unix"
)

// fileName is the file that the steps about one file work on.
const fileName = "f"

const (
	// page is the unit of random access, and of what makes bytes new.
	page = 4096
	// poolSize bounds the random bytes that are made before the timer starts; longer files repeat them with a number
	// in each page.
	poolSize = 16 << 20
)

// byteSteps work on one file. SIZE and BLOCK are in bytes.
var byteSteps = map[string]step{
	"write":       {"SIZE BLOCK", func(n []int64, t *timer) error { return write(n[0], n[1], false, t) }},
	"write-fsync": {"SIZE BLOCK", func(n []int64, t *timer) error { return write(n[0], n[1], true, t) }},
	"overwrite":   {"SIZE BLOCK", func(n []int64, t *timer) error { return overwrite(n[0], n[1], t) }},
	"read":        {"SIZE BLOCK", func(n []int64, t *timer) error { return read(n[0], n[1], t) }},
	"random-write": {"SIZE COUNT", func(n []int64, t *timer) error {
		return scattered(unix.O_WRONLY, n[0], n[1], t, unix.Pwrite)
	}},
	"random-read": {"SIZE COUNT", func(n []int64, t *timer) error {
		return scattered(unix.O_RDONLY, n[0], n[1], t, unix.Pread)
	}},
	"map-read":     {"SIZE", func(n []int64, t *timer) error { return mapRead(n[0], t) }},
	"append-fsync": {"COUNT", func(n []int64, t *timer) error { return appendFsync(n[0], t) }},
}

// random returns bytes that nobody has seen before.
func random(n int64) []byte {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // it never fails
	b := make([]byte, n)
	_, _ = mathrand.NewChaCha8(seed).Read(b) // nor does this
	return b
}

// stamp makes a page unlike all others with the same bytes.
func stamp(b []byte, n uint64) { binary.LittleEndian.PutUint64(b, n) }

// source gives out random bytes, a block at a time; no page of them comes twice.
type source struct {
	pool []byte
	at   int64
	next uint64
}

func newSource(size, block int64) *source {
	n := max(min(size, poolSize)/block, 1) * block
	return &source{pool: random(n)}
}

func (s *source) block(n int64) []byte {
	if s.at+n > int64(len(s.pool)) {
		s.at = 0
	}
	b := s.pool[s.at : s.at+n]
	s.at += n
	for p := 0; p+8 <= len(b); p += page {
		s.next++
		stamp(b[p:], s.next)
	}
	return b
}

func write(size, block int64, sync bool, t *timer) error {
	from := newSource(size, block)
	return t.time(func() error {
		fd, err := unix.Open(fileName, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return wrap("create", fileName, err)
		}
		err = copyOut(fd, size, block, from)
		if err == nil && sync {
			err = wrap("fsync", fileName, unix.Fsync(fd))
		}
		return closing(fd, err)
	})
}

// overwrite writes over a file that is there.
func overwrite(size, block int64, t *timer) error {
	from := newSource(size, block)
	return t.time(func() error {
		fd, err := unix.Open(fileName, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return wrap("open", fileName, err)
		}
		return closing(fd, copyOut(fd, size, block, from))
	})
}

func copyOut(fd int, size, block int64, from *source) error {
	for at := int64(0); at < size; at += block {
		if err := writeAll(fd, from.block(min(block, size-at))); err != nil {
			return wrap("write", fileName, err)
		}
	}
	return nil
}

func read(size, block int64, t *timer) error {
	buffer := make([]byte, block)
	return t.time(func() error {
		fd, err := unix.Open(fileName, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return wrap("open", fileName, err)
		}
		total := int64(0)
		for {
			n, err := unix.Read(fd, buffer)
			if err != nil {
				return closing(fd, wrap("read", fileName, err))
			}
			if n == 0 {
				break
			}
			total += int64(n)
		}
		if total != size {
			return closing(fd, fmt.Errorf("read %s: %d bytes, not %d", fileName, total, size))
		}
		return closing(fd, nil)
	})
}

// scattered reads or writes pages here and there in a file of size bytes.
func scattered(flags int, size, count int64, t *timer, access func(int, []byte, int64) (int, error)) error {
	from := newSource(poolSize, page)
	seed := random(16)
	rng := mathrand.New(mathrand.NewPCG(binary.LittleEndian.Uint64(seed), binary.LittleEndian.Uint64(seed[8:])))
	return t.time(func() error {
		fd, err := unix.Open(fileName, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return wrap("open", fileName, err)
		}
		for range count {
			n, err := access(fd, from.block(page), rng.Int64N(max(size/page, 1))*page)
			if err == nil && n != page {
				err = fmt.Errorf("only %d bytes", n)
			}
			if err != nil {
				return closing(fd, wrap("access", fileName, err))
			}
		}
		return closing(fd, nil)
	})
}

// mapRead touches every page of a file through a mapping.
func mapRead(size int64, t *timer) error {
	return t.time(func() error {
		fd, err := unix.Open(fileName, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return wrap("open", fileName, err)
		}
		m, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return closing(fd, wrap("map", fileName, err))
		}
		sum := byte(0)
		for at := 0; at < len(m); at += page {
			sum |= m[at]
		}
		if sum == 0 && size > poolSize/2 { // random bytes are not all zero
			err = errors.New("all pages begin with zero")
		}
		return closing(fd, errors.Join(err, unix.Munmap(m)))
	})
}

// appendFsync adds a byte and waits until it is durable, again and again.
func appendFsync(count int64, t *timer) error {
	return t.time(func() error {
		fd, err := unix.Open(fileName, unix.O_APPEND|unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return wrap("open", fileName, err)
		}
		for range count {
			if err := errors.Join(writeAll(fd, []byte{'x'}), unix.Fsync(fd)); err != nil {
				return closing(fd, wrap("append", fileName, err))
			}
		}
		return closing(fd, nil)
	})
}

// wrap says what failed on what. It keeps nil.
func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, name, err)
}

// closing closes a descriptor, whose error counts as much as the work's.
func closing(fd int, err error) error { return errors.Join(err, unix.Close(fd)) }

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// readFull reads until b is full or the file ends.
func readFull(fd int, b []byte) (total int, err error) {
	for total < len(b) {
		n, err := unix.Read(fd, b[total:])
		if err != nil || n == 0 {
			return total, err
		}
		total += n
	}
	return total, nil
}
