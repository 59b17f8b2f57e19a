package container

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/container/launch"
)

// Runtimes are the OCI runtimes that a spec may name, by their programs.
var Runtimes = []string{"runc", "crun", "runsc"}

// contained is an exec in a container of its own, which an OCI runtime of the machine makes of the same settings. It implements
// execd.Process.
//
//	runtime run ── container: pid namespace ── command, its first process
//	runtime kill, for each signal
type contained struct {
	stdio
	bundle
	backend *Backend
	release func() error // of the workspace
	unhold  func()       // of the image that is the root, if any
	cmd     *exec.Cmd    // the runtime, which ends with the container
	missing func() bool  // whether there is no such program as the command's
	exit    execd.Exit   // to be read when done is closed

	mu     sync.Mutex
	killed bool
}

var _ execd.Process = (*contained)(nil)

// startContained starts an exec with the runtime that its spec names. unhold is called once its root is not needed any more.
func (b *Backend) startContained(
	ctx context.Context, key cellKey, j execd.Job, unhold func(), out execd.Output,
) (execd.Process, error) {
	p := &contained{stdio: newStdio(j.TTY != nil), backend: b, unhold: unhold}
	p.missing = func() bool { return missing(key.root, j) }
	program, err := b.findRuntime(j.Runtime)
	if err == nil {
		err = checkDir(ctx, j)
	}
	if err == nil {
		err = p.prepare(ctx, program, key, j)
	}
	if err == nil {
		err = p.begin(j)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("container of workspace %q: %w", key.workspace, err), p.clear())
	}
	p.connect(j, out)
	go p.follow() // Close waits for it
	return p, nil
}

func (b *Backend) findRuntime(name string) (program string, err error) {
	if b.config.Bundles == "" {
		return "", fmt.Errorf("a container of %s: %w", name, vfs.ErrNotSupported)
	}
	if program, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("this machine has no %s: %w: %w", name, vfs.ErrNotSupported, err)
	}
	return program, nil
}

// checkDir refuses a working directory that there is not: a runtime would make it.
func checkDir(ctx context.Context, j execd.Job) error {
	if j.Tree == nil || j.Dir == "" {
		return nil
	}
	a, err := treepath.FS{Tree: j.Tree}.Stat(ctx, j.Dir)
	if err == nil && a.Type != vfs.TypeDir {
		err = fmt.Errorf("%q: %w", j.Dir, vfs.ErrNotDir)
	}
	return err
}

// prepare mounts the workspace and writes the bundle.
func (p *contained) prepare(ctx context.Context, program string, key cellKey, j execd.Job) error {
	mount, release, err := p.backend.config.Mount(ctx, key.workspace)
	if err != nil {
		return err
	}
	p.release = release
	limits, err := groupLimits(key.limits)
	if err != nil {
		p.backend.degraded(err)
	}
	p.bundle, err = makeBundle(p.backend.config.Bundles, program, key, mount, limits, j)
	return err
}

// begin starts the runtime.
func (p *contained) begin(j execd.Job) error {
	theirs, err := p.makePipes()
	if err == nil && p.tty {
		theirs, err = p.makeTerminal(theirs, launch.Size(*j.TTY))
	}
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // the runtime has its own
		}
	}()
	if err != nil {
		return err
	}
	p.cmd = p.command(context.Background(), "run", "--bundle", p.dir, p.id)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: p.tty}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := p.enter(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		p.leave()
		return fmt.Errorf("start %s: %w", p.runtime[0], err)
	}
	return nil
}

// makeTerminal makes a terminal in place of pipes, for the runtime: it puts one of the container's own behind it.
func (p *contained) makeTerminal(pipes []*os.File, size launch.Size) (theirs []*os.File, err error) {
	master, slave, err := launch.OpenTerminal(size)
	if err != nil {
		return pipes, err
	}
	for _, f := range pipes {
		err = errors.Join(err, f.Close())
	}
	f := os.NewFile(uintptr(slave), "terminal")
	return []*os.File{f, f, f}, errors.Join(err, p.useTerminal(master))
}

// command is a call of the runtime. Of our environment it has the way to other programs alone.
func (b bundle) command(ctx context.Context, args ...string) *exec.Cmd {
	flags := []string{"--root", b.path("state"), "--log", b.path("log"), "--log-format", "json"}
	cmd := exec.CommandContext(ctx, b.runtime[0], slices.Concat(flags, b.runtime[1:], args)...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH")}
	return cmd
}

// call calls the runtime and waits for it, but not for long.
func (b bundle) call(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), runtimePatience)
	defer cancel()
	cmd := b.command(ctx, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", b.runtime[0], args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// enter has Close wait for the exec.
func (p *contained) enter() error {
	b := p.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("start a container: %w", vfs.ErrClosed)
	}
	b.others[p] = struct{}{}
	b.owned.Add(1)
	return nil
}

func (p *contained) leave() {
	b := p.backend
	b.mu.Lock()
	delete(b.others, p)
	b.mu.Unlock()
	b.owned.Done()
}

// follow waits for the end, and cleans up.
func (p *contained) follow() {
	defer p.leave()
	_ = p.cmd.Wait() // its state says all
	p.hurry()
	p.pumps.Wait()
	p.feeder.Wait()
	p.exit = p.exitOf()
	if err := p.clear(); err != nil {
		p.backend.config.Log.Error("end a container", "runtime", p.runtime[0], "err", err)
	}
	close(p.done)
}

// exitOf is how the runtime ended, which passes the exit status of the command on, unless it has said that it failed itself.
func (p *contained) exitOf() execd.Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := execd.ExitOf(p.cmd.ProcessState.Sys().(syscall.WaitStatus))
	if p.killed && x.Code != 0 {
		return execd.Exit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL)}
	}
	if reason := p.failure(); reason != "" && x.Code != 0 {
		x = execd.Exit{Code: execd.CodeNotRun, Reason: reason}
		if p.missing() {
			x.Code = execd.CodeNoProgram
		}
	}
	return x
}

// failure is the last error in the runtime's log.
func (b bundle) failure() (reason string) {
	f, err := os.Open(b.path("log"))
	if err != nil {
		return "" // it has said nothing
	}
	defer f.Close() // only read
	for lines := bufio.NewScanner(io.LimitReader(f, maxRuntimeLog)); lines.Scan(); {
		var line struct{ Level, Msg string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Level == "error" {
			reason = line.Msg
		}
	}
	return reason
}

// clear takes back all there is of the exec. What the runtime has left of its container is ended first.
func (p *contained) clear() error {
	errs := []error{p.stdio.close()}
	if p.dir != "" {
		errs = append(errs, p.endAll(), p.remove())
	}
	if p.release != nil {
		errs = append(errs, p.release())
	}
	p.unhold()
	return errors.Join(errs...)
}

// Wait implements execd.Process.
func (p *contained) Wait() execd.Exit {
	<-p.done
	return p.exit
}

// Signal implements execd.Process. All signals go to the first process of the container, whose end is that of all others; one
// but KILL does nothing to a command that has no handler for it (pid_namespaces(7)).
func (p *contained) Signal(number int) error {
	if number != int(unix.SIGKILL) {
		_ = p.call("kill", p.id, strconv.Itoa(number)) // it has ended when that fails
		return nil
	}
	p.mu.Lock()
	again := p.killed
	p.killed = true
	p.mu.Unlock()
	if !again {
		go p.kill() // it ends with the exec
	}
	return nil
}

// kill kills the container, which may only just be being made.
func (p *contained) kill() {
	tick := time.NewTicker(killAgain)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			_ = p.call("kill", p.id, "KILL") // there is none yet, or none any more
		}
	}
}
