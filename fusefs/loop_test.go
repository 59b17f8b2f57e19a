package fusefs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// smoke uses a mount a little.
var smoke = scenario("smoke", func(c *client) {
	c.put("a", "hello")
	c.holds("a", "hello")
	c.mkdir("d")
	c.must(unix.Rename("a", "d/b"))
	c.must(os.RemoveAll("d"))
})

// readFile reads a file that takes its time.
var readFile = scenario("read-file", func(c *client) { c.holds(c.args[0], c.args[1]) })

// syncFiles makes as many files as it is told and fsyncs all at once. Its threads say who they are.
var syncFiles = scenario("sync-files", func(c *client) {
	n, err := strconv.Atoi(c.args[0])
	c.must(err)
	fds := make([]int, n)
	for i := range fds {
		fds[i] = c.open(fmt.Sprintf("sync%d-%d", os.Getpid(), i), unix.O_CREAT|unix.O_RDWR)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, fd := range fds {
		wg.Go(func() {
			runtime.LockOSThread()
			if n == 1 {
				c.say("thread " + strconv.Itoa(unix.Gettid()))
			}
			if err := unix.Fsync(fd); err != nil {
				mu.Lock()
				defer mu.Unlock()
				c.errorf("fsync: %v", err)
			}
		})
	}
	wg.Wait()
})

func TestBlockedReadStopsNobody(t *testing.T) {
	tree := newSlow(vfstest.NewTree())
	m := mount(t, tree, Options{})
	ctx := context.Background()
	a, err := tree.Create(ctx, vfs.RootIno, "slow", vfs.NewNode{Mode: 0o644})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.WriteAt(ctx, a.Ino, []byte("at last"), 0, false); err != nil {
		t.Fatal(err)
	}
	tree.slowRead.Store(uint64(a.Ino))
	reader := m.start(t, 0, "", readFile, "slow", "at last")
	eventually(t, "the read waits", tree.waits(1))
	m.run(t, smoke)
	tree.letGo()
	reader.wait()
}

// TestManyBlocked has more calls wait than there may be workers. Those past the bound wait in the kernel; all are
// answered in the end, and few workers stay.
func TestManyBlocked(t *testing.T) {
	tree := newSlow(vfstest.NewTree())
	m := mount(t, tree, Options{})
	for range 2 {
		c := m.start(t, 0, "", syncFiles, strconv.Itoa(2*maxWorkers))
		eventually(t, "all workers wait", tree.waits(maxWorkers))
		tree.letGo()
		c.wait()
		m.run(t, smoke)
		tree.hold()
	}
	if tree.most != maxWorkers {
		t.Errorf("%d calls waited at once, want %d", tree.most, maxWorkers)
	}
	eventually(t, "workers have ended", func() bool {
		m.loop.mu.Lock()
		defer m.loop.mu.Unlock()
		return m.loop.workers <= 1+maxIdle && len(m.loop.blocked) == 0 && len(m.loop.signals) == 0 && m.loop.offer == nil
	})
}

// TestReaderIsRelieved: at the bound the reader itself blocks; the first worker that is done reads on, so that a kill
// is heard even then.
func TestReaderIsRelieved(t *testing.T) {
	tree := newSlow(vfstest.NewTree())
	m := mount(t, tree, Options{})
	victim := m.start(t, 0, "", syncFiles, "1")
	eventually(t, "one call waits", tree.waits(1))
	c := m.start(t, 0, "", syncFiles, strconv.Itoa(maxWorkers-1))
	eventually(t, "all workers wait", tree.waits(maxWorkers))
	m.loop.mu.Lock()
	if m.loop.offer == nil {
		t.Error("nobody offers the token")
	}
	var first *worker // the victim's: the oldest request
	for id, w := range m.loop.blocked {
		if first == nil || id < first.id {
			first = w
		}
	}
	first.call.cancel()
	m.loop.mu.Unlock()
	if err := victim.exit(); err == nil {
		t.Error("an interrupted fsync succeeded")
	}
	m.run(t, smoke)
	tree.letGo()
	c.wait()
}

func TestKilledInFsync(t *testing.T) {
	tree := newSlow(vfstest.NewTree())
	m := mount(t, tree, Options{})
	c := m.start(t, 0, "", syncFiles, "3")
	eventually(t, "three calls wait", tree.waits(3))
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit interface{ ExitCode() int }
	if err := c.exit(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Errorf("exit: %v", err)
	}
	if !tree.interrupts(3)() {
		t.Errorf("%d calls were interrupted, want 3", tree.interrupted)
	}
	m.run(t, smoke)
}

// TestHarmlessSignal: a signal that does not kill interrupts nothing, and a kill that follows it does, which the
// kernel does not report.
func TestHarmlessSignal(t *testing.T) {
	signal.Reset(unix.SIGUSR1)
	tree := newSlow(vfstest.NewTree())
	m := mount(t, tree, Options{})
	signalled := func() bool {
		m.loop.mu.Lock()
		defer m.loop.mu.Unlock()
		return len(m.loop.signals) == 1
	}
	start := func() *child {
		c := m.start(t, 0, "", syncFiles, "1")
		line := <-c.lines
		tid, err := strconv.Atoi(strings.TrimPrefix(line, "thread "))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the call waits", tree.waits(1))
		if err := unix.Tgkill(c.cmd.Process.Pid, tid, unix.SIGURG); err != nil { // the Go runtime ignores it
			t.Fatal(err)
		}
		eventually(t, "the interrupt has come", signalled)
		return c
	}
	c := start()
	tree.letGo()
	c.wait()
	tree.hold()

	c = start()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.exit(); err == nil {
		t.Error("a killed process succeeded")
	}
	if !tree.interrupts(1)() {
		t.Errorf("%d calls were interrupted, want 1", tree.interrupted)
	}
	eventually(t, "signals are forgotten", func() bool { return !signalled() })
}

func TestLateInterrupt(t *testing.T) {
	m := mount(t, nil, Options{})
	m.loop.interrupt(12345)
	m.run(t, smoke)
	m.loop.mu.Lock()
	defer m.loop.mu.Unlock()
	if len(m.loop.blocked)+len(m.loop.signals) != 0 {
		t.Errorf("%d blocked, %d signals", len(m.loop.blocked), len(m.loop.signals))
	}
}

func TestPendingKill(t *testing.T) {
	for _, test := range []struct {
		status string
		want   bool
	}{
		{"Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n", false},
		{"SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n", true},
		{"SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n", true},
		{"SigPnd:\t0000000000400200\nSigBlk:\t0000000000000100\n", false},
		{"SigPnd:\tnonsense\n", false},
	} {
		if got := pendingKill([]byte(test.status)); got != test.want {
			t.Errorf("%q: %v", test.status, got)
		}
	}
	if dying(uint32(os.Getpid())) {
		t.Error("this process is not dying")
	}
	if !dying(1<<31 - 1) {
		t.Error("a thread that is not there counts as dying")
	}
}

// faulty is a tree whose lookups of some names go wrong.
type faulty struct{ vfs.Tree }

func (f faulty) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	switch name {
	case "panic":
		panic("a bug")
	case "unknown":
		return vfs.Attr{}, errors.New("the disk is on fire")
	case "stale":
		return vfs.Attr{}, vfs.ErrCorrupt
	}
	return f.Tree.Lookup(ctx, dir, name)
}

