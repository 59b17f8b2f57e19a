package control

import (
	"context"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// watcher is one Watch of a client.
type watcher struct {
	tree   *tree
	queue  *changeQueue[change]
	ended  chan struct{} // closed when no more changes come
	once   sync.Once
	cancel context.CancelFunc
	runs   sync.WaitGroup
}

// Watch returns when the owner has begun to watch, so that no change which the caller then makes is missed. When the
// connection ends, so do the changes.
func (t *tree) Watch(skip any, f func(vfs.Change)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{tree: t, queue: newChangeQueue[change](), ended: make(chan struct{}), cancel: cancel}
	t.mu.Lock()
	t.watches[w] = struct{}{}
	t.mu.Unlock()

	begun := make(chan struct{})
	first := sync.OnceFunc(func() { close(begun) })
	w.runs.Go(func() {
		w.stream(ctx, skip, first)
		first()
		close(w.ended)
	})
	w.runs.Go(func() { w.deliver(ctx, f) })
	<-begun
	return w.stop
}

// stream holds the call open until it is cancelled or the connection ends. Its error says no more than that, and the
// next call on the tree reports it.
func (w *watcher) stream(ctx context.Context, skip any, first func()) {
	part := func(r *reply) {
		first()
		if len(r.Changes) > 0 {
			w.queue.put(r.Changes...)
		}
	}
	c := w.tree.client
	c.mu.Lock()
	skipped := c.originLocked(skip)
	c.mu.Unlock()
	id, k, err := c.begin(ctx, callWatch, &request{Tree: w.tree.n, N: skipped}, &reply{}, part)
	if err != nil {
		return
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		c.cancel(id)
		<-k.done
	}
}

// deliver calls f for the changes as they come, and for those that are queued when the stream ends. The owner leaves
// out what is to be skipped.
func (w *watcher) deliver(ctx context.Context, f func(vfs.Change)) {
	for {
		last := false
		select {
		case <-w.queue.ready:
		case <-w.ended:
			last = true
		}
		changes, ok := w.queue.take()
		if !ok {
			_ = w.tree.client.conn.Close() // a watcher that misses changes must not go on as if it had not
			return
		}
		for _, c := range changes {
			if ctx.Err() != nil {
				return
			}
			f(vfs.Change{Kind: c.Kind, Ino: c.Ino, Dir: c.Dir, Name: c.Name, Origin: w.tree.client.originOf(c.Origin)})
		}
		if last {
			return
		}
	}
}

func (w *watcher) stop() {
	w.once.Do(func() {
		w.cancel()
		w.runs.Wait()
		w.tree.mu.Lock()
		delete(w.tree.watches, w)
		w.tree.mu.Unlock()
	})
}
