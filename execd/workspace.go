package execd

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Workspace is the workspace of an exec, from before its start until after its end.
type Workspace interface {
	// Tree is what the exec works on.
	Tree() vfs.Tree
	// Before is the barrier in: it returns the revision that the exec begins with once everything that others did before
	// the call is in the tree, and in the caches of kernels that show it. Its error keeps the exec from being started.
	Before(ctx context.Context) (vfs.Rev, error)
	// After is the barrier out: it returns a revision that holds all that was done, once that is where it is to go, and kernels
	// have settled. Its error leaves what was done as it is, to go there later.
	After(ctx context.Context) (vfs.Rev, error)
	// Settle returns when the kernels that show the tree have dropped what a change before the call has made stale. Whoever has
	// made one calls it before he says so. A kernel that takes long is not waited for.
	Settle(ctx context.Context)
	// Changes counts what differs between two revisions: ErrNotSupported when that cannot be told.
	Changes(ctx context.Context, before, after vfs.Rev) (Changes, error)
	Close() error
}
