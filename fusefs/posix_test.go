package fusefs

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"golang.org/x/sys/unix"
)

// fresh makes a directory that everybody may write to, without the kernel's knowledge.
func (m *mounted) fresh(t *testing.T, name string) {
	t.Helper()
	n := vfs.NewNode{Mode: 0o777}
	if _, err := m.tree.Mkdir(context.Background(), vfs.RootIno, name, n); err != nil {
		t.Fatal(err)
	}
	m.settle(t)
}

// TestPosix runs each scenario in a directory of its own.
func TestPosix(t *testing.T) { bothInits(t, posix) }

func posix(t *testing.T) {
	m := mount(t, nil, Options{AllowOther: true})
	for _, name := range []string{
		createErrors, removeErrors, longNames, oddNames, symlinks, hardLinks, renames, renameErrors, renameFlags,
		directoryLinks, renameDirectory, changeTimes, setTimes, setModes, setOwners, setSizes, specialFiles, statFS,
		openModes, appendMode, unlinkedOpen, renamedOver, removedDirectory, sparse, fallocates, mapped, direct, syncs,
		xattrs, xattrSpaces, locks, listings, listingPositions, unsupported, oldTimes, manyLinks, bigFile,
	} {
		t.Run(name, func(t *testing.T) {
			m.fresh(t, name)
			m.start(t, 0, name, name).wait()
		})
	}
}

// TestDotDot: the listing of a directory that moved leads to where it is now, once the notification is through.
func TestDotDot(t *testing.T) {
	m := mount(t, nil, Options{})
	c := m.start(t, 0, "", dotdot)
	c.expect("moved")
	if err := m.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.tell("go on")
	c.wait()
}

var createErrors = scenario("create-errors", func(c *client) {
	c.put("file", "x")
	c.mkdir("dir")
	open := func(path string, flags int) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	c.errno("O_EXCL on a file", open("file", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR), unix.EEXIST)
	c.errno("O_CREAT on a file", open("file", unix.O_CREAT|unix.O_RDWR), 0)
	c.errno("write a directory", open("dir", unix.O_RDWR), unix.EISDIR)
	c.errno("O_CREAT on a directory", open("dir", unix.O_CREAT|unix.O_RDWR), unix.EISDIR)
	c.errno("O_DIRECTORY on a file", open("file", unix.O_DIRECTORY), unix.ENOTDIR)
	c.errno("below nothing", open("none/file", unix.O_CREAT|unix.O_RDWR), unix.ENOENT)
	c.errno("below a file", open("file/file", unix.O_CREAT|unix.O_RDWR), unix.ENOTDIR)
	c.errno("missing", open("none", unix.O_RDONLY), unix.ENOENT)
	c.errno("missing again, from the kernel's cache", open("none", unix.O_RDONLY), unix.ENOENT)
	c.errno("mkdir on a file", unix.Mkdir("file", 0o755), unix.EEXIST)
	c.errno("mkdir on a directory", unix.Mkdir("dir", 0o755), unix.EEXIST)
	c.errno("mkdir below nothing", unix.Mkdir("none/d", 0o755), unix.ENOENT)
	c.errno("mknod on a file", unix.Mknod("file", unix.S_IFREG|0o644, 0), unix.EEXIST)
	c.errno("symlink on a file", unix.Symlink("x", "file"), unix.EEXIST)
	c.errno("link on a file", unix.Link("file", "dir"), unix.EEXIST)
	c.errno("link of nothing", unix.Link("none", "other"), unix.ENOENT)
	c.errno("link of a directory", unix.Link("dir", "other"), unix.EPERM)
	c.errno("made after it was missing", open("none", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR), 0)
})

