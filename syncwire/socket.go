package syncwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// socketListener takes connections, each of which is a stream.
type socketListener struct {
	listener net.Listener
	// wrap makes a stream of a connection, which may take a handshake.
	wrap    func(ctx context.Context, conn net.Conn) (Stream, error)
	streams chan Stream
	group   sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// maxHandshakes is how many TLS handshakes a listener has under way.
const maxHandshakes = 64

func newSocketListener(l net.Listener, wrap func(context.Context, net.Conn) (Stream, error)) *socketListener {
	s := &socketListener{listener: l, wrap: wrap, streams: make(chan Stream), open: make(map[net.Conn]struct{})}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.group.Go(s.accept)
	return s
}

// ListenUnix listens on a unix socket, which it makes with mode 0600 and removes when it is closed. What a process that
// is gone has left at that path is replaced.
func ListenUnix(path string) (Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen: %s is served by another process", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	// Who connects before this has taken effect must authenticate like everybody. (A umask would be the whole process's.)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), l.Close())
	}
	return newSocketListener(l, func(_ context.Context, conn net.Conn) (Stream, error) {
		uid, err := peerUID(conn.(*net.UnixConn))
		return &socketStream{halfConn: conn.(*net.UnixConn), peer: StreamPeer{Transport: "unix", UID: uid}}, err
	}), nil
}

// ListenTLS listens on a TCP address.
func ListenTLS(addr string, id Identity) (Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	config := id.serverTLS()
	return newSocketListener(l, func(ctx context.Context, conn net.Conn) (Stream, error) {
		ctx, cancel := context.WithTimeout(ctx, helloTimeout)
		defer cancel()
		c := tls.Server(conn, config)
		if err := c.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		return tcpStream(c), nil
	}), nil
}

func tcpStream(c *tls.Conn) Stream {
	key := shownKey(c.ConnectionState())
	return &socketStream{halfConn: c, peer: StreamPeer{Transport: "tcp", Addr: c.RemoteAddr(), UID: -1, Key: key}}
}

// peerUID asks the kernel who is at the other end.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	uid := -1
	var credErr error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); credErr == nil {
			uid = int(cred.Uid)
		}
	})
	return uid, errors.Join(err, credErr)
}

func (l *socketListener) accept() {
	handshakes := make(chan struct{}, maxHandshakes)
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			if pause(l.ctx, err) {
				continue
			}
			l.cancel(err)
			return
		}
		select {
		case handshakes <- struct{}{}:
		case <-l.ctx.Done():
			conn.Close()
			return
		}
		l.group.Go(func() {
			l.take(conn, func() { <-handshakes })
		})
	}
}

// pause waits a little after an error that passes, when files are used up for example.
func pause(ctx context.Context, err error) bool {
	if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
		return false
	}
	select {
	case <-time.After(100 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// take makes a stream of a connection and gives it to Accept.
func (l *socketListener) take(conn net.Conn, shaken func()) {
	l.mu.Lock()
	l.open[conn] = struct{}{}
	l.mu.Unlock()
	stream, err := l.wrap(l.ctx, conn)
	shaken()
	if err == nil {
		s := stream.(*socketStream)
		s.closed = func() { l.forget(conn) }
		select {
		case l.streams <- stream:
			return
		case <-l.ctx.Done():
		}
	}
	conn.Close()
	l.forget(conn)
}

func (l *socketListener) forget(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
}

func (l *socketListener) Accept(ctx context.Context) (Stream, error) {
	select {
	case s := <-l.streams:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
		return nil, context.Cause(l.ctx)
	}
}

func (l *socketListener) Addr() net.Addr { return l.listener.Addr() }

func (l *socketListener) Close() error {
	l.cancel(net.ErrClosed)
	err := l.listener.Close()
	l.mu.Lock()
	for conn := range l.open {
		conn.Close()
	}
	l.mu.Unlock()
	l.group.Wait()
	return err
}

// halfConn is a connection of which one direction can be ended.
type halfConn interface {
	net.Conn
	CloseWrite() error
}

// socketStream is a connection as a stream.
type socketStream struct {
	halfConn
	peer   StreamPeer
	closed func() // nil on the client's side
}

func (s *socketStream) Peer() StreamPeer { return s.peer }

func (s *socketStream) Close() error {
	err := s.halfConn.Close()
	if s.closed != nil {
		s.closed()
	}
	return err
}

// DialUnix returns a dialer to the server at a unix socket.
func DialUnix(path string) Dialer {
	return socketDialer(func(ctx context.Context) (Stream, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		c := conn.(*net.UnixConn)
		uid, err := peerUID(c)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return &socketStream{halfConn: c, peer: StreamPeer{Transport: "unix", UID: uid}}, nil
	})
}

// DialTLS returns a dialer by TCP to a server that has the pinned key.
func DialTLS(addr string, pin Fingerprint, options ...DialOption) Dialer {
	d := tls.Dialer{Config: clientTLS(pin, options...)}
	return socketDialer(func(ctx context.Context) (Stream, error) {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("dial %s (tcp): %w", addr, err)
		}
		return tcpStream(conn.(*tls.Conn)), nil
	})
}

// socketDialer makes a connection for each stream.
type socketDialer func(ctx context.Context) (Stream, error)

// Dial implements Dialer. The first stream is opened at once, to know whether there is a server.
func (d socketDialer) Dial(ctx context.Context) (Link, error) {
	first, err := d(ctx)
	if err != nil {
		return nil, err
	}
	l := &socketLink{dial: d, first: first, open: map[*linkStream]struct{}{}}
	return l, nil
}

type socketLink struct {
	dial socketDialer

	mu     sync.Mutex
	first  Stream
	open   map[*linkStream]struct{}
	closed bool
}

// linkStream is a stream that its link closes.
type linkStream struct {
	Stream
	link *socketLink
}

func (s *linkStream) Close() error {
	s.link.mu.Lock()
	delete(s.link.open, s)
	s.link.mu.Unlock()
	return s.Stream.Close()
}

func (l *socketLink) Open(ctx context.Context) (Stream, error) {
	l.mu.Lock()
	s := l.first
	l.first = nil
	l.mu.Unlock()
	if s == nil {
		var err error
		if s, err = l.dial(ctx); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.Join(net.ErrClosed, s.Close())
	}
	ls := &linkStream{s, l}
	l.open[ls] = struct{}{}
	return ls, nil
}

func (l *socketLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.first != nil {
		l.first.Close()
	}
	for s := range l.open {
		s.Stream.Close()
	}
	clear(l.open)
	return nil
}
