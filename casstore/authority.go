package casstore

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Authority is a workspace as replication sees it: where its revisions are made. It implements vfs.Authority, whose
// contract holds for every method, and is good as long as the workspace is open.
//
// A workspace that nobody has used in this way costs nothing more than before. From the first use on its digest is kept
// up to date by each commit that changes it, and the store keeps what was replaced and removed for a window of
// revisions: see FORMAT.md, "Replication".
type Authority struct{ tree *Workspace }

var _ vfs.Authority = (*Authority)(nil)

// Authority returns the workspace as an authority. All of a workspace are the same one.
func (w *Workspace) Authority() *Authority { return &Authority{tree: w} }

// call runs an operation of an authority, on a workspace whose standing is known, and keeps the store from being closed
// under it.
func (a *Authority) call(ctx context.Context, name string, op func() error) error {
	err := a.tree.enter()
	if err == nil {
		defer a.tree.store.calls.Done()
		if err = a.tree.serve(ctx); err == nil {
			err = op()
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// enter counts a call that Store.Close waits for.
func (w *Workspace) enter() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return vfs.ErrClosed
	}
	w.store.calls.Add(1)
	return nil
}

// alive returns an error when a call need not go on.
func (w *Workspace) alive(ctx context.Context) error {
	select {
	case <-w.ended:
		return vfs.ErrClosed
	case <-ctx.Done():
		return vfs.ErrInterrupted
	default:
		return nil
	}
}

// Position implements vfs.Authority.
func (a *Authority) Position(ctx context.Context) (p vfs.Position, err error) {
	err = a.call(ctx, "position", func() error {
		p, _ = a.tree.position()
		return a.tree.alive(ctx)
	})
	return p, err
}

// Wait implements vfs.Authority. While somebody waits, a change of the tree is committed after feedDelay.
func (a *Authority) Wait(ctx context.Context, after vfs.Rev) (p vfs.Position, err error) {
	err = a.call(ctx, "wait", func() error {
		w := a.tree
		p, _ = w.position()
		if p.Rev > after {
			return nil
		}
		w.await(1)
		defer w.await(-1)
		for {
			var moved <-chan struct{}
			if p, moved = w.position(); p.Rev > after {
				return nil
			}
			select {
			case <-moved:
			case <-w.ended:
			case <-ctx.Done():
			}
			if err := w.alive(ctx); err != nil {
				return err
			}
		}
	})
	return p, err
}

// await counts those who wait for a revision.
func (w *Workspace) await(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += n
	if w.waiting > 0 && len(w.dirty) > 0 {
		w.store.committer.hurry()
	}
}

// Barrier implements vfs.Authority.
func (a *Authority) Barrier(ctx context.Context) (p vfs.Position, err error) {
	err = a.call(ctx, "barrier", func() error {
		_, err := a.tree.store.committer.commit(ctx, request{tree: a.tree, whole: true})
		p, _ = a.tree.position()
		return err
	})
	return p, err
}
