package syncwire

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// udpSocket is a socket that loses what it cannot send for the moment, once it is told to. quic-go ends a connection whose
// packet the kernel refuses, and that it does whenever this machine has no route: while its address changes, or a cable is
// out. To the protocol such a packet is one that was lost. Before the handshake is over it is an answer: there is no way.
type udpSocket struct {
	*net.UDPConn
	lossy *atomic.Bool
}

// WriteMsgUDP is what quic-go sends with.
func (s udpSocket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = s.UDPConn.WriteMsgUDP(b, oob, addr)
	if err != nil && s.lossy.Load() && isPassing(err) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// isPassing reports whether what could not be sent may be sent later: udp(7), ip(7), send(2).
func isPassing(err error) bool {
	for _, passing := range []syscall.Errno{
		unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EHOSTDOWN, unix.EADDRNOTAVAIL, unix.EPERM, unix.ENOBUFS,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// SocketStats is the state of a UDP socket, through which all of a listener's clients come.
type SocketStats struct {
	Addr string
	// ReadBuffer and WriteBuffer are what the kernel lets wait, in bytes of its own bookkeeping, of which about half are
	// packets. quic-go asks for 7 MiB; less means that net.core.rmem_max or wmem_max forbids it, and packets that come
	// faster than they are read are lost.
	ReadBuffer, WriteBuffer uint64
	// Dropped is how many packets were lost so, since the socket was opened.
	Dropped uint64
}

// socketStats asks the kernel for the state of a socket (SO_MEMINFO, socket(7)).
func socketStats(conn *net.UDPConn) (s SocketStats, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return s, err
	}
	// SK_MEMINFO_RCVBUF and so on, of linux/sock_diag.h.
	const rcvbuf, sndbuf, drops, vars = 1, 3, 8, 9
	var info [vars]uint32
	size := uint32(unsafe.Sizeof(info))
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	if err == nil && errno != 0 {
		err = errno
	}
	if err != nil {
		return s, fmt.Errorf("state of the socket %v: %w", conn.LocalAddr(), err)
	}
	return SocketStats{
		Addr: conn.LocalAddr().String(), ReadBuffer: uint64(info[rcvbuf]), WriteBuffer: uint64(info[sndbuf]),
		Dropped: uint64(info[drops]),
	}, nil
}

// socketReporter is a listener that can say how its socket is.
type socketReporter interface{ socket() (SocketStats, error) }

func (l *quicListener) socket() (SocketStats, error) {
	return socketStats(l.transport.Conn.(udpSocket).UDPConn)
}
