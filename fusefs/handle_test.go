package fusefs

import (
	"encoding/hex"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// makeHandles makes files and says their handles.
var makeHandles = scenario("make-handles", func(c *client) {
	c.put("f", "by handle")
	c.put("gone", "x")
	c.mkdir("d")
	c.mkdir("d/e")
	c.put("d/e/inner", "deep")
	for _, path := range []string{"f", "gone", "d/e", "d/e/inner"} {
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
		c.must(err)
		c.say(hex.EncodeToString(append(order.AppendUint32(nil, uint32(h.Type())), h.Bytes()...)))
	}
	c.must(unix.Rename("f", "g"))
	c.must(unix.Unlink("gone"))
})

// useHandles opens what they stand for.
var useHandles = scenario("use-handles", func(c *client) {
	root := c.open(".", unix.O_RDONLY|unix.O_DIRECTORY)
	defer c.close(root)
	open := func(arg int) (int, error) {
		b, err := hex.DecodeString(c.args[arg])
		c.must(err)
		h := unix.NewFileHandle(int32(order.Uint32(b)), b[4:])
		return unix.OpenByHandleAt(root, h, unix.O_RDONLY|unix.O_CLOEXEC)
	}
	for arg, want := range map[int]string{0: "by handle", 3: "deep"} {
		fd, err := open(arg)
		c.must(err)
		c.reads(fd, 0, want)
		c.close(fd)
	}
	_, err := open(1)
	c.errno("of what has gone", err, unix.ESTALE)
	dir, err := open(2)
	c.must(err)
	c.must(unix.Fchdir(dir)) // which makes the kernel find the way up
	c.holds("inner", "deep")
	c.holds("../../g", "by handle")
	c.close(dir)
})

// TestHandles: a file handle leads to the same file whatever its name has become, on the next mount as well, whose
// kernel has never seen the file.
func TestHandles(t *testing.T) {
	tree := vfstest.NewTree()
	m := mount(t, tree, Options{})
	c := m.start(t, 0, "", makeHandles)
	var handles []string
	for h := range c.lines {
		handles = append(handles, h)
	}
	c.wait()
	m.end(t)
	mount(t, tree, Options{}).run(t, useHandles, handles...)
}
