package fusefs

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"golang.org/x/sys/unix"
)

// costs does one thing at a time; its test counts what the kernel asks for each.
var costs = scenario("costs", func(c *client) {
	c.put("warm", "up") // after this the kernel has learned what it need not ask
	c.holds("warm", "up")
	c.mkdir("dir")
	runtime.LockOSThread() // and we, that this thread wants attributes
	c.names(".")
	c.names("lesson")
	c.size("lesson/one", 3)
	c.turn("begin")
	c.put("f", "some bytes")
	c.turn("create, write, close")
	fd := c.open("f", unix.O_WRONLY|unix.O_APPEND)
	_, err := unix.Write(fd, []byte(", more"))
	c.must(err)
	c.close(fd)
	c.turn("append")
	c.holds("f", "some bytes, more")
	c.turn("first read")
	c.holds("f", "some bytes, more")
	c.turn("second read")
	c.stat("f")
	c.stat("f")
	c.turn("stat again")
	c.gone("none")
	c.turn("missing")
	c.gone("none")
	c.turn("missing again")
	c.names("dir")
	c.turn("list")
	for i, name := range c.names("full") {
		c.size("full/"+name, int64(i))
	}
	c.turn("list and stat")
	c.names("dir")
	c.turn("list again")
	c.must(os.Remove("f"))
	c.turn("remove")
})

func TestCosts(t *testing.T) { bothInits(t, countCosts) }

func countCosts(t *testing.T) {
	m := mount(t, nil, Options{})
	m.fresh(t, "full")
	m.fresh(t, "lesson")
	f := foreigner{t, m.tree, t.Context()}
	f.put(f.ino(vfs.RootIno, "lesson"), "one", "one")
	for i := range 20 {
		f.put(f.ino(vfs.RootIno, "full"), fmt.Sprintf("f%02d", i), strings.Repeat("x", i))
	}
	m.settle(t)
	c := m.start(t, 0, "", costs)
	c.expect("begin")
	for _, step := range []struct {
		name  string
		limit uint64
	}{
		{"create, write, close", 4},
		{"append", 3},      // WRITE; GETATTR of the directory, which was changed; GETXATTR, once for each file
		{"first read", 2},  // GETATTR, READ
		{"second read", 1}, // GETATTR, for the atime
		{"stat again", 0},
		{"missing", 1},
		{"missing again", 0},
		{"list", 2},
		{"list and stat", 5}, // LOOKUP of the directory and a file, READDIRPLUS, READDIR or both
		{"list again", 0},
		{"remove", 4},
	} {
		before := m.Requests()
		c.tell("go on")
		c.expect(step.name)
		if n := m.Requests() - before; n > step.limit {
			t.Errorf("%s: %d requests, want at most %d", step.name, n, step.limit)
		}
	}
	c.tell("go on")
	c.wait()
}
