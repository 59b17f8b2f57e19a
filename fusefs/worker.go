package fusefs

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// worker handles requests, one at a time.
type worker struct {
	srv   *Server
	wake  chan struct{} // a token while idle; closed when there is nothing more to read
	state atomic.Int32  // holding, offered or passed; changed under loop.mu
	call  *call
	id    fuse.RequestID
	pid   uint32 // thread that made the request

	// The reply under construction. Its first outHeaderSize bytes are the header's. A short one is built in own, which is
	// used again; a long one in the memory of its request.
	out      []byte
	own      []byte
	held     []vfs.Ino // the inodes that the reply gives to the kernel
	changes  uint64    // foreign changes heard of before the request was handled
	answered bool
}

func newWorker(s *Server) *worker {
	w := &worker{srv: s, wake: make(chan struct{}, 1), own: make([]byte, outHeaderSize+shortReply)}
	w.out = w.own[:outHeaderSize]
	w.call = newCall(w)
	return w
}

// WillBlock implements [vfs.BlockHook]: somebody else reads on.
func (w *worker) WillBlock() {
	if w.state.Load() == holding {
		w.srv.loop.pass(w)
	}
}

// room returns n bytes of space in the reply to h, which the caller then shortens with use. Nothing of the request may
// be read afterwards.
func (w *worker) room(h *fuse.Header, n int) []byte {
	if cap(w.out) < outHeaderSize+n {
		w.out = rawLayout.whole(h)
	}
	if cap(w.out) < outHeaderSize+n {
		w.out = make([]byte, outHeaderSize, outHeaderSize+n)
	}
	return w.out[outHeaderSize : outHeaderSize+n]
}

// use makes the first n bytes of room the reply.
func (w *worker) use(n int) { w.out = w.out[:outHeaderSize+n] }

// entry makes a the reply of a request that finds or makes a name in a directory.
func (w *worker) entry(dir vfs.Ino, a vfs.Attr, err error) error {
	if err != nil {
		return err
	}
	w.hold(a.Ino)
	if a, err = w.show(a); err != nil {
		return err
	}
	w.out = appendEntryOut(w.out, &a, w.srv.keep(dir), w.srv.keep(a.Ino))
	return nil
}

// show is to be called for attributes before they are sent, after hold if that is. The kernel takes them in on the thread
// that asked, perhaps long after it was sent them; when that is after another thread's reply has told it that the
// directory's names have changed, it would believe the old ones. It does not after a notification that came between. So
// it is noted who is sent a directory's; changed sends that notification.
func (w *worker) show(a vfs.Attr) (vfs.Attr, error) {
	if a.Type != vfs.TypeDir {
		return a, nil
	}
	w.srv.holds.show(a.Ino, w.pid)
	return w.srv.tree.Stat(w.call, a.Ino) // again: what was read before that may be from before a change
}

// changed is to be called when names in a directory have changed, before the reply says so. A thread that asks for
// something has taken in what it was sent before.
func (w *worker) changed(dir vfs.Ino) {
	if w.srv.holds.changed(dir, w.pid) {
		w.srv.notes.attrNow(dir)
	}
}

// named is the end of a request that has changed names in a directory.
func (w *worker) named(dir vfs.Ino, err error) error {
	if err == nil {
		w.changed(dir)
	}
	return err
}

// made is named and entry.
func (w *worker) made(dir vfs.Ino, a vfs.Attr, err error) error {
	return w.entry(dir, a, w.named(dir, err))
}

// hold is to be called for each inode that a reply gives to the kernel, after its attributes were read. If the tree
// was changed by others meanwhile, they may be older than a notification that the kernel has ignored, not knowing the
// inode; so it is sent once more.
func (w *worker) hold(ino vfs.Ino) {
	w.srv.holds.take(ino)
	w.held = append(w.held, ino)
	if w.srv.notes.changes.Load() != w.changes {
		w.srv.notes.data(ino)
	}
}

// attr makes a the reply of a request for attributes.
func (w *worker) attr(a vfs.Attr, err error) error {
	if err == nil {
		a, err = w.show(a)
	}
	if err != nil {
		return err
	}
	w.out = appendAttrOut(w.out, &a, w.srv.keep(a.Ino))
	return nil
}

// handle has one request handled and answers it, whatever happens.
func (w *worker) handle(req fuse.Request) {
	w.out, w.held, w.answered = w.own[:outHeaderSize], w.held[:0], false
	w.changes = w.srv.notes.changes.Load()
	w.srv.awake.request(w.srv.requests.Add(1))
	defer w.rescue(req)
	if w.oneWay(req) {
		return
	}
	w.answer(req, w.dispatch(req))
}

// answer sends the reply, or an error in its place. A reply that the kernel no longer takes gave it no inode.
func (w *worker) answer(req fuse.Request, err error) {
	w.answered = true
	var sent error
	if err != nil {
		sent = w.srv.wire.fail(req.Hdr(), w.srv.errno(req, err))
	} else {
		sent = w.srv.wire.reply(req.Hdr(), w.out)
	}
	if err != nil || sent != nil {
		for _, ino := range w.held {
			w.srv.holds.give(ino, 1)
		}
	}
	if sent != nil {
		w.srv.log.Debug("the kernel did not take a reply", "op", opName(req), "err", sent)
	}
}

// rescue answers a request whose handler panicked, so that its process does not hang, and lets the mount live on.
func (w *worker) rescue(req fuse.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	w.srv.log.Error("panic while handling a request", "op", opName(req), "panic", cause, "stack", string(debug.Stack()))
	if !w.answered {
		w.answer(req, syscall.EIO)
	}
}

func opName(req fuse.Request) string {
	if u, ok := req.(*fuse.UnrecognizedRequest); ok {
		return fmt.Sprintf("opcode %d", u.Opcode)
	}
	return fmt.Sprintf("%T", req)
}
