package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/cmd/carrel/join"
	"github.com/carrelfs/carrel/cmd/carrel/machines"
	"github.com/carrelfs/carrel/execd/api"
)

// place is a workspace, or something in it, and who is asked about it: the daemon of a store, a machine that has joined it there, or
// a join here.
type place struct {
	workspace string
	path      string // in the workspace, from "/"
	store     string
	machine   string // that has joined the workspace, and runs things; empty for the daemon of the store
	joined    string // the state of the join that has it; empty for a workspace of the store
}

// isPath reports whether an argument is a path of this machine rather than a name: "/" or "." is its beginning.
func isPath(arg string) bool {
	return strings.HasPrefix(arg, "/") || arg == "." || arg == ".." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")
}

// parsePlace reads WORKSPACE or WORKSPACE:PATH of the store of the command line, or a path of this machine that is in a mount
// of a workspace: one that begins with "/" or ".", as no workspace's place does.
func parsePlace(c *cli.Context, arg string) (place, error) {
	if isPath(arg) {
		return placeAt(arg)
	}
	store, err := storeDir(c)
	if err != nil {
		return place{}, err
	}
	at, err := parseAddress(c, arg)
	return place{workspace: at.workspace, path: "/" + strings.TrimLeft(at.path, "/"), store: store}, err
}

// placeAt finds what is mounted where a path of this machine is.
func placeAt(arg string) (place, error) {
	path, err := mountPoint(arg)
	if err != nil {
		return place{}, err
	}
	e, ok, err := daemon.Over(path)
	switch {
	case err != nil:
		return place{}, err
	case !ok || !e.Ours():
		return place{}, told(fmt.Errorf("%s: no workspace is mounted there: %w", path, vfs.ErrInvalid),
			"'carrel doctor' lists what is mounted.")
	}
	at := place{path: "/" + strings.TrimLeft(strings.TrimPrefix(path, e.Dir), "/")}
	at.workspace, at.store = e.Workspace()
	_, _, past := casstore.SplitMoment(at.workspace)
	switch {
	case past:
		return place{}, told(fmt.Errorf("%s: a workspace as it was is mounted there: %w", path, vfs.ErrReadOnly), "Name the workspace.")
	case join.Runs(at.store):
		at.joined, at.store = at.store, ""
	}
	return at, nil
}

// farPatience is how long a machine that has joined may be out of reach while something runs there.
const farPatience = 2 * time.Minute

// patience is how long who runs things at a place may be out of reach: a daemon that died is followed by another.
func (at place) patience() time.Duration {
	if at.machine != "" {
		return farPatience
	}
	return ownerPatience
}

// withExecsAt works with who runs things at a place.
func (p *program) withExecsAt(ctx context.Context, at place, f func(x *api.Client) error) error {
	switch {
	case at.machine != "":
		return p.withExecs(ctx, at.store, machines.Path(at.workspace, at.machine), f)
	case at.joined == "":
		return p.withExecs(ctx, at.store, "", f)
	}
	x := api.NewClient(func(ctx context.Context) (net.Conn, error) { return join.DialExecs(ctx, at.joined) })
	defer x.Close()
	return f(x)
}

// onFlag is that of commands for execs that need no workspace.
func onFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "on", Usage: "of those that run elsewhere: `DIR|WORKSPACE:MACHINE`, a workspace that was joined on this machine or a machine that has joined",
	}
}