var faults = scenario("faults", func(c *client) {
	for range 3 {
		for _, name := range []string{"panic", "unknown", "stale"} {
			var st unix.Stat_t
			c.errno(name, unix.Lstat(name, &st), syscall.EIO)
		}
	}
})

// TestFaults: what goes wrong in a tree is EIO for the process and a line for the operator, and the mount lives on.
func TestFaults(t *testing.T) {
	m := mount(t, faulty{vfstest.NewTree()}, Options{})
	m.run(t, faults)
	m.run(t, smoke)
	log := m.log.String()
	if n := strings.Count(log, "a bug"); n != 3 || !strings.Contains(log, "faulty.Lookup") {
		t.Errorf("panics are logged %d times, with a stack", n)
	}
	for _, text := range []string{"the disk is on fire", vfs.ErrCorrupt.Error()} {
		if n := strings.Count(log, text); n != 1 {
			t.Errorf("%q is logged %d times", text, n)
		}
	}
}

// TestWithoutTricks: where the library's private parts cannot be reached, everything but what needs them works.
func TestWithoutTricks(t *testing.T) {
	found := rawLayout
	rawLayout = layout{}
	defer func() { rawLayout = found }()
	m := mount(t, nil, Options{})
	if m.wire.fd >= 0 || !m.notes.grows {
		t.Error("the tricks are used all the same")
	}
	m.run(t, smoke)
	m.run(t, plainOnly)
	m.end(t)
}

var plainOnly = scenario("plain-only", func(c *client) {
	c.put("f", strings.Repeat("x", 300_000))
	c.holds("f", strings.Repeat("x", 300_000))
	c.errno("renameat2", unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, "g", unix.RENAME_NOREPLACE), unix.EINVAL)
	_, err := os.Stat("none")
	c.errno("stat", err, unix.ENOENT)
})
