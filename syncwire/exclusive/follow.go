package exclusive

import (
	"context"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// Opener opens services: *syncwire.Client.
type Opener interface {
	OpenService(ctx context.Context, name string) (syncwire.Stream, error)
}

// givingBack is how long a client that ends waits for the server to have heard it.
const givingBack = time.Second

// Follow claims a workspace, or only watches it, and tells how things are, at least each RenewEvery, until ctx ends
// (vfs.ErrInterrupted: then it gives the workspace back) or the stream is lost. ErrNoService when the server does not know of this.
func Follow(ctx context.Context, o Opener, claim bool, told func(State)) error {
	s, err := o.OpenService(ctx, ServiceName)
	if err != nil {
		return err
	}
	defer s.Close()
	said := byte(sayWatch)
	if claim {
		said = sayClaim
	}
	if _, err := s.Write([]byte{said}); err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		s.SetWriteDeadline(time.Now().Add(givingBack))
		_, _ = s.Write([]byte{sayGiveBack}) // what is lost expires
		s.SetReadDeadline(time.Now().Add(givingBack))
	})
	defer func() {
		if !stop() {
			<-done
		}
	}()
	err = listenTo(ctx, s, told)
	if ctx.Err() != nil {
		return fmt.Errorf("writer: %w: %w", vfs.ErrInterrupted, context.Cause(ctx))
	}
	return fmt.Errorf("writer: %w", err)
}

// listenTo reads states until the stream ends: after ctx has, when the server has heard of that.
func listenTo(ctx context.Context, s syncwire.Stream, told func(State)) error {
	for {
		if ctx.Err() == nil {
			s.SetReadDeadline(time.Now().Add(Patience))
		}
		if ctx.Err() != nil { // the deadline may just have been overwritten
			s.SetReadDeadline(time.Now().Add(givingBack))
		}
		var b [1]byte
		n, err := s.Read(b[:])
		switch {
		case n == 1 && State(b[0]) > Others:
			return fmt.Errorf("state %d: %w", b[0], syncwire.ErrProtocol)
		case n == 1 && ctx.Err() == nil:
			told(State(b[0]))
		}
		if err != nil {
			return err
		}
	}
}
