package syncwire

import (
	"context"
	"io"
	"net"
	"time"
)

// Stream is a reliable, ordered sequence of bytes in each direction. One goroutine may read while another writes.
type Stream interface {
	io.Reader
	io.Writer

	// CloseWrite ends what is written: the other side reads io.EOF after it.
	CloseWrite() error
	// Close ends both directions at once. What was written may be lost, unless CloseWrite came before and there is nothing
	// left to read.
	Close() error

	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error

	// Peer says who is at the other end.
	Peer() StreamPeer
}

// StreamPeer is what a transport knows of the other end of a stream.
type StreamPeer struct {
	Transport string      // "quic", "tcp" or "unix"
	Addr      net.Addr    // nil when it has none
	UID       int         // the user that the kernel says it is, on a unix socket; otherwise -1
	Key       Fingerprint // of the key that it has shown, zero for none
	GSO       bool        // on QUIC: the kernel cuts what is sent into packets, which takes a fraction of the CPU
}

// Listener gives a server the streams that clients open.
type Listener interface {
	// Accept returns the next stream. It fails when ctx ends, with its error, and after Close, with net.ErrClosed.
	Accept(ctx context.Context) (Stream, error)
	// Close ends Accept, and every stream that came from it.
	Close() error
	Addr() net.Addr
}

// Link is a client's way to one server.
type Link interface {
	// Open opens a stream.
	Open(ctx context.Context) (Stream, error)
	// Close ends the link and its streams.
	Close() error
}

// Dialer makes links to one server.
type Dialer interface {
	Dial(ctx context.Context) (Link, error)
}

// keptBuffer is how large a buffer a frameWriter keeps from one frame to the next: many streams say little for hours.
const keptBuffer = 16 << 10

// frameWriter puts frames on a stream, from any goroutine.
type frameWriter struct {
	stream Stream
	turn   chan struct{} // taken while a frame is written, so that frames do not mix; a deadline bounds it

	// In the turn:
	buf []byte
	err error // of the first write that failed: what comes after it would be no frame
}

func newFrameWriter(stream Stream) *frameWriter {
	return &frameWriter{stream: stream, turn: make(chan struct{}, 1)}
}

// send writes a message. An error means that the stream is of no more use, unless it wraps ErrProtocol: then the message
// breaks a limit and nothing was written.
func (w *frameWriter) send(m message) error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	head, tail, err := appendHead(w.buf[:0], m)
	if err != nil {
		return err
	}
	// A chunk is not copied, which would take memory for each. What fills the buffer goes with the head: a write of some
	// bytes alone would be a packet of its own.
	n := min(len(tail), max(0, keptBuffer-len(head)))
	if err := w.write(append(head, tail[:n]...)); err != nil || n == len(tail) {
		return err
	}
	return w.put(tail[n:])
}

// sendBody writes a frame whose body is there already, in parts.
func (w *frameWriter) sendBody(t frameType, parts ...[]byte) error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	frame := append(w.buf[:0], make([]byte, headerLen)...)
	for _, p := range parts {
		frame = append(frame, p...)
	}
	putHeader(frame, t, len(frame)-headerLen)
	return w.write(frame)
}

func (w *frameWriter) write(frame []byte) error {
	if w.buf = frame; cap(frame) > keptBuffer {
		w.buf = nil
	}
	return w.put(frame)
}

func (w *frameWriter) put(b []byte) error {
	if w.err == nil {
		w.stream.SetWriteDeadline(time.Now().Add(stallTimeout))
		_, w.err = w.stream.Write(b)
	}
	return w.err
}

// hangUp tells the other side why the stream ends, and ends it.
func (w *frameWriter) hangUp(err error) {
	if w.send(errorFrame(0, err)) != nil {
		w.stream.Close()
		return
	}
	linger(w.stream)
}

// linger closes a stream so that the other side can still read what was written: a socket that is closed while there are
// bytes which nobody has read takes back what it has sent.
func linger(stream Stream) {
	if stream.CloseWrite() == nil {
		stream.SetReadDeadline(time.Now().Add(closeGrace))
		io.Copy(io.Discard, stream)
	}
	stream.Close()
}
