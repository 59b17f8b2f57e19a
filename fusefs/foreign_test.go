package fusefs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"golang.org/x/sys/unix"
)

// watchForeign has everything in the kernel's cache, and sees what somebody else has made of it. The files are open all
// the time.
var watchForeign = scenario("watch-foreign", func(c *client) {
	c.put("file", "short")
	c.put("gone", "x")
	c.put("moved", "moves")
	c.mkdir("dir")
	c.put("dir/inner", "x")
	c.must(unix.Symlink("old", "link"))
	c.put("twice", "x")
	c.must(unix.Link("twice", "again"))
	c.gone("new")
	c.gone("dir/new")
	look := func() []string {
		c.stat("file")
		c.holds("file", "short")
		c.names("dir")
		return c.names(".")
	}
	look()
	look()
	fd := c.open("file", unix.O_RDWR)
	b, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	c.must(err)
	if string(b[:5]) != "short" {
		c.errorf("mapped %q", b[:5])
	}

	c.turn("cached")
	c.holds("file", "LONGER THAN BEFORE")
	c.size("file", 18)
	c.reads(fd, 0, "LONGER THAN BEFORE")
	if string(b[:18]) != "LONGER THAN BEFORE" {
		c.errorf("mapped %q", b[:18])
	}
	c.mode("file", unix.S_IFREG|0o600)
	c.gone("gone")
	c.gone("moved")
	c.holds("dir/moved", "moves")
	c.holds("new", "new here")
	c.holds("dir/new", "in the directory")
	c.nlink("again", 1)
	c.gone("twice")
	if names := c.names("."); !slices.Equal(names, []string{"again", "dir", "file", "link", "new"}) {
		c.errorf("lists %q", names)
	}
	if names := c.names("dir"); !slices.Equal(names, []string{"moved", "new"}) {
		c.errorf("lists %q", names)
	}
	c.nlink(".", 3)

	c.turn("seen")
	c.reads(fd, 0, "LON")
	c.size("file", 3)
	c.close(fd)
	c.nlink(".", 2)
	c.gone("dir")
	_, err = unix.Open("dir/new", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	c.errno("create in a directory that is gone", err, unix.ENOENT)

	// Appending starts where the file ends now.
	fd = c.open("file", unix.O_WRONLY|unix.O_APPEND)
	_, err = unix.Write(fd, []byte("!"))
	c.must(err)
	c.close(fd)
	c.holds("file", "LON!")
})

// foreigner changes a tree behind the back of a mount.
type foreigner struct {
	t    *testing.T
	tree vfs.Tree
	ctx  context.Context
}

func (f foreigner) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f foreigner) ino(dir vfs.Ino, name string) vfs.Ino {
	f.t.Helper()
	a, err := f.tree.Lookup(f.ctx, dir, name)
	f.must(err)
	return a.Ino
}

func (f foreigner) put(dir vfs.Ino, name, content string) {
	f.t.Helper()
	a, err := f.tree.Create(f.ctx, dir, name, vfs.NewNode{Mode: 0o644})
	f.must(err)
	f.must(f.tree.WriteAt(f.ctx, a.Ino, []byte(content), 0, false))
}

func TestForeignChange(t *testing.T) {
	m := mount(t, nil, Options{})
	f := foreigner{t, m.tree, vfs.WithOrigin(t.Context(), "another machine")}
	c := m.start(t, 0, "", watchForeign)
	c.expect("cached")
	file, dir := f.ino(vfs.RootIno, "file"), f.ino(vfs.RootIno, "dir")
	f.must(f.tree.WriteAt(f.ctx, file, []byte("LONGER THAN BEFORE"), 0, false))
	_, err := f.tree.SetAttr(f.ctx, file, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o600})
	f.must(err)
	f.must(f.tree.Unlink(f.ctx, vfs.RootIno, "gone"))
	f.must(f.tree.Rename(f.ctx, vfs.RootIno, "moved", dir, "moved", 0))
	f.must(f.tree.Unlink(f.ctx, dir, "inner"))
	f.must(f.tree.Unlink(f.ctx, vfs.RootIno, "twice"))
	f.put(vfs.RootIno, "new", "new here")
	f.put(dir, "new", "in the directory")
	m.settle(t)
	c.tell("changed")
	c.expect("seen")
	_, err = f.tree.SetAttr(f.ctx, file, vfs.AttrSet{Mask: vfs.SetSize, Size: 3})
	f.must(err)
	f.must(f.tree.Unlink(f.ctx, dir, "new"))
	f.must(f.tree.Unlink(f.ctx, dir, "moved"))
	f.must(f.tree.Rmdir(f.ctx, vfs.RootIno, "dir"))
	m.settle(t)
	c.tell("changed")
	c.wait()
}

