package fusefs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"go.uber.org/goleak"
)

// A process must not use the mount that it serves. So what a test does with files is a scenario: a function with a
// name, which runs in a child of the test, the test binary again, with its working directory in the mount. It talks to
// its test over stdin and stdout, one line at a time, where they take turns.

const (
	scenarioEnv = "FUSEFS_TEST_SCENARIO"
	dirEnv      = "FUSEFS_TEST_DIR"
)

// patience is how long a test waits for what another process or the kernel does.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	HelperMain()
	if name := os.Getenv(scenarioEnv); name != "" {
		os.Exit(runScenario(name))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every child sleeps for a second before it exits
	goleak.VerifyTestMain(m)
}

var scenarios = make(map[string]func(*client))

// scenario registers f and returns its name.
func scenario(name string, f func(*client)) string {
	if scenarios[name] != nil {
		panic("two scenarios " + name)
	}
	scenarios[name] = f
	return name
}

// client is the child's side.
type client struct {
	args []string
	in   *bufio.Reader
	bad  bool
}

// failed is what fatal panics with.
type failed struct{}

func runScenario(name string) (code int) {
	c := &client{args: os.Args[1:], in: bufio.NewReader(os.Stdin)}
	defer func() {
		if p := recover(); p != nil {
			code = 1
			if _, ok := p.(failed); !ok {
				fmt.Printf("! panic: %v\n! %s\n", p, strings.ReplaceAll(string(debug.Stack()), "\n", "\n! "))
			}
		} else if c.bad {
			code = 1
		}
	}()
	f := scenarios[name]
	if f == nil {
		c.fatalf("no scenario %q", name)
	}
	syscall.Umask(0o022)
	if err := os.Chdir(os.Getenv(dirEnv)); err != nil {
		c.fatalf("%v", err)
	}
	f(c)
	return 0
}

// errorf reports a failure. Lines that begin with "!" are failures.
func (c *client) errorf(format string, args ...any) {
	c.bad = true
	fmt.Printf("! %s: %s\n", caller(), strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n! "))
}

// caller returns where in a scenario the client's method was called.
func caller() string {
	for skip := 2; ; skip++ {
		_, file, line, ok := runtime.Caller(skip)
		if !ok || filepath.Base(file) != "harness_test.go" {
			return fmt.Sprintf("%s:%d", filepath.Base(file), line)
		}
	}
}

func (c *client) fatalf(format string, args ...any) {
	c.errorf(format, args...)
	panic(failed{})
}

// must ends the scenario when err is not nil.
func (c *client) must(err error) {
	if err != nil {
		c.fatalf("%v", err)
	}
}

// errno checks that err is want, zero for none.
func (c *client) errno(what string, err error, want syscall.Errno) {
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		c.errorf("%s: %v, want %v", what, err, want)
	}
}

// say tells the test something; hear waits until it answers.
func (c *client) say(line string) { fmt.Println(line) }

func (c *client) hear() string {
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.fatalf("the test has gone: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// turn tells the test that a step is done and waits for its answer.
func (c *client) turn(line string) string {
	c.say(line)
	return c.hear()
}

// mounted is a tree that is mounted for a test.
type mounted struct {
	*Server
	tree vfs.Tree
	log  *syncBuffer
}

// settle returns when the kernel has dropped what is stale by the changes before.
func (m *mounted) settle(t *testing.T) {
	t.Helper()
	if err := m.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// mount mounts tree (a new one in memory when nil) for the time of a test. A machine that cannot mount fails the test.
func mount(t *testing.T, tree vfs.Tree, o Options) *mounted {
	t.Helper()
	if tree == nil {
		tree = vfstest.NewTree()
	}
	m := &mounted{tree: tree, log: new(syncBuffer)}
	o.Logger = slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Mount(dir, m.tree, o)
	if err != nil {
		t.Fatalf("a real mount is needed: %v", err)
	}
	m.Server = s
	s.grace, s.drain = 200*time.Millisecond, 200*time.Millisecond
	t.Cleanup(func() { m.end(t) })
	return m
}

// end unmounts, and checks that nothing is left.
func (m *mounted) end(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Unmount(ctx); err != nil {
		t.Errorf("unmount: %v", err)
	}
	if n := len(m.holds.inodes); n != 0 {
		t.Errorf("%d inodes are still held", n)
	}
	if err := vfstest.Audit(context.Background(), m.tree); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("log:\n%s", m.log)
	}
}

// child is a scenario that runs.
type child struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // without failures; closed at the end of the output
	fails *syncBuffer
}

// start starts a scenario in dir of the mount, as user uid (which is also the group).
func (m *mounted) start(t *testing.T, uid uint32, dir, name string, args ...string) *child {
	t.Helper()
	// The path of the test binary may lead through directories that only root can search.
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), scenarioEnv+"="+name, dirEnv+"="+m.Dir()+"/"+dir)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	c := &child{t: t, name: name, cmd: cmd, lines: make(chan string, 100), fails: new(syncBuffer)}
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = c.fails
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(out)
	return c
}

func (c *child) read(out io.Reader) {
	defer close(c.lines)
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		if line, bad := strings.CutPrefix(scan.Text(), "! "); bad {
			fmt.Fprintln(c.fails, line)
		} else {
			c.lines <- line
		}
	}
}

// expect waits until the scenario says line.
func (c *child) expect(line string) {
	c.t.Helper()
	select {
	case got, ok := <-c.lines:
		if !ok {
			c.wait()
		}
		if got != line {
			c.t.Fatalf("%s: said %q, want %q", c.name, got, line)
		}
	case <-time.After(patience):
		c.hangs()
	}
}

// tell answers the scenario.
func (c *child) tell(line string) { fmt.Fprintln(c.stdin, line) }

// wait waits for the end of the scenario and fails the test if the scenario failed.
func (c *child) wait() {
	c.t.Helper()
	if err := c.exit(); err != nil || c.fails.Len() > 0 {
		c.t.Errorf("%s: %v\n%s", c.name, err, c.fails)
	}
}

// exit waits for the end of the scenario.
func (c *child) exit() error {
	c.t.Helper()
	late := time.AfterFunc(patience, c.hangs)
	defer late.Stop()
	for range c.lines {
	}
	return c.cmd.Wait()
}

func (c *child) hangs() {
	stack, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stack", c.cmd.Process.Pid))
	c.t.Errorf("%s: hangs at\n%s", c.name, stack)
	c.cmd.Process.Kill()
}

// eventually waits until f is true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// run runs a scenario to its end, as root in the root directory.
func (m *mounted) run(t *testing.T, name string, args ...string) {
	t.Helper()
	m.start(t, 0, "", name, args...).wait()
}

// syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *syncBuffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Len()
}
