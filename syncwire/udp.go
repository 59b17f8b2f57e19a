package syncwire

import (
	"fmt"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
	return socketStats(l.transport.Conn.(*net.UDPConn))
}
