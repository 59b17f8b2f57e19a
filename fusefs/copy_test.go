package fusefs

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// copyRange copies with copy_file_range(2) until all is copied or there is no more.
func (c *client) copyRange(src int, off int64, dst int, dstOff int64, n int) (copied int) {
	for copied < n {
		from, to := off+int64(copied), dstOff+int64(copied)
		k, err := unix.CopyFileRange(src, &from, dst, &to, n-copied, 0)
		c.must(err)
		if k == 0 {
			break
		}
		copied += k
	}
	return copied
}

// bytesOf returns n bytes that only seed knows.
func bytesOf(seed uint64, n int) []byte {
	b := make([]byte, n)
	for i, rnd := 0, rand.New(rand.NewPCG(seed, seed)); i+8 <= n; i += 8 {
		order.PutUint64(b[i:], rnd.Uint64())
	}
	return b
}

var copyFileRange = scenario("copy-file-range", func(c *client) {
	const n = 300_000
	source, other := bytesOf(1, n), bytesOf(2, n)
	c.put("src", string(source))
	src := c.open("src", unix.O_RDWR)
	dst := c.open("dst", unix.O_CREAT|unix.O_RDWR)

	// What has just been written, to an empty file, and more than there is.
	if k := c.copyRange(src, 0, dst, 0, 10*n); k != n {
		c.errorf("copied %d bytes of %d", k, n)
	}
	c.holds("dst", string(source))

	// Into the middle of a file, all of which is cached, at no boundary of a page; seen by a mapping of it too.
	c.pwrite(dst, other, 0)
	c.holds("dst", string(other))
	m, err := unix.Mmap(dst, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.must(err)
	m[99_999] = 'a' // a dirty page that the copy shares
	m[170_000] = 'b'
	if k := c.copyRange(src, 50_001, dst, 100_000, 70_000); k != 70_000 {
		c.errorf("copied %d bytes", k)
	}
	want := bytes.Clone(other)
	copy(want[100_000:170_000], source[50_001:])
	want[99_999], want[170_000] = 'a', 'b'
	c.holds("dst", string(want))
	if !bytes.Equal(m, want) {
		c.errorf("a mapping shows something else")
	}

	// Of pages that are dirty in a mapping of the source.
	s, err := unix.Mmap(src, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.must(err)
	copy(s[8000:], "dirty in memory")
	c.copyRange(src, 8000, dst, 3, 15)
	copy(want[3:], "dirty in memory")
	c.holds("dst", string(want))

	// Past the end, which leaves a hole, and within one file.
	c.copyRange(src, 0, dst, 2*n, 10)
	c.size("dst", 2*n+10)
	if b := c.pread(dst, 100, 2*n-100); !bytes.Equal(b, make([]byte, 100)) {
		c.errorf("the hole is not zeros")
	}
	c.copyRange(src, 0, src, n, n)
	c.holds("src", string(s)+string(s))
	var off, to int64 = 0, 10
	_, err = unix.CopyFileRange(src, &off, src, &to, 20, 0)
	c.errno("overlapping ranges", err, syscall.EINVAL)
	c.must(unix.Munmap(s))
	c.must(unix.Munmap(m))
	c.close(src)
	c.close(dst)
})

func TestCopyFileRange(t *testing.T) {
	bothInits(t, func(t *testing.T) { mount(t, nil, Options{}).run(t, copyFileRange) })
}

// copyPrograms has cp(1) copy a large file that was written a moment ago.
var copyPrograms = scenario("copy-programs", func(c *client) {
	c.put("a", "warm")
	c.must(exec.Command("cp", "a", "b").Run())
	c.put("large", string(bytesOf(3, 64<<20)))
	c.turn("written")
	c.must(exec.Command("cp", "large", "copy").Run())
	c.turn("copied")
	got, err := os.ReadFile("copy")
	c.must(err)
	if !bytes.Equal(got, bytesOf(3, 64<<20)) {
		c.errorf("the copy differs")
	}
})

// TestCopyCosts: cp(1) does not move the bytes of a large file through the kernel.
func TestCopyCosts(t *testing.T) {
	m := mount(t, nil, Options{})
	c := m.start(t, 0, "", copyPrograms)
	c.expect("written")
	before := m.Requests()
	c.tell("go on")
	c.expect("copied")
	if n := m.Requests() - before; n > 15 {
		t.Errorf("cp of 64 MiB cost %d requests", n)
	}
	c.tell("go on")
	c.wait()
}

// copyOverSetID copies into a set-user-ID file, as its owner, who is not root.
var copyOverSetID = scenario("copy-over-set-id", func(c *client) {
	src, dst := c.open("src", unix.O_RDONLY), c.open("dst", unix.O_WRONLY)
	c.mode("dst", unix.S_IFREG|0o6755)
	c.copyRange(src, 0, dst, 0, 5)
	c.turn("copied")
	c.mode("dst", unix.S_IFREG|0o755)
	c.close(src)
	c.close(dst)
})

func TestCopyDropsSetID(t *testing.T) {
	m := mount(t, nil, Options{AllowOther: true})
	f := foreigner{t, m.tree, t.Context()}
	for _, name := range []string{"src", "dst"} {
		f.put(vfs.RootIno, name, "bytes")
	}
	dst := f.ino(vfs.RootIno, "dst")
	f.must(f.tree.SetXattr(f.ctx, dst, capabilityXattr, []byte("x"), 0))
	own := vfs.AttrSet{Mask: vfs.SetUID | vfs.SetGID | vfs.SetMode, UID: stranger, GID: stranger, Mode: 0o6755}
	_, err := f.tree.SetAttr(f.ctx, dst, own)
	f.must(err)
	m.settle(t)
	c := m.start(t, stranger, "", copyOverSetID)
	c.expect("copied")
	if _, err := m.tree.GetXattr(t.Context(), dst, capabilityXattr); err == nil {
		t.Error("the file still has its capabilities")
	}
	m.settle(t)
	c.tell("look")
	c.wait()
}

// brokenCopy is a tree whose copies wait, copy half of what they are to, and fail.
type brokenCopy struct {
	vfs.Tree
	began, goOn chan struct{}
}

func (b brokenCopy) FlushWatch(ctx context.Context) error { return vfs.FlushWatch(ctx, b.Tree) }

func (b brokenCopy) CopyRange(
	ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64,
) (uint64, error) {
	close(b.began)
	<-b.goOn
	copied, err := b.Tree.CopyRange(ctx, src, off, dst, dstOff, n/2)
	if err != nil {
		return copied, err
	}
	return copied, vfs.ErrNoSpace
}

var failingCopy = scenario("failing-copy", func(c *client) {
	const n = longCopy
	source, other := bytesOf(1, n), bytesOf(2, n)
	c.put("src", string(source))
	c.put("dst", string(other))
	c.holds("dst", string(other))
	src, dst := c.open("src", unix.O_RDONLY), c.open("dst", unix.O_RDWR)
	_, err := unix.CopyFileRange(src, nil, dst, nil, n, 0)
	c.errno("copy", err, syscall.ENOSPC)
	c.turn("failed")
	c.holds("dst", string(source[:n/2])+string(other[n/2:]))
	c.close(src)
	c.close(dst)
})

// TestFailingCopy: a long copy stops nobody, and after a copy that fails half way the kernel shows what there is.
func TestFailingCopy(t *testing.T) {
	tree := brokenCopy{vfstest.NewTree(), make(chan struct{}), make(chan struct{})}
	m := mount(t, tree, Options{})
	c := m.start(t, 0, "", failingCopy)
	<-tree.began
	m.run(t, smoke)
	close(tree.goOn)
	c.expect("failed")
	m.settle(t)
	c.tell("look")
	c.wait()
}

func TestDecodeCopyRange(t *testing.T) {
	var body []byte
	for i := range uint64(6) {
		body = order.AppendUint64(body, 100+i)
	}
	if _, ok := decodeCopyRange(7, body); ok {
		t.Error("a short body was taken")
	}
	body = order.AppendUint64(body, 1)
	got, ok := decodeCopyRange(7, body)
	if want := (copyRange{src: 7, off: 101, dst: 102, dstOff: 104, n: 105, flags: 1}); got != want || !ok {
		t.Errorf("%+v, want %+v", got, want)
	}
	w := &worker{}
	req := &fuse.UnrecognizedRequest{}
	if _, err := w.copyFileRange(req, body, maxCopy); err != syscall.EINVAL {
		t.Errorf("an unknown flag: %v", err)
	}
	if _, err := w.copyFileRange(req, body[1:], maxCopy); err != syscall.EIO {
		t.Errorf("a short body: %v", err)
	}
}
