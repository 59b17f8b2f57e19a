package fusefs

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func TestHabits(t *testing.T) {
	var h habits
	const thread = 7
	list := func(dir vfs.Ino, first, want bool) {
		t.Helper()
		if got := h.list(thread, dir, first); got != want {
			t.Errorf("directory %d, first piece %v: attributes %v", dir, first, got)
		}
	}
	list(100, true, true)
	list(100, false, false)
	h.list(8, 99, true) // somebody else
	h.lookup(99)
	list(101, true, false)
	list(102, true, false)
	h.lookup(102)
	list(102, false, true) // at once, for what is left
	for dir := vfs.Ino(4); dir < tryBare; dir++ {
		list(dir, true, true)
		list(dir, false, true)
	}
	list(200, true, false) // does it still?
	list(201, true, false)
	h.lookup(201)
	list(202, true, true)
}

func TestHabitsAreFew(t *testing.T) {
	var h habits
	for thread := range uint32(10 * maxHabits) {
		h.list(thread, 5, true)
		h.list(thread, vfs.Ino(thread), true)
		if len(h.threads) > maxHabits || len(h.dirs) > maxHabits {
			t.Fatalf("%d threads are known, of %d directories", len(h.threads), len(h.dirs))
		}
	}
}

// walk goes through directories as it is told, each to its end before its names are used.
var walk = scenario("walk", func(c *client) {
	runtime.LockOSThread() // else it might seem to be many
	for i := range walkDirs {
		dir := fmt.Sprintf("d%d", i)
		f, err := os.Open(dir)
		c.must(err)
		names, err := f.Readdirnames(-1)
		c.must(err)
		c.must(f.Close())
		if len(names) != walkFiles {
			c.errorf("%s has %d names", dir, len(names))
		}
		slices.Sort(names)
		if c.args[0] == "stat" {
			for _, name := range names {
				c.size(dir+"/"+name, 1)
			}
		}
	}
	c.turn("walked")
})

const walkDirs, walkFiles = 20, 500

// TestWalkCosts: who wants the attributes of many directories gets them with the listings, and who does not, does not.
func TestWalkCosts(t *testing.T) {
	for _, test := range []struct {
		how      string
		requests uint64 // at most
		inodes   int    // that the kernel knows then, at most
	}{
		{"stat", 2*walkFiles + 20*walkDirs, walkDirs*(walkFiles+1) + 10},
		{"only list", 20 * walkDirs, walkFiles + walkDirs + 10},
	} {
		m := mount(t, nil, Options{})
		f := foreigner{t, m.tree, t.Context()}
		for i := range walkDirs {
			a, err := f.tree.Mkdir(f.ctx, vfs.RootIno, fmt.Sprintf("d%d", i), vfs.NewNode{Mode: 0o755})
			f.must(err)
			for j := range walkFiles {
				f.put(a.Ino, fmt.Sprintf("some-name-%d", j), "x")
			}
		}
		m.settle(t)
		c := m.start(t, 0, "", walk, test.how)
		c.expect("walked")
		if n := m.Requests(); n > test.requests {
			t.Errorf("%s: %d requests", test.how, n)
		}
		if n := len(m.holds.all()); n > test.inodes {
			t.Errorf("%s: the kernel has %d inodes", test.how, n)
		}
		c.tell("end")
		c.wait()
	}
}
