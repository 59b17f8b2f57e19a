package syncwire

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lab is a network in memory between one server and its clients. Every byte takes the latency to arrive, by the clock of
// the bubble that a test runs in: what a test measures there is round trips and nothing else.
type lab struct {
	latency time.Duration // one way
	window  int           // bytes that one direction of a stream holds before its writer waits
	streams chan Stream
	sent    atomic.Int64 // bytes, both ways

	mu    sync.Mutex
	open  []*labStream // the clients' ends
	down  bool
	links byte
}

func newLab(latency time.Duration) *lab {
	return &lab{latency: latency, window: 64 << 20, streams: make(chan Stream, 64)}
}

// Accept implements Listener.
func (n *lab) Accept(ctx context.Context) (Stream, error) {
	select {
	case s := <-n.streams:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *lab) Addr() net.Addr { return &net.UnixAddr{Name: "lab"} }
func (n *lab) Close() error   { return nil }

var errDown = errors.New("the network is down")

// Dial implements Dialer.
func (n *lab) Dial(context.Context) (Link, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errDown
	}
	n.links++
	return &labLink{lab: n, addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, n.links), Port: 1}}, nil
}

// cut takes the network down: every stream breaks, and what was under way is lost.
func (n *lab) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, s := range n.open {
		s.Close()
	}
	n.open = nil
}

func (n *lab) mend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
}

type labLink struct {
	lab    *lab
	addr   net.Addr
	mu     sync.Mutex
	open   []*labStream
	closed bool
}

func (l *labLink) Open(context.Context) (Stream, error) {
	up, down := newHalf(l.lab), newHalf(l.lab)
	here, there := &labStream{in: down, out: up}, &labStream{in: up, out: down, addr: l.addr}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lab.mu.Lock()
	defer l.lab.mu.Unlock()
	if l.lab.down || l.closed {
		return nil, errDown
	}
	l.lab.open = append(l.lab.open, here)
	l.lab.streams <- there
	l.open = append(l.open, here)
	return here, nil
}

func (l *labLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, s := range l.open {
		s.Close()
	}
	return nil
}

// labStream is one end of a stream.
type labStream struct {
	in, out *half
	addr    net.Addr
}

func (s *labStream) Read(p []byte) (int, error)         { return s.in.read(p) }
func (s *labStream) Write(p []byte) (int, error)        { return s.out.write(p) }
func (s *labStream) CloseWrite() error                  { s.out.end(io.EOF); return nil }
func (s *labStream) Close() error                       { s.in.end(net.ErrClosed); s.out.end(net.ErrClosed); return nil }
func (s *labStream) SetReadDeadline(t time.Time) error  { s.in.set(&s.in.readBy, t); return nil }
func (s *labStream) SetWriteDeadline(t time.Time) error { s.out.set(&s.out.writeBy, t); return nil }
func (s *labStream) Peer() StreamPeer                   { return StreamPeer{Transport: "lab", Addr: s.addr, UID: -1} }

// half is one direction of a stream.
type half struct {
	lab *lab

	mu      sync.Mutex
	parts   []labPart
	size    int
	err     error // of the end; io.EOF after what is there
	endsAt  time.Time
	readBy  time.Time
	writeBy time.Time
	changed chan struct{}
}

type labPart struct {
	at    time.Time // when it arrives
	bytes []byte
}

func newHalf(n *lab) *half { return &half{lab: n, changed: make(chan struct{})} }

func (h *half) changedLocked() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *half) set(deadline *time.Time, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*deadline = t
	h.changedLocked()
}

func (h *half) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || h.err == io.EOF && err != io.EOF {
		h.err, h.endsAt = err, time.Now().Add(h.lab.latency)
	}
	h.changedLocked()
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.err == nil && h.size > 0 && h.size+len(p) > h.lab.window {
		if err := h.waitLocked(h.writeBy, time.Time{}); err != nil {
			return 0, err
		}
	}
	if h.err != nil {
		return 0, net.ErrClosed
	}
	h.parts = append(h.parts, labPart{time.Now().Add(h.lab.latency), append([]byte(nil), p...)})
	h.size += len(p)
	h.lab.sent.Add(int64(len(p)))
	h.changedLocked()
	return len(p), nil
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		now := time.Now()
		var next time.Time
		switch {
		case h.err != nil && h.err != io.EOF:
			return 0, h.err
		case len(h.parts) > 0 && !h.parts[0].at.After(now):
			return h.takeLocked(p), nil
		case len(h.parts) > 0:
			next = h.parts[0].at
		case h.err != nil && !h.endsAt.After(now):
			return 0, h.err
		case h.err != nil:
			next = h.endsAt
		}
		if err := h.waitLocked(h.readBy, next); err != nil {
			return 0, err
		}
	}
}

func (h *half) takeLocked(p []byte) int {
	part := &h.parts[0]
	n := copy(p, part.bytes)
	if part.bytes = part.bytes[n:]; len(part.bytes) == 0 {
		h.parts = h.parts[1:]
	}
	h.size -= n
	h.changedLocked()
	return n
}

// waitLocked waits for a change, or until a moment that is not zero.
func (h *half) waitLocked(deadline, next time.Time) error {
	now := time.Now()
	if !deadline.IsZero() && !deadline.After(now) {
		return os.ErrDeadlineExceeded
	}
	until := next
	if until.IsZero() || !deadline.IsZero() && deadline.Before(until) {
		until = deadline
	}
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(until.Sub(now))
		defer t.Stop()
		timer = t.C
	}
	changed := h.changed
	h.mu.Unlock()
	select {
	case <-changed:
	case <-timer:
	}
	h.mu.Lock()
	return nil
}
