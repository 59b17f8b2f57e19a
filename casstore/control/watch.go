package control

import (
	"context"
	"fmt"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// changeQueue stands between a tree, which must not be kept waiting, and a peer that may be slow.
type changeQueue[T any] struct {
	mu     sync.Mutex
	queued []T
	lost   bool
	ready  chan struct{} // of capacity 1: something is queued, or was lost
}

func newChangeQueue[T any]() *changeQueue[T] {
	return &changeQueue[T]{ready: make(chan struct{}, 1)}
}

// put queues changes. Past maxQueuedChanges the queue is lost for good, which take reports.
func (q *changeQueue[T]) put(c ...T) {
	q.mu.Lock()
	if len(q.queued)+len(c) > maxQueuedChanges {
		q.lost, q.queued = true, nil
	}
	if !q.lost {
		q.queued = append(q.queued, c...)
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns what is queued, which may be nothing. ok is false when changes were lost.
func (q *changeQueue[T]) take() (c []T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, q.queued = q.queued, nil
	return c, !q.lost
}

// watch streams changes until the call is cancelled or the workspace closed. An empty part first says that the watch
// has begun.
func watch(ctx context.Context, i *invocation, h *handle, req *request, _ *reply) error {
	q := newChangeQueue[change]()
	var skip any
	if req.N != 0 {
		skip = origin{i.session, req.N}
	}
	stop := h.Watch(skip, func(c vfs.Change) { q.put(i.session.wireChange(c)) })
	defer stop()
	if err := i.part(&reply{}); err != nil {
		return err
	}
	for {
		select {
		case <-q.ready:
		case <-ctx.Done():
			return nil
		case <-h.shutting:
			return nil
		}
		if err := i.sendChanges(q); err != nil {
			return err
		}
	}
}

func (i *invocation) sendChanges(q *changeQueue[change]) error {
	changes, ok := q.take()
	if !ok {
		i.session.cut() // the client must learn of it now, not at its next call
		return fmt.Errorf("watcher is over %d changes behind: %w", maxQueuedChanges, vfs.ErrClosed)
	}
	for len(changes) > 0 {
		n := min(len(changes), readDirBatch)
		if err := i.part(&reply{Changes: changes[:n]}); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// wireChange gives a change its number if this client made it: the origins of others mean nothing to it.
func (c *session) wireChange(v vfs.Change) change {
	w := change{Kind: v.Kind, Ino: v.Ino, Dir: v.Dir, Name: v.Name}
	if o, ok := v.Origin.(origin); ok && o.session == c {
		w.Origin = o.number
	}
	return w
}
