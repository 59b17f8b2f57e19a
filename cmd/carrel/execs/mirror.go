package execs

import (
	"context"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/lookback"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/mirror"
)

// Mirror is a mirror as the workspace that execs run on.
type Mirror struct {
	*mirror.Mirror
	Workspace string // its name
}

// barrierIn is how long the barrier before an exec may take: that of a mirror which is far behind moves what others wrote.
// An exec that would run on something else than the workspace is not started.
const barrierIn = time.Minute

// mirrored opens the workspace of the mirror.
type mirrored struct{ *Service }

func (s mirrored) open(_ context.Context, name string) (execd.Workspace, error) {
	if name != s.config.Mirror.Workspace {
		return nil, fmt.Errorf("workspace %q: %w", name, vfs.ErrNoWorkspace)
	}
	return replica{s.Service, s.config.Mirror}, nil
}

func (s mirrored) tree(_ context.Context, name string) (vfs.Tree, func() error, error) {
	if name != s.config.Mirror.Workspace {
		return nil, nil, fmt.Errorf("workspace %q: %w", name, vfs.ErrNoWorkspace)
	}
	tree := s.config.Mirror.Tree()
	shown := lookback.New(tree, lookback.PastOf(tree, s.config.Mirror.Known))
	return shown, shown.Close, nil
}

// replica is the workspace of a mirror for an exec. Its barriers end at the authority, whose revisions it tells. An exec does
// not know the connection: one that breaks meanwhile holds up the barrier out alone.
type replica struct {
	service *Service
	mirror  *Mirror
}

var _ execd.Workspace = replica{}

// Tree implements execd.Workspace.
func (r replica) Tree() vfs.Tree { return r.mirror.Tree() }

// Before implements execd.Workspace.
func (r replica) Before(ctx context.Context) (vfs.Rev, error) {
	wait, cancel := context.WithTimeout(ctx, barrierIn)
	defer cancel()
	rev, err := r.exchange(wait)
	if err == nil {
		err = r.service.Flush(wait, r.mirror.Workspace)
	}
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the authority was not reached within %v: %w", barrierIn, err)
	}
	return rev, err
}

// After implements execd.Workspace. When the service ends it does not wait: what is left is pushed by whoever closes the
// mirror, or when it is opened again.
func (r replica) After(ctx context.Context) (vfs.Rev, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.service.closing, cancel)()
	defer r.Settle(ctx)
	return r.exchange(ctx)
}

// Settle implements execd.Workspace.
func (r replica) Settle(ctx context.Context) { r.service.settle(ctx, r.mirror.Workspace) }

// exchange has the authority have what is here, and returns a revision of it that is here.
func (r replica) exchange(ctx context.Context) (vfs.Rev, error) {
	if err := r.mirror.Now(ctx); err != nil {
		return 0, err
	}
	st, err := r.mirror.Status(ctx)
	return st.Position.Rev, err
}

// Changes implements execd.Workspace: what has changed between two revisions the authority knows.
func (r replica) Changes(context.Context, vfs.Rev, vfs.Rev) (execd.Changes, error) {
	return execd.Changes{}, vfs.ErrNotSupported
}

// Close implements execd.Workspace.
func (r replica) Close() error { return nil }
