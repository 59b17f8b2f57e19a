package syncwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Windows of QUIC, in bytes: how much one side may send before the other has read it. That of a stream begins small and
// grows with a reader that keeps up, until four bulk streams fill 1 Gbit/s at 100 ms. That of the connection is never
// what holds a stream up: ten streams that nobody reads fill it, and a client has eight, so requests get through beside
// any of them. It is as large from the beginning, because quic-go lets it grow with one stream and not with their sum.
const (
	initialStreamWindow = 512 << 10
	maxStreamWindow     = 3 << 20
	connWindow          = 32 << 20
)

// keepAlive is after how long without a packet one is sent. A client that only listens to its feed says by it that its
// address is another now (measured: with 15 s, a feed stood still for that long after its NAT had changed its mind).
const keepAlive = 5 * time.Second

// maxQUICStreams is how many streams one connection may have: those of a session, and a few of the next while one ends.
const maxQUICStreams = maxStreams + 8

// maxUnverified is how many handshakes go on before a server asks for a proof of the sender's address first.
const maxUnverified = 128

func quicConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:           helloTimeout / 2,
		MaxIdleTimeout:                 silence,
		KeepAlivePeriod:                keepAlive,
		InitialStreamReceiveWindow:     initialStreamWindow,
		MaxStreamReceiveWindow:         maxStreamWindow,
		InitialConnectionReceiveWindow: connWindow,
		MaxConnectionReceiveWindow:     connWindow,
		MaxIncomingUniStreams:          -1,
	}
}

// quicListener takes the streams of all its connections.
type quicListener struct {
	transport *quic.Transport
	listener  *quic.Listener
	streams   chan Stream
	http      *http3.Server // nil for none
	group     sync.WaitGroup
	ctx       context.Context
	cancel    context.CancelFunc
}

// ListenQUIC listens on a UDP address.
func ListenQUIC(addr string, id Identity, options ...ListenOption) (Listener, error) {
	udp, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	conn, err := net.ListenUDP("udp", udp)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l := &quicListener{streams: make(chan Stream)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for _, o := range options {
		o(l)
	}
	var handshakes handshakeCount
	socket := udpSocket{UDPConn: conn, lossy: new(atomic.Bool)}
	socket.lossy.Store(true)
	l.transport = &quic.Transport{Conn: socket, VerifySourceAddress: handshakes.many}
	config := quicConfig()
	config.MaxIncomingStreams = maxQUICStreams
	handshake := id.serverTLS()
	l.prepareHTTP(&handshake.NextProtos, config)
	if l.listener, err = l.transport.Listen(handshake, config); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), conn.Close())
	}
	l.group.Go(l.acceptConns)
	return l, nil
}

// handshakeCount knows when handshakes come so fast that their senders must prove their addresses, which costs them a
// round trip.
type handshakeCount struct {
	mu    sync.Mutex
	n     int
	since time.Time
}

func (h *handshakeCount) many(net.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.since) > time.Second {
		h.n, h.since = 0, now
	}
	h.n++
	return h.n > maxUnverified
}

func (l *quicListener) acceptConns() {
	for {
		conn, err := l.listener.Accept(l.ctx)
		if err != nil {
			return
		}
		l.group.Go(func() { l.serveConn(conn) })
	}
}

func (l *quicListener) acceptStreams(conn *quic.Conn) {
	defer conn.CloseWithError(0, "")
	key := shownKey(conn.ConnectionState().TLS)
	peer := func() StreamPeer { return quicPeer(conn, key) }
	for {
		stream, err := conn.AcceptStream(l.ctx)
		if err != nil {
			return
		}
		select {
		case l.streams <- &quicStream{Stream: stream, peer: peer}:
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *quicListener) Accept(ctx context.Context) (Stream, error) {
	select {
	case s := <-l.streams:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *quicListener) Addr() net.Addr { return l.transport.Conn.LocalAddr() }

func (l *quicListener) Close() error {
	l.cancel()
	var err error
	if l.http != nil {
		err = l.http.Close() // aborts requests
	}
	l.group.Wait()
	return errors.Join(err, l.listener.Close(), l.transport.Close(), closeConn(l.transport.Conn))
}

// closeConn closes a packet connection that may be closed already.
func closeConn(c net.PacketConn) error {
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// quicPeer says who is at the other end of a connection now: clients move. key is the one that was shown there.
func quicPeer(conn *quic.Conn, key Fingerprint) StreamPeer {
	return StreamPeer{Transport: "quic", Addr: conn.RemoteAddr(), UID: -1, Key: key, GSO: conn.ConnectionState().GSO}
}

// quicStream is a stream of a connection.
type quicStream struct {
	*quic.Stream
	peer  func() StreamPeer
	ended atomic.Bool // CloseWrite was called: what was written is still to arrive
}

func (s *quicStream) CloseWrite() error {
	s.ended.Store(true)
	return s.Stream.Close()
}

func (s *quicStream) Close() error {
	if !s.ended.Load() {
		s.CancelWrite(0)
	}
	s.CancelRead(0)
	return nil
}

func (s *quicStream) Peer() StreamPeer { return s.peer() }

// DialQUIC returns a dialer to a server that has the pinned key.
func DialQUIC(addr string, pin Fingerprint, options ...DialOption) Dialer {
	return DialQUICFrom(addr, pin, anySocket, options...)
}

// DialQUICFrom is DialQUIC for those who choose the sockets, to bind them to an interface for example. A link opens a first
// one, and another for when nothing comes by that; it closes them.
func DialQUICFrom(addr string, pin Fingerprint, socket func() (*net.UDPConn, error), options ...DialOption) Dialer {
	return &quicDialer{addr: addr, tls: clientTLS(pin, options...), socket: socket}
}

func anySocket() (*net.UDPConn, error) { return net.ListenUDP("udp", nil) }

type quicDialer struct {
	addr   string
	tls    *tls.Config
	socket func() (*net.UDPConn, error)
}

// Dial waits for the handshake. Early data (0-RTT) would save its round trip when a connection is made again. But with
// quic-go a stream that is opened while the handshake goes on is a data race: Conn.newFlowController reads the peer's
// parameters while Conn.handleTransportParameters sets them (quic-go issue 4303, open, and so in v0.65.0). And early data
// can be replayed, so that no more than the hello and what only reads could go in it.
func (d *quicDialer) Dial(ctx context.Context) (Link, error) {
	addr, err := net.ResolveUDPAddr("udp", d.addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s (udp): %w", d.addr, err)
	}
	w := &way{socket: d.socket}
	transport, err := w.transport(0)
	if err != nil {
		return nil, fmt.Errorf("dial %s (udp): %w", d.addr, err)
	}
	conn, err := transport.Dial(ctx, addr, d.tls, quicConfig())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dial %s (udp): %w", d.addr, err), w.close())
	}
	return newQUICLink(conn, w, addr), nil
}
