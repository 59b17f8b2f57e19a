package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
)

func (p *program) mountCommand() *cli.Command {
	return &cli.Command{
		Name:      "mount",
		Usage:     "mount a workspace on a directory",
		ArgsUsage: "WORKSPACE[@WHEN]|URL DIR",
		Description: "Makes the store, the workspace and DIR when they are not there, and stays until DIR is unmounted,\n" +
			"by 'carrel umount DIR' or Ctrl-C; with --detach it returns when DIR is usable. A daemon that crashes is\n" +
			"started again by itself. A second mount of the same store goes through the first one's daemon, and ends\n" +
			"with it when that one is ended by Ctrl-C or SIGTERM.\n\n" +
			"DIR/.carrel, which no listing shows, has the snapshots and the revision: .carrel/snapshots/NAME and .carrel/rev.\n\n" +
			"With a URL as 'carrel serve' prints it, the workspace is another machine's: it is joined, as by 'carrel join'. The\n" +
			"flags from --token-file on are for that alone; --keep-history and --doze are not for it.",
		Flags: slices.Concat(mountFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "detach", Usage: "mount in the background; the log is daemon.log in the store, or in --state"},
			spanFlag("keep-history", "have the store keep what was for `TIME`, as 'carrel history --keep' does", 0),
		}, remoteFlags(), mirrorFlags()),
		Action: p.mount,
	}
}

// mountFlags are those that the supervisor and the daemon are started with again.
func mountFlags() []cli.Flag {
	return []cli.Flag{
		storeFlag(),
		&cli.BoolFlag{Name: "read-only", Usage: "refuse every change"},
		&cli.BoolFlag{
			Name: "allow-other", Usage: "let other users in, as owners and modes say", Value: os.Geteuid() == 0,
			DefaultText: "true as root",
		},
		&cli.BoolFlag{
			Name: "doze", Usage: "let idle CPUs sleep while requests come fast (in small virtual machines they otherwise do not)",
		},
	}
}

// job is a mount that is to be made, or none: for a daemon that is to be asked what to do.
type job struct {
	store  string
	mount  control.Mount
	detach bool
}

func parseJob(c *cli.Context) (job, error) {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return job{}, err
	}
	j := job{detach: c.Bool("detach")}
	if j.store, err = storeDir(c); err != nil {
		return job{}, err
	}
	dir, err := realPath(args[1])
	if err != nil {
		// A dead mount cannot be looked at, and is no symlink.
		if dir, err = filepath.Abs(args[1]); err != nil {
			return job{}, err
		}
	}
	j.mount = control.Mount{
		Workspace: args[0], Dir: dir, ReadOnly: c.Bool("read-only"), AllowOther: c.Bool("allow-other"), Doze: c.Bool("doze"),
	}
	return j, nil
}

// arguments is the command line that does the job, for the hidden commands.
func (j job) arguments(command string, flags ...string) []string {
	if (j.mount == control.Mount{}) {
		return append([]string{"carrel", command, "--store=" + j.store}, flags...)
	}
	return append(append([]string{"carrel", command, "--store=" + j.store,
		fmt.Sprintf("--read-only=%t", j.mount.ReadOnly), fmt.Sprintf("--allow-other=%t", j.mount.AllowOther),
		fmt.Sprintf("--doze=%t", j.mount.Doze)},
		flags...), "--", j.mount.Workspace, j.mount.Dir)
}

// urlScheme is what the URL of a workspace on another machine begins with.
const urlScheme = "carrel://"

func (p *program) mount(c *cli.Context) error {
	if strings.HasPrefix(c.Args().First(), urlScheme) {
		return p.mountRemote(c)
	}
	j, err := parseJob(c)
	if err != nil {
		return err
	}
	if err := daemon.CheckPoint(j.store, j.mount.Dir); err != nil {
		return err
	}
	made, err := makePoint(j.mount.Dir)
	if err != nil {
		return told(fmt.Errorf("mount: %w", err), "Name another directory, or have somebody who may make this one.")
	}
	if err = p.keepHistory(c); err == nil {
		err = p.mountHowever(c.Context, j)
	}
	if err != nil && made {
		_ = os.Remove(j.mount.Dir) // it stays when somebody uses it meanwhile
	}
	return err
}

