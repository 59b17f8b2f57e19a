package fusefs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"testing"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
	"golang.org/x/sys/unix"
)

func TestErrno(t *testing.T) {
	for _, err := range vfs.Errors() {
		for _, e := range []error{err, fmt.Errorf("rename 7/%q: %w", "a", err)} {
			errno, ok := errnoOf(e)
			if !ok || errno == 0 {
				t.Errorf("%v has no errno", e)
			}
			if errno == syscall.EIO && err != vfs.ErrCorrupt {
				t.Errorf("%v is EIO", e)
			}
			if errno == syscall.ENOSYS || errno == syscall.ENOTCONN {
				t.Errorf("%v is %v, which means something else to the kernel or a supervisor", e, errno)
			}
		}
	}
	for _, test := range []struct {
		err  error
		want syscall.Errno
		ok   bool
	}{
		{fmt.Errorf("fetch: %w", context.Canceled), syscall.EINTR, true},
		{syscall.ENOSYS, syscall.ENOSYS, true},
		{errors.New("who knows"), syscall.EIO, false},
		{vfs.ErrQuota, syscall.EDQUOT, true},
		{vfs.ErrNoData, syscall.ENXIO, true},
		{vfs.ErrNoXattr, syscall.ENODATA, true},
		{vfs.ErrStale, syscall.ESTALE, true},
	} {
		if errno, ok := errnoOf(test.err); errno != test.want || ok != test.ok {
			t.Errorf("%v: %v, %v", test.err, errno, ok)
		}
	}
}

// sample is an attribute of every kind, with values that would show a field in the wrong place.
var sample = vfs.Attr{
	Ino: 0x1122334455667788, Type: vfs.TypeCharDev, Mode: 0o7654, Nlink: 3, UID: 4, GID: 5, Rdev: 6,
	Size: 7, Blocks: 8, Atime: -1, Mtime: 1_500_000_000, Ctime: 2_000_000_001,
}

// field reads a number at an offset of <linux/fuse.h>.
type field struct {
	name string
	off  int
	size int
	want uint64
}

func checkFields(t *testing.T, b []byte, base int, fields []field) {
	t.Helper()
	for _, f := range fields {
		var got uint64
		if f.size == 8 {
			got = order.Uint64(b[base+f.off:])
		} else {
			got = uint64(order.Uint32(b[base+f.off:]))
		}
		if got != f.want {
			t.Errorf("%s is %#x, want %#x", f.name, got, f.want)
		}
	}
}

var sampleFields = []field{
	{"ino", 0, 8, 0x1122334455667788}, {"size", 8, 8, 7}, {"blocks", 16, 8, 8},
	{"atime", 24, 8, 1<<64 - 1}, {"mtime", 32, 8, 1}, {"ctime", 40, 8, 2},
	{"atimensec", 48, 4, 999_999_999}, {"mtimensec", 52, 4, 500_000_000}, {"ctimensec", 56, 4, 1},
	{"mode", 60, 4, syscall.S_IFCHR | 0o7654}, {"nlink", 64, 4, 3}, {"uid", 68, 4, 4}, {"gid", 72, 4, 5},
	{"rdev", 76, 4, 6}, {"blksize", 80, 4, blockSize}, {"flags", 84, 4, 0},
}

