package control

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// handle is a workspace that a client has open.
type handle struct {
	Workspace
	shutting chan struct{} // closed when the client closes it: watches end

	mu     sync.Mutex
	closed bool
	holds  map[vfs.Ino]uint64
	calls  sync.WaitGroup // those that use the workspace; none is added once closed
}

// hold takes or gives back Holds and remembers them, so that a client that vanishes keeps no inode alive. A client
// cannot give back more than it took.
func (h *handle) hold(k kind, ino vfs.Ino, n uint64) {
	h.mu.Lock()
	if k == kindHold {
		h.holds[ino]++
		h.mu.Unlock()
		h.Hold(ino)
		return
	}
	n = min(n, h.holds[ino])
	h.holds[ino] -= n
	if h.holds[ino] == 0 {
		delete(h.holds, ino)
	}
	h.mu.Unlock()
	if n > 0 {
		h.Release(ino, n)
	}
}

func (h *handle) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.calls.Add(1)
	return true
}

func (h *handle) leave() { h.calls.Done() }

// shut waits for the calls that are under way, gives every Hold back and closes the workspace.
func (h *handle) shut() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return vfs.ErrClosed
	}
	h.closed = true
	close(h.shutting)
	h.mu.Unlock()
	h.calls.Wait()
	for ino, n := range h.holds {
		h.Release(ino, n)
	}
	return h.Close()
}

// tree returns an open workspace of the client, which the caller must leave.
func (c *session) tree(n uint32) (*handle, error) {
	c.mu.Lock()
	h := c.trees[n]
	c.mu.Unlock()
	if h == nil || !h.enter() {
		return nil, fmt.Errorf("workspace handle %d: %w", n, vfs.ErrClosed)
	}
	return h, nil
}

func (c *session) openTree(ctx context.Context, name string) (uint32, error) {
	c.mu.Lock()
	n := len(c.trees)
	c.mu.Unlock()
	if n >= maxTrees {
		return 0, fmt.Errorf("open workspace %q beside %d others: %w", name, n, vfs.ErrBusy)
	}
	w, err := c.server.store.OpenWorkspace(ctx, name)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastTree++
	c.trees[c.lastTree] = &handle{Workspace: w, shutting: make(chan struct{}), holds: map[vfs.Ino]uint64{}}
	return c.lastTree, nil
}

func (c *session) closeTree(n uint32) error {
	c.mu.Lock()
	h := c.trees[n]
	delete(c.trees, n)
	c.mu.Unlock()
	if h == nil {
		return fmt.Errorf("workspace handle %d: %w", n, vfs.ErrClosed)
	}
	return h.shut()
}

// closeTrees closes what the client left open. Watches and other calls have ended by then.
func (c *session) closeTrees() {
	var errs error
	for _, h := range c.trees {
		errs = errors.Join(errs, h.shut())
	}
	if errs != nil {
		c.server.log.Error("control: close the workspaces of a client that is gone", "err", errs)
	}
}