var removeErrors = scenario("remove-errors", func(c *client) {
	c.put("file", "x")
	c.mkdir("dir")
	c.put("dir/inner", "x")
	c.errno("unlink nothing", unix.Unlink("none"), unix.ENOENT)
	c.errno("unlink a directory", unix.Unlink("dir"), unix.EISDIR)
	c.errno("rmdir a file", unix.Rmdir("file"), unix.ENOTDIR)
	c.errno("rmdir of what is not empty", unix.Rmdir("dir"), unix.ENOTEMPTY)
	c.errno("rmdir of .", unix.Rmdir("dir/."), unix.EINVAL)
	c.errno("unlink below a file", unix.Unlink("file/x"), unix.ENOTDIR)
	c.errno("unlink", unix.Unlink("dir/inner"), 0)
	c.gone("dir/inner")
	c.errno("rmdir", unix.Rmdir("dir"), 0)
	c.gone("dir")
	c.errno("rmdir again", unix.Rmdir("dir"), unix.ENOENT)
})

var longNames = scenario("long-names", func(c *client) {
	longest := strings.Repeat("n", vfs.MaxNameLen)
	c.put(longest, "long")
	c.holds(longest, "long")
	if names := c.names("."); !slices.Equal(names, []string{longest}) {
		c.errorf("lists %q", names)
	}
	var st unix.Stat_t
	c.errno("stat", unix.Lstat(longest+"n", &st), unix.ENAMETOOLONG)
	c.errno("mkdir", unix.Mkdir(longest+"n", 0o755), unix.ENAMETOOLONG)
	c.errno("rename", unix.Rename(longest, longest+"n"), unix.ENAMETOOLONG)
	c.errno("link", unix.Link(longest, longest+"n"), unix.ENAMETOOLONG)
	c.errno("symlink", unix.Symlink("x", longest+"n"), unix.ENAMETOOLONG)
	c.errno("2000 bytes", unix.Lstat(strings.Repeat("n", 2000), &st), unix.ENAMETOOLONG)
})

var oddNames = scenario("odd-names", func(c *client) {
	var all []byte
	for b := 1; b < 256; b++ {
		if b != '/' {
			all = append(all, byte(b))
		}
	}
	names := []string{"\xff\xfe", "...", " ", "-", "new\nline", "ünï", string(all[:127]), string(all[127:])}
	for _, name := range names {
		c.put(name, name)
	}
	for _, name := range names {
		c.holds(name, name)
	}
	got := c.names(".")
	slices.Sort(names)
	slices.Sort(got)
	if !slices.Equal(got, names) {
		c.errorf("lists %q", got)
	}
})

var symlinks = scenario("symlinks", func(c *client) {
	longest := strings.Repeat("t", vfs.MaxSymlinkLen)
	for i, target := range []string{"file", "none", "/", "a/../b", "\xff", longest} {
		name := string(rune('a' + i))
		c.must(unix.Symlink(target, name))
		for range 2 { // the second time from the kernel's cache
			got, err := os.Readlink(name)
			c.must(err)
			if got != target {
				c.errorf("target %q, want %q", abridge(got), abridge(target))
			}
		}
		c.size(name, int64(len(target)))
		c.mode(name, unix.S_IFLNK|0o777)
	}
	c.put("file", "through")
	c.holds("a", "through")
	_, err := os.ReadFile("b")
	c.errno("open of a dangling link", err, unix.ENOENT)
	c.must(unix.Symlink("loop", "loop"))
	_, err = os.ReadFile("loop")
	c.errno("open of a loop", err, unix.ELOOP)
	_, err = os.Readlink("file")
	c.errno("readlink of a file", err, unix.EINVAL)
	c.errno("too long", unix.Symlink(longest+"t", "z"), unix.ENAMETOOLONG)
	c.errno("empty", unix.Symlink("", "z"), unix.ENOENT)
})

