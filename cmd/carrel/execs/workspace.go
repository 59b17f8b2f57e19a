package execs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/lookback"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// workspace is a workspace of the store for an exec. Its barriers are commits: the authority is this very store.
type workspace struct {
	service *Service
	name    string
	tree    *casstore.Workspace
}

var _ execd.Workspace = workspace{}

// stored opens workspaces of the store.
type stored struct{ *Service }

func (s stored) open(ctx context.Context, name string) (execd.Workspace, error) {
	tree, err := s.config.Store.OpenWorkspace(ctx, name)
	if err != nil {
		return nil, err
	}
	return workspace{s.Service, name, tree}, nil
}

func (s stored) tree(ctx context.Context, name string) (vfs.Tree, func() error, error) {
	tree, err := s.config.Store.OpenWorkspace(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	shown := lookback.Over(tree)
	return shown, func() error { return errors.Join(shown.Close(), tree.Close()) }, nil
}

func (w workspace) store() *casstore.Store { return w.service.config.Store }

// Tree implements execd.Workspace.
func (w workspace) Tree() vfs.Tree { return w.tree }

// Before implements execd.Workspace.
func (w workspace) Before(ctx context.Context) (vfs.Rev, error) {
	rev, err := w.tree.Commit(ctx)
	if err != nil {
		return 0, err
	}
	return rev, w.service.Flush(ctx, w.name)
}

// After implements execd.Workspace.
func (w workspace) After(ctx context.Context) (vfs.Rev, error) {
	rev, err := w.tree.Commit(ctx)
	w.Settle(ctx)
	return rev, err
}

// Settle implements execd.Workspace.
func (w workspace) Settle(ctx context.Context) { w.service.settle(ctx, w.name) }

// changesPatience is how long the changes of an exec are looked for: its end waits for them. What takes longer is left
// to 'carrel diff'.
const changesPatience = 2 * time.Second

// Changes implements execd.Workspace. A rename is a name that is gone and one that is new.
func (w workspace) Changes(ctx context.Context, before, after vfs.Rev) (c execd.Changes, err error) {
	if before == after {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, changesPatience)
	defer cancel()
	err = w.store().Diff(ctx, w.at(before), w.at(after), func(d casstore.DiffEntry) error {
		switch d.Kind {
		case casstore.DiffAdded:
			c.Added++
		case casstore.DiffRemoved:
			c.Deleted++
		case casstore.DiffModified:
			c.Modified++
		case casstore.DiffRenamed:
			c.Added++
			c.Deleted++
		}
		return nil
	})
	return c, err
}

// at names a revision of the workspace.
func (w workspace) at(rev vfs.Rev) string { return fmt.Sprintf("%s@%d", w.name, rev) }

// Close implements execd.Workspace.
func (w workspace) Close() error { return w.tree.Close() }
