package fusefs

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var openModes = scenario("open-modes", func(c *client) {
	c.put("f", "hello")
	r, w := c.open("f", unix.O_RDONLY), c.open("f", unix.O_WRONLY)
	_, err := unix.Write(r, []byte("x"))
	c.errno("write to a reader", err, unix.EBADF)
	_, err = unix.Read(w, make([]byte, 1))
	c.errno("read from a writer", err, unix.EBADF)
	c.pwrite(w, []byte("J"), 0)
	c.reads(r, 0, "Jello")
	c.pwrite(w, []byte("!"), 5)
	c.reads(r, 0, "Jello!")
	c.close(w)
	w = c.open("f", unix.O_WRONLY|unix.O_TRUNC)
	c.reads(r, 0, "")
	c.size("f", 0)
	c.close(w)
	c.close(r)
	_, err = unix.Open("f", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	c.must(err)
	c.must(unix.Symlink("f", "s"))
	_, err = unix.Open("s", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	c.errno("O_NOFOLLOW", err, unix.ELOOP)
})

var appendMode = scenario("append", func(c *client) {
	a := c.open("f", unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
	b := c.open("f", unix.O_WRONLY|unix.O_APPEND)
	for i := range 100 {
		fd := a
		if i%2 == 1 {
			fd = b
		}
		_, err := unix.Write(fd, []byte(strconv.Itoa(i%10)))
		c.must(err)
	}
	c.holds("f", strings.Repeat("0123456789", 10))
	c.pwrite(a, []byte("end"), 0) // pwrite(2): Linux appends all the same
	c.holds("f", strings.Repeat("0123456789", 10)+"end")
	c.close(a)
	c.close(b)
})

var unlinkedOpen = scenario("unlinked-open", func(c *client) {
	c.put("f", "still here")
	fd := c.open("f", unix.O_RDWR)
	c.must(unix.Unlink("f"))
	c.gone("f")
	c.reads(fd, 0, "still here")
	c.pwrite(fd, []byte("!"), 10)
	c.reads(fd, 0, "still here!")
	c.must(unix.Ftruncate(fd, 5))
	if st := c.fstat(fd); st.Nlink != 0 || st.Size != 5 {
		c.errorf("%d links, %d bytes", st.Nlink, st.Size)
	}
	c.must(unix.Fsync(fd))
	c.must(unix.Fchmod(fd, 0o600))
	c.put("f", "another")
	c.reads(fd, 0, "still")
	// By way of /proc a file without a name cannot be given one.
	err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, "back", unix.AT_SYMLINK_FOLLOW)
	c.errno("link", err, unix.ENOENT)
	c.close(fd)
})

var renamedOver = scenario("renamed-over", func(c *client) {
	c.put("f", "old")
	c.put("g", "new")
	fd := c.open("f", unix.O_RDWR)
	c.must(unix.Rename("g", "f"))
	c.reads(fd, 0, "old")
	c.holds("f", "new")
	c.pwrite(fd, []byte("o"), 0)
	c.holds("f", "new")
	if st := c.fstat(fd); st.Nlink != 0 {
		c.errorf("%d links", st.Nlink)
	}
	c.close(fd)
})

var removedDirectory = scenario("removed-directory", func(c *client) {
	c.mkdir("d")
	fd := c.open("d", unix.O_RDONLY|unix.O_DIRECTORY)
	c.must(unix.Rmdir("d"))
	if st := c.fstat(fd); st.Nlink != 0 || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		c.errorf("%d links, mode %o", st.Nlink, st.Mode)
	}
	_, err := unix.Openat(fd, "x", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	c.errno("create in it", err, unix.ENOENT)
	_, err = unix.Getdents(fd, make([]byte, 4096))
	c.errno("list it", err, unix.ENOENT)
	c.close(fd)
})

var sparse = scenario("sparse", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	const mib = 1 << 20
	c.pwrite(fd, []byte("head"), 0)
	c.pwrite(fd, []byte("tail"), 16*mib)
	st := c.fstat(fd)
	if st.Size != 16*mib+4 || st.Blocks*512 > mib {
		c.errorf("%d bytes, %d blocks", st.Size, st.Blocks)
	}
	if b := c.pread(fd, 4096, 8*mib); !bytes.Equal(b, make([]byte, 4096)) {
		c.errorf("the hole is not zeros")
	}
	seek := func(off int64, whence int) int64 {
		at, err := unix.Seek(fd, off, whence)
		c.must(err)
		return at
	}
	hole := seek(0, unix.SEEK_HOLE)
	if hole < 4 || hole > mib {
		c.errorf("hole at %d", hole)
	}
	if data := seek(hole, unix.SEEK_DATA); data <= hole || data > 16*mib {
		c.errorf("data at %d", data)
	}
	if data := seek(0, unix.SEEK_DATA); data != 0 {
		c.errorf("first data at %d", data)
	}
	if end := seek(16*mib, unix.SEEK_HOLE); end != 16*mib+4 {
		c.errorf("last hole at %d", end)
	}
	_, err := unix.Seek(fd, 16*mib+4, unix.SEEK_DATA)
	c.errno("data past the end", err, unix.ENXIO)
	_, err = unix.Seek(fd, 1<<40, unix.SEEK_HOLE)
	c.errno("hole past the end", err, unix.ENXIO)
	_, err = unix.Seek(fd, -1, unix.SEEK_SET)
	c.errno("negative", err, unix.EINVAL)
	if end := seek(0, unix.SEEK_END); end != 16*mib+4 {
		c.errorf("end at %d", end)
	}
	c.close(fd)
})

var fallocates = scenario("fallocate", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	size := func(want int64) {
		if st := c.fstat(fd); st.Size != want {
			c.errorf("%d bytes, want %d", st.Size, want)
		}
	}
	c.pwrite(fd, bytes.Repeat([]byte("x"), 10000), 0)
	c.must(unix.Fallocate(fd, 0, 0, 20000))
	size(20000)
	c.must(unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 4<<20))
	size(20000)
	c.must(unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 100, 200))
	if b := c.pread(fd, 400, 0); !bytes.Equal(b[100:300], make([]byte, 200)) || b[99] != 'x' || b[300] != 'x' {
		c.errorf("punched: %q", b)
	}
	c.must(unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 5000, 25000))
	size(30000)
	if b := c.pread(fd, 5001, 0); b[4999] != 'x' || b[5000] != 0 {
		c.errorf("zeroed wrongly")
	}
	c.errno("COLLAPSE_RANGE", unix.Fallocate(fd, unix.FALLOC_FL_COLLAPSE_RANGE, 0, 4096), unix.EOPNOTSUPP)
	c.errno("no length", unix.Fallocate(fd, 0, 0, 0), unix.EINVAL)
	c.errno("too far", unix.Fallocate(fd, 0, 1<<45, 1<<45), unix.EFBIG)
	size(30000)
	c.close(fd)
})

