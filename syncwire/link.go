package syncwire

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// visit is one session, on the client's side.
type visit struct {
	client  *Client
	link    Link
	key     sessionKey
	control Stream
	w       *frameWriter
	group   sync.WaitGroup
	done    chan struct{} // closed when the session has ended; err says why
	leaving chan struct{} // closed when the server has asked to go
	slots   chan struct{} // requests under way on the control stream
	pushes  [2]*lanes     // for small ones and for large ones
	bulk    *lanes

	acked   atomic.Uint64 // up to where the client has everything
	ackDue  chan struct{} // has room for one
	heard   atomic.Int64  // when something came last, in nanoseconds
	welcome atomic.Pointer[welcome]
	ready   chan struct{} // closed with the welcome

	mu      sync.Mutex
	err     error
	next    uint64
	pending map[uint64]*call
	users   int // calls that need the session; when it is being left, it ends with the last
	left    bool

	gone bool // not to be given to calls any more; guarded by the client's mu
}

// call is a request that waits for its answer.
type call struct {
	// take is called with each frame of the answer, in the reader's goroutine; it reports whether it was the last.
	take func(typ frameType, body []byte) (last bool, err error)
	done chan error // has room for one
}

// Bulk streams of a client: with more, chunks come no faster, and a link that loses packets stalls a quarter at most.
const bulkStreams = 4

// newVisit opens a session. The server's answer is not waited for: what follows may be in the same flight.
func newVisit(ctx context.Context, c *Client, link Link, token []byte) (*visit, error) {
	control, err := link.Open(ctx)
	if err != nil {
		return nil, err
	}
	v := &visit{
		client: c, link: link, control: control, w: newFrameWriter(control), done: make(chan struct{}),
		leaving: make(chan struct{}), ackDue: make(chan struct{}, 1), ready: make(chan struct{}),
		slots:  make(chan struct{}, maxRequests-1),
		pushes: [2]*lanes{newLanes(1), newLanes(1)}, bulk: newLanes(bulkStreams), pending: make(map[uint64]*call),
	}
	rand.Read(v.key[:])
	v.heard.Store(time.Now().UnixNano())
	err = v.w.send(&hello{
		Min: minVersion, Max: maxVersion, Session: v.key, Workspace: c.config.Workspace, Mirror: c.config.Mirror,
		Token: token, Agent: c.config.Agent,
	})
	if err != nil {
		control.Close()
		return nil, fmt.Errorf("hello: %w", err)
	}
	v.group.Go(v.read)
	v.group.Go(v.watch)
	return v, nil
}

// read takes what comes on the control stream until it ends.
func (v *visit) read() {
	r := newFrameReader(v.control)
	for {
		typ, body, err := r.next(maxFrame)
		if err == nil {
			v.heard.Store(time.Now().UnixNano())
			err = v.take(typ, body)
		}
		if err != nil {
			v.end(err)
			return
		}
	}
}

func (v *visit) take(typ frameType, body []byte) error {
	switch typ {
	case frameWelcome:
		m := new(welcome)
		if err := decodeBody(body, m); err != nil {
			return err
		}
		if v.welcome.Swap(m) == nil {
			v.client.welcomed()
			close(v.ready)
		}
		return nil
	case frameDrain:
		v.leave()
		return nil
	case frameError:
		var m failure
		if err := decodeBody(body, &m); err != nil {
			return err
		}
		if m.Req == 0 {
			return m.err()
		}
		v.answer(m.Req, m.err())
		return nil
	case frameUnsupported:
		var m unsupported
		if err := decodeBody(body, &m); err != nil {
			return err
		}
		v.answer(m.Req, fmt.Errorf("the server does not know %v: %w", m.Type, vfs.ErrNotSupported))
		return nil
	}
	return v.deliver(typ, body)
}

// deliver gives an answer to the call that waits for it. Answers nobody waits for any more are dropped.
func (v *visit) deliver(typ frameType, body []byte) error {
	if _, ok := messages[typ]; !ok {
		return skip(v.w, typ, body)
	}
	c := coder{mode: reading, b: body}
	req := c.cutUint("req")
	if c.err != nil {
		return c.err
	}
	v.mu.Lock()
	call := v.pending[req]
	v.mu.Unlock()
	if call == nil {
		return nil
	}
	if last, err := call.take(typ, body); last || err != nil {
		v.answer(req, err)
		return err
	}
	return nil
}

func (v *visit) answer(req uint64, err error) {
	v.mu.Lock()
	call := v.pending[req]
	delete(v.pending, req)
	v.mu.Unlock()
	if call != nil {
		call.done <- err
	}
}

