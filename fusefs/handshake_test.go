package fusefs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// bothInits runs a test with our own INIT and with the library's.
func bothInits(t *testing.T, test func(*testing.T)) {
	t.Run("our INIT", test)
	t.Run("plain INIT", func(t *testing.T) {
		t.Setenv(plainEnv, "1")
		test(t)
	})
}

// TestHandshakeIsPossible: every trick that it needs works with the library as it is.
func TestHandshakeIsPossible(t *testing.T) {
	if !longRequests || libraryBuffer < maxWrite+os.Getpagesize() {
		t.Errorf("the library's buffers have %d bytes", libraryBuffer)
	}
	if !canHandshake() {
		t.Error("root cannot answer INIT")
	}
	if lengthenBuffers() {
		t.Error("buffers of a length that is not known were taken for the library's")
	}
	helperReady.Store(false)
	if canHandshake() {
		t.Error("possible without HelperMain")
	}
	helperReady.Store(true)
	t.Setenv(plainEnv, "1")
	if canHandshake() {
		t.Error("possible though it is forbidden")
	}
}

// initRequest returns an INIT as a kernel sends it.
func initRequest(major, minor, readahead uint32, flags fuse.InitFlags) []byte {
	b := make([]byte, inHeaderSize, inHeaderSize+64)
	order.PutUint32(b, uint32(cap(b)))
	order.PutUint32(b[4:], opInit)
	order.PutUint64(b[8:], 77)
	for _, v := range []uint32{major, minor, readahead, uint32(flags)} {
		b = order.AppendUint32(b, v)
	}
	return b[:cap(b)]
}

func TestAgree(t *testing.T) {
	const offered = wantedFlags&^fuse.InitCacheSymlinks | fuse.InitAtomicTrunc | fuse.InitWritebackCache
	request := initRequest(7, 45, 100<<10, offered)
	out, err := agree(request)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != outHeaderSize+initOutSize {
		t.Errorf("%d bytes", len(out))
	}
	const agreed = wantedFlags &^ fuse.InitCacheSymlinks
	body := out[outHeaderSize:]
	for _, f := range []struct {
		name string
		off  int
		want uint32
	}{
		{"major", 0, 7}, {"minor", 4, 33}, {"readahead", 8, 100 << 10}, {"flags", 12, uint32(agreed)},
		{"background", 16, 0}, {"max_write", 20, maxWrite}, {"time_gran", 24, 1},
		{"flags2", 32, 0}, {"stack depth", 36, 0},
	} {
		if got := order.Uint32(body[f.off:]); got != f.want {
			t.Errorf("%s is %d, want %d", f.name, got, f.want)
		}
	}
	if pages := int(order.Uint16(body[28:])); pages*os.Getpagesize() != maxWrite {
		t.Errorf("%d pages", pages)
	}
	if got := fuse.InitFlags(order.Uint32(request[inHeaderSize+12:])); got != agreed {
		t.Errorf("the library would believe %v, want %v", got, agreed)
	}
	long := initRequest(7, 33, 8<<20, wantedFlags)
	if out, err := agree(long); err != nil || order.Uint32(out[outHeaderSize+8:]) != maxReadahead {
		t.Errorf("%x, %v", out, err)
	}
}

func TestAgreeRefuses(t *testing.T) {
	other := initRequest(7, 45, 0, 0)
	order.PutUint32(other[4:], opInit+1)
	for name, request := range map[string][]byte{
		"nothing": nil, "too short": initRequest(7, 45, 0, 0)[:inHeaderSize+initInSize-1], "not INIT": other,
		"an old kernel": initRequest(7, 32, 0, 0), "a kernel of another kind": initRequest(8, 45, 0, 0),
	} {
		if out, err := agree(request); !errors.Is(err, unix.EPROTO) {
			t.Errorf("%s: %x, %v", name, out, err)
		}
	}
}

// TestAnswerInit: the answer goes to the device, for the request that it is for.
func TestAnswerInit(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if _, err := unix.Write(pair[0], initRequest(7, 45, 0, wantedFlags)); err != nil {
		t.Fatal(err)
	}
	request, err := answerInit(pair[1])
	if err != nil || len(request) != inHeaderSize+64 {
		t.Errorf("%d bytes, %v", len(request), err)
	}
	out := make([]byte, 1000)
	n, err := unix.Read(pair[0], out)
	if err != nil || n != outHeaderSize+initOutSize || order.Uint32(out) != uint32(n) || order.Uint64(out[8:]) != 77 {
		t.Errorf("%x, %v", out[:max(n, 0)], err)
	}
	// What is no device is not adopted.
	if _, err := unix.Write(pair[0], []byte("who are you?")); err != nil {
		t.Fatal(err)
	}
	if _, err := adopt(pair[1], t.TempDir(), t.TempDir()); !errors.Is(err, unix.EPROTO) {
		t.Errorf("adopt: %v", err)
	}
}

