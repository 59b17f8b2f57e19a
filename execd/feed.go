package execd

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// feeds are what callers have given an exec that may have to give it again: over a connection that breaks nobody knows how much of
// the last call was taken.
type feeds struct {
	turn  chan struct{}     // holds an element while input of a feed is given, and what follows is used
	taken map[string]uint64 // bytes, by the name of the feed
}

func newFeeds() feeds { return feeds{make(chan struct{}, 1), map[string]uint64{}} }

// Feed gives the exec p as what a feed, by its name, has from offset on, and returns how many bytes of the feed were taken from its
// beginning, also with an error. What was taken before is not taken again, so that a call may be repeated until one is answered:
// the second waits until the first is over. A feed has one caller. ErrInvalid for what leaves a gap, or no name (as those of execs
// are); ErrBusy when there are too many feeds; and the errors of Input.
func (e *Exec) Feed(ctx context.Context, feed string, offset uint64, p []byte) (taken uint64, err error) {
	process, err := e.running("input")
	if err == nil && !validID(feed) {
		err = fmt.Errorf("feed %q: %w", feed, vfs.ErrInvalid)
	}
	if err != nil {
		return 0, err
	}
	f := &e.feeds
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("input to exec %s: %w", e.ID(), vfs.ErrInterrupted)
	}
	taken, known := f.taken[feed]
	switch {
	case !known && len(f.taken) >= MaxFeeds:
		return 0, fmt.Errorf("input to exec %s: it has had %d feeds, which is the limit: %w", e.ID(), MaxFeeds, vfs.ErrBusy)
	case offset > taken:
		return taken, fmt.Errorf("input to exec %s from byte %d on of feed %q, of which %d were taken: %w", e.ID(), offset, feed, taken, vfs.ErrInvalid)
	case taken-offset >= uint64(len(p)):
		return taken, nil
	}
	n, err := process.Input(ctx, p[taken-offset:])
	f.taken[feed] = taken + uint64(n)
	return f.taken[feed], err
}
