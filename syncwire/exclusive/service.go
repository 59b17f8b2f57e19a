package exclusive

import (
	"context"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// ServiceName is what a server calls the service.
const ServiceName = "writer"

// State is what a server says of who may write, one byte.
type State byte

// States.
const (
	Free   State = 0 // everybody may
	Yours  State = 1
	Others State = 2
)

// What a client says, one byte.
const (
	sayWatch    = 0
	sayClaim    = 1
	sayGiveBack = 2
)

const (
	// RenewEvery is how often a server says it again.
	RenewEvery = 5 * time.Second
	// Patience is how long a writer that hears nothing may take it that it is the writer still: it has missed two.
	Patience = 15 * time.Second
	// Grace is how long a server keeps the workspace for a writer whose stream was lost. What that takes to notice comes on top.
	Grace = 30 * time.Second
)

// Service is the server's side. To watch needs the right to read, to claim that to write.
func (g *Guard) Service() syncwire.Service {
	return syncwire.Service{Rights: syncwire.RightRead, Serve: g.serve}
}

func (g *Guard) serve(ctx context.Context, s syncwire.ServiceStream) error {
	s.SetReadDeadline(time.Now().Add(Patience))
	var first [1]byte
	if _, err := s.Read(first[:]); err != nil {
		return nil // it is gone
	}
	s.SetReadDeadline(time.Time{})
	wants := first[0] == sayClaim
	switch {
	case first[0] != sayWatch && !wants:
		return fmt.Errorf("writer: begins with %d: %w", first[0], vfs.ErrInvalid)
	case wants && !s.Rights.Has(syncwire.RightWrite):
		return fmt.Errorf("writer: %w", syncwire.ErrRights)
	}
	c := g.enter(s.Workspace, s.Peer, wants)
	defer g.leave(s.Workspace, c)
	ctx, cancel := context.WithCancel(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		defer cancel()
		g.listen(s, c)
	}()
	defer func() {
		s.SetReadDeadline(time.Unix(1, 0))
		<-heard
	}()
	defer cancel()
	g.tell(ctx, s, c)
	return nil
}

// listen hears what a client says after its claim, until it has gone.
func (g *Guard) listen(s syncwire.ServiceStream, c *claim) {
	var b [1]byte
	for {
		n, err := s.Read(b[:])
		if n == 1 && b[0] == sayGiveBack {
			g.giveBack(s.Workspace, c)
			return
		}
		if err != nil {
			return
		}
	}
}

// tell says how things are until ctx ends or the client does not read.
func (g *Guard) tell(ctx context.Context, s syncwire.ServiceStream, c *claim) {
	tick := time.NewTicker(RenewEvery)
	defer tick.Stop()
	for {
		s.SetWriteDeadline(time.Now().Add(Patience))
		if _, err := s.Write([]byte{byte(g.state(s.Workspace, c))}); err != nil {
			return
		}
		select {
		case <-c.changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