var mapped = scenario("mapped", func(c *client) {
	const size = 3 * 4096
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	c.must(unix.Ftruncate(fd, size))
	shared, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.must(err)
	private, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	c.must(err)
	copy(shared, "by map")
	c.reads(fd, 0, "by map"+strings.Repeat("\x00", size-6))
	c.pwrite(fd, []byte("by write"), 4096)
	if string(shared[4096:4104]) != "by write" || string(private[4096:4104]) != "by write" {
		c.errorf("mapped after write: %q %q", shared[4096:4104], private[4096:4104])
	}
	copy(private[8192:], "mine")
	if string(shared[8192:8196]) == "mine" {
		c.errorf("a private change is shared")
	}
	c.must(unix.Msync(shared, unix.MS_SYNC))
	before := c.fstat(fd)
	shared[100] = 'z'
	c.must(unix.Munmap(shared))
	c.must(unix.Munmap(private))
	c.must(unix.Fsync(fd))
	if st := c.fstat(fd); nanos(st.Mtim) <= nanos(before.Mtim) {
		c.errorf("mtime %v → %v after a mapped write", before.Mtim, st.Mtim)
	}
	c.close(fd)
	got, err := os.ReadFile("f")
	c.must(err)
	if string(got[:6]) != "by map" || got[100] != 'z' || string(got[4096:4104]) != "by write" || got[8192] != 0 {
		c.errorf("wrong bytes after the maps have gone")
	}
})

