package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/cmd/carrel/join"
	"github.com/carrelfs/carrel/execd/api"
)

// place is a workspace, or something in it, and who is asked about it: the daemon of a store, or a join.
type place struct {
	workspace string
	path      string // in the workspace, from "/"
	store     string
	joined    string // the state of the join that has it; empty for a workspace of the store
}

// parsePlace reads WORKSPACE or WORKSPACE:PATH of the store of the command line, or a path of this machine that is in a mount
// of a workspace: one that begins with "/" or ".", as no workspace's place does.
func parsePlace(c *cli.Context, arg string) (place, error) {
	if strings.HasPrefix(arg, "/") || arg == "." || arg == ".." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
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
	switch {
	case !filepath.IsAbs(at.store): // the name of the workspace has a moment
		return place{}, told(fmt.Errorf("%s: a workspace as it was is mounted there: %w", path, vfs.ErrReadOnly), "Name the workspace.")
	case join.Runs(at.store):
		at.joined, at.store = at.store, ""
	}
	return at, nil
}

// withExecsAt works with who runs things at a place.
func (p *program) withExecsAt(ctx context.Context, at place, f func(x *api.Client) error) error {
	if at.joined == "" {
		return p.withExecs(ctx, at.store, f)
	}
	x := api.NewClient(func(ctx context.Context) (net.Conn, error) { return join.DialExecs(ctx, at.joined) })
	defer x.Close()
	return f(x)
}

// onFlag is that of commands for execs that need no workspace.
func onFlag() cli.Flag {
	return &cli.StringFlag{Name: "on", Usage: "of those of the workspace that is mounted on `DIR`, which may be one that was joined"}
}
