package fusefs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// isMounted looks into the table of mounts, without touching the directory.
func isMounted(t *testing.T, dir string) bool {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(mounts, []byte(" "+dir+" "))
}

// content reads a file in the root through the tree.
func (m *mounted) content(t *testing.T, name string) string {
	t.Helper()
	ctx := context.Background()
	a, err := m.tree.Lookup(ctx, vfs.RootIno, name)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, a.Size)
	n, err := m.tree.ReadAt(ctx, a.Ino, b, 0)
	if err != nil || n != len(b) {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	return string(b)
}

func TestUnmountIdle(t *testing.T) {
	m := mount(t, nil, Options{Name: "desk"})
	m.run(t, smoke)
	if !isMounted(t, m.Dir()) {
		t.Error("not in the table of mounts")
	}
	m.grace, m.drain = patience, patience // which an idle mount is not given
	start := time.Now()
	if err := m.Unmount(t.Context()); err != nil {
		t.Fatal(err)
	}
	if isMounted(t, m.Dir()) {
		t.Error("still mounted")
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("took %v", took)
	}
	if err := m.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	if err := m.Unmount(t.Context()); err != nil {
		t.Errorf("unmounting again: %v", err)
	}
}

// writeOn appends numbered lines until that fails, and then says how many were acknowledged.
var writeOn = scenario("write-on", func(c *client) {
	fd := c.open("log", unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
	for n := 0; ; n++ {
		if _, err := fmt.Fprintf(fdWriter(fd), "line %d\n", n); err != nil {
			c.say(strconv.Itoa(n))
			if !errors.Is(err, syscall.ECONNABORTED) { // a write that the kernel had not yet passed on
				c.errno("write", err, syscall.ENOTCONN)
			}
			return
		}
		if n == 100 {
			c.say("writing")
		}
	}
})

// fdWriter writes to a descriptor in one system call.
type fdWriter int

func (fd fdWriter) Write(p []byte) (int, error) { return unix.Write(int(fd), p) }

// TestUnmountWhileWriting: a writer that does not stop is cut off, and no line that it was told of is lost.
func TestUnmountWhileWriting(t *testing.T) {
	m := mount(t, nil, Options{})
	c := m.start(t, 0, "", writeOn)
	c.expect("writing")
	if err := m.Unmount(t.Context()); err != nil {
		t.Fatal(err)
	}
	if isMounted(t, m.Dir()) {
		t.Error("still mounted")
	}
	acknowledged, err := strconv.Atoi(<-c.lines)
	if err != nil {
		t.Fatal(err)
	}
	c.wait()
	var want strings.Builder
	for n := range acknowledged {
		fmt.Fprintf(&want, "line %d\n", n)
	}
	if got := m.content(t, "log"); !strings.HasPrefix(got, want.String()) || len(got) > want.Len()+20 {
		t.Errorf("%d lines were acknowledged; the file has %d bytes, want %d", acknowledged, len(got), want.Len())
	}
}

// writeLate writes to its open file when it is told to, and closes it.
var writeLate = scenario("write-late", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	c.must(unix.Chdir("/"))
	c.turn("open")
	c.pwrite(fd, []byte("late"), 0)
	c.reads(fd, 0, "late")
	c.must(unix.Fsync(fd))
	c.close(fd)
})

// TestUnmountBusy: while the mount is detached, who has a file open finishes his work.
func TestUnmountBusy(t *testing.T) {
	m := mount(t, nil, Options{})
	m.drain = patience
	c := m.start(t, 0, "", writeLate)
	c.expect("open")
	done := make(chan error)
	go func() { done <- m.Unmount(context.Background()) }()
	eventually(t, "the mount is detached", func() bool { return !isMounted(t, m.Dir()) })
	c.tell("go on")
	c.wait()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := m.content(t, "f"); got != "late" {
		t.Errorf("the file holds %q", got)
	}
}

// mapAndStay changes a file through a mapping and keeps it.
var mapAndStay = scenario("map-and-stay", func(c *client) {
	fd := c.open("f", unix.O_CREAT|unix.O_RDWR)
	c.must(unix.Ftruncate(fd, 4096))
	b, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.must(err)
	copy(b, "by map")
	c.turn("mapped")
})

