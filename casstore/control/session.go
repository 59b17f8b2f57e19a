package control

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// session is one client of an owner. One goroutine reads frames in their order; each call runs on its own.
type session struct {
	server *Server
	conn   net.Conn
	dec    *gob.Decoder
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	calls  sync.WaitGroup

	wmu sync.Mutex // guards w and enc: one frame at a time
	w   *bufio.Writer
	enc *gob.Encoder

	mu       sync.Mutex
	running  map[uint64]context.CancelFunc // by call id
	trees    map[uint32]*handle
	lastTree uint32
}

// origin is what a session's changes carry in place of the client's own value.
type origin struct {
	session *session
	number  uint64
}

func newSession(s *Server, conn net.Conn, r *bufio.Reader) *session {
	ctx, cancel := context.WithCancel(context.Background())
	w := bufio.NewWriterSize(conn, 64<<10)
	return &session{
		server: s, conn: conn, dec: gob.NewDecoder(r), ctx: ctx, cancel: cancel, w: w, enc: gob.NewEncoder(w),
		running: map[uint64]context.CancelFunc{}, trees: map[uint32]*handle{},
	}
}

// welcome ends the handshake.
func (c *session) welcome() error {
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgradeProtocol + "\r\n" +
		fmt.Sprintf("%s: %d\r\n%s: %d\r\n", protocolHeader, Protocol, pidHeader, os.Getpid()) +
		fmt.Sprintf("%s: %t\r\n\r\n", mountsHeader, c.server.mounts != nil)
	_, err := c.conn.Write([]byte(answer))
	return err
}

// serve returns when the connection has ended and nothing runs or is held for the client any more.
func (c *session) serve() {
	if err := c.read(); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrUnexpectedEOF) {
		c.server.log.Warn("control: client dropped", "err", err)
	}
	c.cancel()
	c.cut() // a call that is sending its answer must not wait for a client that does not read
	c.calls.Wait()
	c.closeTrees()
}

// cut ends the connection; serve notices.
func (c *session) cut() { _ = c.conn.Close() } // nothing is lost by an error here: the client sees the end either way

func (c *session) close() {
	c.cancel()
	c.cut()
}

// read takes frames until the connection ends or breaks, and says why.
func (c *session) read() error {
	for {
		var h header
		if err := c.dec.Decode(&h); err != nil {
			return err
		}
		if h.Kind == kindCancel {
			c.cancelCall(h.ID)
			continue
		}
		var q request
		if err := c.dec.Decode(&q); err != nil {
			return err
		}
		if err := c.take(h, &q); err != nil {
			return err
		}
	}
}

// take starts or does what a frame asks for. Its errors are those of a client that breaks the protocol.
func (c *session) take(h header, q *request) error {
	switch h.Kind {
	case kindCall:
		return c.start(h, q)
	case kindHold, kindRelease:
		t, err := c.tree(q.Tree)
		if err != nil {
			return nil // closed meanwhile, and with it every hold
		}
		defer t.leave()
		t.hold(h.Kind, q.Ino, q.N)
		return nil
	}
	return fmt.Errorf("frame of kind %d: %w", h.Kind, vfs.ErrInvalid)
}

func (c *session) start(h header, q *request) error {
	call := methods[h.Method]
	if call == nil {
		return c.finish(h.ID, &reply{}, fmt.Errorf("method %d: %w", h.Method, vfs.ErrNotSupported))
	}
	ctx, err := c.admit(h.ID)
	if err != nil {
		return err
	}
	if q.Origin != 0 {
		ctx = vfs.WithOrigin(ctx, origin{c, q.Origin})
	}
	c.calls.Go(func() {
		r := reply{}
		err := call(ctx, &invocation{session: c, id: h.ID}, q, &r)
		c.forget(h.ID)
		if err := c.finish(h.ID, &r, err); err != nil {
			c.cut()
		}
	})
	return nil
}

// admit puts a call on the books, and returns the context that cancelCall and forget end.
func (c *session) admit(id uint64) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.running[id]; twice || len(c.running) >= maxCalls+maxStreams {
		return nil, fmt.Errorf("call %d, with %d under way: %w", id, len(c.running), vfs.ErrInvalid)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.running[id] = cancel
	return ctx, nil
}

func (c *session) cancelCall(id uint64) {
	c.mu.Lock()
	cancel := c.running[id]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// forget takes a call off the books before its answer goes out, so that the client's next call finds room.
func (c *session) forget(id uint64) {
	c.mu.Lock()
	cancel := c.running[id]
	delete(c.running, id)
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (c *session) finish(id uint64, r *reply, err error) error {
	h := header{ID: id, Kind: kindReply}
	h.Code, h.Text = encodeError(err)
	if err != nil {
		r = nil
	}
	return c.send(h, r)
}

func (c *session) send(h header, r *reply) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if err := c.enc.Encode(&h); err != nil {
		return err
	}
	if r != nil {
		if err := c.enc.Encode(r); err != nil {
			return err
		}
	}
	return c.w.Flush()
}

// invocation is one call as its method sees it.
type invocation struct {
	session *session
	id      uint64
}

// part sends a piece of a call that streams. An error means that the client is gone.
func (i *invocation) part(r *reply) error {
	return i.session.send(header{ID: i.id, Kind: kindPart}, r)
}