func TestEncode(t *testing.T) {
	ttl := uint64(cacheTTL.Seconds())
	b := appendAttrOut(nil, &sample, cacheTTL)
	if len(b) != 104 {
		t.Errorf("fuse_attr_out has %d bytes", len(b))
	}
	checkFields(t, b, 0, []field{{"attr_valid", 0, 8, ttl}, {"attr_valid_nsec", 8, 4, 0}})
	checkFields(t, b, 16, sampleFields)

	b = appendEntryOut(nil, &sample, cacheTTL, cacheTTL)
	if len(b) != entryOutSize {
		t.Errorf("fuse_entry_out has %d bytes", len(b))
	}
	checkFields(t, b, 0, []field{
		{"nodeid", 0, 8, 0x1122334455667788}, {"generation", 8, 8, 0}, {"entry_valid", 16, 8, ttl},
		{"attr_valid", 24, 8, ttl}, {"entry_valid_nsec", 32, 4, 0}, {"attr_valid_nsec", 36, 4, 0},
	})
	checkFields(t, b, 40, sampleFields)

	b = appendOpenOut(nil, 7, foKeepCache)
	if len(b) != 16 {
		t.Errorf("fuse_open_out has %d bytes", len(b))
	}
	checkFields(t, b, 0, []field{{"fh", 0, 8, 7}, {"open_flags", 8, 4, 2}, {"backing_id", 12, 4, 0}})

	for n, want := range map[string]int{"": 24, "a": 32, "12345678": 32, "123456789": 40} {
		b := appendDirent(nil, vfs.Dirent{Name: n, Ino: 7, Type: vfs.TypeDir, Offset: 9})
		if len(b) != want || direntSize(n) != want {
			t.Errorf("fuse_dirent of %q has %d bytes", n, len(b))
		}
		checkFields(t, b, 0, []field{
			{"ino", 0, 8, 7}, {"off", 8, 8, 9}, {"namelen", 16, 4, uint64(len(n))}, {"type", 20, 4, 4},
		})
		if string(b[24:24+len(n)]) != n {
			t.Errorf("name %q", b[24:])
		}
	}
	if got := modeOf(vfs.TypeBlockDev + 1); got != 0 {
		t.Errorf("no type has mode %o", got)
	}
}

// TestEncodeAllocates: a reply is built in memory that is there.
func TestEncodeAllocates(t *testing.T) {
	b := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { b = appendEntryOut(b[:0], &sample, cacheTTL, cacheTTL) }); n != 0 {
		t.Errorf("an entry takes %v allocations", n)
	}
	d := vfs.Dirent{Name: "some-name.go", Ino: 7, Type: vfs.TypeRegular, Offset: 16}
	if n := testing.AllocsPerRun(100, func() { b = appendDirent(b[:0], d) }); n != 0 {
		t.Errorf("a directory entry takes %v allocations", n)
	}
}

func BenchmarkEncodeEntry(b *testing.B) {
	out := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		out = appendEntryOut(out[:0], &sample, cacheTTL, cacheTTL)
	}
}

func BenchmarkEncodeDirent(b *testing.B) {
	out := make([]byte, 0, 256)
	d := vfs.Dirent{Name: "some-name.go", Ino: 7, Type: vfs.TypeRegular, Offset: 16}
	b.ReportAllocs()
	for b.Loop() {
		out = appendDirent(out[:0], d)
	}
}

func TestModes(t *testing.T) {
	for mode := range uint32(0o10000) {
		m := os.FileMode(mode & 0o777)
		for bit, go_ := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
			if mode&bit != 0 {
				m |= go_
			}
		}
		if got := unixMode(m | os.ModeDir); got != mode {
			t.Fatalf("%o came back as %o", mode, got)
		}
	}
	for m, want := range map[os.FileMode]vfs.Type{
		0: vfs.TypeRegular, os.ModeIrregular: vfs.TypeRegular, os.ModeDir: vfs.TypeDir, os.ModeSymlink: vfs.TypeSymlink,
		os.ModeNamedPipe: vfs.TypeFIFO, os.ModeSocket: vfs.TypeSocket, os.ModeDevice: vfs.TypeBlockDev,
		os.ModeDevice | os.ModeCharDevice: vfs.TypeCharDev,
	} {
		if got := typeOf(m | 0o644); got != want {
			t.Errorf("%v is of type %d, want %d", m, got, want)
		}
	}
}

func TestAttrSet(t *testing.T) {
	for _, test := range []struct {
		valid fuse.SetattrValid
		want  vfs.SetMask
	}{
		{0, 0},
		{fuse.SetattrHandle | fuse.SetattrLockOwner, 0},
		{fuse.SetattrMode, vfs.SetMode},
		{fuse.SetattrUid, vfs.SetUID | vfs.SetKillPriv},
		{fuse.SetattrGid, vfs.SetGID | vfs.SetKillPriv},
		{fuse.SetattrSize, vfs.SetSize},
		{fuse.SetattrSize | fuse.SetattrKillSUIDGID, vfs.SetSize | vfs.SetKillPriv},
		{fuse.SetattrAtime, vfs.SetAtime},
		{fuse.SetattrAtime | fuse.SetattrAtimeNow, vfs.SetAtimeNow},
		{fuse.SetattrMtime | fuse.SetattrMtimeNow | fuse.SetattrAtime, vfs.SetMtimeNow | vfs.SetAtime},
	} {
		if got := attrSetOf(&fuse.SetattrRequest{Valid: test.valid}); got.Mask != test.want {
			t.Errorf("%v: %b, want %b", test.valid, got.Mask, test.want)
		}
	}
}

