package control

import (
	"context"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Merge takes what has changed in one workspace into another.
func (c *Client) Merge(ctx context.Context, from, into string, try bool) (report casstore.MergeReport, err error) {
	take := func(r *reply) {
		report.Changes = append(report.Changes, r.Diff...)
		report.Conflicts = append(report.Conflicts, r.Conflicts...)
	}
	q := &request{Name: from, NewName: into}
	if try {
		q.Flags = mergeTry
	}
	r := &reply{}
	if err := c.doInto(ctx, callMerge, q, r, take); err != nil {
		return casstore.MergeReport{}, err
	}
	take(r)
	report.Rev = vfs.Rev(r.N)
	return report, nil
}

// Conflicts lists what merges into a workspace could not merge.
func (c *Client) Conflicts(ctx context.Context, workspace string) (list []reconcile.Listed, err error) {
	take := func(r *reply) { list = append(list, r.Conflicts...) }
	r := &reply{}
	if err := c.doInto(ctx, callConflicts, &request{Name: workspace}, r, take); err != nil {
		return nil, err
	}
	take(r)
	return list, nil
}

// ResolveConflict ends a conflict of a workspace.
func (c *Client) ResolveConflict(ctx context.Context, workspace string, number uint64, how reconcile.Resolution) error {
	_, err := c.do(ctx, callResolveConflict, &request{Name: workspace, N: number, NewName: string(how)})
	return err
}
