package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/container/launch"
)

// stdio is what a command reads and writes, from this side: pipes or a terminal. Its methods are those of execd.Process that
// have to do with it.
type stdio struct {
	stdin  *os.File // what the command reads; the terminal when it has one
	output []stream
	tty    bool

	pumps   sync.WaitGroup // one for each output
	feeder  sync.WaitGroup // of the first input
	feeding chan struct{}  // holds an element while input is given
	done    chan struct{}  // closed when the command has ended
}

func newStdio(tty bool) stdio {
	return stdio{tty: tty, feeding: make(chan struct{}, 1), done: make(chan struct{})}
}

// connect begins to bring what the command writes to the log, and what there is at the start to the command.
func (p *stdio) connect(j execd.Job, out execd.Output) {
	for _, s := range p.output {
		p.pumps.Go(func() { pump(s, out) })
	}
	p.feeding <- struct{}{}
	p.feeder.Go(func() { p.feed(j) })
}

// close closes our ends.
func (p *stdio) close() error {
	var errs []error
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

// stream is something that the command writes to, from this side.
type stream struct {
	kind execd.Stream
	file *os.File
}

// makePipes makes those of the command, and returns its ends.
func (p *stdio) makePipes() (theirs []*os.File, err error) {
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
func (p *stdio) feed(j execd.Job) {
	defer func() { <-p.feeding }()
	_, err := p.stdin.Write(j.Stdin)
	if err == nil && !j.Open {
		_ = p.endInput() // the command has ended when it fails
	}
}

// hurry bounds how long output is waited for whose other end is held open outside of the exec.
func (p *stdio) hurry() {
	deadline := time.Now().Add(outputPatience)
	_ = p.stdin.SetWriteDeadline(deadline) // a file that is closed needs none
	for _, s := range p.output {
		_ = s.file.SetReadDeadline(deadline) // a pipe has one
	}
}

// Resize implements execd.Process.
func (p *stdio) Resize(s execd.Size) error {
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
func (p *stdio) Input(ctx context.Context, b []byte) (n int, err error) {
	select {
	case p.feeding <- struct{}{}:
		defer func() { <-p.feeding }()
	case <-p.done:
		return 0, fmt.Errorf("input: %w", vfs.ErrClosed)
	case <-ctx.Done():
		return 0, fmt.Errorf("input: %w", vfs.ErrInterrupted)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.stdin.SetWriteDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	n, err = p.stdin.Write(b)
	if !stop() {
		<-interrupted                             // or the deadline would come after it is taken back
		_ = p.stdin.SetWriteDeadline(time.Time{}) // for who comes next
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, fmt.Errorf("input: %w", vfs.ErrInterrupted)
	}
	return n, fmt.Errorf("input: %w: %w", vfs.ErrClosed, err)
}

// CloseInput implements execd.Process.
func (p *stdio) CloseInput() error {
	select {
	case p.feeding <- struct{}{}:
		defer func() { <-p.feeding }()
	case <-p.done:
		return nil
	}
	return p.endInput()
}

// endInput says that there is no more. In a terminal that is a character (termios(3), VEOF).
func (p *stdio) endInput() error {
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

// useTerminal reads and writes a terminal in place of the pipes.
func (p *stdio) useTerminal(fd int) error {
	err := unix.SetNonblock(fd, true)
	master := os.NewFile(uintptr(fd), "terminal")
	err = errors.Join(err, p.stdin.Close())
	for _, s := range p.output {
		err = errors.Join(err, s.file.Close())
	}
	p.stdin, p.output = master, []stream{{execd.Stdout, master}}
	return err
}
