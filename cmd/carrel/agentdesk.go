package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/execd/tools"
)

// agentDesk is a workspace of a daemon as tools, for as long as an agent works on it. A daemon that dies is followed by
// another: then the workspace is opened there.
type agentDesk struct {
	*mcpJob
	execs tools.Execs
	since string // the revision that the session began with

	mu      sync.Mutex
	owner   *control.Client
	release func() error // lets the daemon end
	tree    control.Workspace
	set     *tools.Set
}

// openAgentDesk opens the workspace, and makes it when there is none.
func (p *program) openAgentDesk(ctx context.Context, j *mcpJob, x *api.Client) (*agentDesk, error) {
	d := &agentDesk{mcpJob: j}
	if j.exec {
		d.execs = &agentExecs{x, j}
	}
	if err := d.open(ctx, d.prepare); err != nil {
		return nil, err
	}
	if j.history {
		rev, err := d.tree.Commit(ctx)
		if err != nil {
			return nil, errors.Join(err, d.close())
		}
		d.since = strconv.FormatUint(uint64(rev), 10)
		d.set.Since = d.since
	}
	return d, nil
}

// prepare finds out which workspace is meant, and makes it.
func (d *agentDesk) prepare(ctx context.Context, owner *control.Client) error {
	if !d.history {
		return nil // a moment of one that must be there
	}
	if d.workspace == "" {
		all, err := owner.Workspaces(ctx)
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return told(fmt.Errorf("%d workspaces to choose from: %w", len(all), vfs.ErrNoWorkspace),
				"Name one: carrel mcp WORKSPACE. It is made when it is not there.")
		}
		d.workspace = all[0].Name
		return nil
	}
	if _, err := owner.CreateWorkspace(ctx, d.workspace); err != nil && !errors.Is(err, vfs.ErrExist) {
		return err
	}
	return nil
}

// open opens the workspace at the daemon that there is, after first. It is called with mu held, or by who has the desk
// alone.
func (d *agentDesk) open(ctx context.Context, first func(context.Context, *control.Client) error) (err error) {
	release, err := daemon.Hold(ctx, d.store)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release())
		}
	}()
	owner, err := control.Dial(ctx, d.store)
	if err != nil {
		return err
	}
	if err = first(ctx, owner); err == nil {
		err = d.openTree(ctx, owner)
	}
	if err != nil {
		return errors.Join(err, owner.Close())
	}
	d.owner, d.release = owner, release
	return nil
}

func (d *agentDesk) openTree(ctx context.Context, owner *control.Client) error {
	tree, err := owner.OpenWorkspace(ctx, d.workspace)
	if err != nil {
		return err
	}
	o := tools.Options{FS: treepath.FS{Tree: tree}, ReadOnly: d.readOnly, Since: d.since, Execs: d.execs}
	if d.history {
		o.History = agentHistory{owner, d.workspace}
	}
	if d.root != "" {
		n, err := treepath.Walker{Tree: tree}.Find(ctx, d.root)
		if err == nil && n.Attr.Type != vfs.TypeDir {
			err = fmt.Errorf("%q: %w", d.root, vfs.ErrNotDir)
		}
		if err != nil {
			return errors.Join(err, tree.Close())
		}
		o.FS.Root = n.Attr.Ino
	}
	d.tree, d.set = tree, tools.New(o)
	return nil
}

// nextDaemonPatience is how long a tool waits for the daemon that follows one that has died. It repairs the store before it
// serves it, and nobody but the agent's user is kept waiting.
const nextDaemonPatience = time.Minute

// Set is mcp.Config.Set.
func (d *agentDesk) Set(ctx context.Context) (*tools.Set, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A round trip on a socket costs microseconds, and a model takes seconds.
	_, err := d.tree.Stat(ctx, vfs.RootIno)
	for deadline := time.Now().Add(nextDaemonPatience); errors.Is(err, vfs.ErrClosed) || errors.Is(err, control.ErrNoOwner); {
		if err = d.reopen(ctx); err != nil && time.Now().After(deadline) {
			break
		} else if err != nil {
			if waited := waitFor(ctx, ownerRetry); waited != nil {
				return nil, waited
			}
		}
	}
	return d.set, err
}

func (d *agentDesk) reopen(ctx context.Context) error {
	owner, release := d.owner, d.release
	err := d.open(ctx, func(context.Context, *control.Client) error { return nil })
	if err == nil {
		_, _ = owner.Close(), release() // they are broken
	}
	return err
}

func (d *agentDesk) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.tree.Close()
	if errors.Is(err, vfs.ErrClosed) {
		err = nil // the daemon went first, and made all durable
	}
	return errors.Join(err, d.owner.Close(), d.release())
}

// agentHistory is tools.History by a daemon.
type agentHistory struct {
	owner     *control.Client
	workspace string
}

func (h agentHistory) Snapshot(ctx context.Context, name, message string) (vfs.Rev, error) {
	sn, err := h.owner.CreateSnapshot(ctx, h.workspace, name, message)
	return sn.Rev, err
}

func (h agentHistory) At(ctx context.Context, when string) (vfs.Tree, func() error, error) {
	tree, err := h.owner.OpenWorkspace(ctx, h.workspace+"@"+when)
	if err != nil {
		return nil, nil, err
	}
	return tree, tree.Close, nil
}