// TestUnmountMapped: bytes that were only written to memory are fetched before a busy mount is cut off.
func TestUnmountMapped(t *testing.T) {
	m := mount(t, nil, Options{})
	c := m.start(t, 0, "", mapAndStay)
	c.expect("mapped")
	if err := m.Unmount(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.tell("end")
	c.wait()
	if got := m.content(t, "f"); !strings.HasPrefix(got, "by map\x00") {
		t.Errorf("the file holds %q", abridge(got))
	}
}

// TestUnmountBlocked: a call that never ends does not keep the mount.
func TestUnmountBlocked(t *testing.T) {
	tree := newSlow(vfstest.NewTree())
	m := mount(t, tree, Options{})
	c := m.start(t, 0, "", syncFiles, "1")
	eventually(t, "the call waits", tree.waits(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no patience
	if err := m.Unmount(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.exit(); err == nil {
		t.Error("fsync succeeded")
	}
	if !tree.interrupts(1)() {
		t.Error("the call was not cancelled")
	}
}

func TestUnmountByOthers(t *testing.T) {
	m := mount(t, nil, Options{})
	m.run(t, smoke)
	c := m.start(t, 0, "", mapAndStay)
	c.expect("mapped")
	if err := Unmount(m.Dir()); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("busy: %v", err)
	}
	c.tell("end")
	c.wait()
	eventually(t, "unmount", func() bool { return Unmount(m.Dir()) == nil })
	if err := m.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	if err := Unmount(m.Dir()); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("not mounted: %v", err)
	}
}

// TestUnmountDetached: a mount that somebody else has detached ends when its files are closed, and not before.
func TestUnmountDetached(t *testing.T) {
	m := mount(t, nil, Options{})
	c := m.start(t, 0, "", mapAndStay)
	c.expect("mapped")
	if err := unmount(m.Dir(), true); err != nil {
		t.Fatal(err)
	}
	if err := m.Unmount(t.Context()); !errors.Is(err, vfs.ErrBusy) {
		t.Errorf("while files are open: %v", err)
	}
	c.tell("end")
	c.wait()
	if err := m.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
}

func TestMountErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	m := mount(t, nil, Options{})
	for _, test := range []struct {
		dir  string
		want error
	}{
		{filepath.Join(dir, "none"), vfs.ErrNotExist},
		{file, vfs.ErrNotDir},
		{dir, vfs.ErrNotEmpty},
		{m.Dir(), vfs.ErrBusy},
	} {
		s, err := Mount(test.dir, vfstest.NewTree(), Options{})
		var me *MountError
		if !errors.Is(err, test.want) || !errors.As(err, &me) || me.Dir != test.dir {
			t.Errorf("%s: %v", test.dir, err)
		}
		if s != nil {
			t.Error("a server beside an error")
		}
	}
	if m.Requests() > 20 {
		t.Errorf("a refused mount asked the mount below %d times", m.Requests())
	}
}

// TestHelperFailure: what the helper says is not lost.
func TestHelperFailure(t *testing.T) {
	path := os.Getenv("PATH")
	_, err := mountBySelf(filepath.Join(t.TempDir(), "none"), nil)
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "mount(2)") {
		t.Errorf("%v", err)
	}
	if os.Getenv("PATH") != path {
		t.Error("PATH is not restored")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none")) // as on a system that is read-only
	m := mount(t, nil, Options{})
	m.run(t, smoke)

	helperReady.Store(false)
	defer helperReady.Store(true)
	if _, err := mountBySelf(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "HelperMain") {
		t.Errorf("without HelperMain: %v", err)
	}
}

func TestMountOptionString(t *testing.T) {
	m := parseMountOptions(`fsname=a\,b\\c=d,subtype=carrel,ro,dev,suid,allow_other,default_permissions`)
	if m.source != `a,b\c=d` || m.fstype != "fuse.carrel" || m.flags != unix.MS_RDONLY {
		t.Errorf("%+v", m)
	}
	want := "fd=3,rootmode=40000,user_id=1,group_id=2,allow_other,default_permissions"
	if got := m.data(3, 1, 2); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMountedFuse(t *testing.T) {
	table := []byte("36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw\n" +
		"37 35 0:44 / /a rw,nosuid shared:2 - fuse.carrel carrel rw\n38 35 0:45 / /b rw - tmpfs tmpfs rw\n")
	for minor, want := range map[uint32]bool{44: true, 45: false, 46: false} {
		if got := mountedFuse(table, 0, minor); got != want {
			t.Errorf("0:%d: %v", minor, got)
		}
	}
}

// daemon mounts on the directory that it is told, and serves until it is killed or told to end.
var daemon = scenario("daemon", func(c *client) {
	s, err := Mount(c.args[0], vfstest.NewTree(), Options{})
	var me *MountError
	if errors.As(err, &me) && os.Geteuid() != 0 {
		c.say(me.Advice)
		return
	}
	c.must(err)
	c.turn("serving")
	c.must(s.Unmount(context.Background()))
})

// startDaemon starts a daemon outside of any mount.
func startDaemon(t *testing.T, uid uint32, dir string) *child {
	t.Helper()
	outside := &mounted{Server: &Server{dir: "/"}}
	return outside.start(t, uid, "", daemon, dir)
}

// TestDeadDaemon: a daemon that is killed leaves a mount that can be told and cleaned, and nothing else.
func TestDeadDaemon(t *testing.T) {
	dir := t.TempDir()
	if dead, err := IsDead(dir); dead || err != nil {
		t.Errorf("a directory: %v, %v", dead, err)
	}
	for range 2 { // the second mounts where the first has died
		c := startDaemon(t, 0, dir)
		c.expect("serving")
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil || st.Ino != uint64(vfs.RootIno) {
			t.Errorf("the root is %d, %v", st.Ino, err)
		}
		if dead, err := IsDead(dir); dead || err != nil {
			t.Errorf("a mount: %v, %v", dead, err)
		}
		if err := CleanDead(dir); err != nil || !isMounted(t, dir) {
			t.Errorf("cleaning what lives: %v", err)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.exit(); err == nil {
			t.Error("killed, but no error")
		}
		if dead, err := IsDead(dir); !dead || err != nil {
			t.Errorf("a dead mount: %v, %v", dead, err)
		}
		if _, err := Mount(dir, vfstest.NewTree(), Options{}); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("mount on a dead mount: %v", err)
		}
		if err := CleanDead(dir); err != nil || isMounted(t, dir) {
			t.Errorf("cleaning: %v", err)
		}
		if dead, err := IsDead(dir); dead || err != nil {
			t.Errorf("cleaned: %v, %v", dead, err)
		}
	}
	if _, err := IsDead(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

func TestDaemonEnds(t *testing.T) {
	dir := t.TempDir()
	c := startDaemon(t, 0, dir)
	c.expect("serving")
	c.tell("end")
	c.wait()
	if isMounted(t, dir) {
		t.Error("still mounted")
	}
}

// TestOrdinaryUser: without fusermount3 the error says what to install.
func TestOrdinaryUser(t *testing.T) {
	if _, err := exec.LookPath(helperName); err == nil {
		t.Setenv("PATH", t.TempDir())
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	c := startDaemon(t, 1000, dir)
	c.expect(installAdvice)
	c.wait()
	if isMounted(t, dir) {
		t.Error("mounted all the same")
	}
}

// nested mounts, has a child use the mount, and unmounts.
var nested = scenario("nested", func(c *client) {
	s, err := Mount(c.args[0], vfstest.NewTree(), Options{})
	c.must(err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), scenarioEnv+"="+smoke, dirEnv+"="+c.args[0])
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.errorf("%v: %s", err, out)
	}
	c.must(s.Unmount(context.Background()))
})

// TestUserNamespace: who is root only in a user namespace of its own can mount there, with nothing installed.
func TestUserNamespace(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	cmd := exec.Command("/proc/self/exe", dir)
	cmd.Env = append(os.Environ(), scenarioEnv+"="+nested, dirEnv+"=/")
	cmd.Stdout, cmd.Stderr = &out, &out
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids, GidMappings: ids,
	}
	if err := cmd.Run(); err != nil || out.Len() > 0 {
		t.Errorf("%v\n%s", err, out.String())
	}
	if isMounted(t, dir) {
		t.Error("the mount is in our namespace")
	}
}

var readOnly = scenario("read-only", func(c *client) {
	c.holds("f", "there")
	_, err := unix.Open("f", unix.O_RDWR|unix.O_CLOEXEC, 0)
	c.errno("open for writing", err, unix.EROFS)
	_, err = unix.Open("g", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	c.errno("create", err, unix.EROFS)
	c.errno("mkdir", unix.Mkdir("d", 0o755), unix.EROFS)
	c.errno("unlink", unix.Unlink("f"), unix.EROFS)
	c.errno("rename", unix.Rename("f", "g"), unix.EROFS)
	c.errno("chmod", unix.Chmod("f", 0o600), unix.EROFS)
	c.errno("truncate", unix.Truncate("f", 0), unix.EROFS)
	c.errno("setxattr", unix.Setxattr("f", "user.a", nil, 0), unix.EROFS)
	c.errno("symlink", unix.Symlink("x", "s"), unix.EROFS)
})

func TestReadOnly(t *testing.T) {
	tree := vfstest.NewTree()
	ctx := context.Background()
	a, err := tree.Create(ctx, vfs.RootIno, "f", vfs.NewNode{Mode: 0o644})
	if err == nil {
		err = tree.WriteAt(ctx, a.Ino, []byte("there"), 0, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Run("mount", func(t *testing.T) { mount(t, tree, Options{ReadOnly: true}).run(t, readOnly) })
	t.Run("tree", func(t *testing.T) {
		m := mount(t, tree, Options{})
		tree.SetReadOnly(true)
		m.run(t, readOnlyTree)
		tree.SetReadOnly(false)
	})
}

var readOnlyTree = scenario("read-only-tree", func(c *client) {
	fd := c.open("f", unix.O_RDWR)
	_, err := unix.Write(fd, []byte("x"))
	c.errno("write", err, unix.EROFS)
	c.errno("mkdir", unix.Mkdir("d", 0o755), unix.EROFS)
	c.holds("f", "there")
	c.close(fd)
})

// TestManyMounts: mounts of one process come and go at once, though they share an environment and a library.
func TestManyMounts(t *testing.T) {
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			m := mount(t, nil, Options{Name: "number " + strconv.Itoa(i)})
			m.run(t, smoke)
		})
	}
}
