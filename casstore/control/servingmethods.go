package control

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// serve sends what is served as a part, once it is. A client that is gone has had its context ended, so errors of the
// part need no care.
func serve(ctx context.Context, i *invocation, q *request, _ *reply) error {
	s := i.session.server.serving
	switch {
	case s == nil:
		return fmt.Errorf("serve by a process that only works on the store for a moment: %w", vfs.ErrNotSupported)
	case q.Serve == nil:
		return fmt.Errorf("serve nothing: %w", vfs.ErrInvalid)
	}
	return s.Serve(ctx, *q.Serve, func(now Served) { _ = i.part(&reply{Served: []Served{now}}) })
}

func served(ctx context.Context, i *invocation, _ *request, r *reply) (err error) {
	if s := i.session.server.serving; s != nil {
		r.Served, err = s.Served(ctx)
	}
	return err
}

func tokensChanged(ctx context.Context, i *invocation, _ *request, _ *reply) error {
	if s := i.session.server.serving; s != nil {
		return s.TokensChanged(ctx)
	}
	return nil
}