// longest is a tree that notes the longest read and write.
type longest struct {
	vfs.Tree
	read, write atomic.Int64
}

func raise(a *atomic.Int64, n int) {
	for old := a.Load(); int64(n) > old && !a.CompareAndSwap(old, int64(n)); old = a.Load() {
	}
}

func (l *longest) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	raise(&l.read, len(p))
	return l.Tree.ReadAt(ctx, ino, p, off)
}

func (l *longest) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	raise(&l.write, len(p))
	return l.Tree.WriteAt(ctx, ino, p, off, killPriv)
}

// longIO writes and reads by the MiB, past the kernel's cache and through it.
var longIO = scenario("long-io", func(c *client) {
	const n = 5<<20 + 123
	content := string(bytesOf(7, n))
	for _, name := range []string{"direct", "cached"} {
		fd := c.open(name, unix.O_CREAT|unix.O_WRONLY)
		if name == "cached" {
			c.close(fd)
			fd = c.open(name, unix.O_WRONLY)
		}
		c.pwrite(fd, []byte(content), 0)
		c.must(unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
		c.close(fd)
		c.holds(name, content)
		fd = c.open(name, unix.O_RDONLY|unix.O_DIRECT)
		buf, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		c.must(err)
		k, err := unix.Pread(fd, buf, 1<<20)
		if err != nil || string(buf[:k]) != content[1<<20:5<<20] {
			c.errorf("O_DIRECT reads %d bytes, %v", k, err)
		}
		c.must(unix.Munmap(buf))
		c.close(fd)
	}
})

// TestLongRequests: with our own INIT a request carries a MiB, and with the library's 128 KiB.
func TestLongRequests(t *testing.T) {
	bothInits(t, func(t *testing.T) {
		tree := &longest{Tree: vfstest.NewTree()}
		mount(t, tree, Options{}).run(t, longIO)
		want := int64(maxWrite)
		if os.Getenv(plainEnv) != "" {
			want = 128 << 10
		}
		if r, w := tree.read.Load(), tree.write.Load(); r != want || w != want {
			t.Errorf("read %d and wrote %d bytes at once, want %d", r, w, want)
		}
	})
}

// TestReadahead: where /sys can be written, the kernel reads ahead as far as we said.
func TestReadahead(t *testing.T) {
	m := mount(t, nil, Options{})
	err := lengthenReadahead(m.Dir())
	var pe *os.PathError
	if !errors.As(err, &pe) {
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, m.Dir(), unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", st.Dev_major, st.Dev_minor))
		if got := strings.TrimSpace(string(b)); err != nil || got != fmt.Sprint(maxReadahead>>10) {
			t.Errorf("it reads %s KiB ahead, %v", got, err)
		}
	}
	if err := lengthenReadahead(filepath.Join(t.TempDir(), "none")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("of nothing: %v", err)
	}
}

// TestHandshakeFailure: what mount(2) says is not lost, and the environment is as it was.
func TestHandshakeFailure(t *testing.T) {
	path := os.Getenv("PATH")
	_, err := mountWithHandshake(filepath.Join(t.TempDir(), "none"), Options{})
	var me *MountError
	if !errors.As(err, &me) || !errors.Is(err, syscall.ENOENT) || !strings.Contains(me.Advice, "mount(2)") {
		t.Errorf("%v", err)
	}
	mount(t, nil, Options{}).run(t, smoke)
	if _, set := os.LookupEnv(initEnv); set || os.Getenv("PATH") != path {
		t.Error("the environment is not restored")
	}
}

// TestMountOnTemporary: the directory for temporary files may be what is mounted on, or lie behind a symlink to it.
func TestMountOnTemporary(t *testing.T) {
	bothInits(t, func(t *testing.T) {
		dir := t.TempDir()
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		for _, tmp := range []string{dir, link} {
			t.Setenv("TMPDIR", tmp)
			s, err := Mount(dir, vfstest.NewTree(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Unmount(t.Context()); err != nil {
				t.Fatal(err)
			}
			if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
				t.Errorf("left behind: %v, %v", names, err)
			}
		}
	})
}

// TestPassInit: the helper takes only what it was given.
func TestPassInit(t *testing.T) {
	if err := passInit(-1, "not hexadecimal"); err == nil {
		t.Error("nonsense was taken")
	}
	if err := passInit(-1, "00"); !errors.Is(err, unix.EBADF) {
		t.Errorf("without a socket: %v", err)
	}
}