var direct = scenario("direct", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR|unix.O_DIRECT)
	block, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	c.must(err)
	for i := range block {
		block[i] = byte(i >> 8)
	}
	c.pwrite(fd, block, 0)
	cached := c.open("f", unix.O_RDWR)
	if !bytes.Equal(c.pread(cached, len(block), 0), block) {
		c.errorf("cached read after direct write")
	}
	c.pwrite(cached, []byte("cached"), 4096)
	back, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	c.must(err)
	n, err := unix.Pread(fd, back, 0)
	c.must(err)
	if n != len(back) || string(back[4096:4102]) != "cached" || !bytes.Equal(back[8192:], block[8192:]) {
		c.errorf("direct read of %d bytes is wrong", n)
	}
	n, err = unix.Pread(fd, back, 1<<20-4096)
	if n != 4096 || err != nil {
		c.errorf("direct read at the end: %d, %v", n, err)
	}
	n, err = unix.Pread(fd, back, 1<<20)
	if n != 0 || err != nil {
		c.errorf("direct read past the end: %d, %v", n, err)
	}
	c.pwrite(fd, block[:4096], 4096)
	if got := c.pread(cached, 6, 4096); !bytes.Equal(got, block[:6]) {
		c.errorf("cached read after direct overwrite: %q", got)
	}
	c.close(cached)
	c.close(fd)
})

var syncs = scenario("syncs", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR|unix.O_SYNC)
	c.pwrite(fd, []byte("x"), 0)
	c.must(unix.Fsync(fd))
	c.must(unix.Fdatasync(fd))
	c.must(unix.Syncfs(fd))
	c.must(unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE))
	c.close(fd)
	d := c.open(".", unix.O_RDONLY|unix.O_DIRECTORY)
	c.must(unix.Fsync(d))
	c.close(d)
})

var bigFile = scenario("big-file", func(c *client) {
	rnd := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 5<<20+123)
	for i := range content {
		content[i] = byte(rnd.Uint32())
	}
	c.put("f", string(content))
	fd := c.open("f", unix.O_RDWR)
	for range 200 {
		off, n := rnd.IntN(len(content)), rnd.IntN(300_000)
		want := content[off:min(off+n, len(content))]
		if rnd.IntN(2) == 0 {
			for i := range want {
				want[i] ^= 0x55
			}
			c.pwrite(fd, want, int64(off))
		}
		if got := c.pread(fd, n, int64(off)); !bytes.Equal(got, want) {
			c.fatalf("%d bytes at %d differ", n, off)
		}
	}
	// Once more with nothing cached.
	c.must(unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
	if !bytes.Equal(c.pread(fd, len(content), 0), content) {
		c.errorf("differs when read again")
	}
	c.close(fd)
})

