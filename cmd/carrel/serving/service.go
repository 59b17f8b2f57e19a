package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/machines"
	"github.com/carrelfs/carrel/cmd/carrel/token"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/syncwire"
	"github.com/carrelfs/carrel/syncwire/exclusive"
)

// keyName is the file of the server's key in the store's directory.
const keyName = "server.key"

// allRights are those of the store's own user at the unix socket.
const allRights = syncwire.RightRead | syncwire.RightWrite | syncwire.RightExec | syncwire.RightAdmin

// Config is what a service needs.
type Config struct {
	Store *casstore.Store
	Dir   string // the store's
	Agent string // what the server says it is
	Log   *slog.Logger
	// API puts the API of execs and files on a mux; nil when there is none.
	API      func(handle func(pattern string, h http.Handler), access api.Access)
	Machines *machines.Book // of those that have joined and run things; nil for none
	// Keep keeps the process from ending until release is called. Its error is why that cannot be.
	Keep func() (release func(), err error)
}

// Service serves a store while it is asked to. It implements control.Serving.
type Service struct {
	config Config

	mu      sync.Mutex
	claimed bool
	running *running // nil while nothing is served
}

var _ control.Serving = (*Service)(nil)

// New returns a service that serves nothing yet.
func New(config Config) *Service { return &Service{config: config} }

// Serve implements control.Serving.
func (s *Service) Serve(ctx context.Context, o control.ServeOptions, ready func(control.Served)) error {
	if err := s.claim(); err != nil {
		return err
	}
	defer s.letGo()
	release, err := s.config.Keep()
	if err != nil {
		return err
	}
	defer release()
	r, err := s.begin(o)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.set(r)
	s.config.Log.Info("serving", "udp", r.options.Listen, "tcp", r.options.TLS, "unix", r.options.Unix,
		"metrics", r.options.Metrics)
	ready(r.served())
	err = r.run(ctx)
	s.config.Log.Info("served", "err", err)
	return err
}

func (s *Service) claim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimed {
		return fmt.Errorf("serve: the store is being served already: %w", vfs.ErrBusy)
	}
	s.claimed = true
	return nil
}

func (s *Service) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed, s.running = false, nil
}

func (s *Service) set(r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = r
}

func (s *Service) now() *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Served implements control.Serving.
func (s *Service) Served(context.Context) ([]control.Served, error) {
	if r := s.now(); r != nil {
		return []control.Served{r.served()}, nil
	}
	return nil, nil
}

// TokensChanged implements control.Serving.
func (s *Service) TokensChanged(context.Context) error {
	if r := s.now(); r != nil {
		return r.tokens.Reload()
	}
	return nil
}

// running is one call of Serve.
type running struct {
	store       *casstore.Store
	log         *slog.Logger
	options     control.ServeOptions // as they turned out
	host        string
	fingerprint syncwire.Fingerprint
	since       time.Time
	tokens      *token.Verifier
	keys        *clientKeys    // nil for any
	machines    *machines.Book // nil for none
	shelf       *shelf
	server      *syncwire.Server
	sockets     *sockets
	draining    chan struct{} // closed when it ends
	api         *http.Server  // nil when it is not served
}

// begin does what can fail.
func (s *Service) begin(o control.ServeOptions) (*running, error) {
	id, err := syncwire.LoadIdentity(filepath.Join(s.config.Dir, keyName))
	if err != nil {
		return nil, err
	}
	r := &running{
		store: s.config.Store, log: s.config.Log, options: o, fingerprint: id.Fingerprint(), since: time.Now(),
		shelf: newShelf(s.config.Store, o.Workspaces), draining: make(chan struct{}),
	}
	if r.tokens, err = token.NewVerifier(s.config.Dir, s.config.Log); err != nil {
		return nil, err
	}
	guard := exclusive.NewGuard()
	config := syncwire.ServerConfig{
		Open: func(ctx context.Context, workspace string) (vfs.Authority, error) {
			a, err := r.shelf.open(ctx, workspace)
			if err != nil {
				return nil, err
			}
			return guard.Wrap(workspace, a), nil
		},
		Verifier: r.tokens, LocalUser: allRights, Agent: s.config.Agent, Log: s.config.Log,
		Services: map[string]syncwire.Service{exclusive.ServiceName: guard.Service()},
	}
	if r.machines = s.config.Machines; r.machines != nil {
		config.Services[machines.ServiceName] = r.machines.Service()
	}
	if o.ClientKeys != "" {
		keys, err := openClientKeys(o.ClientKeys, s.config.Log)
		if err != nil {
			return nil, err
		}
		r.keys, config.ClientKeys = keys, keys.knows
	}
	var h http.Handler
	var options []syncwire.ListenOption
	if o.API != "" && s.config.API != nil {
		h = r.apiHandler(s.config.API)
		options = append(options, r.byHTTP3(h))
	}
	if r.sockets, err = listen(s.config.Dir, &r.options, id, options...); err != nil {
		return nil, err
	}
	if r.options.Unix == "" {
		r.log.Warn("the store's path is too long for a unix socket in it: name one with --unix")
	}
	if h != nil {
		r.api = r.newAPI(h, id)
	}
	r.host = hostFor(r.options.Listen)
	r.server = syncwire.NewServer(config)
	return r, nil
}

