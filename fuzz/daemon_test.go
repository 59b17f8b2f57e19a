package fuzz

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
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/fusefs"
)

const workspaceName = "torture"

// memoryLimit is where a daemon's heap and the slabs of large writes are kept, in bytes, as the program's own daemon keeps them.
const memoryLimit = 350 << 20

// verboseEnv makes daemons pass on all that they log.
const verboseEnv = "CARREL_VERBOSE"

// encryptedEnv makes daemons encrypt their stores.
const encryptedEnv = "CARREL_ENCRYPTED"

// historyEnv has daemons keep history: for how long, as [time.ParseDuration] has it.
const historyEnv = "CARREL_HISTORY"

// Bounds for what a test waits for; they only tell what is slow from what hangs.
const (
	startPatience = 60 * time.Second
	stopPatience  = 120 * time.Second
	askPatience   = 120 * time.Second
)

// runDaemon is the main function of a daemon. It says "ready" when the mount is up, then answers each line of its input
// with one quoted line, which is empty when all is well.
func runDaemon(store, dir string) error {
	log, stop := daemonProcess()
	s, w, err := openStore(store, log)
	if err != nil {
		return err
	}
	srv, err := fusefs.Mount(dir, w, fusefs.Options{AllowOther: true, Logger: log})
	if err != nil {
		return errors.Join(err, w.Close(), s.Close())
	}
	listen(stop, func(line string) string { return obey(s, w, line) })
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience/2)
	defer cancel()
	return errors.Join(srv.Unmount(ctx), w.Close(), s.Close())
}

// listen says "ready" and answers each line of the input, until that ends or a signal comes.
func listen(stop <-chan os.Signal, obey func(line string) string) {
	fmt.Println("ready")
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for on := true; on; {
		select {
		case <-stop:
			on = false
		case line, ok := <-lines:
			if on = ok; ok {
				fmt.Println(strconv.Quote(obey(line)))
			}
		}
	}
}

// daemonProcess sets up what every daemon has, and returns its log and the signal that stops it.
func daemonProcess() (*slog.Logger, <-chan os.Signal) {
	level := slog.LevelWarn
	if os.Getenv(verboseEnv) != "" {
		level = slog.LevelDebug
	}
	debug.SetMemoryLimit(memoryLimit)
	casstore.OnSlabs(func(bytes int) { debug.SetMemoryLimit(memoryLimit - int64(bytes)) })
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})), stop
}

// openStore opens a store and its one workspace, and makes what is missing of them.
func openStore(dir string, log *slog.Logger) (*casstore.Store, *casstore.Workspace, error) {
	o := casstore.Options{Create: true, Logger: log}
	if os.Getenv(encryptedEnv) != "" {
		o.Key = bytes.Repeat([]byte{7}, casstore.KeyLen)
	}
	s, err := casstore.Open(dir, o)
	if err != nil {
		return nil, nil, err
	}
	if span := os.Getenv(historyEnv); span != "" {
		d, err := time.ParseDuration(span)
		if err == nil {
			err = s.KeepHistory(context.Background(), d)
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", historyEnv, err), s.Close())
		}
	}
	w, err := s.OpenWorkspace(context.Background(), workspaceName)
	if errors.Is(err, vfs.ErrNoWorkspace) {
		if _, err = s.CreateWorkspace(context.Background(), workspaceName); err == nil {
			w, err = s.OpenWorkspace(context.Background(), workspaceName)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, w, nil
}

// obey does what a test asks of a daemon.
func obey(s *casstore.Store, w *casstore.Workspace, line string) string {
	ctx := context.Background()
	switch line {
	case "check":
		return checkText(s)
	case "audit":
		if err := vfstest.Audit(ctx, w); err != nil {
			return err.Error()
		}
		return ""
	case "gc":
		if _, err := s.GC(ctx); err != nil {
			return err.Error()
		}
		return ""
	}
	return "cannot " + line
}

// checkText checks all of a store, bytes too, and returns what is wrong with it.
func checkText(s *casstore.Store) string {
	report, err := s.Check(context.Background(), casstore.CheckOptions{Bytes: true})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, p := range report.Problems {
		fmt.Fprintf(&out, "%s: %s\n", p.Where, p.What)
	}
	if report.More > 0 {
		fmt.Fprintf(&out, "and %d more\n", report.More)
	}
	return out.String()
}

// daemon is a process that serves a store, as its test sees it.
type daemon struct {
	t     testing.TB
	store string
	dir   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // of its output; closed when it has ended
	alive *os.File    // at its end when the daemon and the children that it has, such as the mount helper, have ended
	log   *syncBuffer
	took  time.Duration // from its start to "ready"
	ended bool          // it has been waited for
}

// serve starts a daemon that mounts the store on dir, and stops it at the end of the test if nobody has before.
func serve(t testing.TB, store, dir string) *daemon {
	t.Helper()
	d := launch(t, store, dir)
	d.ready()
	return d
}

// launch is serve without waiting for the mount.
func launch(t testing.TB, store, dir string) *daemon {
	t.Helper()
	return launchAs(t, roleDaemon, store, dir)
}

// launchAs starts a daemon of a role, with what else it is to be told.
func launchAs(t testing.TB, role, store, dir string, more ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, store: store, dir: dir, log: new(syncBuffer), lines: make(chan string, 10)}
	d.cmd = exec.Command(childBinary, append([]string{store, dir}, more...)...)
	// Whoever is killed while mounting leaves a directory behind.
	d.cmd.Env = append(os.Environ(), roleEnv+"="+role, "TMPDIR="+filepath.Dir(dir))
	d.cmd.Stderr = d.log
	var err error
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not 3, which the library gives to its mount helper.
	d.alive, d.cmd.ExtraFiles = alive, []*os.File{nil, nil, nil, nil, held}
	start := time.Now()
	err = d.cmd.Start()
	held.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !d.ended {
			d.stop()
		}
	})
	go func() {
		defer close(d.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			if scan.Text() == "ready" {
				d.took = time.Since(start)
			}
			d.lines <- scan.Text()
		}
	}()
	return d
}

