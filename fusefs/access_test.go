package fusefs

import (
	"os"
	"syscall"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"golang.org/x/sys/unix"
)

const stranger = 1000 // a user and group that owns nothing

// prepareAccess makes, as root, what a stranger then tries.
var prepareAccess = scenario("prepare-access", func(c *client) {
	c.must(unix.Chmod(".", 0o755))
	c.put("private", "root only")
	c.must(unix.Chmod("private", 0o600))
	c.put("public", "for all")
	c.mkdir("closed")
	c.put("closed/inside", "hidden")
	c.holds("closed/inside", "hidden") // now in the kernel's cache, for everybody if it did not check
	c.must(unix.Chmod("closed", 0o700))
	c.must(unix.Mkdir("sticky", 0o777))
	c.must(unix.Chmod("sticky", 0o1777))
	c.put("sticky/of-root", "x")
	c.must(unix.Mkdir("open", 0o777))
	c.must(unix.Chmod("open", 0o777))
	c.must(unix.Mkdir("group", 0o777))
	c.must(unix.Chmod("group", 0o2777))
	c.must(unix.Chown("group", 0, 77))
	c.must(unix.Chmod("group", 0o2777))
	c.put("mine", "12345")
	c.must(unix.Chown("mine", stranger, stranger))
	c.must(unix.Chmod("mine", 0o6777))
	c.put("mine-too", "12345")
	c.must(unix.Chown("mine-too", stranger, stranger))
	c.must(unix.Chmod("mine-too", 0o6777))
	c.put("mine-group", "x")
	c.must(unix.Chown("mine-group", stranger, 0))
	c.put("tagged", "x")
	c.must(unix.Setxattr("tagged", "trusted.t", []byte("1"), 0))
	c.must(unix.Setxattr("tagged", "user.u", []byte("1"), 0))
})

var tryAccess = scenario("try-access", func(c *client) {
	open := func(path string, flags int) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	var st unix.Stat_t
	c.errno("read what is private", open("private", unix.O_RDONLY), unix.EACCES)
	c.errno("write what is private", open("private", unix.O_WRONLY), unix.EACCES)
	c.errno("read what is public", open("public", unix.O_RDONLY), 0)
	c.errno("write what is public", open("public", unix.O_WRONLY), unix.EACCES)
	c.errno("truncate", unix.Truncate("public", 0), unix.EACCES)
	c.errno("search a closed directory", unix.Lstat("closed/inside", &st), unix.EACCES)
	c.errno("open in a closed directory", open("closed/inside", unix.O_RDONLY), unix.EACCES)
	_, err := os.ReadDir("closed")
	c.errno("list a closed directory", err, unix.EACCES)
	c.errno("create in the root", open("new", unix.O_CREAT|unix.O_RDWR), unix.EACCES)
	c.errno("remove from the root", unix.Unlink("public"), unix.EACCES)
	c.errno("rename in the root", unix.Rename("public", "other"), unix.EACCES)
	c.errno("remove from a sticky directory", unix.Unlink("sticky/of-root"), unix.EPERM)
	c.errno("rename in a sticky directory", unix.Rename("sticky/of-root", "sticky/x"), unix.EPERM)
	c.errno("create in a sticky directory", open("sticky/own", unix.O_CREAT|unix.O_RDWR), 0)
	c.errno("remove the own file", unix.Unlink("sticky/own"), 0)
	c.errno("chmod", unix.Chmod("public", 0o777), unix.EPERM)
	c.errno("chown", unix.Chown("mine", 0, -1), unix.EPERM)
	c.errno("set times", unix.UtimesNanoAt(unix.AT_FDCWD, "public", []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0), unix.EPERM)
	c.errno("touch", unix.UtimesNanoAt(unix.AT_FDCWD, "public", nil, 0), unix.EACCES)
	c.errno("access", unix.Access("private", unix.R_OK), unix.EACCES)
	c.errno("access", unix.Access("public", unix.R_OK), 0)
	c.errno("execute", unix.Access("public", unix.X_OK), unix.EACCES)
	c.errno("mknod of a device", unix.Mknod("open/dev", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))), unix.EPERM)
	c.errno("set trusted.", unix.Setxattr("mine", "trusted.t", nil, 0), unix.EPERM)
	_, err = unix.Getxattr("tagged", "trusted.t", nil)
	c.errno("get trusted.", err, unix.ENODATA)
	b := make([]byte, 100)
	n, err := unix.Listxattr("tagged", b)
	if string(b[:n]) != "user.u\x00" || err != nil {
		c.errorf("lists %q, %v", b[:n], err)
	}
	c.errno("set user. on what is public", unix.Setxattr("public", "user.u", nil, 0), unix.EACCES)
})

