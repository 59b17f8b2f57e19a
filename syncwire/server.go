package syncwire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ServerConfig is what a server needs.
type ServerConfig struct {
	// Open returns the authority of a workspace, vfs.ErrNoWorkspace when there is none. It is called for each session.
	Open func(ctx context.Context, workspace string) (vfs.Authority, error)

	// Verifier decides on tokens.
	Verifier Verifier

	// ClientKeys, if set, lets in by QUIC and TCP only clients that show a key of which it says that it is known, and a
	// token all the same. It is asked for each stream, by many goroutines, and before anything is read of it. Of a key
	// that it does not know any more, CheckClientKeys ends the sessions.
	ClientKeys func(Fingerprint) bool

	// LocalUser, if set, lets processes of this process's own user in on unix sockets with an empty token, with the
	// rights that it holds and the subject "local". The kernel says who they are.
	LocalUser Rights

	// Services are what else may be asked of the server, by name.
	Services map[string]Service

	// Trace, if set, is told of every request, and of every update of a feed.
	Trace Trace

	Agent  string       // what the server says it is, for people
	Log    *slog.Logger // nil for none
	Peers  int          // sessions at a time; zero for 256
	Memory int64        // bytes of pushes and chunks that are received at a time; zero for 256 MiB
}

// Service is something that a server does beside replication, on a stream of its own.
type Service struct {
	// Rights are what a token must allow.
	Rights Rights
	// Serve has the stream until it returns; then the stream is closed. ctx ends with the session.
	Serve func(ctx context.Context, s ServiceStream) error
}

// ServiceStream is a stream on which a service talks.
type ServiceStream struct {
	Stream
	Workspace string
	Authority vfs.Authority
	Peer      vfs.PeerID
	Subject   string
	Rights    Rights
}

// Server serves authorities to clients. Its methods may be called from any goroutine.
type Server struct {
	config   ServerConfig
	log      *slog.Logger
	memory   *semaphore.Weighted
	unknown  *semaphore.Weighted // streams without a session
	failures failures
	stats    serverCounters

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	group  sync.WaitGroup // a goroutine for each stream, each Serve and each Drain; see enter

	mu        sync.Mutex
	sessions  map[sessionKey]*session
	listeners map[socketReporter]struct{}
	arrived   chan struct{} // closed when a session comes or goes
	draining  bool
	closed    bool
}

// NewServer returns a server that serves nothing yet.
func NewServer(config ServerConfig) *Server {
	if config.Peers == 0 {
		config.Peers = defaultPeers
	}
	if config.Memory == 0 {
		config.Memory = defaultMemory
	}
	s := &Server{
		config: config, log: config.Log, memory: semaphore.NewWeighted(config.Memory),
		unknown: semaphore.NewWeighted(maxUnknown), sessions: make(map[sessionKey]*session), arrived: make(chan struct{}),
		listeners: make(map[socketReporter]struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// share is how much of the memory one session may have.
func (s *Server) share() int64 { return max(1, s.config.Memory/4) }

// Serve takes streams from a listener until ctx ends or the server is closed, and then closes the listener. It returns nil
// then, and what the listener said when it fails before. A server may have several listeners.
func (s *Server) Serve(ctx context.Context, l Listener) error {
	defer l.Close()
	if !s.enter() {
		return nil
	}
	defer s.group.Done()
	defer s.report(l)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for {
		if s.unknown.Acquire(ctx, 1) != nil {
			return nil
		}
		stream, err := l.Accept(ctx)
		if err != nil {
			s.unknown.Release(1)
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accept on %v: %w", l.Addr(), err)
		}
		s.group.Go(func() { s.receive(stream) })
	}
}

// report has Stats tell of a listener's socket, if it has one, until done is called.
func (s *Server) report(l Listener) (done func()) {
	r, ok := l.(socketReporter)
	if !ok {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[r] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, r)
	}
}

// enter has Close wait for one more, until group.Done. It reports false, and does not, when the server has been closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.group.Add(1)
	}
	return !s.closed
}

