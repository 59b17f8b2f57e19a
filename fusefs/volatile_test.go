package fusefs

import (
	"context"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// secretive is a tree that tells nobody of its changes, and has a directory that is volatile.
type secretive struct {
	vfs.Tree
	dir vfs.Ino
}

func (s *secretive) Volatile(ino vfs.Ino) bool { return ino == s.dir }

func (s *secretive) Watch(any, func(vfs.Change)) (stop func()) { return func() {} }

// lookVolatile has what it can of a directory in the kernel's cache, and finds it changed.
var lookVolatile = scenario("look-volatile", func(c *client) {
	for range 2 {
		c.gone("dir/new")
		c.holds("dir/old", "old")
		c.mode("dir", unix.S_IFDIR|0o755)
		if names := c.names("dir"); !slices.Equal(names, []string{"old", "same"}) {
			c.errorf("lists %q", names)
		}
	}
	same := c.stat("dir/same")
	c.turn("looked")
	c.gone("dir/old")
	c.holds("dir/new", "new")
	c.mode("dir", unix.S_IFDIR|0o700)
	if names := c.names("dir"); !slices.Equal(names, []string{"new", "same"}) {
		c.errorf("lists %q", names)
	}
	if now := c.stat("dir/same"); now.Ino != same.Ino {
		c.errorf("inode %d has become %d", same.Ino, now.Ino)
	}
	c.must(unix.Unlink("dir/same"))
	c.gone("dir/same")
})

// TestVolatile: what is in a volatile directory is asked for each time, and nobody need say that it has changed.
func TestVolatile(t *testing.T) {
	tree := &secretive{Tree: vfstest.NewTree()}
	dir, err := tree.Mkdir(t.Context(), vfs.RootIno, "dir", vfs.NewNode{Mode: 0o755})
	if err != nil {
		t.Fatal(err)
	}
	tree.dir = dir.Ino
	f := foreigner{t, tree, t.Context()}
	f.put(dir.Ino, "old", "old")
	f.put(dir.Ino, "same", "same")
	m := mount(t, tree, Options{})
	c := m.start(t, 0, "", lookVolatile)
	c.expect("looked")
	f.must(tree.Unlink(f.ctx, dir.Ino, "old"))
	f.put(dir.Ino, "new", "new")
	_, err = tree.SetAttr(f.ctx, dir.Ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o700})
	f.must(err)
	c.tell("changed")
	c.wait()
}

// sealed is a tree with a file that cannot be written.
type sealed struct {
	vfs.Tree
	ino vfs.Ino
}

func (s *sealed) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	if ino == s.ino {
		return vfs.ErrReadOnly
	}
	return s.Tree.WriteAt(ctx, ino, p, off, killPriv)
}

// writeSealed writes into a file that cannot be written, in both ways.
var writeSealed = scenario("write-sealed", func(c *client) {
	fd := c.open("file", unix.O_RDWR)
	c.reads(fd, 0, "as it was")
	_, err := unix.Pwrite(fd, []byte("other"), 0)
	c.errno("write", err, unix.EROFS)
	c.reads(fd, 0, "as it was")
	b, err := unix.Mmap(fd, 0, 9, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.must(err)
	copy(b, "other")
	if unix.Msync(b, unix.MS_SYNC) == nil {
		c.errorf("what cannot be written was written back")
	}
	c.must(unix.Munmap(b))
	c.turn("written")
	c.reads(fd, 0, "as it was")
	c.close(fd)
	c.holds("file", "as it was")
})

// TestSealed: a file that cannot be written shows nobody what somebody has written into a mapping of it.
func TestSealed(t *testing.T) {
	tree := &sealed{Tree: vfstest.NewTree()}
	f := foreigner{t, tree, t.Context()}
	f.put(vfs.RootIno, "file", "as it was")
	tree.ino = f.ino(vfs.RootIno, "file")
	m := mount(t, tree, Options{})
	c := m.start(t, 0, "", writeSealed)
	c.expect("written")
	f.must(m.Flush(t.Context()))
	c.tell("flushed")
	c.wait()
}
