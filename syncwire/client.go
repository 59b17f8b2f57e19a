package syncwire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ClientConfig is what a client needs.
type ClientConfig struct {
	// Dialer leads to the server.
	Dialer Dialer
	// Workspace is its name at the server.
	Workspace string
	// Mirror is the client's own id. It belongs to its state: leases and pushes of before are found under it.
	Mirror [16]byte
	// Token is asked for before each session, so that one that was renewed is used. Nil for none.
	Token func(ctx context.Context) ([]byte, error)
	Trace Trace        // if set, is told of every request
	Agent string       // what the client says it is, for people
	Log   *slog.Logger // nil for none
}

// Client is the authority of a workspace, at the other end of a connection. It connects when it is first used, and again,
// with growing pauses, whenever the connection is lost; a call waits for that as long as its context allows, and is made
// again where that is harmless. Pushes keep their id when they are.
//
// Beside the errors of an authority, a call gives ErrToken, ErrRights, ErrVersion, ErrFingerprint, ErrClientKey
// and vfs.ErrNoWorkspace when the server, or who is in its place, does not let the client in; the next call tries again. The
// peer of a call is not looked at: the server knows it. A Read that was cut off after its first record is not made again
// (lost connections are for Follow), and fails with an error that wraps io.ErrUnexpectedEOF or that of the network.
type Client struct {
	config ClientConfig
	log    *slog.Logger
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	group  sync.WaitGroup
	stats  clientCounters

	mu      sync.Mutex
	current *visit
	dialing *attempt      // under way; nil when there is none
	err     error         // of the last attempt
	pause   time.Duration // before the next attempt; zero after a session that worked
	closed  bool
}

var _ vfs.Authority = (*Client)(nil)

type clientCounters struct{ sessions, requests, retries atomic.Uint64 }

// ClientStats are the counters of a client.
type ClientStats struct {
	Connected bool
	Sessions  uint64 // that were begun: the first, and one more each time that it has connected again
	Requests  uint64 // that were made, those that were made again among them: each is a round trip
	Retries   uint64 // of calls, on another session
	Err       error  // why there is no session, or nil
}

// NewClient returns a client that is not connected yet.
func NewClient(config ClientConfig) *Client {
	c := &Client{config: config, log: config.Log}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// Close ends the session and all calls, and waits for what runs.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	v := c.current
	c.mu.Unlock()
	c.stop()
	if v != nil {
		v.end(vfs.ErrClosed)
	}
	c.group.Wait()
	return nil
}

// Stats returns how the client is doing.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ClientStats{
		Connected: c.current != nil, Sessions: c.stats.sessions.Load(), Requests: c.stats.requests.Load(),
		Retries: c.stats.retries.Load(), Err: c.err,
	}
}

// attempt is one try to begin a session. Whoever waits for it has what it ended with, whatever others have begun since.
type attempt struct {
	done chan struct{} // closed when it has ended:
	v    *visit        // in success; it may have ended as well
	err  error
}

// visit returns a session, and begins one when there is none.
func (c *Client) visit(ctx context.Context) (*visit, error) {
	for {
		v, a, err := c.join()
		if v != nil || err != nil {
			return v, err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, c.interrupted(ctx)
		}
		switch {
		case a.v != nil:
			return a.v, nil
		case isFinal(a.err):
			return nil, a.err
		}
	}
}

// join returns the session, or else an attempt to wait for, which it begins when there is none.
func (c *Client) join() (*visit, *attempt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, nil, fmt.Errorf("client: %w", vfs.ErrClosed)
	case c.current != nil:
		return c.current, nil, nil
	case c.dialing == nil:
		a := &attempt{done: make(chan struct{})}
		c.dialing = a
		c.group.Go(func() { c.dial(a) })
	}
	return nil, c.dialing, nil
}

// interrupted is the error of a call whose context has ended. When there was no connection, it says why.
func (c *Client) interrupted(ctx context.Context) error {
	if err := c.Stats().Err; err != nil {
		return fmt.Errorf("%w: no connection: %w", interrupted(ctx), err)
	}
	return interrupted(ctx)
}

