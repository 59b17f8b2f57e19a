package main

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/carrelfs/carrel/execd"
)

// session is a person at an exec: standard input, signals and the terminal are passed on.
type session struct {
	f       *follower
	cancel  context.CancelFunc
	signals chan os.Signal
	owned   sync.WaitGroup
	raw     *term.State // of our own terminal, as it was; nil when it was left as it is
	fd      int
}

// beginSession passes on what comes to us. The goroutine that reads standard input ends with the process: a read of a
// terminal cannot be taken back.
func (p *program) beginSession(f *follower, spec *execd.Spec) (*session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{f: f, cancel: cancel, signals: make(chan os.Signal, 16), fd: -1}
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH)
	s.owned.Go(func() { s.pass(ctx, spec.TTY != nil) })
	if in, ok := p.stdin.(*os.File); ok && spec.TTY != nil && term.IsTerminal(int(in.Fd())) {
		raw, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			_ = s.end() // nothing of it can fail yet
			return nil, err
		}
		s.raw, s.fd = raw, int(in.Fd())
	}
	if spec.Open && p.stdin != nil {
		go f.feed(ctx)
	}
	return s, nil
}

// pass passes signals on, and the size of the terminal when it changes.
func (s *session) pass(ctx context.Context, tty bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-s.signals:
			number := sig.(unix.Signal)
			if number != unix.SIGWINCH {
				_ = s.f.execs.Signal(ctx, s.f.id, execd.SignalName(int(number))) // it has ended when that fails
			} else if tty {
				_ = s.f.execs.Resize(ctx, s.f.id, s.f.terminalSize()) // likewise
			}
		}
	}
}

// end puts the terminal back.
func (s *session) end() error {
	signal.Stop(s.signals)
	s.cancel()
	s.owned.Wait()
	if s.raw != nil {
		return term.Restore(s.fd, s.raw)
	}
	return nil
}
