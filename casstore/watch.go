package casstore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// watchers delivers the changes of a tree to whoever watches it. A goroutine runs while there is a watcher.
//
// The queue is not bounded: a change is a few words, changes come no faster than the tree makes them, and a watcher
// must not block for long.
type watchers struct {
	count atomic.Int32

	mu      sync.Mutex
	wake    *sync.Cond
	list    []*watcher
	queue   []vfs.Change
	flushes []chan struct{} // closed when what is queued before them has been delivered
	done    chan struct{}   // closed by the goroutine when the last watcher has gone
}

type watcher struct {
	f       func(vfs.Change)
	skip    any        // the origin whose changes are left out, or nil
	calling sync.Mutex // held while f runs
	stopped bool       // guarded by calling
}

func (ws *watchers) none() bool { return ws.count.Load() == 0 }

// wanted reports whether anybody watches for changes of an origin: a goroutine that need not be woken costs nothing.
func (ws *watchers) wanted(origin any) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.ContainsFunc(ws.list, func(w *watcher) bool { return w.wants(origin) })
}

func (w *watcher) wants(origin any) bool { return w.skip == nil || w.skip != origin }

func (ws *watchers) add(skip any, f func(vfs.Change)) (stop func()) {
	w := &watcher{f: f, skip: skip}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.wake == nil {
		ws.wake = sync.NewCond(&ws.mu)
	}
	ws.list = append(ws.list, w)
	if ws.count.Add(1) == 1 {
		previous := ws.done
		ws.done = make(chan struct{})
		go ws.run(previous, ws.done)
	}
	return sync.OnceFunc(func() { ws.remove(w) })
}

func (ws *watchers) remove(w *watcher) {
	w.calling.Lock()
	w.stopped = true
	w.calling.Unlock()

	ws.mu.Lock()
	ws.list = slices.DeleteFunc(slices.Clone(ws.list), func(o *watcher) bool { return o == w })
	last := ws.count.Add(-1) == 0
	done := ws.done
	ws.wake.Broadcast()
	ws.mu.Unlock()
	if last {
		<-done
	}
}

func (ws *watchers) send(c vfs.Change) {
	ws.mu.Lock()
	ws.queue = append(ws.queue, c)
	ws.mu.Unlock()
	ws.wake.Signal()
}

// run delivers until there is no watcher. A run begins only after the one before it has ended.
func (ws *watchers) run(previous, done chan struct{}) {
	defer close(done)
	if previous != nil {
		<-previous
	}
	for {
		batch, flushes, list := ws.next(done)
		for _, c := range batch {
			for _, w := range list {
				w.call(c)
			}
		}
		for _, f := range flushes {
			close(f)
		}
		if list == nil {
			return
		}
	}
}

// flush returns when everything that was sent before has been delivered.
func (ws *watchers) flush(ctx context.Context) error {
	done := make(chan struct{})
	ws.mu.Lock()
	if len(ws.list) == 0 {
		ws.mu.Unlock()
		return nil
	}
	ws.flushes = append(ws.flushes, done)
	ws.mu.Unlock()
	ws.wake.Signal()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return vfs.ErrInterrupted
	}
}

// next waits for changes. It returns no watchers when the run is over.
func (ws *watchers) next(done chan struct{}) ([]vfs.Change, []chan struct{}, []*watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for len(ws.queue) == 0 && len(ws.flushes) == 0 && len(ws.list) > 0 && ws.done == done {
		ws.wake.Wait()
	}
	if len(ws.list) == 0 || ws.done != done {
		var flushes []chan struct{}
		if len(ws.list) == 0 {
			flushes, ws.queue, ws.flushes = ws.flushes, nil, nil
		}
		return nil, flushes, nil
	}
	batch, flushes := ws.queue, ws.flushes
	ws.queue, ws.flushes = nil, nil
	return batch, flushes, ws.list
}

func (w *watcher) call(c vfs.Change) {
	w.calling.Lock()
	defer w.calling.Unlock()
	if !w.stopped && w.wants(c.Origin) {
		w.f(c)
	}
}
