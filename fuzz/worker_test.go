package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// workers are the jobs that a child may do, by name. A job runs with its working directory in the mount. What it finds
// it says on stdout; an error it returns fails its test.
var workers = make(map[string]func(args []string) error)

// worker registers a job and returns its name.
func worker(name string, job func(args []string) error) string {
	if workers[name] != nil {
		panic("two workers " + name)
	}
	workers[name] = job
	return name
}

// workPatience is how long a child may take, on a machine that does ten other things. Past it something hangs.
const workPatience = 10 * time.Minute

// child is a worker or a program that runs in the mount of a daemon.
type child struct {
	d      *daemon
	what   string
	cmd    *exec.Cmd
	out    *syncBuffer
	errors *syncBuffer
	done   chan struct{} // closed when it has ended
	err    error         // how; to be read after done
}

// start starts a worker in dir, which is relative to the mount.
func (d *daemon) start(dir, name string, args ...string) *child {
	d.t.Helper()
	return d.startChild(dir, name, name, args, nil)
}

// startProgram starts a program in dir, which is relative to the mount, with some variables added to its environment.
func (d *daemon) startProgram(dir string, env []string, argv ...string) *child {
	d.t.Helper()
	argv[0] = program(d.t, argv[0])
	return d.startChild(dir, filepath.Base(argv[0]), roleProgram, argv, env)
}

// startChild returns when the child is in its directory, as a process is that somebody has started in a mount. One that still
// starts when the daemon is killed would find a dead mount, or what is below it.
func (d *daemon) startChild(dir, what, role string, args, env []string) *child {
	d.t.Helper()
	c := &child{d: d, what: what, out: new(syncBuffer), errors: new(syncBuffer), done: make(chan struct{})}
	c.cmd = exec.Command(childBinary, args...)
	c.cmd.Env = append(append(os.Environ(), env...), roleEnv+"="+role, dirEnv+"="+filepath.Join(d.dir, dir))
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.errors
	begun, held, err := os.Pipe()
	if err != nil {
		d.t.Fatal(err)
	}
	defer begun.Close()
	c.cmd.ExtraFiles = []*os.File{held} // begunFd
	err = c.cmd.Start()
	held.Close()
	if err != nil {
		d.t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		c.err = c.cmd.Wait()
	}()
	d.t.Cleanup(func() {
		select {
		case <-c.done:
		default:
			c.cmd.Process.Kill()
			<-c.done
		}
	})
	err = begun.SetReadDeadline(time.Now().Add(workPatience))
	if err == nil {
		_, err = begun.Read(make([]byte, 1))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.hangs("does not begin")
	case err != io.EOF:
		d.t.Fatal(err)
	}
	return c
}

// wait waits until the child has ended. When it does not, the daemon has to say what it does.
func (c *child) wait() error {
	c.d.t.Helper()
	select {
	case <-c.done:
	case <-time.After(workPatience):
		c.hangs("does not end")
	}
	return c.err
}

// hangs says where the child is, and has the daemon say where it is.
func (c *child) hangs(how string) {
	c.d.t.Helper()
	c.d.t.Logf("%s hangs at\n%s", c.what, c.where())
	c.d.hangs(c.what + " " + how)
}

// where says where in the kernel the child's threads are.
func (c *child) where() string {
	var out bytes.Buffer
	stacks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stack", c.cmd.Process.Pid))
	for _, file := range stacks {
		stack, _ := os.ReadFile(file)
		fmt.Fprintf(&out, "%s:\n%s", file, stack)
	}
	return out.String()
}

// finish waits for the child, which must succeed, and returns what it has said.
func (c *child) finish() string {
	c.d.t.Helper()
	if err := c.wait(); err != nil {
		c.d.t.Fatalf("%s: %v\n%s%s\nlog:\n%s", c.what, err, tail(c.out.String()), tail(c.errors.String()), c.d.log)
	}
	return c.out.String()
}

// run runs a worker to its end and returns what it has said.
func (d *daemon) run(dir, name string, args ...string) string {
	d.t.Helper()
	return d.start(dir, name, args...).finish()
}

// do runs a program to its end and returns what it has printed.
func (d *daemon) do(dir string, argv ...string) string {
	d.t.Helper()
	return d.startProgram(dir, nil, argv...).finish()
}

// tail returns the end of a long text.
func tail(s string) string {
	const most = 8 << 10
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// packages says what to install when a program is missing.
var packages = map[string]string{
	"git": "git", "npm": "npm", "node": "nodejs", "sqlite3": "sqlite3", "rsync": "rsync", "tar": "tar",
	"find": "findutils", "cp": "coreutils", "rm": "coreutils", "ls": "coreutils", "diff": "diffutils",
}

// program returns the path of a program. A machine that does not have it fails the test.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case packages[name] != "":
		t.Fatalf("%s is needed: apt-get install %s", name, packages[name])
	}
	t.Fatalf("%s is needed: %v", name, err)
	return ""
}