// run serves until ctx ends or a socket fails, and then drains.
func (r *running) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	// Until the drain is over: clients that come then, and those who ask whether all is well, hear of it.
	drained, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	for _, l := range r.sockets.sync {
		group.Go(func() error { return r.server.Serve(drained, l) })
	}
	group.Go(func() error { return r.sample(ctx) })
	if r.sockets.metrics != nil {
		group.Go(func() error { return r.serveMetrics(drained, r.sockets.metrics) })
	}
	if r.api != nil {
		group.Go(func() error { return r.serveAPI(drained) })
	}
	group.Go(func() error {
		<-ctx.Done()
		defer stop()
		close(r.draining)
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
		defer cancel()
		return r.server.Drain(wait)
	})
	return errors.Join(group.Wait(), r.shelf.close())
}

// sample looks at the workspaces, and at the keys of clients, until ctx ends.
func (r *running) sample(ctx context.Context) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			r.look(ctx, now)
		}
	}
}

func (r *running) look(ctx context.Context, now time.Time) {
	if r.keys != nil && r.keys.changed() {
		r.server.CheckClientKeys()
	}
	inUse := map[string]struct{}{}
	for _, session := range r.server.Stats().Sessions {
		inUse[session.Workspace] = struct{}{}
	}
	if err := r.shelf.sample(ctx, inUse, now); err != nil {
		r.log.Error("close a workspace without sessions", "err", err)
	}
}

// served says how things are.
func (r *running) served() control.Served {
	now := time.Now()
	r.look(context.Background(), now)
	stats := r.server.Stats()
	served := control.Served{
		ServeOptions: r.options, Host: r.host, Fingerprint: r.fingerprint.String(), Since: r.since,
		Traffic: traffic(&stats),
	}
	for _, socket := range stats.Sockets {
		served.Sockets = append(served.Sockets, control.Socket(socket))
	}
	for _, session := range stats.Sessions {
		served.Peers = append(served.Peers, r.peer(session, now))
	}
	return served
}

func traffic(s *syncwire.ServerStats) control.Traffic {
	return control.Traffic{
		Sessions: s.Begun, Requests: s.Requests, Snapshots: s.Snapshots, Resumes: s.Resumes, Updates: s.Updates,
		WireIn: s.BytesIn, WireOut: s.BytesOut, Refused: s.Refused, BadTokens: s.BadTokens, BadKeys: s.BadKeys,
		Pushes: s.Pushes, StalePushes: s.StalePushes, MissingPushes: s.MissingPushes, ChunksIn: s.ChunksIn,
		ChunksOut: s.ChunksOut, BytesIn: s.ChunkBytesIn, BytesOut: s.ChunkBytesOut,
	}
}

func (r *running) peer(s syncwire.SessionStats, now time.Time) control.Peer {
	p := control.Peer{
		Workspace: s.Workspace, Subject: s.Subject, ID: s.Peer, Agent: s.Agent, Transport: s.Transport, Addr: s.Addr,
		GSO: s.GSO, Since: s.Since, Sent: s.Sent, Acked: s.Acked,
	}
	if r.machines != nil {
		p.Machine = r.machines.Name(s.Workspace, s.Peer)
	}
	if p.Head = r.shelf.head(s.Workspace); p.Sent != 0 && p.Acked < p.Head {
		p.Behind, p.Lag = r.shelf.lack(s.Workspace, s.Acked, now)
	}
	return p
}

// healthy returns nil when the store answers and sessions are taken.
func (r *running) healthy(ctx context.Context) error {
	select {
	case <-r.draining:
		return syncwire.ErrDraining
	default:
	}
	_, err := r.store.Workspaces(ctx)
	return err
}
