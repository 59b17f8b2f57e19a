package control

import (
	"context"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Store is what can be done to a store, in the process that owns it ([Own]) and over its socket ([Client]) alike. The
// methods are those of *casstore.Store and safe for concurrent use.
type Store interface {
	CreateWorkspace(ctx context.Context, name string) (casstore.Info, error)
	Workspaces(ctx context.Context) ([]casstore.Info, error)
	Info(ctx context.Context, name string) (casstore.Info, error)
	RenameWorkspace(ctx context.Context, old, name string) error
	RemoveWorkspace(ctx context.Context, name string) error
	OpenWorkspace(ctx context.Context, name string) (Workspace, error)
	Check(ctx context.Context, o casstore.CheckOptions) (casstore.CheckReport, error)
	Stats(ctx context.Context) (casstore.Stats, error)
	GC(ctx context.Context) (casstore.GCReport, error)
}

// Workspace is an open workspace. Close makes what was done in it durable and lets go of it.
type Workspace interface {
	vfs.Tree
	Close() error
}

// Own gives a store that this process has open as a [Store].
func Own(s *casstore.Store) Store { return owned{s} }

type owned struct{ *casstore.Store }

func (o owned) OpenWorkspace(ctx context.Context, name string) (Workspace, error) {
	w, err := o.Store.OpenWorkspace(ctx, name)
	if err != nil {
		return nil, err
	}
	return w, nil
}
