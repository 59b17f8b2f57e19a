package control

import "context"

// Serve implements [Serving].
func (c *Client) Serve(ctx context.Context, o ServeOptions, ready func(Served)) error {
	part := func(r *reply) {
		if len(r.Served) == 1 {
			ready(r.Served[0])
		}
	}
	return c.doInto(ctx, callServe, &request{Serve: &o}, &reply{}, part)
}

// Served implements [Serving].
func (c *Client) Served(ctx context.Context) ([]Served, error) {
	r, err := c.do(ctx, callServed, &request{})
	return r.Served, err
}

// TokensChanged implements [Serving].
func (c *Client) TokensChanged(ctx context.Context) error {
	_, err := c.do(ctx, callTokensChanged, &request{})
	return err
}
