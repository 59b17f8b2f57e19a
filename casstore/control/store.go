package control

import (
	"context"
	"io"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
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
	// SetQuota bounds what a workspace may hold, and Quota says what it does.
	SetQuota(ctx context.Context, workspace string, q casstore.Quota) error
	Quota(ctx context.Context, workspace string) (casstore.QuotaUse, error)
	// OpenWorkspace opens a workspace, or one as it was at a moment, WORKSPACE@WHEN, which cannot be changed.
	OpenWorkspace(ctx context.Context, name string) (Workspace, error)
	Check(ctx context.Context, o casstore.CheckOptions) (casstore.CheckReport, error)
	Stats(ctx context.Context) (casstore.Stats, error)
	GC(ctx context.Context) (casstore.GCReport, error)

	// Fork makes a workspace of another as it is, or as it was when when is not empty.
	Fork(ctx context.Context, workspace, when, name string) (casstore.Info, error)
	// Diff calls yield, which must not call the store, for what is different between two trees, each WORKSPACE or
	// WORKSPACE@WHEN.
	Diff(ctx context.Context, from, to string, yield func(casstore.DiffEntry) error) error
	// Restore makes a workspace what it was, or what is under one path of it when that is not empty.
	Restore(ctx context.Context, workspace, when, path string) error
	// Merge takes what has changed in one workspace into another, or says what would happen.
	Merge(ctx context.Context, from, into string, try bool) (casstore.MergeReport, error)
	Conflicts(ctx context.Context, workspace string) ([]reconcile.Listed, error)
	ResolveConflict(ctx context.Context, workspace string, number uint64, how reconcile.Resolution) error
	CreateSnapshot(ctx context.Context, workspace, name, message string) (casstore.Snapshot, error)
	Snapshots(ctx context.Context, workspace string) ([]casstore.Snapshot, error)
	RemoveSnapshot(ctx context.Context, workspace, name string) error
	// Log calls yield, which must not call the store, for the revisions of a workspace, the newest first.
	Log(ctx context.Context, workspace string, yield func(casstore.LogEntry) bool) error
	History(ctx context.Context) (casstore.History, error)
	KeepHistory(ctx context.Context, d time.Duration) error

	// Backup writes workspaces as a stream, and Load reads it.
	Backup(ctx context.Context, o casstore.BackupOptions, w io.Writer) (casstore.BackupReport, error)
	Load(ctx context.Context, o casstore.LoadOptions, r io.Reader) (casstore.LoadReport, error)
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
	if workspace, when, ok := casstore.SplitMoment(name); ok {
		v, err := o.OpenView(ctx, workspace, when)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
	w, err := o.Store.OpenWorkspace(ctx, name)
	if err != nil {
		return nil, err
	}
	return w, nil
}