// ask sends a request and waits for its answer.
func (v *visit) ask(
	ctx context.Context, m request, take func(frameType, []byte) (bool, error),
) (err error) {
	ctx, done := v.traced(ctx, m.frame())
	defer func() { done(err) }()
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return interrupted(ctx)
	case <-v.done:
		return v.lost()
	}
	c := &call{take: take, done: make(chan error, 1)}
	v.mu.Lock()
	v.next++
	req := v.next
	*m.number() = req
	v.pending[req] = c
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.pending, req)
	}()
	if err := v.w.send(m); err != nil {
		if errors.Is(err, ErrProtocol) {
			return fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
		}
		return v.lostWith(ctx, err)
	}
	return v.await(ctx, m, c)
}

// traced counts a request, and tells of it. done is called with how it ended.
func (v *visit) traced(ctx context.Context, typ frameType) (_ context.Context, done func(error)) {
	v.client.stats.requests.Add(1)
	return v.client.config.Trace.begin(ctx, typ.String())
}

func (v *visit) await(ctx context.Context, m request, c *call) error {
	var leaving <-chan struct{}
	if w, ok := m.(*where); ok && w.Mode == whereAfter {
		leaving = v.leaving // it may take for ever
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		v.w.send(&cancel{numbered{*m.number()}})
		return interrupted(ctx)
	case <-leaving:
		return &lostError{ErrDraining}
	case <-v.done:
		select {
		case err := <-c.done:
			return err
		default:
			return v.lost()
		}
	}
}

// interrupted is the error of a call whose context has ended.
func interrupted(ctx context.Context) error {
	return fmt.Errorf("%w: %w", vfs.ErrInterrupted, context.Cause(ctx))
}

// lostError says that a session ended under a call.
type lostError struct{ cause error }

func (e *lostError) Error() string { return "connection lost: " + e.cause.Error() }
func (e *lostError) Unwrap() error { return e.cause }

// lost returns why the session has ended.
func (v *visit) lost() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return &lostError{v.err}
}

// isOver reports whether the session has ended.
func (v *visit) isOver() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// lostWith is an error of the transport on one of the session's streams. The control stream may know better.
func (v *visit) lostWith(ctx context.Context, err error) error {
	select {
	case <-v.done:
		return v.lost()
	case <-ctx.Done():
		return interrupted(ctx)
	case <-time.After(closeGrace):
		return &lostError{err}
	}
}

// acknowledge has the server be told of a revision soon. Of several, the highest is told.
func (v *visit) acknowledge(rev vfs.Rev) {
	for old := v.acked.Load(); uint64(rev) > old; old = v.acked.Load() {
		if v.acked.CompareAndSwap(old, uint64(rev)) {
			select {
			case v.ackDue <- struct{}{}:
			default:
			}
			return
		}
	}
}

// watch asks whether the server is there when it is silent, and ends the session when it is not. It also tells the server
// how far the client is, so that who acknowledges need not wait for the network.
func (v *visit) watch() {
	ticker := time.NewTicker(pingEvery / 3)
	defer ticker.Stop()
	for {
		select {
		case <-v.done:
			return
		case <-v.ackDue:
			v.w.send(&ack{Rev: vfs.Rev(v.acked.Load())})
			continue
		case <-ticker.C:
		}
		quiet := time.Since(time.Unix(0, v.heard.Load()))
		switch {
		case quiet > silence:
			v.end(errSilent)
			return
		case quiet > pingEvery:
			v.w.send(&ping{numbered{0}})
		}
	}
}

var errSilent = errors.New("server does not answer")

// end ends the session. The first reason counts.
func (v *visit) end(err error) {
	if errors.Is(err, io.EOF) || err == nil {
		err = io.ErrUnexpectedEOF
	}
	v.mu.Lock()
	first := v.err == nil
	if first {
		v.err = err
	}
	v.mu.Unlock()
	if first {
		v.client.ended(v, err) // before anybody knows: who makes a call again must not be given this session
		close(v.done)
		v.link.Close()
	}
}

// use counts a call that needs the session.
func (v *visit) use() (done func()) {
	v.mu.Lock()
	v.users++
	v.mu.Unlock()
	return func() {
		v.mu.Lock()
		v.users--
		last := v.left && v.users == 0
		v.mu.Unlock()
		if last {
			v.end(ErrDraining)
		}
	}
}

// leave lets the calls that are under way finish, and ends the session then.
func (v *visit) leave() {
	v.mu.Lock()
	again, idle := v.left, v.users == 0
	v.left = true
	v.mu.Unlock()
	if again {
		return
	}
	close(v.leaving)
	v.client.forget(v)
	if idle {
		v.group.Go(func() { v.end(ErrDraining) })
	}
}

