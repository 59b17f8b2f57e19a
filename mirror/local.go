package mirror

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/mirror/localpath"
)

// local are the paths that stay on this machine, in a store of their own: that of the workspace is a cache, whose collector spares
// only what is the authority's or goes there.
type local struct {
	store *casstore.Store
	ws    *casstore.Workspace
	tree  *localpath.Tree
}

// openLocal opens the local paths, or begins them. What it returns is to be closed, with an error too.
func (m *Mirror) openLocal(ctx context.Context, rules *localpath.Rules) (l *local, err error) {
	l = new(local)
	l.store, err = casstore.Open(filepath.Join(m.config.Dir, "local"), casstore.Options{
		Create: true, Logger: m.config.Log, Clock: m.config.Clock, CommitEvery: m.config.commitEvery,
	})
	if err != nil {
		return l, err
	}
	if _, err := l.store.CreateWorkspace(ctx, workspace); err != nil && !errors.Is(err, vfs.ErrExist) {
		return l, err
	}
	if l.ws, err = l.store.OpenWorkspace(ctx, workspace); err != nil {
		return l, err
	}
	l.tree, err = localpath.Open(ctx, m.tree, l.ws, rules)
	return l, err
}

// sweepLocal lets local paths go whose directories have been removed by others, once it is known which there are.
func (m *Mirror) sweepLocal() {
	err := m.AwaitWhole(m.ctx)
	if err == nil {
		err = m.local.tree.Sweep(m.ctx)
	}
	if err != nil && m.ctx.Err() == nil {
		m.log.Error("local paths", "err", err)
	}
}

// close closes what is open. l may be nil.
func (l *local) close() error {
	if l == nil || l.store == nil {
		return nil
	}
	var err error
	if l.ws != nil {
		err = l.ws.Close()
	}
	return errors.Join(err, l.store.Close())
}