// ownFiles: what a user makes is his, in a set-group-ID directory the directory's group's; and his writing takes the
// set-ID bits away, which the kernel must notice.
var ownFiles = scenario("own-files", func(c *client) {
	owner := func(path string, gid uint32) {
		if st := c.stat(path); st.Uid != stranger || st.Gid != gid {
			c.errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
		}
	}
	c.put("open/file", "x")
	owner("open/file", stranger)
	c.mkdir("open/dir")
	owner("open/dir", stranger)
	c.must(unix.Symlink("x", "open/link"))
	owner("open/link", stranger)
	c.must(unix.Mknod("open/fifo", unix.S_IFIFO|0o600, 0))
	owner("open/fifo", stranger)
	c.put("group/file", "x")
	owner("group/file", 77)
	c.mkdir("group/dir")
	owner("group/dir", 77)
	c.mode("group/dir", unix.S_IFDIR|unix.S_ISGID|0o755)

	c.mode("mine", unix.S_IFREG|0o6777)
	fd := c.open("mine", unix.O_WRONLY)
	c.mode("mine", unix.S_IFREG|0o6777)
	c.pwrite(fd, []byte("x"), 0)
	c.mode("mine", unix.S_IFREG|0o777)
	if st := c.fstat(fd); st.Mode != unix.S_IFREG|0o777 {
		c.errorf("fstat after a write: %o", st.Mode)
	}
	c.close(fd)
	fd = c.open("open/created", unix.O_CREAT|unix.O_WRONLY) // goes past the page cache
	c.must(unix.Fchmod(fd, 0o6777))
	c.mode("open/created", unix.S_IFREG|0o6777)
	c.pwrite(fd, []byte("x"), 0)
	c.mode("open/created", unix.S_IFREG|0o777)
	c.close(fd)
	c.mode("mine-too", unix.S_IFREG|0o6777)
	c.must(unix.Truncate("mine-too", 1))
	c.mode("mine-too", unix.S_IFREG|0o777)
	// chmod(2): who is not in the file's group cannot make it set-group-ID.
	c.must(unix.Chmod("mine-group", 0o2755))
	c.mode("mine-group", unix.S_IFREG|0o755)
})

// fileCapability is cap_net_raw+ep, as setcap(8) writes it (struct vfs_cap_data, revision 2).
var fileCapability = []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// capabilities: whoever writes a program, truncates it or gives it away takes its rights from it.
var capabilities = scenario("capabilities", func(c *client) {
	c.put("f", "program")
	has := func(what string, want bool) {
		_, err := unix.Getxattr("f", "security.capability", make([]byte, 100))
		if got := err == nil; got != want {
			c.errorf("%s: capabilities %v (%v), want %v", what, got, err, want)
		}
	}
	fd := c.open("f", unix.O_RDWR)
	for range 2 {
		for what, f := range map[string]func() error{
			"write":    func() error { _, err := unix.Pwrite(fd, []byte("P"), 0); return err },
			"truncate": func() error { return unix.Ftruncate(fd, 3) },
			"chown":    func() error { return unix.Chown("f", 5, -1) },
		} {
			c.must(f())
			c.must(unix.Setxattr("f", "security.capability", fileCapability, 0))
			c.must(unix.Chmod("f", 0o755))
			has("before "+what, true)
			c.must(f())
			has(what, false)
		}
	}
	c.turn("plain")
	has("set by others", true)
	c.pwrite(fd, []byte("P"), 0)
	has("write", false)
	c.close(fd)
})

func TestCapabilities(t *testing.T) {
	m := mount(t, nil, Options{})
	c := m.start(t, 0, "", capabilities)
	c.expect("plain")
	f := foreigner{t, m.tree, t.Context()}
	f.must(f.tree.SetXattr(f.ctx, f.ino(vfs.RootIno, "f"), "security.capability", fileCapability, 0))
	m.settle(t)
	c.tell("set")
	c.wait()
}

func TestAccess(t *testing.T) {
	m := mount(t, nil, Options{AllowOther: true})
	m.fresh(t, "area")
	m.start(t, 0, "area", prepareAccess).wait()
	m.start(t, stranger, "area", tryAccess).wait()
	m.start(t, stranger, "area", ownFiles).wait()
}

var keptOut = scenario("kept-out", func(c *client) {
	var st unix.Stat_t
	c.errno("stat", unix.Lstat(c.args[0], &st), syscall.EACCES)
	_, err := os.ReadDir(c.args[0])
	c.errno("list", err, syscall.EACCES)
})

// TestOwnerOnly: without AllowOther nobody else gets in, whatever the modes say.
func TestOwnerOnly(t *testing.T) {
	m := mount(t, nil, Options{})
	outside := &mounted{Server: &Server{dir: "/"}}
	outside.start(t, stranger, "", keptOut, m.Dir()).wait()
}
