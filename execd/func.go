package execd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Func is a backend that runs in this process. The function returns soon after ctx has ended, and then nothing that it has
// started writes any more; what it returns then does not matter. A panic in it, on its own goroutine, ends its exec alone.
//
// Signals other than those that a program ignores by default end ctx, and the exec as they would end a program.
type Func func(ctx context.Context, j Job, stdin io.Reader, out Output) Exit

// Start implements [Backend].
func (f Func) Start(_ context.Context, j Job, out Output) (Process, error) {
	if j.TTY != nil || j.Runtime != "" || j.Privileged() {
		return nil, fmt.Errorf("a terminal, network, root directory or runtime in exec backend %s: %w", j.Backend, vfs.ErrNotSupported)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &funcProcess{cancel: cancel, done: make(chan struct{}), stdin: newInbox(j.Stdin, j.Open, ctx.Done())}
	go p.run(ctx, f, j, out) // Wait waits for it
	return p, nil
}

// Close implements [Backend]. The registry has ended everything by then.
func (Func) Close() error { return nil }

// funcProcess is a run of a Func.
type funcProcess struct {
	cancel context.CancelCauseFunc
	stdin  *inbox
	done   chan struct{}
	exit   Exit // to be read when done is closed
}

// killed is the cause of a context that a signal has ended.
type killed int

func (k killed) Error() string { return SignalName(int(k)) }

func (p *funcProcess) run(ctx context.Context, f Func, j Job, out Output) {
	defer close(p.done)
	defer p.cancel(nil)
	p.exit = guard(func() Exit { return f(ctx, j, p.stdin, out) })
	if k := killed(0); errors.As(context.Cause(ctx), &k) {
		p.exit = Exit{Code: codeSignal + int(k), Signal: int(k)}
	}
}

// guard turns a panic into an exit.
func guard(f func() Exit) (x Exit) {
	defer func() {
		if p := recover(); p != nil {
			x = Exit{Code: CodeNotRun, Reason: fmt.Sprintf("the backend failed: %v\n%s", p, debug.Stack())}
		}
	}()
	return f()
}

// Wait implements [Process].
func (p *funcProcess) Wait() Exit {
	<-p.done
	return p.exit
}

// Input implements [Process].
func (p *funcProcess) Input(ctx context.Context, b []byte) (int, error) { return p.stdin.give(ctx, b) }

// CloseInput implements [Process].
func (p *funcProcess) CloseInput() error {
	p.stdin.end()
	return nil
}

// Signal implements [Process].
func (p *funcProcess) Signal(number int) error {
	if !ignoredByDefault(number) {
		p.cancel(killed(number))
	}
	return nil
}

// Resize implements [Process].
func (p *funcProcess) Resize(Size) error {
	return fmt.Errorf("resize: no terminal: %w", vfs.ErrNotSupported)
}
