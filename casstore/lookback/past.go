package lookback

import (
	"context"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Past is what the directory shows of a workspace. It is safe for concurrent use.
type Past interface {
	// Rev returns the revision that rev is to say.
	Rev(ctx context.Context) (vfs.Rev, error)
	// Snapshots returns the snapshots there are.
	Snapshots(ctx context.Context) ([]casstore.Snapshot, error)
	// Snapshot returns one of them: vfs.ErrNoRevision when there is none of that name.
	Snapshot(ctx context.Context, name string) (casstore.Snapshot, error)
	// Changed returns another time after each change of the snapshots.
	Changed() vfs.Time
	// Open opens a snapshot. Once it is removed, vfs.ErrNoRevision comes from here and from what is open of it.
	Open(ctx context.Context, sn casstore.Snapshot) (Snapshot, error)
}

// Snapshot is a snapshot that is open.
type Snapshot interface {
	vfs.Tree
	Close() error
}

// Historic is a tree whose store keeps snapshots of it: a *casstore.Workspace, a *casstore.View, or what is built on one.
type Historic interface {
	vfs.Tree
	Past() casstore.Past
}

// PastOf returns the past of a tree whose snapshots are kept in the store, with the revision that rev returns.
func PastOf(tree Historic, rev func(context.Context) (vfs.Rev, error)) Past {
	return stored{tree.Past(), rev}
}

type stored struct {
	casstore.Past
	rev func(context.Context) (vfs.Rev, error)
}

func (s stored) Rev(ctx context.Context) (vfs.Rev, error) { return s.rev(ctx) }

func (s stored) Open(ctx context.Context, sn casstore.Snapshot) (Snapshot, error) {
	v, err := s.Past.Open(ctx, sn)
	if err != nil {
		return nil, err // not v, which would be a Snapshot that is not nil
	}
	return v, nil
}
