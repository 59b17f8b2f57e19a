package memtree

import (
	"context"
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// watcher delivers changes to one function. Its queue has no bound: a writer must not wait for a function that may call
// the tree, and no change may be lost.
type watcher struct {
	f    func(vfs.Change)
	skip any           // the origin whose changes are left out, or nil
	wake *sync.Cond    // on Tree.mu: queue or stopped has changed
	done chan struct{} // closed when f will not be called again

	queue   []notice // guarded by Tree.mu
	stopped bool     // guarded by Tree.mu
}

// notice is a change to deliver, or a mark that is closed when what was queued before it has been delivered.
type notice struct {
	change vfs.Change
	mark   chan struct{}
}

// Watch implements [vfs.Tree]. What is queued when stop is called is not delivered.
func (t *Tree) Watch(skip any, f func(vfs.Change)) (stop func()) {
	w := &watcher{f: f, skip: skip, wake: sync.NewCond(&t.mu), done: make(chan struct{})}
	t.mu.Lock()
	t.watchers = append(t.watchers, w)
	t.mu.Unlock()
	go t.deliver(w)
	return func() {
		t.mu.Lock()
		w.stopped = true
		t.watchers = slices.DeleteFunc(t.watchers, func(other *watcher) bool { return other == w })
		w.wake.Signal()
		t.mu.Unlock()
		<-w.done
	}
}

// FlushWatch implements [vfs.WatchFlusher].
func (t *Tree) FlushWatch(ctx context.Context) error {
	t.mu.Lock()
	watchers := slices.Clone(t.watchers)
	marks := make([]chan struct{}, len(watchers))
	for i, w := range watchers {
		marks[i] = make(chan struct{})
		w.queue = append(w.queue, notice{mark: marks[i]})
		w.wake.Signal()
	}
	t.mu.Unlock()
	for i, w := range watchers {
		select {
		case <-marks[i]:
		case <-w.done:
		case <-ctx.Done():
			return vfs.ErrInterrupted
		}
	}
	return nil
}

// emit queues a change for every watcher.
func (e *edit) emit(c vfs.Change) {
	c.Origin = e.origin
	for _, w := range e.watchers {
		if w.skip != nil && w.skip == c.Origin {
			continue
		}
		w.queue = append(w.queue, notice{change: c})
		w.wake.Signal()
	}
}

func (t *Tree) deliver(w *watcher) {
	defer close(w.done)
	for {
		n, ok := t.nextNotice(w)
		switch {
		case !ok:
			return
		case n.mark != nil:
			close(n.mark)
		default:
			w.f(n.change)
		}
	}
}

// nextNotice waits for one; ok is false when w has been stopped.
func (t *Tree) nextNotice(w *watcher) (n notice, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(w.queue) == 0 && !w.stopped {
		w.wake.Wait()
	}
	if w.stopped {
		return n, false
	}
	n, w.queue = w.queue[0], w.queue[1:]
	return n, true
}
