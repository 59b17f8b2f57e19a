package machines

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// ServiceName is what a server calls the service.
const ServiceName = "exec"

// What a server answers to a name, one byte.
const (
	sayEntered = 0
	sayTaken   = 1
)

// CheckName returns ErrInvalid for what is no name of a machine: up to 64 letters, digits, dots, dashes and underscores, of which the
// first is a letter or a digit.
func CheckName(name string) error {
	for i := range len(name) {
		c := name[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || c != '.' && c != '-' && c != '_') {
			return fmt.Errorf("a machine %q: %w", name, vfs.ErrInvalid)
		}
	}
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a machine %q: its name has 1 to %d bytes: %w", name, maxName, vfs.ErrInvalid)
	}
	return nil
}

// conn is a stream as a connection, whose end can be waited for.
type conn struct {
	syncwire.Stream
	once   sync.Once
	closed chan struct{} // closed by Close
}

func newConn(s syncwire.Stream) *conn { return &conn{Stream: s, closed: make(chan struct{})} }

// Close ends the connection. What was written arrives.
func (c *conn) Close() error {
	defer c.once.Do(func() { close(c.closed) })
	return errors.Join(c.CloseWrite(), c.Stream.Close())
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) LocalAddr() net.Addr  { return addr{} }
func (c *conn) RemoteAddr() net.Addr { return addr{} }

// addr is that of both ends: where they are is the stream's affair.
type addr struct{}

func (addr) Network() string { return "carrel" }
func (addr) String() string  { return ServiceName }
