package container

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/container/launch"
)

// process is an exec in a cell. It implements execd.Process.
type process struct {
	*runner
	cell  *cell
	kills uint64 // by lack of memory in the cell, before it

	stdio
	exit execd.Exit // to be read when done is closed

	mu     sync.Mutex
	killed bool // by Signal

	sending sync.Mutex // held while a message is sent
}

// start starts an exec. It leaves the cell when it has ended.
func (c *cell) start(ctx context.Context, j execd.Job, out execd.Output) (*process, error) {
	p := &process{cell: c, stdio: newStdio(j.TTY != nil), kills: c.group.oomKills()}
	dir := path.Join(workspaceDir, j.Dir)
	command := launch.Command{Args: j.Args, Env: environment(j.Env, dir, p.tty), Dir: dir}
	if p.tty {
		command.TTY = (*launch.Size)(j.TTY)
	}
	if err := p.begin(ctx, command); err != nil {
		return nil, errors.Join(err, p.closeAll())
	}
	p.connect(j, out)
	c.prepareAfter(p.done)
	go p.follow() // Wait waits for it
	return p, nil
}

// begin has a runner start the command.
func (p *process) begin(ctx context.Context, command launch.Command) error {
	theirs, err := p.makePipes()
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // the command has its own
		}
	}()
	if err != nil {
		return err
	}
	if p.runner, err = p.cell.takeRunner(); err != nil {
		return err
	}
	var fds []int
	for _, f := range theirs {
		fds = append(fds, int(f.Fd()))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("start %q: %w", command.Args[0], vfs.ErrInterrupted)
	}
	// From here on it may run, whatever becomes of who asked for it: an error would say that it did not.
	sendErr := p.conn.Send(command, fds...)
	return p.hearStart(command.Args[0], sendErr)
}

// hearStart hears from the first process whether it has started the command.
func (p *process) hearStart(name string, sendErr error) error {
	var report launch.Report
	fds, err := p.conn.Receive(&report)
	if err != nil {
		return fmt.Errorf("start %q: the first process of the exec has died: %w", name, errors.Join(vfs.ErrInterrupted, sendErr))
	}
	if err := startError(name, report); err != nil {
		return err
	}
	if len(fds) == 1 {
		return p.useTerminal(fds[0])
	}
	return nil
}

// startError translates why a command was not started.
func startError(name string, r launch.Report) error {
	err := r.Err()
	errno := unix.Errno(r.Errno)
	switch {
	case !r.Program, errno == unix.EAGAIN, errno == unix.ENOMEM: // it has nothing to do with which program it is
	case errno == unix.ENOENT && r.Step == "find":
		return fmt.Errorf("%s: %w", name, execd.ErrNoProgram)
	case errno == unix.ENOENT:
		return fmt.Errorf("%s: %w: it is there, but the interpreter or loader that it names is not", name, execd.ErrNoProgram)
	default:
		return fmt.Errorf("%s: %w: %v", name, execd.ErrNotRunnable, errno)
	}
	for _, t := range []struct {
		errno    unix.Errno
		sentinel error
	}{
		{unix.ENOENT, vfs.ErrNotExist}, {unix.EACCES, vfs.ErrNotPermitted}, {unix.ENOTDIR, vfs.ErrNotDir},
		{unix.ENAMETOOLONG, vfs.ErrNameTooLong}, {unix.EAGAIN, vfs.ErrBusy}, {unix.ENOMEM, vfs.ErrBusy},
	} {
		if errors.Is(err, t.errno) {
			return fmt.Errorf("%s: %w", r.Step, t.sentinel)
		}
	}
	return err
}

// follow waits for the end, and cleans up. When the command was the last that ran, the end is known before the kernel has
// taken the namespaces apart.
func (p *process) follow() {
	known := sync.OnceFunc(func() { close(p.done) })
	defer known()
	reported := make(chan launch.Report, 1)
	go func() {
		defer close(reported)
		var r launch.Report
		if _, err := p.conn.Receive(&r); err == nil {
			reported <- r
		}
	}()
	written, dead := make(chan struct{}), make(chan struct{})
	go func() {
		p.pumps.Wait()
		close(written)
	}()
	go func() {
		p.waitDead()
		close(dead)
	}()
	report, ok := <-reported
	if ok {
		select {
		case <-written:
		case <-dead:
		}
	}
	p.kill()
	if report.Alone {
		p.settle(written, report, ok)
		known()
		<-dead
	} else {
		<-dead
		p.settle(written, report, ok)
	}
	_ = p.closeAll() // nothing of it can be written any more
	p.cell.backend.leave(p.cell)
}

// settle finds out how the exec has ended, once nothing of it runs.
func (p *process) settle(written <-chan struct{}, report launch.Report, reported bool) {
	p.hurry()
	<-written
	p.feeder.Wait()
	p.exit = p.exitOf(report, reported)
}

func (p *process) exitOf(r launch.Report, reported bool) execd.Exit {
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	x := execd.Exit{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL)}
	if reported {
		x = execd.ExitOf(syscall.WaitStatus(r.Wait))
	}
	x.OOM = !killed && x.Code == 128+int(unix.SIGKILL) && p.cell.group.oomKills() > p.kills
	return x
}

func (p *process) closeAll() error {
	var errs []error
	if p.runner != nil {
		errs = append(errs, p.runner.close())
	}
	return errors.Join(append(errs, p.stdio.close())...)
}

// Wait implements execd.Process.
func (p *process) Wait() execd.Exit {
	<-p.done
	return p.exit
}

// Signal implements execd.Process.
func (p *process) Signal(number int) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if number == int(unix.SIGKILL) {
		p.mu.Lock()
		p.killed = true
		p.mu.Unlock()
		p.kill()
		return nil
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	_ = p.conn.Send(launch.Control{Signal: number}) // it has ended when that fails
	return nil
}