// open opens another stream of the session.
func (v *visit) open(ctx context.Context, kind streamKind, service string) (Stream, error) {
	stream, err := v.link.Open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, interrupted(ctx)
		}
		return nil, v.lostWith(ctx, err)
	}
	if err := newFrameWriter(stream).send(&open{Session: v.key, Kind: kind, Service: service}); err != nil {
		stream.Close()
		return nil, v.lostWith(ctx, err)
	}
	return stream, nil
}

// lanes are streams of one kind, each used by one call at a time.
type lanes struct {
	slots chan struct{}
	mu    sync.Mutex
	idle  []*lane
}

func newLanes(n int) *lanes { return &lanes{slots: make(chan struct{}, n)} }

// lane is a stream on which requests are answered in order.
type lane struct {
	stream Stream
	r      *frameReader
	w      *frameWriter
	whole  bool // the last request was answered to its end, so that another may follow
}

// on calls f with a lane of its own, to make one request, and keeps the lane when it is whole after it.
func (ls *lanes) on(
	ctx context.Context, v *visit, kind streamKind, typ frameType, f func(*lane) error,
) (err error) {
	ctx, done := v.traced(ctx, typ)
	defer func() { done(err) }()
	select {
	case ls.slots <- struct{}{}:
		defer func() { <-ls.slots }()
	case <-ctx.Done():
		return interrupted(ctx)
	case <-v.done:
		return v.lost()
	}
	l, err := ls.take(ctx, v, kind)
	if err != nil {
		return err
	}
	l.whole = false
	stop := context.AfterFunc(ctx, func() { l.stream.Close() })
	err = f(l)
	if !stop() && err != nil {
		l.stream.Close()
		return interrupted(ctx)
	}
	if !l.whole || ctx.Err() != nil {
		l.stream.Close()
		return err
	}
	ls.mu.Lock()
	ls.idle = append(ls.idle, l)
	ls.mu.Unlock()
	return err
}

func (ls *lanes) take(ctx context.Context, v *visit, kind streamKind) (*lane, error) {
	ls.mu.Lock()
	if n := len(ls.idle); n > 0 {
		l := ls.idle[n-1]
		ls.idle = ls.idle[:n-1]
		ls.mu.Unlock()
		return l, nil
	}
	ls.mu.Unlock()
	stream, err := v.open(ctx, kind, "")
	if err != nil {
		return nil, err
	}
	return &lane{stream: stream, r: newFrameReader(stream), w: newFrameWriter(stream)}, nil
}

// next returns the next frame of a lane. An error that the server has sent is returned as such; one of a request leaves
// the lane whole.
func (l *lane) next(ctx context.Context, v *visit) (frameType, []byte, error) {
	for {
		typ, body, err := l.r.next(maxFrame)
		if err != nil {
			return 0, nil, v.lostWith(ctx, err)
		}
		switch typ {
		case frameError:
			var m failure
			if err := decodeBody(body, &m); err != nil {
				return 0, nil, err
			}
			if l.whole = m.Req != 0; !l.whole && v.isOver() {
				return 0, nil, v.lost() // the server no longer knows the session
			}
			return 0, nil, m.err()
		case frameUnsupported:
			return 0, nil, fmt.Errorf("the server does not know a frame of version %d: %w", maxVersion, vfs.ErrNotSupported)
		}
		if _, ok := messages[typ]; ok {
			return typ, body, nil
		}
		if err := skip(l.w, typ, body); err != nil {
			return 0, nil, v.lostWith(ctx, err)
		}
	}
}

// explain returns what the server had to say when it stopped to read.
func (l *lane) explain(ctx context.Context, v *visit, err error) error {
	var own *ownError
	if errors.As(err, &own) {
		return err
	}
	if errors.Is(err, ErrProtocol) {
		return fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
	}
	l.stream.SetReadDeadline(time.Now().Add(closeGrace))
	var sent *Error
	if _, _, next := l.next(ctx, v); errors.As(next, &sent) {
		return next
	}
	return v.lostWith(ctx, err)
}

// unexpected is for an answer that is none.
func unexpected(want, got frameType) error {
	return fmt.Errorf("%v where %v was expected: %w", got, want, ErrProtocol)
}

// cloned decodes a message that does not alias its frame.
func cloned(body []byte, m message) error { return decodeBody(bytes.Clone(body), m) }

// isGone reports whether an error means that the session is gone, so that the call may be made on another.
func isGone(err error) bool {
	var lost *lostError
	return errors.As(err, &lost) || errors.Is(err, net.ErrClosed)
}
