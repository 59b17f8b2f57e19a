package exclusive

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Guard knows who writes each workspace of a server. Its methods may be called from any goroutine.
type Guard struct {
	mu    sync.Mutex
	books map[string]*book // by workspace
}

// book is what a guard knows of a workspace. There is one while it has something to know.
type book struct {
	held   bool
	holder vfs.PeerID
	expiry *time.Timer // while it is held and the holder has no stream
	claims []*claim    // in the order in which they came
	pushes map[vfs.PeerID]int
}

// claim is a stream.
type claim struct {
	peer    vfs.PeerID
	wants   bool
	changed chan struct{} // has room for one
}

// NewGuard returns a guard of workspaces that everybody may write.
func NewGuard() *Guard { return &Guard{books: make(map[string]*book)} }

func (g *Guard) bookLocked(workspace string) *book {
	b := g.books[workspace]
	if b == nil {
		b = &book{pushes: make(map[vfs.PeerID]int)}
		g.books[workspace] = b
	}
	return b
}

// enter takes in a stream.
func (g *Guard) enter(workspace string, peer vfs.PeerID, wants bool) *claim {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &claim{peer: peer, wants: wants, changed: make(chan struct{}, 1)}
	b := g.bookLocked(workspace)
	b.claims = append(b.claims, c)
	g.settleLocked(workspace, b)
	return c
}

// leave lets go of a stream that has ended. The holder keeps the workspace for a while.
func (g *Guard) leave(workspace string, c *claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.bookLocked(workspace)
	b.claims = slices.DeleteFunc(b.claims, func(o *claim) bool { return o == c })
	g.settleLocked(workspace, b)
}

// giveBack ends the claims of a stream's peer.
func (g *Guard) giveBack(workspace string, c *claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.bookLocked(workspace)
	for _, o := range b.claims {
		o.wants = o.wants && o.peer != c.peer
	}
	if b.held && b.holder == c.peer {
		b.held = false
	}
	g.settleLocked(workspace, b)
}

// expire ends the lease of a holder that has not come back.
func (g *Guard) expire(workspace string, timer **time.Timer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.books[workspace]
	if b == nil || b.expiry == nil || b.expiry != *timer {
		return // it has come back meanwhile
	}
	b.held = false
	g.settleLocked(workspace, b)
}

// settleLocked gives a workspace that nobody has to the first who claims it, has the lease of one who is not there expire, and tells
// everybody.
func (g *Guard) settleLocked(workspace string, b *book) {
	if !b.held {
		if i := slices.IndexFunc(b.claims, func(c *claim) bool { return c.wants }); i >= 0 {
			b.held, b.holder = true, b.claims[i].peer
		}
	}
	there := slices.ContainsFunc(b.claims, func(c *claim) bool { return c.peer == b.holder })
	switch {
	case b.expiry != nil && (!b.held || there):
		b.expiry.Stop()
		b.expiry = nil
	case b.expiry == nil && b.held && !there:
		timer := new(*time.Timer)
		*timer = time.AfterFunc(Grace, func() { g.expire(workspace, timer) })
		b.expiry = *timer
	}
	for _, c := range b.claims {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	if !b.held && len(b.claims) == 0 && len(b.pushes) == 0 {
		delete(g.books, workspace)
	}
}

// state is what a stream is to be told.
func (g *Guard) state(workspace string, c *claim) State {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.bookLocked(workspace)
	switch {
	case !b.held:
		return Free
	case b.holder == c.peer && b.aloneLocked():
		return Yours
	}
	return Others
}

// aloneLocked reports whether no push of another than the holder is under way.
func (b *book) aloneLocked() bool {
	for peer := range b.pushes {
		if peer != b.holder {
			return false
		}
	}
	return true
}

// begin takes in a push, unless the workspace is another's. end is to be called when it has been answered.
func (g *Guard) begin(workspace string, peer vfs.PeerID) (end func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.bookLocked(workspace)
	if b.held && b.holder != peer {
		return nil, fmt.Errorf("push: another mirror has the workspace to itself: %w", vfs.ErrReadOnly)
	}
	b.pushes[peer]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if b.pushes[peer]--; b.pushes[peer] == 0 {
			delete(b.pushes, peer)
			g.settleLocked(workspace, b)
		}
	}, nil
}

// Wrap returns the authority of a workspace, which takes pushes of the writer alone while there is one: ErrReadOnly.
func (g *Guard) Wrap(workspace string, a vfs.Authority) vfs.Authority {
	return &guarded{Authority: a, guard: g, workspace: workspace}
}

type guarded struct {
	vfs.Authority
	guard     *Guard
	workspace string
}

// Push implements vfs.Authority.
func (a *guarded) Push(ctx context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	end, err := a.guard.begin(a.workspace, peer)
	if err != nil {
		return vfs.Outcome{}, err
	}
	defer end()
	return a.Authority.Push(ctx, peer, p)
}