// appendBoth appends through a descriptor of each kind.
var appendBoth = scenario("append-both", func(c *client) {
	c.put("cached", "mine ")
	cached := c.open("cached", unix.O_WRONLY|unix.O_APPEND)
	direct := c.open("direct", unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
	write := func(s string) {
		for _, fd := range []int{cached, direct} {
			_, err := unix.Write(fd, []byte(s))
			c.must(err)
		}
	}
	_, err := unix.Write(direct, []byte("mine "))
	c.must(err)
	write("and mine ")
	c.turn("appended")
	write("still mine ")
	write(strings.Repeat("x", 300_000))
	c.turn("appended again")
	c.holds("cached", "mine and mine theirs still mine "+strings.Repeat("x", 300_000))
	c.close(cached)
	c.close(direct)
})

// TestForeignAppend: who appends overwrites nothing, even when the kernel has not heard that the file has grown. It
// does not hear of it here at all, because the change seems to be its own.
func TestForeignAppend(t *testing.T) {
	m := mount(t, nil, Options{})
	f := foreigner{t, m.tree, vfs.WithOrigin(t.Context(), m.Server)}
	c := m.start(t, 0, "", appendBoth)
	c.expect("appended")
	for _, name := range []string{"cached", "direct"} {
		f.must(f.tree.WriteAt(f.ctx, f.ino(vfs.RootIno, name), []byte("theirs "), 14, false))
	}
	c.tell("go on")
	c.expect("appended again")
	m.settle(t)
	c.tell("go on")
	c.wait()
	want := "mine and mine theirs still mine " + strings.Repeat("x", 300_000)
	for _, name := range []string{"cached", "direct"} {
		if got := m.content(t, name); got != want {
			t.Errorf("%s holds %q", name, abridge(got))
		}
	}
}

// countForeign says what a directory holds, each time that it is asked, and that missing names are missing.
var countForeign = scenario("count-foreign", func(c *client) {
	for c.turn("ready") == "look" {
		names := c.names("d")
		for _, name := range names {
			c.holds("d/"+name, name)
		}
		for i := range 5 {
			if name := fmt.Sprintf("f%d", i); !slices.Contains(names, name) {
				c.gone("d/" + name)
			}
		}
		slices.Sort(names)
		c.say(strings.Join(names, " "))
	}
})

// TestForeignFlood: when more changes than the queue holds come at once, nothing stale is left either. The changes here
// are not told to the kernel one by one, because they seem to be its own.
func TestForeignFlood(t *testing.T) {
	m := mount(t, nil, Options{})
	f := foreigner{t, m.tree, vfs.WithOrigin(t.Context(), m.Server)}
	_, err := f.tree.Mkdir(f.ctx, vfs.RootIno, "d", vfs.NewNode{Mode: 0o755})
	f.must(err)
	d := f.ino(vfs.RootIno, "d")
	for i := range 3 {
		f.put(d, fmt.Sprintf("f%d", i), fmt.Sprintf("f%d", i))
	}
	c := m.start(t, 0, "", countForeign)
	ask := func(want string) {
		t.Helper()
		c.expect("ready")
		c.tell("look")
		c.expect(want)
	}
	ask("f0 f1 f2")
	f.must(f.tree.Unlink(f.ctx, d, "f1"))
	f.put(d, "f4", "f4")
	ask("f0 f1 f2") // stale

	if m.notes.grows { // a kernel before 6.16: the queue holds each change
		for _, name := range []string{"f1", "f4"} {
			m.notes.changed(vfs.Change{Kind: vfs.ChangeEntry, Dir: d, Name: name})
		}
	} else {
		m.notes.mu.Lock()
		m.notes.collapseLocked()
		m.notes.mu.Unlock()
	}
	m.settle(t)
	ask("f0 f2 f4")
	c.expect("ready")
	c.tell("end")
	c.wait()
}

// listMany lists directories of many entries, in small and large pieces.
var listMany = scenario("list-many", func(c *client) {
	for _, room := range []int{4096, 32 << 10, 300} {
		fd := c.open("many", unix.O_RDONLY|unix.O_DIRECTORY)
		seen := make(map[string]bool)
		for {
			some := c.getdents(fd, room)
			for _, d := range some {
				if seen[d.name] {
					c.errorf("%s twice", d.name)
				}
				seen[d.name] = true
			}
			if len(some) == 0 {
				break
			}
		}
		if len(seen) != manyEntries+2 {
			c.errorf("%d entries by %d bytes, want %d", len(seen), room, manyEntries+2)
		}
		c.close(fd)
	}
	for i := 0; i < manyEntries; i += 1000 {
		c.mode(fmt.Sprintf("many/%d", i), unix.S_IFREG|0o600)
	}
})

const manyEntries = 20_000

func TestManyEntries(t *testing.T) {
	m := mount(t, nil, Options{})
	m.fresh(t, "many")
	f := foreigner{t, m.tree, t.Context()}
	dir := f.ino(vfs.RootIno, "many")
	for i := range manyEntries {
		_, err := f.tree.Create(f.ctx, dir, fmt.Sprint(i), vfs.NewNode{Mode: 0o600})
		f.must(err)
	}
	m.settle(t)
	m.run(t, listMany)
}
