package fusefs

import (
	"bytes"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// What scenarios do with files, by plain system calls.

func (c *client) stat(path string) unix.Stat_t {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		c.fatalf("stat %q: %v", path, err)
	}
	return st
}

func (c *client) fstat(fd int) unix.Stat_t {
	var st unix.Stat_t
	c.must(unix.Fstat(fd, &st))
	return st
}

func (c *client) nlink(path string, want uint64) {
	if st := c.stat(path); st.Nlink != want {
		c.errorf("%s has %d links, want %d", path, st.Nlink, want)
	}
}

func (c *client) mode(path string, want uint32) {
	if st := c.stat(path); st.Mode != want {
		c.errorf("%s has mode %o, want %o", path, st.Mode, want)
	}
}

func (c *client) size(path string, want int64) {
	if st := c.stat(path); st.Size != want {
		c.errorf("%s has %d bytes, want %d", path, st.Size, want)
	}
}

func (c *client) gone(path string) {
	var st unix.Stat_t
	c.errno("stat "+path, unix.Lstat(path, &st), syscall.ENOENT)
}

func (c *client) put(path, content string) {
	c.must(os.WriteFile(path, []byte(content), 0o644))
}

func (c *client) holds(path, want string) {
	got, err := os.ReadFile(path)
	c.must(err)
	if string(got) != want {
		c.errorf("%s holds %q, want %q", path, abridge(string(got)), abridge(want))
	}
}

func abridge(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

func (c *client) mkdir(path string) { c.must(unix.Mkdir(path, 0o755)) }

func (c *client) open(path string, flags int) int {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		c.fatalf("open %s: %v", path, err)
	}
	return fd
}

func (c *client) close(fd int) { c.must(unix.Close(fd)) }

func (c *client) pwrite(fd int, b []byte, off int64) {
	n, err := unix.Pwrite(fd, b, off)
	if err != nil || n != len(b) {
		c.fatalf("pwrite: %d, %v", n, err)
	}
}

func (c *client) pread(fd int, n int, off int64) []byte {
	b := make([]byte, n)
	n, err := unix.Pread(fd, b, off)
	if err != nil {
		c.fatalf("pread: %v", err)
	}
	return b[:n]
}

func (c *client) reads(fd int, off int64, want string) {
	if got := c.pread(fd, len(want)+1, off); string(got) != want {
		c.errorf("reads %q, want %q", abridge(string(got)), abridge(want))
	}
}

// names returns the names in a directory, without "." and "..".
func (c *client) names(path string) []string {
	es, err := os.ReadDir(path)
	c.must(err)
	var names []string
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names
}

// dirent is one entry as getdents64(2) gives it.
type dirent struct {
	ino  uint64
	off  int64
	typ  byte
	name string
}

// getdents reads what one call gives.
func (c *client) getdents(fd int, room int) []dirent {
	buf := make([]byte, room)
	n, err := unix.Getdents(fd, buf)
	c.must(err)
	var all []dirent
	for b := buf[:n]; len(b) > 0; {
		size := order.Uint16(b[16:])
		name := b[19:size]
		name = name[:bytes.IndexByte(name, 0)]
		all = append(all, dirent{order.Uint64(b), int64(order.Uint64(b[8:])), b[18], string(name)})
		b = b[size:]
	}
	return all
}

// list reads a directory to its end.
func (c *client) list(fd int) []dirent {
	var all []dirent
	for {
		some := c.getdents(fd, 4096)
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

func nanos(ts unix.Timespec) int64 { return ts.Sec*1e9 + ts.Nsec }
