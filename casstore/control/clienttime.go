package control

import (
	"context"
	"time"

	"github.com/carrelfs/carrel/casstore"
)

// Fork makes a workspace of another.
func (c *Client) Fork(ctx context.Context, workspace, when, name string) (casstore.Info, error) {
	return c.oneInfo(ctx, callFork, &request{Name: workspace, NewName: name, Data: []byte(when)})
}

// Diff calls yield on the connection's goroutine until it returns an error.
func (c *Client) Diff(ctx context.Context, from, to string, yield func(casstore.DiffEntry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	take := func(r *reply) {
		for _, e := range r.Diff {
			if failed == nil {
				failed = yield(e)
			}
		}
		if failed != nil {
			cancel()
		}
	}
	r := &reply{}
	err := c.doInto(ctx, callDiff, &request{Name: from, NewName: to}, r, take)
	if err == nil {
		take(r)
	}
	if failed != nil {
		return failed
	}
	return err
}

// Restore makes a workspace, or a path of it, what it was.
func (c *Client) Restore(ctx context.Context, workspace, when, path string) error {
	_, err := c.do(ctx, callRestore, &request{Name: workspace, NewName: path, Data: []byte(when)})
	return err
}

// CreateSnapshot gives the present state of a workspace a name.
func (c *Client) CreateSnapshot(ctx context.Context, workspace, name, message string) (casstore.Snapshot, error) {
	r, err := c.do(ctx, callCreateSnapshot, &request{Name: workspace, NewName: name, Data: []byte(message)})
	if err != nil {
		return casstore.Snapshot{}, err
	}
	if len(r.Snapshots) != 1 {
		return casstore.Snapshot{}, malformed(callCreateSnapshot)
	}
	return r.Snapshots[0], nil
}

// Snapshots lists the snapshots of a workspace.
func (c *Client) Snapshots(ctx context.Context, workspace string) ([]casstore.Snapshot, error) {
	r, err := c.do(ctx, callSnapshots, &request{Name: workspace})
	return r.Snapshots, err
}

// RemoveSnapshot forgets a snapshot.
func (c *Client) RemoveSnapshot(ctx context.Context, workspace, name string) error {
	_, err := c.do(ctx, callRemoveSnapshot, &request{Name: workspace, NewName: name})
	return err
}

// Log calls yield on the connection's goroutine until it returns false.
func (c *Client) Log(ctx context.Context, workspace string, yield func(casstore.LogEntry) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	more := true
	take := func(r *reply) {
		for _, e := range r.Log {
			if more = more && yield(e); !more {
				cancel()
				return
			}
		}
	}
	r := &reply{}
	err := c.doInto(ctx, callLog, &request{Name: workspace}, r, take)
	if !more {
		return nil
	}
	take(r)
	return err
}

// History says how much history the store keeps.
func (c *Client) History(ctx context.Context) (casstore.History, error) {
	r := &reply{History: &casstore.History{}}
	err := c.doInto(ctx, callHistory, &request{}, r, nil)
	return *r.History, err
}

// KeepHistory sets for how long the store keeps history.
func (c *Client) KeepHistory(ctx context.Context, d time.Duration) error {
	_, err := c.do(ctx, callKeepHistory, &request{N: uint64(d)})
	return err
}
