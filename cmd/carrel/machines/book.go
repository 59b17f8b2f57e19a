package machines

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/execd/api/carrel/v1/carrelv1connect"
	"github.com/carrelfs/carrel/syncwire"
)

// Book knows the machines that offer to run things. Its methods may be called from any goroutine.
type Book struct {
	log *slog.Logger

	mu       sync.Mutex
	machines map[place]*machine
}

// place is where a machine is found. Names of one workspace say nothing of another's, whose tokens others have.
type place struct{ workspace, name string }

// machine is one that has a stream.
type machine struct {
	peer vfs.PeerID
	conn *conn
	http *http.ClientConn // over conn; nil until that is made
}

// NewBook returns a book without machines.
func NewBook(log *slog.Logger) *Book { return &Book{log: log, machines: make(map[place]*machine)} }

// Service is what machines open.
func (b *Book) Service() syncwire.Service {
	return syncwire.Service{Rights: syncwire.RightExec, Serve: b.serve}
}

func (b *Book) serve(ctx context.Context, s syncwire.ServiceStream) error {
	s.SetReadDeadline(time.Now().Add(greeting))
	name, err := readName(s)
	if err != nil {
		return err
	}
	s.SetReadDeadline(time.Time{})
	at := place{s.Workspace, name}
	m := &machine{peer: s.Peer, conn: newConn(s.Stream)}
	s.SetWriteDeadline(time.Now().Add(greeting))
	if !b.enter(at, m) {
		_, err := s.Write([]byte{sayTaken})
		return err
	}
	defer b.leave(at, m)
	if _, err := s.Write([]byte{sayEntered}); err != nil {
		return fmt.Errorf("machine %q: %w", name, err)
	}
	s.SetWriteDeadline(time.Time{})
	client, err := clientOn(ctx, m.conn)
	if err != nil {
		return fmt.Errorf("machine %q: %w", name, err)
	}
	defer client.Close() // nothing is called any more
	b.mu.Lock()
	m.http = client
	b.mu.Unlock()
	select {
	case <-m.conn.closed:
	case <-ctx.Done():
	}
	return nil
}

func readName(r io.Reader) (string, error) {
	var n [1]byte
	_, err := io.ReadFull(r, n[:])
	name := make([]byte, n[0])
	if err == nil {
		_, err = io.ReadFull(r, name)
	}
	if err != nil {
		return "", fmt.Errorf("the name of a machine: %w", err)
	}
	return string(name), CheckName(string(name))
}

// clientOn begins HTTP/2 on a connection. What is read ends it when the connection does.
func clientOn(ctx context.Context, c *conn) (*http.ClientConn, error) {
	t := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return c, nil },
		Protocols:          new(http.Protocols),
		DisableCompression: true,
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t.NewClientConn(ctx, "http", ServiceName+":80")
}

// enter takes a machine in, in place of what the peer has offered before. It returns false when another has the name.
func (b *Book) enter(at place, m *machine) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.machines[at]; old != nil && old.peer != m.peer {
		return false
	}
	for x, old := range b.machines {
		if x.workspace == at.workspace && old.peer == m.peer {
			old.conn.SetDeadline(time.Unix(1, 0)) // its end is seen to by who serves it
			delete(b.machines, x)
		}
	}
	b.machines[at] = m
	return true
}

func (b *Book) leave(at place, m *machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.machines[at] == m {
		delete(b.machines, at)
	}
}

// Name is that of the machine of a peer; empty when it is none.
func (b *Book) Name(workspace string, peer vfs.PeerID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, m := range b.machines {
		if at.workspace == workspace && m.peer == peer {
			return at.name
		}
	}
	return ""
}

// find returns a machine: api.ErrNoMachine when it has no stream.
func (b *Book) find(at place) (*http.ClientConn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[at]; m != nil && m.http != nil {
		return m.http, nil
	}
	var there []string
	for x := range b.machines {
		if x.workspace == at.workspace {
			there = append(there, x.name)
		}
	}
	slices.Sort(there)
	known := "none does now"
	if len(there) > 0 {
		known = "these do now: " + strings.Join(there, ", ")
	}
	return nil, fmt.Errorf("machine %q runs nothing of workspace %q (%s): %w", at.name, at.workspace, known, api.ErrNoMachine)
}

// Path is where the API of a machine begins.
func Path(workspace, name string) string {
	return "/on/" + url.PathEscape(workspace) + "/" + url.PathEscape(name)
}

// Register passes calls on to machines, by the Handle method of a mux, for whom access lets in; anyone when it is nil.
func (b *Book) Register(handle func(pattern string, h http.Handler), access api.Access) {
	if access == nil {
		access = api.Anyone
	}
	handle("POST /on/{ws}/{machine}/"+carrelv1connect.ExecServiceName+"/{method}", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			at := place{r.PathValue("ws"), r.PathValue("machine")}
			ctx, err := access(r.Context(), r.Header, at.workspace, api.Exec)
			var to *http.ClientConn
			if err == nil {
				to, err = b.find(at)
			}
			if err != nil {
				api.WriteError(w, r, err)
				return
			}
			b.passTo(to, r.PathValue("method")).ServeHTTP(w, r.WithContext(ctx))
		}))
}

// passTo passes a call on. One that breaks is cut off, as a connection that breaks: who has made it finds out what became of it.
func (b *Book) passTo(to *http.ClientConn, method string) http.Handler {
	return &httputil.ReverseProxy{
		Transport: to, FlushInterval: -1, ErrorLog: slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: "http", Host: ServiceName, Path: "/" + carrelv1connect.ExecServiceName + "/" + method}
			p.Out.Host = ServiceName
			for _, secret := range []string{"Authorization", "Cookie"} {
				p.Out.Header.Del(secret)
			}
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}
