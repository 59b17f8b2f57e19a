package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// The words of the handshake.
const (
	controlPath     = "/control"
	upgradeProtocol = "carrel-control"
	protocolHeader  = "Carrel-Protocol"
	pidHeader       = "Carrel-Pid"
	mountsHeader    = "Carrel-Mounts"
)

// Server is the owner's side of the socket. Its methods are safe for concurrent use.
type Server struct {
	store   Store
	mounts  Mounts  // nil when this owner mounts nothing
	serving Serving // nil when it serves nothing
	log     *slog.Logger
	mux     *http.ServeMux
	http    *http.Server
	slots   chan struct{} // holds one element for each session

	mu        sync.Mutex
	closed    bool
	sessions  map[*session]struct{}
	idle      chan struct{} // closed, and replaced when a session comes, when there are no sessions
	accepting sync.WaitGroup
}

// NewServer returns a server of store. mounts may be nil, and so may log.
func NewServer(store Store, mounts Mounts, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		store: store, mounts: mounts, log: log, mux: http.NewServeMux(), slots: make(chan struct{}, maxSessions),
		sessions: map[*session]struct{}{}, idle: make(chan struct{}),
	}
	close(s.idle)
	s.mux.HandleFunc("GET "+controlPath, s.upgrade)
	s.mux.HandleFunc("POST "+backupPath, s.backup)
	s.mux.HandleFunc("POST "+loadPath, s.load)
	s.http = &http.Server{
		Handler: s.mux, ReadHeaderTimeout: handshakeTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s
}

// Handle serves another interface under pattern, as http.ServeMux does. It must be called before Serve.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Offer lets clients ask for what o does. It must be called before Serve.
func (s *Server) Offer(o Serving) { s.serving = o }

// Serve accepts clients until Close or Drain, and returns nil then. It closes l.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return l.Close()
	}
	s.accepting.Add(1)
	s.mu.Unlock()
	defer s.accepting.Done()
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

// Drain stops accepting clients and waits until those there have gone, and requests to other interfaces have been answered,
// or ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	// Sessions are no requests any more: it does not wait for them.
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.stopAccepting()
	}
	select {
	case <-s.idleNow():
	case <-ctx.Done():
	}
	return err
}

// Busy returns how many clients there are.
func (s *Server) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Close cuts all clients off and returns when nothing of the server runs any more.
func (s *Server) Close() error {
	err := s.stopAccepting()
	s.mu.Lock()
	for c := range s.sessions {
		c.cut()
	}
	s.mu.Unlock()
	<-s.idleNow()
	s.accepting.Wait()
	return err
}

func (s *Server) stopAccepting() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if err := s.http.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the control socket: %w", err)
	}
	return nil
}

func (s *Server) idleNow() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle
}

// upgrade turns a request into a session, or says why not.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(protocolHeader, strconv.Itoa(Protocol))
	w.Header().Set(pidHeader, strconv.Itoa(os.Getpid()))
	if r.Header.Get("Upgrade") != upgradeProtocol || r.Header.Get(protocolHeader) != strconv.Itoa(Protocol) {
		w.Header().Set("Upgrade", upgradeProtocol)
		http.Error(w, fmt.Sprintf("this owner speaks %s %d", upgradeProtocol, Protocol), http.StatusUpgradeRequired)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		return
	}
	c, err := s.hijack(w)
	if err != nil {
		s.log.Warn("control: hand a connection over", "err", err)
		return
	}
	defer c.close()
	if !s.enter(c) {
		return
	}
	defer s.leave(c)
	// Only now: who has been answered counts as a client, which Drain waits for.
	if err := c.welcome(); err == nil {
		c.serve()
	}
}

func (s *Server) hijack(w http.ResponseWriter) (*session, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	return newSession(s, conn, bufio.NewReader(rw.Reader)), nil
}

func (s *Server) enter(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.sessions) == 0 {
		s.idle = make(chan struct{})
	}
	s.sessions[c] = struct{}{}
	return true
}

func (s *Server) leave(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c)
	if len(s.sessions) == 0 {
		close(s.idle)
	}
}