func TestLayout(t *testing.T) {
	if !rawLayout.ok {
		t.Fatal("the library's private fields are not where they were")
	}
	type message struct {
		buf []byte
		off int
	}
	type goodHeader struct{ msg *message }
	type goodConn struct{ dev *os.File }
	_, _ = goodHeader{&message{nil, 0}}, goodConn{nil} // their fields are looked at by reflection only
	if !findLayout(reflect.TypeFor[goodHeader](), reflect.TypeFor[goodConn]()).ok {
		t.Error("a good layout is refused")
	}
	type wrongBuf struct {
		buf string
		off int
	}
	_ = wrongBuf{"", 0}
	for _, header := range []reflect.Type{
		reflect.TypeFor[struct{}](), reflect.TypeFor[struct{ msg message }](), reflect.TypeFor[struct{ msg *int }](),
		reflect.TypeFor[struct{ msg *wrongBuf }](), reflect.TypeFor[struct{ msg *struct{ buf []byte } }](),
	} {
		if findLayout(header, reflect.TypeFor[goodConn]()).ok {
			t.Errorf("%v is taken for a header", header)
		}
	}
	if findLayout(reflect.TypeFor[goodHeader](), reflect.TypeFor[struct{ dev int }]()).ok {
		t.Error("a number is taken for a file")
	}
	if rawLayout.body(&fuse.Header{}) != nil || rawLayout.device(&fuse.Conn{}) != -1 {
		t.Error("nothing is taken for something")
	}
}

func TestInitFlags(t *testing.T) { bothInits(t, checkInitFlags) }

func checkInitFlags(t *testing.T) {
	m := mount(t, nil, Options{})
	want := fuse.InitDoReaddirplus | fuse.InitExportSupport | fuse.InitCacheSymlinks |
		fuse.InitHandleKillPrivV2 | fuse.InitAsyncRead | fuse.InitBigWrites
	if got := m.conn.Features(); got&want != want {
		t.Errorf("negotiated %v, want %v", got, want)
	}
	// A child that inherited the device would keep the mount of a dead daemon from failing.
	if flags, err := unix.FcntlInt(uintptr(m.wire.fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the device's descriptor has flags %x, %v", flags, err)
	}
}

// TestRename2Body: what the kernel would never send is refused.
func TestRename2Body(t *testing.T) {
	w := &worker{}
	for _, body := range []string{"", "short", "0123456789abcdefnoend", "0123456789abcdefone\x00"} {
		if err := w.rename2(1, []byte(body)); err == nil {
			t.Errorf("%q was taken", body)
		}
	}
	if err := w.lseek(1, make([]byte, 19)); err == nil {
		t.Error("a short LSEEK was taken")
	}
}

// still is a tree of one inode that answers from memory.
type still struct{ vfs.Tree }

func (still) Stat(context.Context, vfs.Ino) (vfs.Attr, error)           { return sample, nil }
func (still) Lookup(context.Context, vfs.Ino, string) (vfs.Attr, error) { return sample, nil }
func (still) ReadAt(_ context.Context, _ vfs.Ino, p []byte, _ uint64) (int, error) {
	return len(p), nil
}
func (still) WriteAt(context.Context, vfs.Ino, []byte, uint64, bool) error { return nil }
func (still) RemoveXattr(context.Context, vfs.Ino, string) error           { return vfs.ErrNoXattr }
func (still) Hold(vfs.Ino)                                                 {}

// TestHandlersAllocate: what is answered from memory takes no memory.
func TestHandlersAllocate(t *testing.T) {
	s := &Server{tree: still{}, notes: &notifier{}, holds: newHolds(still{})}
	w := newWorker(s)
	for _, req := range []fuse.Request{
		&fuse.GetattrRequest{}, &fuse.LookupRequest{Name: "a"}, &fuse.ReadRequest{Size: 4096},
		&fuse.WriteRequest{Data: make([]byte, 4096)},
	} {
		n := testing.AllocsPerRun(100, func() {
			w.out, w.held = w.own[:outHeaderSize], w.held[:0]
			if err := w.dispatch(req); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%T takes %v allocations", req, n)
		}
	}
}
