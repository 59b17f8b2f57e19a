package casstore

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// flusher flushes files in the background, so that memory is free again before writers wait, and commits find little
// left to do.
type flusher struct {
	store *Store
	wg    sync.WaitGroup
	wake  *sync.Cond

	pressed chan struct{} // buffered

	mu     sync.Mutex
	closed bool
	queued map[*inode]*Workspace // each held by a ref
	order  []*inode
}

func newFlusher(s *Store) *flusher {
	f := &flusher{store: s, queued: make(map[*inode]*Workspace), pressed: make(chan struct{}, 1)}
	f.wake = sync.NewCond(&f.mu)
	for range runtime.GOMAXPROCS(0) {
		f.wg.Add(1)
		go f.run()
	}
	f.wg.Add(1)
	go f.watchPressure()
	return f
}

// push queues a file. The file's lock may be held, the tree's not.
func (f *flusher) push(w *Workspace, n *inode) {
	w.keep(n)
	if !f.enqueue(w, n) {
		w.release(n)
	}
}

func (f *flusher) enqueue(w *Workspace, n *inode) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.queued[n] != nil {
		return false
	}
	f.queued[n] = w
	f.order = append(f.order, n)
	f.wake.Signal()
	return true
}

// pressure asks for everything that is dirty to be flushed, because the buffers are half full. It is called with locks
// held, so it only leaves word.
func (f *flusher) pressure() {
	select {
	case f.pressed <- struct{}{}:
	default:
	}
}

func (f *flusher) watchPressure() {
	defer f.wg.Done()
	for range f.pressed {
		for _, w := range f.store.openWorkspaces() {
			for _, n := range w.dirtyFiles() {
				f.push(w, n)
				w.release(n)
			}
		}
	}
}

// flushDirty flushes what is dirty now, and returns when that is done. Errors are left to whoever needs the bytes.
func (f *flusher) flushDirty() {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, w := range f.store.openWorkspaces() {
		for _, n := range w.dirtyFiles() {
			group.Go(func() error {
				f.flush(w, n)
				return nil
			})
		}
	}
	_ = group.Wait()
}

// flush flushes a file and releases it. An error is not lost: the bytes stay dirty, and whoever waits for them flushes
// again and gets it. Only writers that wait for memory must be told.
func (f *flusher) flush(w *Workspace, n *inode) {
	defer w.release(n)
	f.store.chunks.gate.RLock()
	defer f.store.chunks.gate.RUnlock()
	if err := w.flush(context.Background(), n, n.file, maxGen); err != nil {
		f.store.log.Warn("flush failed", "inode", n.attr.Ino, "err", err)
		f.store.pool.Refuse(err)
	}
}

func (f *flusher) run() {
	defer f.wg.Done()
	for {
		w, n := f.next()
		if n == nil {
			return
		}
		f.flush(w, n)
		f.store.collector.look()
	}
}

func (f *flusher) next() (*Workspace, *inode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.order) == 0 && !f.closed {
		f.wake.Wait()
	}
	if len(f.order) == 0 {
		return nil, nil
	}
	n := f.order[0]
	f.order = f.order[1:]
	w := f.queued[n]
	delete(f.queued, n)
	return w, n
}

// close waits until what is queued has been flushed. Nobody writes any more.
func (f *flusher) close() {
	f.mu.Lock()
	f.closed = true
	f.wake.Broadcast()
	f.mu.Unlock()
	close(f.pressed)
	f.wg.Wait()
}

// dirtyFiles returns the files that have dirty bytes, each kept: the caller releases them.
func (w *Workspace) dirtyFiles() []*inode {
	w.mu.Lock()
	defer w.mu.Unlock()
	var files []*inode
	add := func(list []object) {
		for _, o := range list {
			if n, ok := o.(*inode); ok && n.file != nil && n.gen != 0 && !n.dead {
				n.refs++
				files = append(files, n)
			}
		}
	}
	add(w.dirty)
	if w.cut != nil {
		add(w.cut.objects)
	}
	for n := range w.orphans {
		if n.file != nil {
			n.refs++
			files = append(files, n)
		}
	}
	return files
}