var hardLinks = scenario("hard-links", func(c *client) {
	c.put("a", "one")
	before := c.stat("a")
	c.must(unix.Link("a", "b"))
	c.nlink("a", 2)
	c.nlink("b", 2)
	after := c.stat("a")
	if after.Ino != c.stat("b").Ino || after.Ino != before.Ino {
		c.errorf("inodes differ")
	}
	if nanos(after.Ctim) <= nanos(before.Ctim) || after.Mtim != before.Mtim {
		c.errorf("link: ctime %v → %v, mtime %v → %v", before.Ctim, after.Ctim, before.Mtim, after.Mtim)
	}
	c.put("b", "two")
	c.holds("a", "two")
	c.size("a", 3)
	before = c.stat("b")
	c.must(unix.Unlink("a"))
	c.nlink("b", 1)
	if after := c.stat("b"); nanos(after.Ctim) <= nanos(before.Ctim) {
		c.errorf("unlink of another name: ctime %v → %v", before.Ctim, after.Ctim)
	}
	c.must(unix.Link("b", "c"))
	c.must(unix.Rename("b", "c")) // two names of one file: both stay
	c.nlink("b", 2)
	c.nlink("c", 2)
	c.put("d", "other")
	c.must(unix.Rename("d", "c")) // takes a name away
	c.nlink("b", 1)
	c.must(unix.Symlink("x", "s"))
	c.must(unix.Link("s", "s2"))
	c.nlink("s", 2)
})

var renames = scenario("renames", func(c *client) {
	c.put("a", "a")
	c.put("b", "b")
	before, dir := c.stat("a"), c.stat(".")
	c.must(unix.Rename("a", "c"))
	c.gone("a")
	c.holds("c", "a")
	after := c.stat("c")
	if after.Ino != before.Ino || nanos(after.Ctim) <= nanos(before.Ctim) || after.Mtim != before.Mtim {
		c.errorf("inode %d → %d, ctime %v → %v", before.Ino, after.Ino, before.Ctim, after.Ctim)
	}
	if now := c.stat("."); nanos(now.Mtim) <= nanos(dir.Mtim) || nanos(now.Ctim) <= nanos(dir.Ctim) {
		c.errorf("times of the directory: %v → %v", dir.Mtim, now.Mtim)
	}
	c.must(unix.Rename("c", "b"))
	c.gone("c")
	c.holds("b", "a")
	c.mkdir("d")
	c.must(unix.Rename("b", "d/b"))
	c.gone("b")
	c.holds("d/b", "a")
	c.must(unix.Rename("d", "e"))
	c.holds("e/b", "a")
	c.gone("d/b")
	c.mkdir("empty")
	c.must(unix.Rename("e", "empty"))
	c.holds("empty/b", "a")
	if names := c.names("."); !slices.Equal(names, []string{"empty"}) {
		c.errorf("lists %q", names)
	}
})

var renameErrors = scenario("rename-errors", func(c *client) {
	c.put("file", "x")
	c.mkdir("dir")
	c.mkdir("full")
	c.put("full/x", "x")
	c.errno("nothing", unix.Rename("none", "other"), unix.ENOENT)
	c.errno("into nothing", unix.Rename("file", "none/file"), unix.ENOENT)
	c.errno("file over directory", unix.Rename("file", "dir"), unix.EISDIR)
	c.errno("directory over file", unix.Rename("dir", "file"), unix.ENOTDIR)
	c.errno("directory over a full one", unix.Rename("dir", "full"), unix.ENOTEMPTY)
	c.errno("directory into itself", unix.Rename("dir", "dir/sub"), unix.EINVAL)
	c.errno("directory onto what holds it", unix.Rename("full/x", "full"), unix.ENOTEMPTY)
	c.errno("onto itself", unix.Rename("file", "file"), 0)
	c.holds("file", "x")
})

var renameFlags = scenario("rename-flags", func(c *client) {
	rename := func(from, to string, flags uint) error {
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	}
	c.put("a", "a")
	c.put("b", "b")
	c.mkdir("d")
	c.mkdir("d/e")
	c.put("d/f", "f")
	c.errno("NOREPLACE", rename("a", "b", unix.RENAME_NOREPLACE), unix.EEXIST)
	c.errno("NOREPLACE to a free name", rename("a", "free", unix.RENAME_NOREPLACE), 0)
	c.holds("free", "a")
	c.errno("EXCHANGE", rename("free", "b", unix.RENAME_EXCHANGE), 0)
	c.holds("free", "b")
	c.holds("b", "a")
	c.errno("EXCHANGE with nothing", rename("b", "none", unix.RENAME_EXCHANGE), unix.ENOENT)
	c.errno("EXCHANGE of a file and a directory", rename("b", "d/e", unix.RENAME_EXCHANGE), 0)
	c.holds("d/e", "a")
	c.mode("b", unix.S_IFDIR|0o755)
	c.nlink("d", 2)
	c.errno("WHITEOUT", rename("b", "w", unix.RENAME_WHITEOUT), unix.EINVAL)
})