// Close ends all sessions at once, and waits until nothing of the server runs any more.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(ErrDraining)
	s.group.Wait()
	return nil
}

// Drain takes no new sessions, tells the clients to go, and closes the server when they have, or when ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	seconds := uint32(0)
	if deadline, ok := ctx.Deadline(); ok {
		seconds = uint32(max(0, time.Until(deadline)/time.Second))
	}
	if !s.enter() {
		return s.Close()
	}
	s.mu.Lock()
	s.draining = true
	for _, session := range s.sessions {
		s.group.Go(func() { session.control.send(&drain{Seconds: seconds}) })
	}
	s.mu.Unlock()
	s.group.Done()
	for ctx.Err() == nil {
		s.mu.Lock()
		n, arrived := len(s.sessions), s.arrived
		s.mu.Unlock()
		if n == 0 {
			break
		}
		select {
		case <-arrived:
		case <-ctx.Done():
		}
	}
	return s.Close()
}

// receive takes a stream from its first frame to its end.
func (s *Server) receive(stream Stream) {
	stream = &countedStream{stream, &s.stats}
	stop := context.AfterFunc(s.ctx, func() { stream.Close() })
	defer stop()
	r, w := newFrameReader(stream), newFrameWriter(stream)
	known := sync.OnceFunc(func() { s.unknown.Release(1) })
	defer known()
	err := s.first(stream, r, w, known)
	switch {
	case err == nil:
		linger(stream)
	case s.ctx.Err() != nil || isLost(err):
		stream.Close()
	default:
		s.stats.refused.Add(1)
		s.log.Info("stream refused", "peer", stream.Peer().Addr, "err", err)
		w.hangUp(err)
	}
}

// isLost reports whether an error says only that the stream is gone: there is nobody to tell.
func isLost(err error) bool {
	var sent *Error
	for _, s := range Errors() {
		if errors.Is(err, s) {
			return false
		}
	}
	var netErr net.Error
	return errors.As(err, &sent) || errors.As(err, &netErr) || isEnd(err)
}

// first reads the first frame of a stream and leads on to what the stream is for. known is to be called when it is known
// whose stream it is.
func (s *Server) first(stream Stream, r *frameReader, w *frameWriter, known func()) error {
	if err := s.knows(stream.Peer()); err != nil {
		s.stats.badKeys.Add(1)
		return err
	}
	stream.SetReadDeadline(time.Now().Add(helloTimeout))
	typ, body, err := r.next(maxFirstFrame)
	if err != nil {
		return err
	}
	stream.SetReadDeadline(time.Time{})
	switch typ {
	case frameHello:
		var m hello
		if err := decodeBody(body, &m); err != nil {
			return err
		}
		return s.hello(stream, r, w, &m, known)
	case frameOpen:
		var m open
		if err := decodeBody(body, &m); err != nil {
			return err
		}
		session, err := s.session(m.Session)
		if err != nil {
			return err
		}
		known()
		return session.serve(stream, r, w, &m)
	}
	return fmt.Errorf("a stream begins with %v: %w", typ, ErrProtocol)
}

// knows returns ErrClientKey for a client whose key is wanted and not known.
func (s *Server) knows(p StreamPeer) error {
	if s.config.ClientKeys == nil || p.Transport == "unix" || p.Key != (Fingerprint{}) && s.config.ClientKeys(p.Key) {
		return nil
	}
	if p.Key == (Fingerprint{}) {
		return fmt.Errorf("no key was shown: %w", ErrClientKey)
	}
	return fmt.Errorf("key %v: %w", p.Key, ErrClientKey)
}

