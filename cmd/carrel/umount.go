package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/cmd/carrel/join"
	"github.com/carrelfs/carrel/fusefs"
)

// endPatience is how long umount waits for a daemon that has nothing mounted any more to close the store.
const endPatience = 30 * time.Second

func (p *program) umountCommand() *cli.Command {
	return &cli.Command{
		Name:      "umount",
		Aliases:   []string{"unmount"},
		Usage:     "unmount a workspace",
		ArgsUsage: "DIR...",
		Description: "Returns when all that was written in DIR is durable: of a workspace of another machine, when it is pushed, or\n" +
			"the time to do so is over. A dead mount is taken away too. A mount with open\n" +
			"files is busy: --force waits for them a little and then cuts them off.",
		Flags: []cli.Flag{&cli.BoolFlag{
			Name: "force", Aliases: []string{"f"}, Usage: "unmount although files are open; they fail from then on",
		}},
		Action: p.umount,
	}
}

func (p *program) umount(c *cli.Context) error {
	args, err := arguments(c, 1, -1)
	if err != nil {
		return err
	}
	for _, arg := range args {
		if err := p.umountDir(c.Context, arg, c.Bool("force")); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) umountDir(ctx context.Context, arg string, force bool) error {
	dir, err := mountPoint(arg)
	if err != nil {
		return err
	}
	e, ok, err := daemon.At(dir)
	switch {
	case err != nil:
		return fmt.Errorf("unmount %s: %w", dir, err)
	case !ok || !e.Ours():
		return told(fmt.Errorf("unmount %s: no workspace is mounted there: %w", dir, vfs.ErrInvalid),
			"'carrel doctor' lists what is mounted.")
	}
	if dead, err := fusefs.IsDead(dir); err == nil && dead {
		return fusefs.CleanDead(dir)
	}
	_, store := e.Workspace()
	if join.Runs(store) {
		return p.umountJoined(ctx, store, dir, force)
	}
	owner, err := control.Dial(ctx, store)
	if err != nil {
		// The daemon does not answer; the kernel still can.
		return p.busy(dir, fusefs.Unmount(dir))
	}
	return p.umountThrough(ctx, owner, dir, force)
}

// mountPoint makes a path absolute and resolves symlinks, but for the mount point itself, which may be dead.
func mountPoint(arg string) (string, error) {
	abs, err := filepath.Abs(arg)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	parent, err := realPath(filepath.Dir(abs))
	return filepath.Join(parent, filepath.Base(abs)), err
}

func (p *program) umountThrough(ctx context.Context, owner *control.Client, dir string, force bool) error {
	// Taken before the unmount: afterwards the number may be another process's.
	process, err := unix.PidfdOpen(owner.Owner().PID, 0)
	if err != nil {
		process = -1 // another pid namespace: then its end is not waited for
	}
	last, err := owner.Unmount(ctx, dir, force)
	err = errors.Join(p.busy(dir, err), owner.Close())
	if process < 0 {
		return err
	}
	if err == nil && last {
		err = waitForProcess(process)
	}
	return errors.Join(err, unix.Close(process))
}

// umountJoined unmounts a workspace of another machine, and returns when what was left is pushed, or its time to do so is over.
func (p *program) umountJoined(ctx context.Context, state, dir string, force bool) error {
	reply, err := join.Ask(ctx, state, join.Request{Op: "status"})
	if err != nil {
		return p.busy(dir, fusefs.Unmount(dir)) // it does not answer; the kernel still can
	}
	process, err := unix.PidfdOpen(reply.Status.PID, 0)
	if err != nil {
		process = -1 // another pid namespace: then its end is not waited for
	}
	if force {
		_, err = join.Ask(ctx, state, join.Request{Op: "leave"})
	} else {
		err = p.busy(dir, fusefs.Unmount(dir))
	}
	if process < 0 {
		return err
	}
	if err == nil {
		err = waitForEnd(process, endPatience+time.Duration(reply.Status.Drain*float64(time.Second)))
	}
	return errors.Join(err, unix.Close(process))
}

// waitForProcess returns when the process has ended, so that the store is free.
func waitForProcess(pidfd int) error { return waitForEnd(pidfd, endPatience) }

func waitForEnd(pidfd int, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(time.Until(deadline).Milliseconds()))
		if errors.Is(err, unix.EINTR) && time.Now().Before(deadline) {
			continue
		}
		if err == nil && n == 0 {
			return fmt.Errorf("unmounted, but the daemon has not ended for %v: %w", patience, vfs.ErrBusy)
		}
		return err
	}
}

// busy names the processes that keep a mount busy.
func (p *program) busy(dir string, err error) error {
	if !errors.Is(err, vfs.ErrBusy) {
		return err
	}
	users := usersOf(dir)
	if len(users) == 0 {
		return told(err, "Close what is open in it, or cut it off: carrel umount --force %s", dir)
	}
	return told(err, "These processes work in it: %s.\nEnd them, or cut them off: carrel umount --force %s",
		strings.Join(users, ", "), dir)
}

// usersOf lists processes with a working directory or an open file below dir. It looks only at links in /proc, so
// nothing is opened in the mount; processes of other users may be missing.
func usersOf(dir string) []string {
	var users []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is good
	for _, cwd := range links {
		proc := filepath.Dir(cwd)
		if !inside(cwd, dir) && !anyInside(filepath.Join(proc, "fd"), dir) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(proc, "comm")) // gone meanwhile: without a name
		users = append(users, fmt.Sprintf("%s (%s)", filepath.Base(proc), strings.TrimSpace(string(name))))
	}
	return users
}

func inside(link, dir string) bool {
	target, err := os.Readlink(link)
	return err == nil && (target == dir || strings.HasPrefix(target, dir+"/"))
}

func anyInside(fds, dir string) bool {
	entries, _ := os.ReadDir(fds) // not ours to look at, or gone
	for _, e := range entries {
		if inside(filepath.Join(fds, e.Name()), dir) {
			return true
		}
	}
	return false
}
