package execd

import (
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Config is what a registry needs.
type Config struct {
	Dir      string // of its own, for logs and states; made when there is none
	Backends map[string]Backend
	Default  string // the backend of a spec that names none
	// Choose gives a spec whose backend is Auto another one, and makes it one for that backend; why is told to whoever asks.
	// Nil when nothing is left to choose.
	Choose func(*Spec) (why string)
	// Open opens the workspace of an exec: ErrNoWorkspace when there is none.
	Open func(ctx context.Context, name string) (Workspace, error)
	// Keep keeps the process from ending until release is called; nil when nothing would end it.
	Keep func() (release func(), err error)
	// AEAD gives each exec a cipher, always the same, for what is written down of it; it makes its own nonces. Nil, or when it
	// returns nil: that can be read by who can read Dir.
	AEAD       func(id string) (cipher.AEAD, error)
	Log        *slog.Logger
	LogSize    int64 // DefaultLogSize when zero
	MaxRunning int   // MaxRunning when zero
}

// Registry is the execs of a daemon: those that run and those that ended not long ago. Its methods are safe for
// concurrent use.
type Registry struct {
	config Config
	stop   chan struct{}  // closed by Close
	owned  sync.WaitGroup // the sweeper, and one for each exec that runs

	mu      sync.Mutex
	closed  bool
	execs   map[string]*Exec
	running int
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Open returns a registry with the execs of the one before it. Those that were running then are lost.
func Open(config Config) (*Registry, error) {
	config.LogSize = cmp.Or(config.LogSize, DefaultLogSize)
	config.MaxRunning = cmp.Or(config.MaxRunning, MaxRunning)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Keep == nil {
		config.Keep = func() (func(), error) { return func() {}, nil }
	}
	r := &Registry{config: config, stop: make(chan struct{}), execs: map[string]*Exec{}}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(config.Dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		r.adopt(entry.Name())
	}
	r.owned.Go(r.sweep)
	return r, nil
}

// adopt takes an exec of another daemon. One that is damaged is left, for a person to look at: it must not keep the daemon
// from starting.
func (r *Registry) adopt(id string) {
	e, err := r.recover(id)
	if err != nil {
		r.config.Log.Error("an exec of before is damaged", "id", id, "err", err)
	} else if e != nil {
		r.execs[id] = e
	}
}

// Start starts an exec, or returns the one of that id. ErrBusy when as many run as may, ErrExist when the exec of that id
// was to do something else, ErrNotSupported for a backend that there is not, ErrNoWorkspace.
func (r *Registry) Start(ctx context.Context, spec Spec) (*Exec, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	spec = spec.normal()
	spec.Backend = cmp.Or(spec.Backend, r.config.Default)
	digest, why := spec.digest(), "" // of what was asked for: another daemon may choose otherwise
	if spec.Backend == Auto && r.config.Choose != nil {
		why = r.config.Choose(&spec)
	}
	backend := r.config.Backends[spec.Backend]
	if backend == nil {
		return nil, fmt.Errorf("exec backend %q: %w", spec.Backend, vfs.ErrNotSupported)
	}
	e, mine, err := r.claim(&spec, digest, why)
	if err != nil {
		return nil, err
	}
	if !mine {
		return e, e.started(ctx)
	}
	defer r.owned.Done() // of claim: Close waits for what is being started
	if err := e.start(ctx, backend, spec); err != nil {
		return nil, err
	}
	r.owned.Go(func() { e.run(spec.Timeout) })
	return e, nil
}

// started waits for somebody else's start of the same exec.
func (e *Exec) started(ctx context.Context) error {
	select {
	case <-e.ready:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.startErr
	case <-ctx.Done():
		return fmt.Errorf("start exec %s: %w", e.spec.ID, vfs.ErrInterrupted)
	}
}

// claim returns the exec of an id, making it when there is none: then it is the caller's to start.
func (r *Registry) claim(spec *Spec, digest [sha256.Size]byte, why string) (e *Exec, mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.execs[spec.ID]; e != nil {
		if e.digest != digest {
			return nil, false, fmt.Errorf("exec %s was to do something else: %w", spec.ID, vfs.ErrExist)
		}
		return e, false, nil
	}
	switch {
	case r.closed:
		return nil, false, fmt.Errorf("start an exec: the daemon is ending: %w", vfs.ErrClosed)
	case r.running >= r.config.MaxRunning:
		return nil, false, fmt.Errorf("start an exec: %d are running, which is the limit: %w", r.running, vfs.ErrBusy)
	}
	if spec.ID == "" {
		spec.ID = strings.ToLower(rand.Text()[:12])
	}
	seal, err := r.seal(spec.ID)
	if err != nil {
		return nil, false, fmt.Errorf("start exec %s: %w", spec.ID, err)
	}
	dir := filepath.Join(r.config.Dir, spec.ID)
	e = &Exec{
		registry: r, dir: dir, digest: digest, created: time.Now(), log: newLog(dir, r.config.LogSize, seal),
		ready: make(chan struct{}), done: make(chan struct{}), spec: spec.public(), why: why, state: StateStarting,
		feeds: newFeeds(),
	}
	r.execs[spec.ID] = e
	r.running++
	r.owned.Add(1)
	return e, true, nil
}

// seal returns that of what is written down of an exec.
func (r *Registry) seal(id string) (seal, error) {
	if r.config.AEAD == nil {
		return seal{}, nil
	}
	aead, err := r.config.AEAD(id)
	return seal{aead}, err
}

// drop forgets an exec that could not be started.
func (r *Registry) drop(e *Exec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.execs, e.spec.ID)
	r.running--
}

func (r *Registry) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
}