// mountRemote is mount for a workspace of another machine.
func (p *program) mountRemote(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	return p.joinOn(c, args[0], args[1])
}

// makePoint makes the mount point, and says whether it did.
func makePoint(dir string) (made bool, err error) {
	_, statErr := os.Lstat(dir)
	if !errors.Is(statErr, os.ErrNotExist) {
		return false, nil // what is there has been checked
	}
	return true, os.MkdirAll(dir, 0o755)
}

// mountHowever asks the daemon that has the store open, or starts one.
func (p *program) mountHowever(ctx context.Context, j job) error {
	return p.throughDaemon(ctx, j.store,
		func(owner *control.Client) error { return p.mountThrough(ctx, j, owner) },
		func() error {
			if j.detach {
				return p.mountDetached(ctx, j)
			}
			return p.mountHere(ctx, j)
		})
}

// throughDaemon asks the daemon that has the store open, or has one started by here. When one was started by someone else
// at the same moment, that one is asked.
func (p *program) throughDaemon(
	ctx context.Context, store string, ask func(owner *control.Client) error, here func() error,
) error {
	for {
		owner, err := control.Dial(ctx, store)
		switch {
		case err == nil && owner.Owner().Mounts:
			return errors.Join(ask(owner), owner.Close())
		case err == nil: // the daemon waits for it
			p.say("waiting for process %d, which works on the store", owner.Owner().PID)
			err = owner.Close()
		case errors.Is(err, control.ErrNoOwner), errors.Is(err, vfs.ErrClosed):
			err = nil
		}
		if err != nil {
			return err
		}
		if err = here(); !errors.Is(err, vfs.ErrInUse) {
			return err
		}
		if err := p.canDial(ctx, store, err); err != nil {
			return err
		}
	}
}

// canDial returns the error again when the store is in use by a process that does not serve it.
func (p *program) canDial(ctx context.Context, store string, inUse error) error {
	owner, err := control.Dial(ctx, store)
	if err != nil {
		return inUse
	}
	return owner.Close()
}

// mountThrough has a daemon that is there mount, and stays until it is unmounted.
func (p *program) mountThrough(ctx context.Context, j job, owner *control.Client) error {
	if err := owner.Mount(ctx, j.mount); err != nil {
		return err
	}
	p.sayMounted(j)
	if j.detach {
		return nil
	}
	err := p.attend(ctx, j, owner)
	if ctx.Err() == nil {
		return err
	}
	// The context has ended; the unmount must not.
	_, err = owner.Unmount(context.WithoutCancel(ctx), j.mount.Dir, true)
	return err
}

// attend waits until the mount has gone, across crashes of the daemon.
func (p *program) attend(ctx context.Context, j job, owner *control.Client) error {
	for {
		err := owner.WaitUnmount(ctx, j.mount.Dir)
		if !errors.Is(err, vfs.ErrClosed) {
			return err
		}
		if owner, err = redial(ctx, j.store); err != nil {
			return err
		}
		defer owner.Close() // nothing is changed through it
	}
}

// redial waits for the daemon that follows one that died.
func redial(ctx context.Context, store string) (*control.Client, error) {
	wait, cancel := context.WithTimeout(ctx, ownerPatience)
	defer cancel()
	for {
		c, err := control.Dial(wait, store)
		if err == nil || wait.Err() != nil {
			return c, err
		}
		if err := waitFor(wait, ownerRetry); err != nil {
			return nil, fmt.Errorf("the daemon has died: %w", vfs.ErrClosed)
		}
	}
}

func (p *program) sayMounted(j job) {
	how := fmt.Sprintf("'carrel umount %s' unmounts it", j.mount.Dir)
	if !j.detach {
		how = "Ctrl-C unmounts it"
	}
	p.say("workspace %s is mounted on %s; %s", p.shown(j.mount.Workspace), j.mount.Dir, how)
}

// mountHere is the supervisor in the foreground.
func (p *program) mountHere(ctx context.Context, j job) error {
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return p.supervise(ctx, j, log, func() { p.sayMounted(j) }, "--quiet")
}
