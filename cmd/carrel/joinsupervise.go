package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/cmd/carrel/join"
	"github.com/carrelfs/carrel/fusefs"
	"github.com/carrelfs/carrel/syncwire"
)

// maxToken bounds what is read of a token that is handed on.
const maxToken = 64 << 10

// joinHere is the supervisor in the foreground.
func (p *program) joinHere(ctx context.Context, j *joinJob) error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return p.superviseJoin(ctx, j, p.daemonLog(slog.LevelWarn), func() {
		p.say("workspace %s of %s is mounted on %s; Ctrl-C unmounts it", p.shown(j.remote.Workspace), j.remote.Addr, j.dir)
	}, "--quiet")
}

// joinDetached starts a supervisor of its own session, and returns when the mount is usable or cannot be.
func (p *program) joinDetached(j *joinJob) error {
	if err := os.MkdirAll(j.state, 0o700); err != nil {
		return err
	}
	log, err := openLog(j.state)
	if err != nil {
		return err
	}
	defer log.Close() // the supervisor has its own
	if err := startDetached(log, bytes.NewReader(j.remote.token), j.arguments("join-supervise")); err != nil {
		return saidInFull(err)
	}
	p.say("workspace %s of %s is mounted on %s; 'carrel umount %s' unmounts it", p.shown(j.remote.Workspace), j.remote.Addr,
		j.dir, j.dir)
	return nil
}

// superviseJoin keeps a daemon running until the mount has gone or ctx ends. Each is told the token.
func (p *program) superviseJoin(ctx context.Context, j *joinJob, log *slog.Logger, ready func(), flags ...string) error {
	mounted := false
	s := daemon.Supervisor{
		Command: func(bool) *exec.Cmd {
			cmd := exec.Command("/proc/self/exe")
			cmd.Args = j.arguments("join-daemon", flags...)
			cmd.Stdin, cmd.Stderr = bytes.NewReader(j.remote.token), p.stderr
			return cmd
		},
		Clean: func() error { return fusefs.CleanDead(j.dir) },
		Log:   log,
		Ready: func() {
			mounted = true
			ready()
		},
	}
	err := s.Run(ctx)
	if err != nil && !mounted && j.passing {
		err = errors.Join(err, os.RemoveAll(j.state)) // there is nothing in it
	}
	return saidInFull(err)
}

// saidInFull keeps what another process has put into words from being given advice once more.
func saidInFull(err error) error {
	if s := (*daemon.StatusError)(nil); errors.As(err, &s) {
		return told(err, "")
	}
	return err
}

func (p *program) joinSuperviseCommand() *cli.Command {
	return &cli.Command{
		Name: "join-supervise", Hidden: true, ArgsUsage: "URL DIR", Flags: joinDaemonFlags(), Action: p.joinSupervise,
	}
}

func (p *program) joinDaemonCommand() *cli.Command {
	return &cli.Command{
		Name: "join-daemon", Hidden: true, ArgsUsage: "URL DIR", Action: p.joinDaemon,
		Flags: append(joinDaemonFlags(), &cli.BoolFlag{Name: "quiet", Usage: "log only what is wrong"}),
	}
}

// joinDaemonFlags are those with which a joinJob is handed on.
func joinDaemonFlags() []cli.Flag {
	return append(append(append(remoteFlags(), mirrorFlags()...), mountOnlyFlags()...),
		&cli.BoolFlag{Name: "passing", Usage: "remove the state when everything is pushed"})
}

// handed takes over what a process was started with by joinJob.arguments, and the token.
func (p *program) handed(c *cli.Context) (r *remote, dir string, err error) {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return nil, "", err
	}
	token, err := io.ReadAll(io.LimitReader(p.stdin, maxToken))
	if err == nil {
		r, err = given(c, args[0], token)
	}
	return r, args[1], err
}

// joinSupervise is the supervisor in the background. Its flags are those of its daemons.
func (p *program) joinSupervise(c *cli.Context) error {
	r, dir, err := p.handed(c)
	if err != nil {
		return err
	}
	j := &joinJob{remote: r, dir: dir, state: c.String("state"), passing: c.Bool("passing")}
	for _, f := range c.LocalFlagNames() {
		j.flags = append(j.flags, fmt.Sprintf("--%s=%v", f, c.Value(f)))
	}
	return tellStarter(func(ready func()) error {
		return p.superviseJoin(c.Context, j, p.daemonLog(slog.LevelInfo), ready)
	})
}

// joinDaemon is what a supervisor starts. What is wrong goes to it, in words.
func (p *program) joinDaemon(c *cli.Context) error {
	ctx, status, err := daemon.Inherit(c.Context)
	if err != nil {
		return err
	}
	r, dir, err := p.handed(c)
	if err != nil {
		return err
	}
	config, err := joinConfig(c)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if c.Bool("quiet") {
		level = slog.LevelWarn
	}
	config.Dialer, config.Workspace, config.Dir, config.Log = r.dialer(), r.Workspace, dir, p.daemonLog(level)
	config.Target = r.Pin.String() + "/" + r.Workspace
	config.Token = func(context.Context) ([]byte, error) { return r.token, nil }
	mounted := false
	config.Ready = func() {
		mounted = true
		daemon.WriteStatus(status, daemon.Status{Ready: true})
	}
	if err := join.Run(ctx, config); err != nil {
		daemon.WriteStatus(status, joinStatusOf(r, config.State, err, mounted))
		return errQuiet
	}
	return nil
}

// joinStatusOf tells an error of a join. One that has ended in order is not begun again, and neither is one that is not let in.
func joinStatusOf(r *remote, state string, err error, mounted bool) daemon.Status {
	exit := 0
	switch {
	case errors.Is(err, join.ErrLeft):
		exit, err = exitLeft, told(err, "It is in %s, and is pushed by the next join with this state.", state)
	case errors.Is(err, join.ErrOther):
		err = told(err, "Name another state: --state DIR.")
	case errors.Is(err, vfs.ErrInUse):
		err = told(err, "Another join has it. Name another state: --state DIR.")
	default:
		for _, refused := range []error{syncwire.ErrToken, syncwire.ErrRights, syncwire.ErrClientKey, syncwire.ErrFingerprint} {
			if errors.Is(err, refused) {
				exit = exitRefused
			}
		}
		err = r.explain(err)
	}
	s := statusOf(err)
	s.Exit, s.Fatal = exit, s.Fatal || mounted || exit != 0
	return s
}
