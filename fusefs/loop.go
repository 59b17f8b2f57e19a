package fusefs

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"

	"bazil.org/fuse"
)

// loop reads requests and has them handled. See the package comment for the token.
type loop struct {
	conn   *fuse.Conn
	handle func(*worker, fuse.Request)
	make   func() *worker
	log    *slog.Logger
	wg     sync.WaitGroup // workers, and the watcher of signals
	last   atomic.Bool    // nothing more is to be read
	brake  atomic.Pointer[brake]

	mu      sync.Mutex
	workers int                        // alive
	idle    []*worker                  // waiting on wake; the last one that came is the first to go
	offer   *worker                    // blocks with the token in its hand because there was nobody to pass it to
	blocked map[fuse.RequestID]*worker // gave the token up, not yet answered
	signals map[fuse.RequestID]uint32  // of those, the ones with a harmless signal: the thread that waits
	closed  bool
	err     error // why reading ended; nil for an unmount
}

// Where a worker stands with the token.
const (
	holding int32 = iota // it has the token
	offered              // it has the token, blocks, and whoever ends first takes it
	passed               // it handles a request that blocks, without the token
)

// start makes the first worker, which has the token.
func (l *loop) start() {
	l.blocked = make(map[fuse.RequestID]*worker)
	l.signals = make(map[fuse.RequestID]uint32)
	l.mu.Lock()
	l.spawnLocked()
	l.mu.Unlock()
}

func (l *loop) spawnLocked() {
	w := l.make()
	l.workers++
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		for l.serve(w) {
		}
	}()
}

// serve reads one request and handles it. It reports whether w has the token again.
func (l *loop) serve(w *worker) bool {
	if b := l.brake.Load(); b != nil && !b.wait() {
		return l.close(nil)
	}
	req, err := l.conn.ReadRequest()
	if err != nil {
		return l.readFailed(err)
	}
	w.id, w.pid = req.Hdr().ID, req.Hdr().Pid
	l.handle(w, req)
	return w.state.Load() == holding || l.rejoin(w)
}

// readFailed sorts errors of reading: some are to be tried again, the others end the loop.
func (l *loop) readFailed(err error) bool {
	var errno syscall.Errno
	switch {
	case err == io.EOF:
		return l.close(nil)
	case !errors.As(err, &errno):
		// The library could not decode a request and has thrown it away. Nobody can answer it any more.
		l.log.Error("a request from the kernel was malformed", "err", err)
		return true
	case errno == syscall.EINTR, errno == syscall.EAGAIN, errno == syscall.ENOENT:
		return true // ENOENT: the request was interrupted while it was being read
	}
	return l.close(err)
}

// close ends reading for all. Requests under way are finished; when the mount is gone nobody waits for them, so they
// are cancelled. It returns false, as serve does.
func (l *loop) close(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed, l.err = true, err
	for _, w := range l.idle {
		close(w.wake)
	}
	l.idle = nil
	if !l.last.Load() {
		l.cancelLocked()
	}
	return false
}

// cancelBlocked cancels every request that is under way and blocks.
func (l *loop) cancelBlocked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelLocked()
}

func (l *loop) cancelLocked() {
	for _, w := range l.blocked {
		w.call.cancel()
	}
}

// pass gives the token of w to another worker, because w is about to wait. It may be called from any goroutine.
func (l *loop) pass(w *worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.state.Load() != holding {
		return
	}
	l.blocked[w.id] = w
	switch n := len(l.idle); {
	case l.closed || l.last.Load():
		w.state.Store(offered) // there is nothing more to read
	case n > 0:
		next := l.idle[n-1]
		l.idle = l.idle[:n-1]
		w.state.Store(passed)
		next.wake <- struct{}{}
	case l.workers < maxWorkers:
		w.state.Store(passed)
		l.spawnLocked()
	default:
		w.state.Store(offered)
		l.offer = w
	}
}

// rejoin is called by a worker that passed or offered its token and has answered. It reports whether it has the token
// now, after a wait if need be; when not, the worker ends.
func (l *loop) rejoin(w *worker) bool {
	l.mu.Lock()
	delete(l.blocked, w.id)
	delete(l.signals, w.id)
	if w.call.cancelled() {
		w.call = newCall(w)
	}
	switch {
	case w.state.Load() == offered:
		l.offer = nil
	case l.closed:
		l.workers--
		l.mu.Unlock()
		return false
	case l.offer != nil:
		l.offer.state.Store(passed)
		l.offer = nil
	case len(l.idle) < maxIdle:
		l.idle = append(l.idle, w)
		l.mu.Unlock()
		if _, ok := <-w.wake; !ok {
			return false
		}
		w.state.Store(holding)
		return true
	default:
		l.workers--
		l.mu.Unlock()
		return false
	}
	w.state.Store(holding)
	l.mu.Unlock()
	return true
}
