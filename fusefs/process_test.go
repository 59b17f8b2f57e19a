package fusefs

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// holdLocks takes a lock of each kind, and lets them go when it is told: one by unlocking, one by closing.
var holdLocks = scenario("hold-locks", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	c.must(unix.Flock(fd, unix.LOCK_EX))
	c.must(unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 10, Len: 10}))
	c.turn("locked")
	c.must(unix.Flock(fd, unix.LOCK_UN))
	c.close(fd)
	c.turn("unlocked")
})

// wantLocks cannot have them while they are held.
var wantLocks = scenario("want-locks", func(c *client) {
	fd := c.open("f", unix.O_RDWR)
	defer c.close(fd)
	record := func(start int64) error {
		return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: 5})
	}
	c.errno("flock", unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
	c.errno("fcntl", record(15), unix.EAGAIN)
	c.errno("fcntl beside it", record(20), 0)
	probe := unix.Flock_t{Type: unix.F_WRLCK, Start: 0, Len: 100}
	c.must(unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &probe))
	if probe.Type != unix.F_WRLCK || probe.Start != 10 || probe.Len != 10 || probe.Pid == 0 {
		c.errorf("who has it: %+v", probe)
	}
	c.turn("refused")
	// These wait until the other process lets go.
	c.must(unix.Flock(fd, unix.LOCK_EX))
	c.must(unix.FcntlFlock(uintptr(fd), unix.F_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK, Start: 15, Len: 5}))
	c.turn("got them")
})

func TestLocks(t *testing.T) {
	m := mount(t, nil, Options{})
	holder := m.start(t, 0, "", holdLocks)
	holder.expect("locked")
	other := m.start(t, 0, "", wantLocks)
	other.expect("refused")
	other.tell("wait for them")
	holder.tell("let go")
	holder.expect("unlocked")
	other.expect("got them")
	holder.tell("end")
	other.tell("end")
	holder.wait()
	other.wait()
}

// mapTogether and watchMap share a page.
var mapTogether = scenario("map-together", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	c.must(unix.Ftruncate(fd, 4096))
	b, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.must(err)
	c.turn("mapped")
	copy(b, "by map")
	c.turn("written")
	c.must(unix.Munmap(b))
	c.close(fd)
})

var watchMap = scenario("watch-map", func(c *client) {
	fd := c.open("f", unix.O_RDWR)
	b, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	c.must(err)
	if b[0] != 0 {
		c.errorf("not empty: %q", b[:6])
	}
	c.turn("mapped")
	if string(b[:6]) != "by map" {
		c.errorf("mapped: %q", b[:6])
	}
	c.reads(fd, 0, "by map"+strings.Repeat("\x00", 4090))
	c.close(fd)
})

func TestMapTogether(t *testing.T) {
	m := mount(t, nil, Options{})
	writer := m.start(t, 0, "", mapTogether)
	writer.expect("mapped")
	reader := m.start(t, 0, "", watchMap)
	reader.expect("mapped")
	writer.tell("write")
	writer.expect("written")
	reader.tell("look")
	reader.wait()
	writer.tell("end")
	writer.wait()
}

// programs runs a copy of a program, from a descriptor and as a script, and as another user by its set-user-ID bit.
var programs = scenario("programs", func(c *client) {
	cp := func(name string) *os.File {
		in, err := os.Open("/bin/" + name)
		c.must(err)
		out, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
		c.must(err)
		_, err = io.Copy(out, in)
		c.must(err)
		c.must(in.Close())
		return out
	}
	out := cp("sh")
	err := exec.Command("./sh", "-c", "exit 0").Run()
	c.errno("run what is open for writing", err, syscall.ETXTBSY)
	c.must(out.Close())
	c.must(exec.Command("./sh", "-c", "exit 0").Run())

	c.put("script", "#!/bin/sh\nread line < data\necho \"$line from $1\" > result\n")
	c.must(os.Chmod("script", 0o755))
	c.put("data", "data\n")
	c.must(exec.Command("./script", "arg").Run())
	c.holds("result", "data from arg\n")

	c.must(cp("cat").Close())
	c.must(unix.Chown("cat", stranger, stranger))
	c.must(unix.Chmod("cat", 0o4755))
	id, err := exec.Command("./cat", "/proc/self/status").Output()
	c.must(err)
	if !strings.Contains(string(id), "Uid:\t0\t1000\t") {
		c.errorf("a set-user-ID program runs as %s", id)
	}
})

// TestPrograms: programs run, with set-user-ID bits, as a mount by root allows.
func TestPrograms(t *testing.T) {
	mount(t, nil, Options{AllowOther: true}).run(t, programs)
}
