package fusefs

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// countSyncs is a tree that counts what is to be durable.
type countSyncs struct {
	vfs.Tree
	n atomic.Int64
}

func (s *countSyncs) Fsync(ctx context.Context, ino vfs.Ino) error {
	s.n.Add(1)
	return s.Tree.Fsync(ctx, ino)
}

// durableWrites writes in all ways that promise durability, and some that do not. It says how often it was promised.
var durableWrites = scenario("durable-writes", func(c *client) {
	for i, how := range []struct {
		flags   int
		write   int // flag of pwritev2
		promise bool
	}{
		{unix.O_CREAT | unix.O_WRONLY, 0, false},
		{unix.O_CREAT | unix.O_WRONLY | unix.O_SYNC, 0, true},
		{unix.O_CREAT | unix.O_WRONLY | unix.O_DSYNC, 0, true},
		{unix.O_CREAT | unix.O_WRONLY, unix.RWF_DSYNC, true},
		{unix.O_CREAT | unix.O_RDWR, 0, false},
		{unix.O_CREAT | unix.O_RDWR | unix.O_SYNC, 0, true},
		{unix.O_CREAT | unix.O_RDWR, unix.RWF_DSYNC, true},
		{unix.O_RDWR | unix.O_DIRECT | unix.O_DSYNC, 0, true}, // the last file again
	} {
		name := "f" + strconv.Itoa(min(i, 6))
		fd := c.open(name, how.flags)
		block, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		c.must(err)
		n, err := unix.Pwritev2(fd, [][]byte{block}, 0, how.write)
		if n != len(block) || err != nil {
			c.fatalf("write %d: %d, %v", i, n, err)
		}
		c.turn(strconv.FormatBool(how.promise))
		c.close(fd)
	}
	c.say("done")
})

// TestDurableWrites: a write that is to be durable is synced before it returns, and only such a one.
func TestDurableWrites(t *testing.T) {
	tree := &countSyncs{Tree: vfstest.NewTree()}
	m := mount(t, tree, Options{})
	c := m.start(t, 0, "", durableWrites)
	for i := 0; ; i++ {
		line := <-c.lines
		if line == "done" {
			break
		}
		promised, err := strconv.ParseBool(line)
		if err != nil {
			c.wait()
			t.Fatalf("said %q", line)
		}
		if n := tree.n.Swap(0); n > 0 != promised {
			t.Errorf("write %d: durability promised %v, %d syncs", i, promised, n)
		}
		c.tell("go on")
	}
	c.wait()
}
