package serving

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// socketName is the unix socket in the store's directory.
const socketName = "sync.sock"

// sockets are what a service listens on.
type sockets struct {
	sync    []syncwire.Listener
	metrics net.Listener // nil for none
	api     net.Listener // likewise; before TLS
}

// listen opens all sockets, or none, and sets in o how the addresses turned out. ErrBusy when another has an address.
func listen(
	dir string, o *control.ServeOptions, id syncwire.Identity, options ...syncwire.ListenOption,
) (s *sockets, err error) {
	s = &sockets{}
	if err = s.listenNet(o, id, options); err == nil {
		err = s.listenUnix(dir, o)
	}
	if err == nil && o.Metrics != "" {
		s.metrics, err = listenTCP(&o.Metrics)
	}
	if err == nil && o.API != "" {
		s.api, err = listenTCP(&o.API)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errors.Join(fmt.Errorf("%w: %w", vfs.ErrBusy, err), s.close())
	case err != nil:
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// listenNet listens on UDP and TCP, of the same port unless o says otherwise.
func (s *sockets) listenNet(o *control.ServeOptions, id syncwire.Identity, options []syncwire.ListenOption) error {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %q: %w: %w", o.Listen, vfs.ErrInvalid, err)
	}
	for try := 1; ; try++ {
		udp, err := syncwire.ListenQUIC(o.Listen, id, options...)
		if err != nil {
			return err
		}
		at := o.TLS
		if at == "" {
			at = net.JoinHostPort(host, portOf(udp.Addr()))
		}
		tcp, err := syncwire.ListenTLS(at, id)
		if err == nil {
			s.sync = append(s.sync, udp, tcp)
			o.Listen, o.TLS = net.JoinHostPort(host, portOf(udp.Addr())), tcp.Addr().String()
			return nil
		}
		err = errors.Join(err, udp.Close())
		if port != "0" || o.TLS != "" || try == portTries || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

func portOf(a net.Addr) string {
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		panic(err) // the address of a listener on UDP
	}
	return port
}

// listenUnix leaves the socket in the store out when the store's path is too long for one.
func (s *sockets) listenUnix(dir string, o *control.ServeOptions) error {
	if o.Unix == "" {
		o.Unix = filepath.Join(dir, socketName)
		if len(o.Unix) > maxSocketPath {
			o.Unix = ""
			return nil
		}
	}
	l, err := syncwire.ListenUnix(o.Unix)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Unix, err)
	}
	s.sync = append(s.sync, l)
	return nil
}

// listenTCP sets in addr how the address turned out.
func listenTCP(addr *string) (net.Listener, error) {
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return nil, fmt.Errorf("listen by HTTP: %w", err)
	}
	*addr = l.Addr().String()
	return l, nil
}

func (s *sockets) close() error {
	var errs []error
	for _, l := range s.sync {
		errs = append(errs, l.Close())
	}
	for _, l := range []net.Listener{s.metrics, s.api} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// hostFor is a name of this machine for the clients of an address: the address's own host, and for one that stands for all
// of the machine's addresses the first that others are likely to reach.
func hostFor(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host
	}
	addrs, _ := net.InterfaceAddrs() // without them, the machine's name
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}
