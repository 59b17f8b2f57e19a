package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/carrelfs/carrel/fusefs"
)

// Supervisor keeps a daemon running.
type Supervisor struct {
	// Command returns a daemon that has not been started. resume is for one that follows a dead one.
	Command func(resume bool) *exec.Cmd
	// Clean takes away what a daemon that died and has no successor has left mounted.
	Clean func() error
	Log   *slog.Logger
	Ready func() // called once, when the mount is usable for the first time
}

// Run returns nil when the daemon has ended in order: by its last unmount, or because ctx ended. Its error is what kept
// the first daemon from mounting, or a later one for good.
func (s *Supervisor) Run(ctx context.Context) error {
	delay, ready, resume := time.Duration(0), sync.OnceFunc(s.Ready), false
	for {
		start := time.Now()
		o := s.runOnce(ctx, resume, ready)
		resume = resume || o.ready
		switch {
		case o.exit == nil:
			return nil
		case o.status.Err() != nil && (!resume || o.status.Fatal):
			return errors.Join(o.status.Err(), s.Clean())
		case !resume, ctx.Err() != nil:
			return errors.Join(fmt.Errorf("the daemon has died: %w", o.exit), s.Clean())
		}
		if time.Since(start) > calmAfter {
			delay = 0
		}
		s.Log.Error("the daemon has died; starting another one", "exit", o.exit, "error", o.status.Error, "after", delay)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return s.Clean()
		}
		delay = min(max(2*delay, firstDelay), maxDelay)
	}
}

// outcome is how a daemon ended.
type outcome struct {
	ready  bool   // it had mounted
	status Status // the last that tells an error
	exit   error
}

func (s *Supervisor) runOnce(ctx context.Context, resume bool, ready func()) (o outcome) {
	lifeR, lifeW, err := os.Pipe()
	if err != nil {
		return outcome{exit: err}
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return outcome{exit: errors.Join(err, lifeR.Close(), lifeW.Close())}
	}
	cmd := s.Command(resume)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lifeR, statusW} // lifeFD and statusFD
	// Ctrl-C is for the supervisor, which tells the daemon in its own way.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	err = errors.Join(err, lifeR.Close(), statusW.Close())
	if err != nil {
		return outcome{exit: errors.Join(err, lifeW.Close(), statusR.Close())}
	}
	end := sync.OnceValue(lifeW.Close)
	stop := context.AfterFunc(ctx, func() { _ = end() }) // a pipe's close has no error that matters
	readStatuses(statusR, func(st Status) {
		if st.Ready {
			o.ready = true
			ready()
		}
		if st.Error != "" {
			o.status = st
		}
	})
	o.exit = cmd.Wait()
	stop()
	if err := errors.Join(end(), statusR.Close()); err != nil {
		s.Log.Debug("close the pipes of a daemon", "err", err)
	}
	return o
}

// CleanMounts takes away the mounts of a store's daemon that died and has no successor.
func CleanMounts(store string) error {
	mounts, err := readRecord(store)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	var errs []error
	for _, m := range mounts {
		dir := string(m.Dir)
		if e, ok, err := At(dir); err == nil && ok && e.Ours() {
			errs = append(errs, fusefs.CleanDead(dir))
		}
	}
	return errors.Join(errs...)
}