var xattrs = scenario("xattrs", func(c *client) {
	c.put("f", "x")
	c.mkdir("d")
	for _, path := range []string{"f", "d"} {
		_, err := unix.Getxattr(path, "user.none", nil)
		c.errno("get of none", err, unix.ENODATA)
		n, err := unix.Listxattr(path, nil)
		if n != 0 || err != nil {
			c.errorf("list of none: %d, %v", n, err)
		}
		c.must(unix.Setxattr(path, "user.b", []byte("two"), 0))
		c.must(unix.Setxattr(path, "user.a", nil, 0))
		c.errno("CREATE", unix.Setxattr(path, "user.b", []byte("x"), unix.XATTR_CREATE), unix.EEXIST)
		c.errno("REPLACE", unix.Setxattr(path, "user.c", []byte("x"), unix.XATTR_REPLACE), unix.ENODATA)
		c.must(unix.Setxattr(path, "user.b", []byte("2\x00!"), unix.XATTR_REPLACE))
		n, err = unix.Getxattr(path, "user.b", nil)
		if n != 3 || err != nil {
			c.errorf("size: %d, %v", n, err)
		}
		b := make([]byte, 100)
		n, err = unix.Getxattr(path, "user.b", b)
		if err != nil || string(b[:n]) != "2\x00!" {
			c.errorf("got %q, %v", b[:n], err)
		}
		_, err = unix.Getxattr(path, "user.b", b[:2])
		c.errno("get with no room", err, unix.ERANGE)
		n, err = unix.Getxattr(path, "user.a", b)
		if n != 0 || err != nil {
			c.errorf("empty value: %d, %v", n, err)
		}
		n, err = unix.Listxattr(path, b)
		if err != nil || string(b[:n]) != "user.a\x00user.b\x00" {
			c.errorf("list %q, %v", b[:n], err)
		}
		n, err = unix.Listxattr(path, nil)
		if n != 14 || err != nil {
			c.errorf("size of the list: %d, %v", n, err)
		}
		_, err = unix.Listxattr(path, b[:13])
		c.errno("list with no room", err, unix.ERANGE)
		c.must(unix.Removexattr(path, "user.b"))
		c.errno("remove again", unix.Removexattr(path, "user.b"), unix.ENODATA)
	}
	big := bytes.Repeat([]byte("v"), 64<<10)
	c.must(unix.Setxattr("f", "user.big", big, 0))
	got := make([]byte, len(big))
	n, err := unix.Getxattr("f", "user.big", got)
	if err != nil || !bytes.Equal(got[:n], big) {
		c.errorf("64 KiB: %d, %v", n, err)
	}
	c.errno("too big", unix.Setxattr("f", "user.big", append(big, 'v'), 0), unix.E2BIG)
	c.errno("name too long", unix.Setxattr("f", "user."+strings.Repeat("n", 251), nil, 0), unix.ERANGE)
	c.must(unix.Setxattr("f", "user."+strings.Repeat("n", 250), nil, 0))
	c.errno("no name", unix.Setxattr("f", "user.", nil, 0), unix.EINVAL)
})

var xattrSpaces = scenario("xattr-spaces", func(c *client) {
	c.put("f", "x")
	c.must(unix.Symlink("f", "s"))
	c.must(unix.Setxattr("f", "trusted.t", []byte("1"), 0))
	c.must(unix.Lsetxattr("s", "trusted.t", []byte("1"), 0))
	c.must(unix.Setxattr("f", "security.own", []byte("1"), 0))
	c.errno("user. on a symlink", unix.Lsetxattr("s", "user.u", nil, 0), unix.EPERM)
	c.errno("no namespace", unix.Setxattr("f", "plain", nil, 0), unix.EOPNOTSUPP)
	acl := []byte{2, 0, 0, 0}                      // version
	for _, tag := range []byte{0x01, 0x04, 0x20} { // user, group, others
		acl = append(acl, tag, 0, 4, 0, 0xff, 0xff, 0xff, 0xff)
	}
	c.errno("an ACL", unix.Setxattr("f", "system.posix_acl_access", acl, 0), unix.EOPNOTSUPP)
	_, err := unix.Getxattr("f", "system.posix_acl_access", nil)
	c.errno("get an ACL", err, unix.EOPNOTSUPP)
	b := make([]byte, 100)
	n, err := unix.Listxattr("f", b)
	c.must(err)
	if list := string(b[:n]); list != "security.own\x00trusted.t\x00" {
		c.errorf("root sees %q", list)
	}
})

