package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

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

	stdin  *os.File // what the command reads, from this side; the terminal when it has one
	output []stream
	tty    bool

	pumps   sync.WaitGroup // one for each output
	feeder  sync.WaitGroup // of the first input
	feeding chan struct{}  // holds an element while input is given
	done    chan struct{}
	exit    execd.Exit // to be read when done is closed

	mu     sync.Mutex
	killed bool // by Signal

	sending sync.Mutex // held while a message is sent
}

// stream is something that the command writes to, from this side.
type stream struct {
	kind execd.Stream
	file *os.File
}

// start starts an exec. It leaves the cell when it has ended.
func (c *cell) start(ctx context.Context, j execd.Job, out execd.Output) (*process, error) {
	p := &process{cell: c, tty: j.TTY != nil, feeding: make(chan struct{}, 1), done: make(chan struct{}), kills: c.group.oomKills()}
	dir := path.Join(workspaceDir, j.Dir)
	command := launch.Command{Args: j.Args, Env: environment(j.Env, dir, p.tty), Dir: dir}
	if p.tty {
		command.TTY = (*launch.Size)(j.TTY)
	}
	if err := p.begin(ctx, command); err != nil {
		return nil, errors.Join(err, p.closeAll())
	}
	for _, s := range p.output {
		p.pumps.Go(func() { pump(s, out) })
	}
	p.feeding <- struct{}{}
	p.feeder.Go(func() { p.feed(j) })
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

// makePipes makes those of the command, and returns its ends.
func (p *process) makePipes() (theirs []*os.File, err error) {
	for _, kind := range []execd.Stream{0, execd.Stdout, execd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		if kind == 0 {
			p.stdin = w
			theirs = append(theirs, r)
		} else {
			p.output = append(p.output, stream{kind, r})
			theirs = append(theirs, w)
		}
	}
	return theirs, nil
}

// hearStart hears from the first process whether it has started the command.
func (p *process) hearStart(name string, sendErr error) error {
	var report launch.Report
	fds, err := p.conn.Receive(&report)
	if err != nil {
		return fmt.Errorf("start %q: the first process of the exec has died: %w", name, errors.Join(vfs.ErrInterrupted, sendErr))
	}
	if err := startError(report); err != nil {
		return err
	}
	if len(fds) == 1 {
		return p.useTerminal(fds[0])
	}
	return nil
}

// startError translates why a command was not started.
func startError(r launch.Report) error {
	err := r.Err()
	for _, t := range []struct {
		errno    unix.Errno
		sentinel error
	}{
		{unix.ENOENT, vfs.ErrNotExist}, {unix.EACCES, vfs.ErrNotPermitted}, {unix.ENOTDIR, vfs.ErrNotDir},
		{unix.ENOEXEC, vfs.ErrNotSupported}, {unix.E2BIG, vfs.ErrTooBig}, {unix.ENAMETOOLONG, vfs.ErrNameTooLong},
		{unix.EAGAIN, vfs.ErrBusy}, {unix.ENOMEM, vfs.ErrBusy},
	} {
		if errors.Is(err, t.errno) {
			return fmt.Errorf("%s: %w", r.Step, t.sentinel)
		}
	}
	return err
}

// useTerminal reads and writes a terminal in place of the pipes.
func (p *process) useTerminal(fd int) error {
	err := unix.SetNonblock(fd, true)
	master := os.NewFile(uintptr(fd), "terminal")
	err = errors.Join(err, p.stdin.Close())
	for _, s := range p.output {
		err = errors.Join(err, s.file.Close())
	}
	p.stdin, p.output = master, []stream{{execd.Stdout, master}}
	return err
}

// pump brings what the command writes to the log, until nobody can write any more.
func pump(s stream, out execd.Output) {
	buf := make([]byte, maxPump)
	for {
		n, err := s.file.Read(buf)
		out.Write(s.kind, buf[:n])
		if err != nil {
			return // the end, EIO for a terminal, or the deadline
		}
	}
}

// feed gives the input there is at the start.
func (p *process) feed(j execd.Job) {
	defer func() { <-p.feeding }()
	_, err := p.stdin.Write(j.Stdin)
	if err == nil && !j.Open {
		_ = p.endInput() // the command has ended when it fails
	}
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

// hurry bounds how long output is waited for whose other end is held open outside of the exec.
func (p *process) hurry() {
	deadline := time.Now().Add(outputPatience)
	_ = p.stdin.SetWriteDeadline(deadline) // a file that is closed needs none
	for _, s := range p.output {
		_ = s.file.SetReadDeadline(deadline) // a pipe has one
	}
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
	if p.stdin != nil {
		if err := p.stdin.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, s := range p.output {
		if err := s.file.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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

// Resize implements execd.Process.
func (p *process) Resize(s execd.Size) error {
	if !p.tty {
		return fmt.Errorf("resize: no terminal: %w", vfs.ErrNotSupported)
	}
	raw, err := p.stdin.SyscallConn()
	if err != nil {
		return nil // it has ended
	}
	_ = raw.Control(func(fd uintptr) { err = launch.Resize(int(fd), launch.Size(s)) })
	return err
}

// Input implements execd.Process.
func (p *process) Input(ctx context.Context, b []byte) error {
	select {
	case p.feeding <- struct{}{}:
		defer func() { <-p.feeding }()
	case <-p.done:
		return fmt.Errorf("input: %w", vfs.ErrClosed)
	case <-ctx.Done():
		return fmt.Errorf("input: %w", vfs.ErrInterrupted)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.stdin.SetWriteDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	_, err := p.stdin.Write(b)
	if !stop() {
		<-interrupted                             // or the deadline would come after it is taken back
		_ = p.stdin.SetWriteDeadline(time.Time{}) // for who comes next
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("input: %w", vfs.ErrInterrupted)
	}
	return fmt.Errorf("input: %w: %w", vfs.ErrClosed, err)
}

// CloseInput implements execd.Process.
func (p *process) CloseInput() error {
	select {
	case p.feeding <- struct{}{}:
		defer func() { <-p.feeding }()
	case <-p.done:
		return nil
	}
	return p.endInput()
}

// endInput says that there is no more. In a terminal that is a character (termios(3), VEOF).
func (p *process) endInput() error {
	var err error
	if p.tty {
		_, err = io.WriteString(p.stdin, "\x04")
	} else {
		err = p.stdin.Close()
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