var directoryLinks = scenario("directory-links", func(c *client) {
	c.nlink(".", 2)
	c.mkdir("a")
	c.mkdir("b")
	c.nlink(".", 4)
	c.nlink("a", 2)
	c.mkdir("a/sub")
	c.nlink("a", 3)
	before := c.stat("a")
	c.must(unix.Rename("a/sub", "b/sub"))
	c.nlink("a", 2)
	c.nlink("b", 3)
	if after := c.stat("a"); nanos(after.Mtim) <= nanos(before.Mtim) {
		c.errorf("mtime of the old directory %v → %v", before.Mtim, after.Mtim)
	}
	before = c.stat("b")
	c.must(unix.Rmdir("b/sub"))
	c.nlink("b", 2)
	if after := c.stat("b"); nanos(after.Mtim) <= nanos(before.Mtim) || nanos(after.Ctim) <= nanos(before.Ctim) {
		c.errorf("mtime after rmdir %v → %v", before.Mtim, after.Mtim)
	}
	before = c.stat("b")
	c.put("b/file", "x")
	if after := c.stat("b"); nanos(after.Mtim) <= nanos(before.Mtim) {
		c.errorf("mtime after a file was made %v → %v", before.Mtim, after.Mtim)
	}
	c.nlink("b", 2)
	before = c.stat("b")
	c.put("b/file", "more")
	if after := c.stat("b"); after.Mtim != before.Mtim {
		c.errorf("mtime after a file was written %v → %v", before.Mtim, after.Mtim)
	}
	c.must(unix.Unlink("b/file"))
	c.must(unix.Rmdir("b"))
	c.nlink(".", 3)
})

