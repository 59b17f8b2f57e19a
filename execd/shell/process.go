package shell

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/carrelfs/carrel/execd/shell/command"
)

// process is a virtual process: a shell with a number that signals can be sent to.
type process struct {
	pid     int
	cancel  context.CancelCauseFunc // under the session's mu
	pending atomic.Uint64           // signals that a trap waits for, by number
	wake    chan struct{}           // has room for one; a wait hears of a pending signal
	trapped atomic.Uint64           // signals that have a trap
	ignored atomic.Uint64
	ended   atomic.Bool
	own     bool // cancel ends this process alone
}

// errFinished ends what is left of a script that is over.
var errFinished = errors.New("script is over")

// signalError is the cause of a context that a signal ended.
type signalError int

func (s signalError) Error() string { return fmt.Sprintf("signal %d", int(s)) }

// signalOf returns the signal that ended a context.
func signalOf(ctx context.Context) (int, bool) {
	var sig signalError
	if errors.As(context.Cause(ctx), &sig) {
		return int(sig), true
	}
	return 0, false
}

func (s *session) newProcess(cancel context.CancelCauseFunc) *process {
	p := &process{pid: int(s.pids.Add(1)), cancel: cancel, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.procs[p.pid] = p
	return p
}

func (s *session) endProcess(p *process) {
	if p.ended.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.procs, p.pid)
}

// forkProcess is a fork with a life of its own, which a signal can end alone.
func (sh *shell) forkProcess() *shell { return sh.forkUnder(sh.ctx) }

// forkUnder is forkProcess for a process that ends with ctx.
func (sh *shell) forkUnder(ctx context.Context) *shell {
	child := sh.fork()
	var cancel context.CancelCauseFunc
	child.ctx, cancel = context.WithCancelCause(ctx)
	child.proc = sh.newProcess(cancel)
	child.proc.own = true
	child.proc.ignored.Store(sh.proc.ignored.Load())
	sh.mu.Lock()
	n := len(sh.procs)
	sh.mu.Unlock()
	if sh.limits.Processes > 0 && n > sh.limits.Processes {
		sh.kill(ErrProcesses)
		child.close()
		sh.stop()
	}
	return child
}

// revive gives a process that a signal has ended the time for its EXIT trap, which another signal ends. end gives back what
// it takes.
func (sh *shell) revive() (end func()) {
	dead := sh.ctx
	ctx, cancel := context.WithCancelCause(sh.life)
	sh.ctx = ctx
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.proc.cancel = cancel
	return func() {
		cancel(errFinished)
		sh.ctx = dead
	}
}

// launch runs f on a goroutine of the script's. f must close the shell.
func (sh *shell) launch(child *shell, f func()) {
	sh.running.Add(1)
	go func() {
		defer sh.running.Done()
		f()
	}()
}

// signal sends a signal to a process. The default of most is to end it.
func (s *session) signal(pid, sig int) bool {
	s.mu.Lock()
	p, ok := s.procs[pid]
	var cancel context.CancelCauseFunc
	if ok {
		cancel = p.cancel
	}
	s.mu.Unlock()
	if !ok {
		return false
	}
	bit := uint64(1) << sig
	switch {
	case sig == 0, p.ignored.Load()&bit != 0 && sig != sigKill && sig != sigStop:
	case p.trapped.Load()&bit != 0 && sig != sigKill && sig != sigStop:
		p.pending.Or(bit)
		select {
		case p.wake <- struct{}{}:
		default:
		}
	case !harmless[sig]:
		cancel(signalError(sig))
	}
	return true
}

// exitStatus is a status as a parent sees it.
func exitStatus(n int) int { return n & 0xff }

// guard runs a command and makes a panic of its own the end of the script, not of the daemon.
func (sh *shell) guard(fn command.Func, p *command.Process) (status int) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if a, ok := r.(abort); ok {
			panic(a)
		}
		fmt.Fprintf(p.Stderr, "%s: internal error: %v\n", p.Args[0], r)
		status = 134
	}()
	return fn(sh.ctx, p)
}