// Get returns an exec that was started: ErrNotExist when there is none of that id.
func (r *Registry) Get(id string) (*Exec, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.execs[id]
	if e == nil {
		return nil, fmt.Errorf("exec %q: %w", id, vfs.ErrNotExist)
	}
	return e, nil
}

// List returns all execs, those that were started first first.
func (r *Registry) List() []*Exec {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*Exec, 0, len(r.execs))
	for _, e := range r.execs {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *Exec) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.spec.ID, b.spec.ID))
	})
	return list
}

// Dispose forgets an exec, and kills it first when it is running.
func (r *Registry) Dispose(ctx context.Context, id string) error {
	e, err := r.Get(id)
	if err != nil {
		return err
	}
	if err := e.started(ctx); err != nil {
		return err
	}
	if err := e.Signal(int(unix.SIGKILL)); err != nil && !errors.Is(err, vfs.ErrClosed) {
		return err
	}
	if _, err := e.Wait(ctx); err != nil {
		return err
	}
	return r.forget(e)
}

func (r *Registry) forget(e *Exec) error {
	r.mu.Lock()
	delete(r.execs, e.spec.ID)
	r.mu.Unlock()
	if err := os.RemoveAll(e.dir); err != nil {
		return fmt.Errorf("forget exec %s: %w", e.spec.ID, err)
	}
	return nil
}

// sweep forgets execs that have been kept long enough, until Close.
func (r *Registry) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case now := <-tick.C:
			for _, e := range r.stale(now) {
				if err := r.forget(e); err != nil {
					r.config.Log.Error("forget an exec", "err", err)
				}
			}
		}
	}
}

// stale returns those that have ended too long ago, and the oldest of too many.
func (r *Registry) stale(now time.Time) []*Exec {
	var over []*Exec
	for _, e := range r.List() {
		if in := e.Info(); in.Result != nil {
			over = append(over, e)
		}
	}
	end := func(e *Exec) time.Time { return e.Info().Result.Ended }
	slices.SortStableFunc(over, func(a, b *Exec) int { return end(a).Compare(end(b)) })
	n := max(0, len(over)-MaxKept)
	for n < len(over) && now.Sub(end(over[n])) >= KeepFor {
		n++
	}
	return over[:n]
}

// Close kills what runs and returns when nothing of the registry does any more. It does not close the backends.
func (r *Registry) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.owned.Wait()
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	close(r.stop)
	var errs []error
	for _, e := range r.List() {
		<-e.ready
		if err := e.Signal(int(unix.SIGKILL)); err != nil && !errors.Is(err, vfs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	r.owned.Wait()
	return errors.Join(errs...)
}
