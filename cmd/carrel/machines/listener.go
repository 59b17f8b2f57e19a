package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/syncwire"
)

// Opener opens services: *syncwire.Client.
type Opener interface {
	OpenService(ctx context.Context, name string) (syncwire.Stream, error)
}

// Listener offers a machine, and gives the connection by which it is taken up. There is one at a time: when it breaks, the machine
// is offered again.
type Listener struct {
	from Opener
	name string
	log  *slog.Logger
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	last *conn // for Accept, which one goroutine calls

	mu      sync.Mutex
	trouble error // why the machine is not offered now
}

// Listen returns a listener that offers a machine by a name once Accept is called.
func Listen(from Opener, name string, log *slog.Logger) *Listener {
	l := &Listener{from: from, name: name, log: log}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Accept implements net.Listener. It fails only after Close.
func (l *Listener) Accept() (net.Conn, error) {
	if l.last != nil {
		select {
		case <-l.last.closed:
		case <-l.ctx.Done():
		}
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		c, err := l.offer()
		if l.ctx.Err() != nil {
			if err == nil {
				_ = c.Close() // nothing was said yet
			}
			return nil, net.ErrClosed
		}
		l.note(err)
		if err == nil {
			l.last = c
			return c, nil
		}
		// A server that comes back is not to be asked by all machines together.
		select {
		case <-time.After(pause - rand.N(pause/2)):
		case <-l.ctx.Done():
		}
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.stop()
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return addr{} }

// Trouble says why the machine is not offered now; nil when it is, or is just about to be.
func (l *Listener) Trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

// note keeps why the machine is not offered, and tells it once.
func (l *Listener) note(err error) {
	l.mu.Lock()
	old := l.trouble
	l.trouble = err
	l.mu.Unlock()
	switch {
	case err == nil:
		l.log.Info("commands that the server sends run here", "name", l.name)
	case old == nil || old.Error() != err.Error():
		l.log.Warn("commands that the server sends cannot run here", "name", l.name, "err", err)
	}
}

// offer opens a stream and says the name.
func (l *Listener) offer() (*conn, error) {
	s, err := l.from.OpenService(l.ctx, ServiceName)
	if err != nil {
		return nil, fmt.Errorf("offer machine %q: %w", l.name, err)
	}
	defer context.AfterFunc(l.ctx, func() { s.SetReadDeadline(time.Unix(1, 0)) })()
	c := newConn(s)
	if err := c.greet(l.name); err != nil {
		return nil, errors.Join(fmt.Errorf("offer machine %q: %w", l.name, err), c.Close())
	}
	return c, nil
}

func (c *conn) greet(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	c.SetDeadline(time.Now().Add(greeting))
	var answer [1]byte
	_, err := c.Write(append([]byte{byte(len(name))}, name...))
	if err == nil {
		_, err = io.ReadFull(c, answer[:])
	}
	switch {
	case err != nil:
		return err
	case answer[0] == sayTaken:
		return fmt.Errorf("another machine that has joined the workspace has the name: %w", vfs.ErrExist)
	case answer[0] != sayEntered:
		return fmt.Errorf("the server answers %d: %w", answer[0], syncwire.ErrProtocol)
	}
	c.SetDeadline(time.Time{})
	return nil
}

// NewServer returns what is to serve a listener.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{
		Handler: h, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxCalls},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// Access is api.Access on a machine: it has offered to run things, and nothing else. Who asks was asked at the server who he is.
func Access(ctx context.Context, _ http.Header, _ string, right api.Right) (context.Context, error) {
	if right != api.Exec {
		return nil, fmt.Errorf("a machine that was joined only runs things, and those without rights on the machine: %w", vfs.ErrNotPermitted)
	}
	return ctx, nil
}