// ready waits until the mount is up.
func (d *daemon) ready() {
	d.t.Helper()
	if got := d.hear(startPatience); got != "ready" {
		d.t.Fatalf("the daemon says %q", got)
	}
}

// hear returns the next line of the daemon. One that hangs is made to say where, and ends the test.
func (d *daemon) hear(patience time.Duration) string {
	d.t.Helper()
	select {
	case line, ok := <-d.lines:
		if !ok {
			err := d.reap()
			d.t.Fatalf("a real mount is needed, but the daemon has ended: %v\n%s", err, d.log)
		}
		return line
	case <-time.After(patience):
		d.hangs("said nothing for " + patience.String())
		return ""
	}
}

// ask has the daemon do something, and returns its answer.
func (d *daemon) ask(what string) string {
	d.t.Helper()
	d.tell(what)
	answer, err := strconv.Unquote(d.hear(askPatience))
	if err != nil {
		d.t.Fatal(err)
	}
	return answer
}

// tell has the daemon do something. Whether it has done it is not known until it answers.
func (d *daemon) tell(what string) {
	d.t.Helper()
	if _, err := fmt.Fprintln(d.stdin, what); err != nil {
		d.t.Fatalf("tell the daemon to %s: %v\n%s", what, err, d.log)
	}
}

// check has the daemon check its store, or audit its tree.
func (d *daemon) check(what string) {
	d.t.Helper()
	if answer := d.ask(what); answer != "" {
		d.t.Fatalf("%s:\n%s\nlog:\n%s", what, answer, d.log)
	}
}

// stop ends the daemon by SIGTERM, which must unmount and close the store without an error.
func (d *daemon) stop() {
	d.t.Helper()
	if d.cmd.Process.Signal(syscall.SIGTERM) == nil {
		late := time.AfterFunc(stopPatience, func() { d.cmd.Process.Signal(syscall.SIGQUIT) })
		for range d.lines {
		}
		late.Stop()
	}
	if err := d.reap(); err != nil {
		d.t.Errorf("the daemon did not stop cleanly: %v\n%s", err, d.log)
	}
	d.clean()
}

// kill ends the daemon by SIGKILL and takes its dead mount away.
func (d *daemon) kill() {
	d.t.Helper()
	d.cmd.Process.Kill()
	for range d.lines {
	}
	d.reap()
	d.clean()
}

// hangs ends the daemon by a signal that makes it print what its goroutines do, and the test.
func (d *daemon) hangs(why string) {
	d.t.Helper()
	d.cmd.Process.Signal(syscall.SIGQUIT)
	for range d.lines {
	}
	err := d.reap()
	d.clean()
	d.t.Fatalf("the daemon hangs: %s: %v\n%s", why, err, d.log)
}

func (d *daemon) reap() error {
	d.ended = true
	d.stdin.Close()
	err := d.cmd.Wait()
	// A daemon that was killed may have left a helper that is about to mount.
	_, readErr := io.ReadAll(d.alive)
	return errors.Join(err, readErr, d.alive.Close())
}

func (d *daemon) clean() {
	if err := fusefs.CleanDead(d.dir); err != nil {
		d.t.Errorf("clean %s: %v", d.dir, err)
	}
}

// restart stops the daemon and starts another one on the same store and directory.
func (d *daemon) restart() *daemon {
	d.t.Helper()
	d.stop()
	return serve(d.t, d.store, d.dir)
}

// verify checks the store and the tree, and once more after a clean stop and a new start, which it returns.
func (d *daemon) verify() *daemon {
	d.t.Helper()
	d.check("audit")
	d.check("check")
	next := d.restart()
	next.check("check")
	next.check("audit")
	return next
}

// memory returns a field of the daemon's /proc/PID/status, in bytes.
func (d *daemon) memory(field string) int64 {
	d.t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid), "status"))
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				d.t.Fatal(err)
			}
			return kib << 10
		}
	}
	d.t.Fatalf("no %s in\n%s", field, status)
	return 0
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