// locks has two open files of one process; TestLocks has two processes.
var locks = scenario("locks", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	other := c.open("f", unix.O_RDWR)
	c.must(unix.Flock(fd, unix.LOCK_EX))
	c.errno("flock of another open file", unix.Flock(other, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
	c.must(unix.Flock(fd, unix.LOCK_UN))
	c.must(unix.Flock(other, unix.LOCK_SH|unix.LOCK_NB))
	c.must(unix.Flock(other, unix.LOCK_UN))

	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 10, Len: 10}
	c.must(unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lock))
	probe := unix.Flock_t{Type: unix.F_RDLCK, Start: 15, Len: 1}
	c.errno("OFD lock", unix.FcntlFlock(uintptr(other), unix.F_OFD_SETLK, &probe), unix.EAGAIN)
	probe = unix.Flock_t{Type: unix.F_WRLCK, Start: 20, Len: 10}
	c.must(unix.FcntlFlock(uintptr(other), unix.F_OFD_SETLK, &probe))
	c.close(other)
	c.close(fd)
})

var listings = scenario("listings", func(c *client) {
	c.mkdir("d")
	c.put("d/file", "x")
	c.mkdir("d/dir")
	c.must(unix.Symlink("x", "d/link"))
	c.must(unix.Mknod("d/fifo", unix.S_IFIFO|0o600, 0))
	c.must(unix.Mknod("d/sock", unix.S_IFSOCK|0o600, 0))
	c.must(unix.Mknod("d/char", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	c.must(unix.Mknod("d/block", unix.S_IFBLK|0o600, int(unix.Mkdev(1, 3))))
	want := map[string]byte{
		".": unix.DT_DIR, "..": unix.DT_DIR, "file": unix.DT_REG, "dir": unix.DT_DIR, "link": unix.DT_LNK,
		"fifo": unix.DT_FIFO, "sock": unix.DT_SOCK, "char": unix.DT_CHR, "block": unix.DT_BLK,
	}
	for range 2 { // the second time from the kernel's cache
		fd := c.open("d", unix.O_RDONLY|unix.O_DIRECTORY)
		all := c.list(fd)
		if len(all) != len(want) || all[0].name != "." || all[1].name != ".." {
			c.errorf("lists %v", all)
		}
		for _, d := range all {
			if d.typ != want[d.name] || d.ino != c.stat("d/"+d.name).Ino {
				c.errorf("%+v", d)
			}
		}
		c.close(fd)
	}
	c.must(unix.Unlink("d/file"))
	c.put("d/new", "x")
	names := c.names("d")
	if slices.Contains(names, "file") || !slices.Contains(names, "new") {
		c.errorf("after changes: %q", names)
	}
})

var listingPositions = scenario("listing-positions", func(c *client) {
	const n = 1000
	c.mkdir("d")
	for i := range n {
		c.close(c.open("d/"+strconv.Itoa(i), unix.O_CREAT|unix.O_RDWR))
	}
	fd := c.open("d", unix.O_RDONLY|unix.O_DIRECTORY)
	defer c.close(fd)
	all := c.list(fd)
	if len(all) != n+2 {
		c.fatalf("%d entries", len(all))
	}
	for _, at := range []int{0, 1, 2, 17, 500, n} {
		_, err := unix.Seek(fd, all[at].off, unix.SEEK_SET)
		c.must(err)
		rest := c.list(fd)
		if !slices.Equal(rest, all[at+1:]) {
			c.errorf("after entry %d come %d entries", at, len(rest))
		}
	}
	// A position stays good while names come and go. Whether a name that is removed or new is listed, is open.
	for i := range n / 2 {
		c.must(unix.Unlink("d/" + all[2+2*i].name))
	}
	c.put("d/late", "x")
	_, err := unix.Seek(fd, all[500].off, unix.SEEK_SET)
	c.must(err)
	seen := make(map[string]bool)
	for _, d := range c.list(fd) {
		if seen[d.name] {
			c.errorf("%s twice", d.name)
		}
		seen[d.name] = true
	}
	for i, d := range all[501:] {
		if kept := (501+i)%2 == 1; kept && !seen[d.name] {
			c.errorf("%s is missing", d.name)
		}
	}
	_, err = unix.Seek(fd, 0, unix.SEEK_SET)
	c.must(err)
	if again := c.list(fd); len(again) != n/2+3 {
		c.errorf("%d entries after rewinding", len(again))
	}
})