var renameDirectory = scenario("rename-directory", func(c *client) {
	c.mkdir("a")
	c.mkdir("b")
	c.mkdir("b/empty")
	c.mkdir("a/d")
	c.put("a/d/f", "deep")
	fd := c.open("a/d", unix.O_RDONLY|unix.O_DIRECTORY)
	c.must(unix.Rename("a/d", "b/empty"))
	c.nlink("a", 2)
	c.nlink("b", 3)
	c.holds("b/empty/f", "deep")
	in, err := unix.Openat(fd, "f", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	c.must(err)
	c.reads(in, 0, "deep")
	c.close(in)
	c.close(fd)
})

var dotdot = scenario("dotdot", func(c *client) {
	c.mkdir("a")
	c.mkdir("b")
	c.mkdir("a/d")
	parent := func() uint64 {
		fd := c.open(".", unix.O_RDONLY|unix.O_DIRECTORY)
		defer c.close(fd)
		all := c.list(fd)
		if all[0].name != "." || all[1].name != ".." || all[0].ino != c.stat(".").Ino {
			c.errorf("lists %v", all)
		}
		return all[1].ino
	}
	a, b := c.stat("a").Ino, c.stat("b").Ino
	c.must(os.Chdir("a/d"))
	if got := parent(); got != a {
		c.errorf(".. is %d, want %d", got, a)
	}
	c.must(unix.Rename("../../a/d", "../../b/d"))
	c.turn("moved")
	if got := parent(); got != b || c.stat("..").Ino != b {
		c.errorf("after the move .. is %d, want %d", got, b)
	}
})

var changeTimes = scenario("change-times", func(c *client) {
	c.put("f", "x")
	step := func(what string, mtime bool, f func()) {
		before := c.stat("f")
		f()
		after := c.stat("f")
		if nanos(after.Ctim) <= nanos(before.Ctim) {
			c.errorf("%s: ctime %v → %v", what, before.Ctim, after.Ctim)
		}
		if changed := nanos(after.Mtim) > nanos(before.Mtim); changed != mtime {
			c.errorf("%s: mtime %v → %v", what, before.Mtim, after.Mtim)
		}
	}
	fd := c.open("f", unix.O_RDWR)
	defer c.close(fd)
	step("chmod", false, func() { c.must(unix.Chmod("f", 0o600)) })
	step("chown", false, func() { c.must(unix.Chown("f", 1, 1)) })
	step("write", true, func() { c.pwrite(fd, []byte("y"), 0) })
	step("truncate", true, func() { c.must(unix.Truncate("f", 10)) })
	step("truncate to the same size", true, func() { c.must(unix.Ftruncate(fd, 10)) })
	step("setxattr", false, func() { c.must(unix.Setxattr("f", "user.a", []byte("v"), 0)) })
	step("removexattr", false, func() { c.must(unix.Removexattr("f", "user.a")) })
	step("link", false, func() { c.must(unix.Link("f", "g")) })
	step("unlink", false, func() { c.must(unix.Unlink("g")) })
	step("fallocate", true, func() { c.must(unix.Fallocate(fd, 0, 0, 100)) })
	step("O_TRUNC", true, func() { c.close(c.open("f", unix.O_WRONLY|unix.O_TRUNC)) })
})

var setTimes = scenario("set-times", func(c *client) {
	c.put("f", "x")
	utimes := func(a, m unix.Timespec) {
		c.must(unix.UtimesNanoAt(unix.AT_FDCWD, "f", []unix.Timespec{a, m}, unix.AT_SYMLINK_NOFOLLOW))
	}
	now, omit := unix.Timespec{Nsec: unix.UTIME_NOW}, unix.Timespec{Nsec: unix.UTIME_OMIT}
	a, m := unix.Timespec{Sec: 1e9, Nsec: 123456789}, unix.Timespec{Sec: 2e9, Nsec: 999999999}
	utimes(a, m)
	if st := c.stat("f"); st.Atim != a || st.Mtim != m {
		c.errorf("set: %v %v", st.Atim, st.Mtim)
	}
	utimes(omit, a)
	if st := c.stat("f"); st.Atim != a || st.Mtim != a {
		c.errorf("mtime only: %v %v", st.Atim, st.Mtim)
	}
	utimes(m, omit)
	if st := c.stat("f"); st.Atim != m || st.Mtim != a {
		c.errorf("atime only: %v %v", st.Atim, st.Mtim)
	}
	utimes(omit, now)
	if st := c.stat("f"); st.Atim != m || nanos(st.Mtim) <= nanos(m)-1e18 || st.Mtim == a {
		c.errorf("mtime now: %v %v", st.Atim, st.Mtim)
	}
	before := c.stat("f")
	utimes(now, omit)
	if st := c.stat("f"); st.Atim == m || st.Mtim != before.Mtim || nanos(st.Ctim) <= nanos(before.Ctim) {
		c.errorf("atime now: %v %v", st.Atim, st.Mtim)
	}
	c.must(unix.Symlink("none", "s"))
	c.must(unix.UtimesNanoAt(unix.AT_FDCWD, "s", []unix.Timespec{a, m}, unix.AT_SYMLINK_NOFOLLOW))
	if st := c.stat("s"); st.Mtim != m {
		c.errorf("of a symlink: %v", st.Mtim)
	}
	c.mkdir("d")
	c.must(unix.UtimesNanoAt(unix.AT_FDCWD, "d", []unix.Timespec{a, m}, 0))
	if st := c.stat("d"); st.Mtim != m {
		c.errorf("of a directory: %v", st.Mtim)
	}
})

var oldTimes = scenario("old-times", func(c *client) {
	c.put("f", "x")
	for _, t := range []unix.Timespec{{Sec: -1, Nsec: 999999999}, {Sec: -1e9, Nsec: 1}, {Sec: -1}, {}, {Sec: 5e9}} {
		c.must(unix.UtimesNanoAt(unix.AT_FDCWD, "f", []unix.Timespec{t, t}, 0))
		if st := c.stat("f"); st.Atim != t || st.Mtim != t {
			c.errorf("set %v, got %v %v", t, st.Atim, st.Mtim)
		}
	}
})

var setModes = scenario("set-modes", func(c *client) {
	c.put("f", "x")
	c.mkdir("d")
	for _, mode := range []uint32{0, 0o777, 0o4755, 0o2755, 0o1777, 0o7777, 0o640} {
		c.must(unix.Chmod("f", mode))
		c.mode("f", unix.S_IFREG|mode)
		c.must(unix.Chmod("d", mode))
		c.mode("d", unix.S_IFDIR|mode)
	}
	syscall.Umask(0)
	fd, err := unix.Open("g", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o7777)
	c.must(err)
	c.close(fd)
	c.mode("g", unix.S_IFREG|0o7777)
	c.must(unix.Mkdir("sticky", 0o1777))
	c.mode("sticky", unix.S_IFDIR|0o1777)
	syscall.Umask(0o027)
	c.must(unix.Mkdir("masked", 0o777))
	c.mode("masked", unix.S_IFDIR|0o750)
	c.must(unix.Mknod("fifo", unix.S_IFIFO|0o666, 0))
	c.mode("fifo", unix.S_IFIFO|0o640)
	fd, err = unix.Open("h", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	c.must(err)
	c.close(fd)
	c.mode("h", unix.S_IFREG|0o640)
})

var setOwners = scenario("set-owners", func(c *client) {
	c.put("f", "x")
	owner := func(uid, gid uint32) {
		if st := c.stat("f"); st.Uid != uid || st.Gid != gid {
			c.errorf("owner %d:%d, want %d:%d", st.Uid, st.Gid, uid, gid)
		}
	}
	owner(0, 0)
	c.must(unix.Chown("f", 12, -1))
	owner(12, 0)
	c.must(unix.Chown("f", -1, 34))
	owner(12, 34)
	c.must(unix.Chown("f", 1<<31, 1<<32-2))
	owner(1<<31, 1<<32-2)
	c.must(unix.Chown("f", -1, -1))
	owner(1<<31, 1<<32-2)
	c.must(unix.Chmod("f", 0o6755))
	c.must(unix.Chown("f", 1, 1))
	c.mode("f", unix.S_IFREG|0o755) // chown(2): whoever does it
	c.mkdir("d")
	c.must(unix.Chmod("d", 0o6755))
	c.must(unix.Chown("d", 1, 1))
	c.mode("d", unix.S_IFDIR|0o6755)
	c.must(unix.Symlink("f", "s"))
	c.must(unix.Lchown("s", 7, 8))
	if st := c.stat("s"); st.Uid != 7 || st.Gid != 8 {
		c.errorf("symlink: %d:%d", st.Uid, st.Gid)
	}
	c.mkdir("group")
	c.must(unix.Chown("group", 0, 99))
	c.must(unix.Chmod("group", 0o2775))
	c.put("group/f", "x")
	c.mkdir("group/d")
	if st := c.stat("group/f"); st.Gid != 99 {
		c.errorf("a file in a set-group-ID directory has group %d", st.Gid)
	}
	if st := c.stat("group/d"); st.Gid != 99 || st.Mode&unix.S_ISGID == 0 {
		c.errorf("a directory in a set-group-ID directory has group %d, mode %o", st.Gid, st.Mode)
	}
})

var setSizes = scenario("set-sizes", func(c *client) {
	c.put("f", "hello world")
	c.must(unix.Truncate("f", 5))
	c.holds("f", "hello")
	c.must(unix.Truncate("f", 8))
	c.holds("f", "hello\x00\x00\x00")
	c.must(unix.Truncate("f", 0))
	c.holds("f", "")
	c.must(unix.Truncate("f", 1<<40))
	c.size("f", 1<<40)
	c.errno("too large", unix.Truncate("f", vfs.MaxFileSize+1), unix.EFBIG)
	c.size("f", 1<<40)
	c.mkdir("d")
	c.errno("of a directory", unix.Truncate("d", 0), unix.EISDIR)
	c.errno("of nothing", unix.Truncate("none", 0), unix.ENOENT)
	fd := c.open("f", unix.O_RDONLY)
	c.errno("of a file open for reading", unix.Ftruncate(fd, 0), unix.EINVAL)
	c.close(fd)
})

var specialFiles = scenario("special-files", func(c *client) {
	c.must(unix.Mknod("fifo", unix.S_IFIFO|0o600, 0))
	c.must(unix.Mknod("sock", unix.S_IFSOCK|0o600, 0))
	c.must(unix.Mknod("file", unix.S_IFREG|0o600, 0))
	c.must(unix.Mknod("char", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	c.must(unix.Mknod("block", unix.S_IFBLK|0o600, int(unix.Mkdev(259, 70000))))
	for name, mode := range map[string]uint32{
		"fifo": unix.S_IFIFO, "sock": unix.S_IFSOCK, "file": unix.S_IFREG, "char": unix.S_IFCHR, "block": unix.S_IFBLK,
	} {
		c.mode(name, mode|0o600)
	}
	if st := c.stat("char"); st.Rdev != unix.Mkdev(1, 3) {
		c.errorf("char device %x", st.Rdev)
	}
	if st := c.stat("block"); st.Rdev != unix.Mkdev(259, 70000) {
		c.errorf("block device %x, want %x", st.Rdev, unix.Mkdev(259, 70000))
	}
	c.put("char", "swallowed by the null device")
	c.holds("char", "")

	// A FIFO carries bytes between two descriptors without the tree.
	fd := c.open("fifo", unix.O_RDWR)
	_, err := unix.Write(fd, []byte("x"))
	c.must(err)
	b := make([]byte, 1)
	_, err = unix.Read(fd, b)
	c.must(err)
	c.close(fd)

	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	c.must(err)
	c.must(unix.Bind(s, &unix.SockaddrUnix{Name: "bound"}))
	c.must(unix.Listen(s, 1))
	s2, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	c.must(err)
	c.must(unix.Connect(s2, &unix.SockaddrUnix{Name: "bound"}))
	c.close(s2)
	c.close(s)
})

var statFS = scenario("statfs", func(c *client) {
	var st unix.Statfs_t
	c.must(unix.Statfs(".", &st))
	if st.Bsize != 4096 || st.Frsize != 4096 || st.Namelen != 255 ||
		st.Blocks == 0 || st.Bfree > st.Blocks || st.Files == 0 {
		c.errorf("%+v", st)
	}
	free := st.Bfree
	c.put("f", strings.Repeat("x", 1<<20))
	c.must(unix.Statfs(".", &st))
	if free-st.Bfree != 1<<20/4096 {
		c.errorf("1 MiB took %d blocks", free-st.Bfree)
	}
})

var manyLinks = scenario("many-links", func(c *client) {
	c.put("f", "x")
	for i := range 2000 {
		c.must(unix.Link("f", "l"+string(rune('a'+i%26))+strings.Repeat("x", i/26)))
	}
	c.nlink("f", 2001)
})

var unsupported = scenario("unsupported", func(c *client) {
	c.put("f", "x")
	_, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	c.errno("O_TMPFILE", err, unix.EOPNOTSUPP)
	fd := c.open("f", unix.O_RDWR)
	_, err = unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	c.errno("ioctl", err, unix.ENOTTY)
	// What the kernel can do without us, it does.
	c.put("g", strings.Repeat("copied ", 30000))
	in, out := c.open("g", unix.O_RDONLY), c.open("h", unix.O_CREAT|unix.O_RDWR)
	for {
		n, err := unix.CopyFileRange(in, nil, out, nil, 1<<20, 0)
		c.must(err)
		if n == 0 {
			break
		}
	}
	c.holds("h", strings.Repeat("copied ", 30000))
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(in), Events: unix.POLLIN | unix.POLLOUT}}, 0)
	if n != 1 || err != nil {
		c.errorf("poll: %d, %v", n, err)
	}
	for _, fd := range []int{fd, in, out} {
		c.close(fd)
	}
})
