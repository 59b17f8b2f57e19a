package control

import (
	"context"
	"time"

	"github.com/carrelfs/carrel/casstore"
)

func fork(ctx context.Context, i *invocation, q *request, r *reply) error {
	return oneInfo(r)(i.session.server.store.Fork(ctx, q.Name, string(q.Data), q.NewName))
}

// diff sends the entries as parts, some at a time.
func diff(ctx context.Context, i *invocation, q *request, r *reply) error {
	return i.session.server.store.Diff(ctx, q.Name, q.NewName, func(e casstore.DiffEntry) error {
		r.Diff = append(r.Diff, e)
		if len(r.Diff) < diffBatch {
			return nil
		}
		part := reply{Diff: r.Diff}
		r.Diff = nil
		return i.part(&part)
	})
}

func restore(ctx context.Context, i *invocation, q *request, _ *reply) error {
	return i.session.server.store.Restore(ctx, q.Name, string(q.Data), q.NewName)
}

func createSnapshot(ctx context.Context, i *invocation, q *request, r *reply) error {
	sn, err := i.session.server.store.CreateSnapshot(ctx, q.Name, q.NewName, string(q.Data))
	r.Snapshots = []casstore.Snapshot{sn}
	return err
}

func snapshots(ctx context.Context, i *invocation, q *request, r *reply) (err error) {
	r.Snapshots, err = i.session.server.store.Snapshots(ctx, q.Name)
	return err
}

func removeSnapshot(ctx context.Context, i *invocation, q *request, _ *reply) error {
	return i.session.server.store.RemoveSnapshot(ctx, q.Name, q.NewName)
}

// log sends the entries as parts, some at a time.
func log(ctx context.Context, i *invocation, q *request, r *reply) error {
	var failed error
	err := i.session.server.store.Log(ctx, q.Name, func(e casstore.LogEntry) bool {
		if r.Log = append(r.Log, e); len(r.Log) == logBatch {
			failed = i.part(&reply{Log: r.Log})
			r.Log = nil
		}
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

func history(ctx context.Context, i *invocation, _ *request, r *reply) error {
	h, err := i.session.server.store.History(ctx)
	r.History = &h
	return err
}

func keepHistory(ctx context.Context, i *invocation, q *request, _ *reply) error {
	return i.session.server.store.KeepHistory(ctx, time.Duration(q.N))
}
