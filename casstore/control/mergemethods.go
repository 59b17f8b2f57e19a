package control

import (
	"context"
	"slices"

	"github.com/carrelfs/carrel/casstore/reconcile"
)

// mergeTry is the flag of callMerge that says to change nothing.
const mergeTry = 1

// merge sends what has changed, and the conflicts, as parts, some at a time.
func merge(ctx context.Context, i *invocation, q *request, r *reply) error {
	report, err := i.session.server.store.Merge(ctx, q.Name, q.NewName, q.Flags&mergeTry != 0)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(report.Changes, diffBatch) {
		if err := i.part(&reply{Diff: part}); err != nil {
			return err
		}
	}
	r.N = uint64(report.Rev)
	return i.conflicts(report.Conflicts)
}

func conflicts(ctx context.Context, i *invocation, q *request, _ *reply) error {
	list, err := i.session.server.store.Conflicts(ctx, q.Name)
	if err != nil {
		return err
	}
	return i.conflicts(list)
}

// conflicts sends conflicts as parts.
func (i *invocation) conflicts(list []reconcile.Listed) error {
	for part := range slices.Chunk(list, conflictBatch) {
		if err := i.part(&reply{Conflicts: part}); err != nil {
			return err
		}
	}
	return nil
}

func resolveConflict(ctx context.Context, i *invocation, q *request, _ *reply) error {
	return i.session.server.store.ResolveConflict(ctx, q.Name, q.N, reconcile.Resolution(q.NewName))
}
