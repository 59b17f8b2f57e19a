package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
)

const (
	logName = "daemon.log"
	// maxLog is the size from which the log is put aside, as daemon.log.old, by the next --detach.
	maxLog = 8 << 20
	// detachedFD is the status pipe of a detached supervisor.
	detachedFD = 3
)

// supervise keeps a daemon running until the mounts have gone or ctx ends.
func (p *program) supervise(ctx context.Context, j job, log *slog.Logger, ready func(), flags ...string) error {
	s := daemon.Supervisor{
		Clean: func() error { return daemon.CleanMounts(j.store) },
		Command: func(resume bool) *exec.Cmd {
			cmd := exec.Command("/proc/self/exe")
			cmd.Args = j.arguments("daemon", slices.Concat(flags, p.keyFlags(), []string{fmt.Sprintf("--resume=%t", resume)})...)
			cmd.Stderr = p.stderr
			return cmd
		},
		Log: log, Ready: ready,
	}
	return s.Run(ctx)
}

// daemonHere starts a daemon that has nothing mounted, asks it to do something, and ends it.
func (p *program) daemonHere(
	ctx context.Context, store string, ask func(owner *control.Client) error, flags ...string,
) error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	daemonCtx, end := context.WithCancel(context.WithoutCancel(ctx)) // it ends in order, when all is done
	defer end()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- p.supervise(daemonCtx, job{store: store}, log, func() { close(ready) }, flags...) }()
	select {
	case err := <-ended:
		return err
	case <-ready:
	}
	owner, err := control.Dial(ctx, store)
	if err == nil {
		err = errors.Join(ask(owner), owner.Close())
	}
	end()
	if endErr := <-ended; endErr != nil {
		return endErr // the reason when the owner is gone
	}
	return err
}

// mountDetached starts a supervisor of its own session, and returns when the mount is usable or cannot be.
func (p *program) mountDetached(ctx context.Context, j job) error {
	if err := p.prepareStore(ctx, j); err != nil {
		return err
	}
	log, err := openLog(j.store)
	if err != nil {
		return err
	}
	defer log.Close() // the supervisor has its own
	if err := startDetached(log, nil, j.arguments("supervise", p.keyFlags()...)); err != nil {
		return err
	}
	p.sayMounted(j)
	return nil
}

// startDetached starts a supervisor with a session of its own, a log, and what it is to read from stdin. It returns when what
// that mounts is usable or cannot be.
func startDetached(log *os.File, stdin io.Reader, args []string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close() // only read
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = args
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, log, log
	cmd.ExtraFiles = []*os.File{w} // detachedFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		return err
	}
	status, ok := daemon.ReadStatus(r)
	switch {
	case !ok:
		return told(errors.New("mount: the daemon has died"), "Its log is %s.", log.Name())
	case status.Err() != nil:
		_ = cmd.Wait() // its exit status says no more
		return status.Err()
	}
	return cmd.Process.Release()
}

// prepareStore makes the store, so that there is a place for the log, and finds out what is wrong with it while there
// is someone to tell.
func (p *program) prepareStore(ctx context.Context, j job) error {
	s, err := p.open(ctx, j.store, true)
	if err != nil {
		return err
	}
	if j.mount.ReadOnly {
		name, _, _ := casstore.SplitMoment(j.mount.Workspace)
		_, err = s.Info(ctx, name)
	}
	return errors.Join(err, s.close())
}

func openLog(store string) (*os.File, error) {
	path := filepath.Join(store, logName)
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

func (p *program) superviseCommand() *cli.Command {
	return &cli.Command{Name: "supervise", Hidden: true, ArgsUsage: "WORKSPACE DIR", Flags: mountFlags(),
		Action: p.superviseDetached}
}

// superviseDetached is the supervisor in the background, of 'mount --detach'.
func (p *program) superviseDetached(c *cli.Context) error {
	j, err := parseJob(c)
	if err != nil {
		return err
	}
	return tellStarter(func(ready func()) error {
		return p.supervise(c.Context, j, p.daemonLog(slog.LevelInfo), ready)
	})
}

// tellStarter runs a supervisor in the background, and tells who has started it when that is ready, or why it is not.
func tellStarter(run func(ready func()) error) error {
	var st unix.Stat_t
	if err := unix.Fstat(detachedFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return daemon.ErrNoSupervisor
	}
	unix.CloseOnExec(detachedFD)
	starter := os.NewFile(detachedFD, "status")
	defer starter.Close() // its reader may be gone
	err := run(func() {
		daemon.WriteStatus(starter, daemon.Status{Ready: true})
		_ = starter.Close() // the starter waits for no more
	})
	if err != nil {
		daemon.WriteStatus(starter, statusOf(err))
	}
	return err
}

// statusOf passes on what another process has put into words already.
func statusOf(err error) daemon.Status {
	if s := (*daemon.StatusError)(nil); errors.As(err, &s) {
		return s.Status
	}
	return daemon.StatusOf(err, explain(err))
}

func (p *program) daemonLog(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level}))
}

func (p *program) daemonCommand() *cli.Command {
	return &cli.Command{
		Name: "daemon", Hidden: true, ArgsUsage: "[WORKSPACE DIR]",
		Flags: append(mountFlags(),
			&cli.BoolFlag{Name: "resume", Usage: "mount what a daemon that died had mounted"},
			&cli.BoolFlag{Name: "quiet", Usage: "log only what is wrong"}),
		Action: p.daemon,
	}
}

// daemonJob is a job that may be none.
func daemonJob(c *cli.Context) (job, error) {
	if c.NArg() > 0 {
		return parseJob(c)
	}
	store, err := storeDir(c)
	return job{store: store}, err
}

// daemon is what a supervisor starts. What is wrong goes to it, in words; it decides whether a person hears of it.
func (p *program) daemon(c *cli.Context) error {
	j, err := daemonJob(c)
	if err != nil {
		return err
	}
	ctx, status, err := daemon.Inherit(c.Context)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if c.Bool("quiet") {
		level = slog.LevelWarn
	}
	key, err := p.key()
	if err == nil {
		err = daemon.Run(ctx, daemon.Config{
			Store: j.store, Key: key, Mount: j.mount, Agent: "carrel " + version(), Resume: c.Bool("resume"), Log: p.daemonLog(level),
			Ready: func() { daemon.WriteStatus(status, daemon.Status{Ready: true}) },
		})
	}
	if err != nil {
		daemon.WriteStatus(status, statusOf(err))
		return errQuiet
	}
	return nil
}
