package control

import (
	"context"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// CreateWorkspace makes an empty workspace.
func (c *Client) CreateWorkspace(ctx context.Context, name string) (casstore.Info, error) {
	return c.oneInfo(ctx, callCreateWorkspace, &request{Name: name})
}

// Info describes a workspace.
func (c *Client) Info(ctx context.Context, name string) (casstore.Info, error) {
	return c.oneInfo(ctx, callInfo, &request{Name: name})
}

func (c *Client) oneInfo(ctx context.Context, m method, q *request) (casstore.Info, error) {
	r, err := c.do(ctx, m, q)
	if err != nil {
		return casstore.Info{}, err
	}
	if len(r.Infos) != 1 {
		return casstore.Info{}, malformed(m)
	}
	return r.Infos[0], nil
}

// Workspaces lists the workspaces of the store.
func (c *Client) Workspaces(ctx context.Context) ([]casstore.Info, error) {
	r, err := c.do(ctx, callWorkspaces, &request{})
	return r.Infos, err
}

// RenameWorkspace gives a workspace another name.
func (c *Client) RenameWorkspace(ctx context.Context, old, name string) error {
	_, err := c.do(ctx, callRenameWorkspace, &request{Name: old, NewName: name})
	return err
}

// RemoveWorkspace removes a workspace that nobody has open.
func (c *Client) RemoveWorkspace(ctx context.Context, name string) error {
	_, err := c.do(ctx, callRemoveWorkspace, &request{Name: name})
	return err
}

// OpenWorkspace opens a workspace at the owner.
func (c *Client) OpenWorkspace(ctx context.Context, name string) (Workspace, error) {
	r, err := c.do(ctx, callOpenWorkspace, &request{Name: name})
	if err != nil {
		return nil, err
	}
	return &tree{client: c, n: r.Tree, watches: map[*watcher]struct{}{}}, nil
}

// Check verifies the store. o.Progress runs on the connection's goroutine and must not call the client.
func (c *Client) Check(ctx context.Context, o casstore.CheckOptions) (casstore.CheckReport, error) {
	q := &request{}
	if o.Bytes {
		q.Flags = 1
	}
	progress := func(r *reply) {
		if o.Progress != nil {
			o.Progress(r.N, r.Total)
		}
	}
	r := &reply{Check: &casstore.CheckReport{}}
	err := c.doInto(ctx, callCheck, q, r, progress)
	return *r.Check, err
}

// Stats counts what is in the store.
func (c *Client) Stats(ctx context.Context) (casstore.Stats, error) {
	r := &reply{Stats: &casstore.Stats{}}
	err := c.doInto(ctx, callStats, &request{}, r, nil)
	return *r.Stats, err
}

// GC frees what nothing needs any more.
func (c *Client) GC(ctx context.Context) (casstore.GCReport, error) {
	r := &reply{GC: &casstore.GCReport{}}
	err := c.doInto(ctx, callGC, &request{}, r, nil)
	return *r.GC, err
}

// Mount implements [Mounts].
func (c *Client) Mount(ctx context.Context, m Mount) error {
	_, err := c.do(ctx, callMount, &request{Mount: &m})
	return err
}

// Unmount implements [Mounts].
func (c *Client) Unmount(ctx context.Context, dir string, lazy bool) (last bool, err error) {
	q := &request{Name: dir}
	if lazy {
		q.Flags = 1
	}
	r, err := c.do(ctx, callUnmount, q)
	return r.Flag, err
}

// WaitUnmount implements [Mounts].
func (c *Client) WaitUnmount(ctx context.Context, dir string) error {
	_, err := c.do(ctx, callWaitUnmount, &request{Name: dir})
	return err
}

// Mounts implements [Mounts].
func (c *Client) Mounts(ctx context.Context) ([]Mount, error) {
	r, err := c.do(ctx, callMounts, &request{})
	return r.Mounts, err
}

// malformed is the error of an answer that lacks what the method gives.
func malformed(m method) error {
	return &ownerError{text: "the owner of the store gave an answer without its result", sentinel: vfs.ErrInvalid}
}
