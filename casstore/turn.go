package casstore

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// turn is a lock for what takes long: who waits for it can give up.
type turn chan struct{} // holds a value while it is taken

func newTurn() turn { return make(turn, 1) }

// take waits until nobody else has the turn. ErrInterrupted when ctx ends first.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	vfs.WillBlock(ctx)
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return vfs.ErrInterrupted
	}
}

// give is the end of take.
func (t turn) give() { <-t }
