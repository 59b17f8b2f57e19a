package wire

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/carrelfs/carrel/syncwire"
)

// script is a stream of which one side is written down: what it has to say, and then its end.
type script struct {
	greeting *bytes.Reader // what it says unasked
	in       *bytes.Reader
	until    <-chan struct{} // in comes when it is closed; nil for at once
	hold     <-chan struct{} // the end comes when it is closed; nil for at once

	mu     sync.Mutex
	out    bytes.Buffer
	spoken chan struct{} // closed when the other side has said something, or has ended the stream
	asked  chan struct{} // closed when it has said a second thing
	closed chan struct{}
	late   chan struct{} // closed when the deadline for reading is over
	moved  chan struct{} // closed when there is another
	timer  *time.Timer
}

func newScript(in []byte, hold <-chan struct{}) *script {
	return &script{
		greeting: bytes.NewReader(nil), in: bytes.NewReader(in), hold: hold, asked: make(chan struct{}),
		spoken: make(chan struct{}), closed: make(chan struct{}), moved: make(chan struct{}),
	}
}

func (s *script) Read(p []byte) (int, error) {
	if n, err := s.greeting.Read(p); err == nil {
		return n, nil
	}
	if s.until != nil {
		if err := s.wait(s.until); err != nil {
			return 0, err
		}
	}
	if n, err := s.in.Read(p); err == nil || s.hold == nil {
		return n, err
	}
	if err := s.wait(s.hold); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// wait waits for a channel, as long as there is time.
func (s *script) wait(ch <-chan struct{}) error {
	for {
		s.mu.Lock()
		late, moved := s.late, s.moved
		s.mu.Unlock()
		select {
		case <-ch:
			return nil
		case <-late:
			return os.ErrDeadlineExceeded
		case <-s.closed:
			return net.ErrClosed
		case <-moved:
		}
	}
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.Len() > 0 {
		once(s.asked)
	}
	once(s.spoken)
	return s.out.Write(p)
}

// once closes ch, if it is open. Its lock is held.
func once(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

func (s *script) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	once(s.spoken)
	return nil
}

func (s *script) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	once(s.spoken)
	once(s.closed)
	return nil
}

func (s *script) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	late := make(chan struct{})
	if s.late = late; !t.IsZero() {
		s.timer = time.AfterFunc(time.Until(t), func() { close(late) })
	}
	once(s.moved)
	s.moved = make(chan struct{})
	return nil
}

func (s *script) SetWriteDeadline(time.Time) error { return nil }

func (s *script) Peer() syncwire.StreamPeer { return syncwire.StreamPeer{Transport: "script", UID: -1} }

// said returns what the server has said.
func (s *script) said() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.out.Bytes())
}

// scripts is a listener that gives streams once.
type scripts chan syncwire.Stream

func (l scripts) Accept(ctx context.Context) (syncwire.Stream, error) {
	select {
	case s := <-l:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l scripts) Close() error   { return nil }
func (l scripts) Addr() net.Addr { return &net.UnixAddr{Name: "script", Net: "unix"} }