// CheckClientKeys ends the sessions of clients whose keys are not known any more. It is for whoever has taken one away.
func (s *Server) CheckClientKeys() {
	s.mu.Lock()
	sessions := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	for _, t := range sessions {
		if err := s.knows(t.control.stream.Peer()); err != nil {
			t.cancel(err)
		}
	}
}

// session returns the session of a key, and waits for its hello, which may still be on its way.
func (s *Server) session(key sessionKey) (*session, error) {
	timeout := time.NewTimer(helloTimeout)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		session, arrived := s.sessions[key], s.arrived
		s.mu.Unlock()
		if session != nil {
			return session, nil
		}
		select {
		case <-arrived:
		case <-timeout.C:
			return nil, fmt.Errorf("open: no hello with that key: %w", ErrProtocol)
		case <-s.ctx.Done():
			return nil, ErrDraining
		}
	}
}

// hello begins a session, and has it until it ends.
func (s *Server) hello(stream Stream, r *frameReader, w *frameWriter, m *hello, known func()) error {
	version := m.version()
	if version == 0 {
		return fmt.Errorf("hello: versions %d to %d, this server speaks %d to %d: %w",
			m.Min, m.Max, minVersion, maxVersion, ErrVersion)
	}
	grant, err := s.verify(stream, m)
	if err != nil {
		return err
	}
	authority, err := s.config.Open(s.ctx, m.Workspace)
	if err != nil {
		return fmt.Errorf("open %q: %w", m.Workspace, err)
	}
	position, err := authority.Position(s.ctx)
	if err != nil {
		return fmt.Errorf("open %q: %w", m.Workspace, err)
	}
	session := newSession(s, m, grant, authority, w)
	defer session.end()
	if err := s.add(session); err != nil {
		return err
	}
	known()
	defer s.remove(session)
	if err := s.knows(stream.Peer()); err != nil { // it may have been taken away before CheckClientKeys saw the session
		return err
	}
	if err := w.send(session.welcome(version, position)); err != nil {
		return err
	}
	s.log.Info("session begins", "workspace", m.Workspace, "subject", grant.Subject, "peer", stream.Peer().Addr,
		"transport", stream.Peer().Transport, "agent", m.Agent)
	err = session.serveControl(stream, r)
	s.log.Info("session ends", "workspace", m.Workspace, "subject", grant.Subject, "peer", stream.Peer().Addr, "err", err)
	return err
}

// verify returns what the client may do.
func (s *Server) verify(stream Stream, m *hello) (Grant, error) {
	peer := stream.Peer()
	if len(m.Token) == 0 && s.config.LocalUser != 0 && peer.UID >= 0 && peer.UID == ownUID() {
		return Grant{Subject: "local", Rights: s.config.LocalUser}, nil
	}
	addr := peer.countedAs()
	if s.failures.refused(addr, time.Now()) {
		return Grant{}, fmt.Errorf("too many bad tokens from %s: %w", addr, ErrOverloaded)
	}
	if len(m.Token) == 0 || s.config.Verifier == nil {
		return Grant{}, ErrToken
	}
	grant, err := s.config.Verifier.Verify(s.ctx, m.Token, m.Workspace)
	if errors.Is(err, ErrToken) {
		s.failures.add(addr, time.Now())
		s.stats.badTokens.Add(1)
	}
	return grant, err
}

// add takes a session in, if there is room for it.
func (s *Server) add(session *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return ErrDraining
	case s.sessions[session.key] != nil:
		return fmt.Errorf("hello: the session key is in use: %w", ErrProtocol)
	case len(s.sessions) >= s.config.Peers:
		return fmt.Errorf("hello: %d peers are here: %w", len(s.sessions), ErrOverloaded)
	}
	s.sessions[session.key] = session
	s.stats.sessions.Add(1)
	s.announceLocked()
	return nil
}

func (s *Server) remove(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session.key)
	s.announceLocked()
}

func (s *Server) announceLocked() {
	close(s.arrived)
	s.arrived = make(chan struct{})
}
