package syncwire

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"
)

// sockets is how many a connection has at most.
const sockets = 2

// way is the sockets of a connection. quic-go ends a connection together with any transport that it has ever used, so none
// can be closed before.
type way struct {
	socket     func() (*net.UDPConn, error)
	transports [sockets]*quic.Transport
	lossy      atomic.Bool // its sockets: once the handshake is over
}

// transport returns one, and makes it when it is first asked for.
func (w *way) transport(i int) (*quic.Transport, error) {
	if w.transports[i] == nil {
		conn, err := w.socket()
		if err != nil {
			return nil, err
		}
		w.transports[i] = &quic.Transport{Conn: udpSocket{UDPConn: conn, lossy: &w.lossy}}
	}
	return w.transports[i], nil
}

// source is the address that packets to a server come from now, or none while the server cannot be reached.
func (w *way) source(server *net.UDPAddr) (source netip.Addr) {
	conn, err := w.socket()
	if err != nil {
		return source
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return source
	}
	_ = raw.Control(func(fd uintptr) { source = sourceOf(int(fd), server.AddrPort()) })
	return source
}

// sourceOf connects a UDP socket, which sends nothing but has the kernel choose an address for it.
func sourceOf(fd int, to netip.AddrPort) (source netip.Addr) {
	own, err := unix.Getsockname(fd)
	if err != nil {
		return source
	}
	switch own.(type) {
	case *unix.SockaddrInet4:
		err = unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().Unmap().As4(), Port: int(to.Port())})
	case *unix.SockaddrInet6:
		err = unix.Connect(fd, &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())})
	}
	if err == nil {
		own, err = unix.Getsockname(fd)
	}
	if err != nil {
		return source
	}
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		source = netip.AddrFrom4(own.Addr)
	case *unix.SockaddrInet6:
		source = netip.AddrFrom16(own.Addr)
	}
	return source
}

func (w *way) close() error {
	var errs []error
	for _, t := range w.transports {
		if t == nil {
			continue
		}
		errs = append(errs, t.Close(), closeConn(t.Conn))
	}
	return errors.Join(errs...)
}
