package control

import (
	"context"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// SetQuota bounds what a workspace may hold.
func (c *Client) SetQuota(ctx context.Context, workspace string, q casstore.Quota) error {
	_, err := c.do(ctx, callSetQuota, &request{Name: workspace, Quota: &q})
	return err
}

// Quota says what a workspace may hold, and what it does.
func (c *Client) Quota(ctx context.Context, workspace string) (casstore.QuotaUse, error) {
	r := &reply{Quota: &casstore.QuotaUse{}}
	err := c.doInto(ctx, callQuota, &request{Name: workspace}, r, nil)
	return *r.Quota, err
}

func setQuota(ctx context.Context, i *invocation, q *request, _ *reply) error {
	if q.Quota == nil {
		return vfs.ErrInvalid
	}
	return i.session.server.store.SetQuota(ctx, q.Name, *q.Quota)
}

func quota(ctx context.Context, i *invocation, q *request, r *reply) error {
	use, err := i.session.server.store.Quota(ctx, q.Name)
	r.Quota = &use
	return err
}
