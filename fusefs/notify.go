package fusefs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// notifier tells the kernel what it must no longer believe. The kernel takes locks of its own for that, of directories
// and pages, and those may be held by a process that waits for one of our replies. So notifications are queued, without
// ever waiting, and sent by one goroutine that holds no lock and answers no request.
//
// The queue is a set: what changes twice before it is sent is sent once. When it holds maxPending notifications it
// collapses into one that drops every name, attribute and page that the kernel has. Kernels before 6.16 do not know
// how to drop every name; there the queue grows by each further name, because letting it block the tree could end in a
// circle (tree waits for queue, queue for a directory's lock, its holder for the tree).
//
// A reply can be overtaken: it was made before a change, and the kernel comes to know the inode by it after the
// notification of that change, which it ignored because it did not know the inode. So the notifier tries again while
// an inode is held for the kernel but the kernel says that it does not know it; and who makes such a reply looks at
// changes before and after (see worker.handle).
type notifier struct {
	conn    kernelCache
	holds   *holds
	log     *slog.Logger
	changes atomic.Uint64 // foreign changes heard of
	wake    chan struct{} // has room for one
	quit    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	pending batch
	grows   bool // the kernel cannot drop every name
}

// kernelCache is the kernel's side: a fuse.Conn, and what it lacks.
type kernelCache interface {
	InvalidateNode(node fuse.NodeID, off, size int64) error
	InvalidateEntry(dir fuse.NodeID, name string) error
	expireNames() error
}

// batch is a set of notifications.
type batch struct {
	names  map[entry]struct{}
	inodes map[vfs.Ino]bool // true: bytes or listing as well as attributes
	all    bool
	sent   []chan struct{} // closed when the batch has been sent
}

type entry struct {
	dir  vfs.Ino
	name string
}

func newBatch() batch {
	return batch{names: make(map[entry]struct{}), inodes: make(map[vfs.Ino]bool)}
}

// attr adds an inode whose attributes have changed; what else of it has changed stays in the batch.
func (b *batch) attr(ino vfs.Ino) {
	if _, ok := b.inodes[ino]; !ok {
		b.inodes[ino] = false
	}
}

func newNotifier(conn kernelCache, h *holds, log *slog.Logger) *notifier {
	n := &notifier{
		conn: conn, holds: h, log: log, pending: newBatch(),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	n.grows = conn.expireNames() != nil
	go n.run()
	return n
}

// changed hears of every change of the tree that did not come from the kernel itself ([vfs.Tree.Watch]).
func (n *notifier) changed(c vfs.Change) {
	n.changes.Add(1)
	if c.Kind == vfs.ChangeAttr {
		n.holds.setPlain(c.Ino, false)
	}
	n.add(func(b *batch) {
		switch c.Kind {
		case vfs.ChangeAttr:
			b.attr(c.Ino)
		case vfs.ChangeData:
			b.inodes[c.Ino] = true
		case vfs.ChangeEntry:
			b.names[entry{c.Dir, c.Name}] = struct{}{}
			b.inodes[c.Dir] = true
			if c.Ino != 0 {
				b.attr(c.Ino)
			}
		}
	})
}

// data drops all that the kernel has of ino: attributes, and bytes or listing.
func (n *notifier) data(ino vfs.Ino) {
	n.add(func(b *batch) { b.inodes[ino] = true })
}

// attr drops the kernel's attributes of ino.
func (n *notifier) attr(ino vfs.Ino) {
	n.add(func(b *batch) { b.attr(ino) })
}

// attrNow drops the kernel's attributes of ino before it returns. It may be called by who answers a request: for attributes
// alone the kernel takes no lock that anybody holds who waits for a reply.
func (n *notifier) attrNow(ino vfs.Ino) {
	n.report(n.conn.InvalidateNode(fuse.NodeID(ino), -1, 0))
}

func (n *notifier) add(f func(*batch)) {
	n.mu.Lock()
	if !n.pending.all {
		f(&n.pending)
		if !n.grows && len(n.pending.names)+len(n.pending.inodes) >= maxPending {
			n.collapseLocked()
		}
	}
	n.mu.Unlock()
	n.poke()
}

// collapseLocked puts the notification of everything in place of all that are queued.
func (n *notifier) collapseLocked() {
	sent := n.pending.sent
	n.pending = newBatch()
	n.pending.all, n.pending.sent = true, sent
}

func (n *notifier) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// flush returns when every notification queued before the call has been sent.
func (n *notifier) flush(ctx context.Context) error {
	sent := make(chan struct{})
	n.mu.Lock()
	n.pending.sent = append(n.pending.sent, sent)
	n.mu.Unlock()
	n.poke()
	select {
	case <-sent:
		return nil
	case <-n.done:
		return nil // the kernel has forgotten everything
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the goroutine. What is still queued is dropped: it is called when the mount has gone.
func (n *notifier) close() {
	close(n.quit)
	<-n.done
}

func (n *notifier) run() {
	defer close(n.done)
	for {
		select {
		case <-n.wake:
		case <-n.quit:
			return
		}
		n.mu.Lock()
		b := n.pending
		n.pending = newBatch()
		n.mu.Unlock()
		n.send(b)
		for _, sent := range b.sent {
			close(sent)
		}
	}
}

// send sends a batch. Names go first: a process that finds a name again gets fresh attributes with it.
func (n *notifier) send(b batch) {
	if b.all {
		n.report(n.conn.expireNames())
		for _, ino := range n.holds.all() {
			b.inodes[ino] = true
		}
	}
	for e := range b.names {
		n.report(n.conn.InvalidateEntry(fuse.NodeID(e.dir), e.name))
	}
	for pause := time.Millisecond; len(b.inodes) > 0 && pause < time.Second; pause *= 2 {
		b.inodes = n.sendInodes(b.inodes)
		if len(b.inodes) > 0 && !n.sleep(pause) {
			return
		}
	}
}

// sendInodes returns the inodes that are to be tried again.
func (n *notifier) sendInodes(inodes map[vfs.Ino]bool) map[vfs.Ino]bool {
	var again map[vfs.Ino]bool
	for ino, data := range inodes {
		off := int64(-1) // attributes only
		if data {
			off = 0 // and everything from here on
		}
		err := n.conn.InvalidateNode(fuse.NodeID(ino), off, 0)
		if errors.Is(err, fuse.ErrNotCached) && n.holds.has(ino) {
			if again == nil {
				again = make(map[vfs.Ino]bool)
			}
			again[ino] = data
			continue
		}
		n.report(err)
	}
	return again
}

// sleep waits, and reports false when the notifier is to end.
func (n *notifier) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.quit:
		return false
	}
}

// report logs what is worth it. That the kernel does not have a thing, or is no longer there, is not.
func (n *notifier) report(err error) {
	switch {
	case err == nil, errors.Is(err, fuse.ErrNotCached), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENOTCONN):
	default:
		n.log.Debug("the kernel did not take a notification", "err", err)
	}
}