// isFinal reports whether trying again is of no use until somebody has done something.
func isFinal(err error) bool {
	for _, final := range []error{
		ErrToken, ErrRights, ErrVersion, ErrFingerprint, ErrClientKey, ErrProtocol, vfs.ErrNoWorkspace,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// dial makes one attempt, after the pause that is due.
func (c *Client) dial(a *attempt) {
	c.mu.Lock()
	pause := c.pause
	c.mu.Unlock()
	a.v, a.err = c.attempt(pause)
	c.mu.Lock()
	if a.err != nil {
		c.err = a.err
		c.slowDownLocked()
	} else if !a.v.gone {
		c.current = a.v
	}
	c.dialing = nil
	closed := c.closed
	c.mu.Unlock()
	close(a.done)
	switch {
	case a.err != nil:
		c.log.Debug("no connection", "workspace", c.config.Workspace, "err", a.err)
	case closed:
		a.v.end(vfs.ErrClosed)
	}
}

// dialTimeout is how long an attempt may take: a handshake that loses its first packets twice.
const dialTimeout = 15 * time.Second

func (c *Client) attempt(pause time.Duration) (*visit, error) {
	ctx, cancel := context.WithTimeout(c.ctx, pause+dialTimeout)
	defer cancel()
	select {
	case <-time.After(pause - rand.N(pause/2+1)):
	case <-ctx.Done():
		return nil, interrupted(ctx)
	}
	var token []byte
	var err error
	if c.config.Token != nil {
		if token, err = c.config.Token(ctx); err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
	}
	link, err := c.config.Dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	v, err := newVisit(ctx, c, link, token)
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	c.group.Go(func() {
		<-v.done
		v.group.Wait()
	})
	c.stats.sessions.Add(1)
	return v, nil
}

func (c *Client) slowDownLocked() {
	c.pause = min(max(2*c.pause, firstRetry), lastRetry)
}

// welcomed is called when a session has been let in.
func (c *Client) welcomed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause, c.err = 0, nil
}

// ended is called when a session has ended.
func (c *Client) ended(v *visit, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(v)
	if v.welcome.Load() == nil {
		c.err = err
		c.slowDownLocked()
	}
	c.log.Debug("session ends", "workspace", c.config.Workspace, "err", err)
}

// forget lets the next call begin another session.
func (c *Client) forget(v *visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(v)
}

func (c *Client) forgetLocked(v *visit) {
	v.gone = true
	if c.current == v {
		c.current = nil
	}
}

// maxRepeats is how often a call is made again although its session is there: a stream that breaks again and again is
// not for want of a connection.
const maxRepeats = 3

// retry calls f with a session, and with another one when that is lost.
func retry[T any](ctx context.Context, c *Client, f func(*visit) (T, error)) (T, error) {
	for repeats := 0; ; {
		v, err := c.visit(ctx)
		if err != nil {
			return *new(T), err
		}
		done := v.use()
		out, err := f(v)
		done()
		var own *ownError
		if errors.As(err, &own) {
			return out, own.err
		}
		if err != nil && ctx.Err() != nil {
			return out, c.interrupted(ctx)
		}
		if err == nil || !isGone(err) {
			return out, err
		}
		select {
		case <-v.done:
			if isFinal(err) {
				return out, errors.Unwrap(err)
			}
			if !errors.Is(err, ErrDraining) && !errors.Is(err, ErrOverloaded) && sentByPeer(err) {
				return out, errors.Unwrap(err)
			}
		case <-v.leaving:
		default:
			if repeats++; repeats == maxRepeats {
				return out, err
			}
		}
		c.stats.retries.Add(1)
	}
}

// ownError is what a function of the caller's has returned: it is given back as it is, whatever it wraps.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }

// asOwn marks an error of the caller's.
func asOwn(err error) error {
	if err == nil {
		return nil
	}
	return &ownError{err}
}

// sentByPeer reports whether a session was ended by an error that the server has sent.
func sentByPeer(err error) bool {
	var sent *Error
	return errors.As(err, &sent)
}
