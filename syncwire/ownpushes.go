package syncwire

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// ownPushes are the newest pushes of a session that were applied, so that its feed can leave out what it has pushed.
//
// A feed may see a revision before the push that made it has returned. So whoever asks about a revision waits for the
// push that is under way: every revision that it can have seen was made by then, or by a push that has returned.
type ownPushes struct {
	turn chan struct{} // held while a push is under way, and to look
	ring []ownPush
}

type ownPush struct {
	rev vfs.Rev
	id  vfs.PushID
}

func newOwnPushes() ownPushes { return ownPushes{turn: make(chan struct{}, 1)} }

// take takes the turn.
func (o *ownPushes) take(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o *ownPushes) giveBack() { <-o.turn }

// push makes a push, in its turn, and remembers it if it made a revision.
func (o *ownPushes) push(
	ctx context.Context, id vfs.PushID, push func() (vfs.Outcome, error),
) (vfs.Outcome, error) {
	if err := o.take(ctx); err != nil {
		return vfs.Outcome{}, err
	}
	defer o.giveBack()
	outcome, err := push()
	if err == nil && outcome.Applied() && outcome.Position.Rev != outcome.Prev {
		if len(o.ring) == maxOwn {
			o.ring = append(o.ring[:0], o.ring[1:]...)
		}
		o.ring = append(o.ring, ownPush{outcome.Position.Rev, id})
	}
	return outcome, err
}

// made reports whether the session has made a revision.
func (o *ownPushes) made(ctx context.Context, rev vfs.Rev) (bool, error) {
	if err := o.take(ctx); err != nil {
		return false, err
	}
	defer o.giveBack()
	for _, p := range o.ring {
		if p.rev == rev {
			return true, nil
		}
	}
	return false, nil
}

// between returns the pushes that made revisions after since, up to rev.
func (o *ownPushes) between(ctx context.Context, since, rev vfs.Rev) (ids []vfs.PushID, err error) {
	if err := o.take(ctx); err != nil {
		return nil, err
	}
	defer o.giveBack()
	for _, p := range o.ring {
		if p.rev > since && p.rev <= rev {
			ids = append(ids, p.id)
		}
	}
	return ids, nil
}
