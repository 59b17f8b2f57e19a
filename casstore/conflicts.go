package casstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Conflicts returns what merges into a workspace could not merge, the oldest first, as long as it is not resolved.
// ErrNoWorkspace.
func (s *Store) Conflicts(ctx context.Context, workspace string) (list []reconcile.Listed, err error) {
	w, err := s.OpenWorkspace(ctx, workspace)
	if err == nil {
		defer w.leave()
		var known []reconcile.Recorded
		if known, err = w.conflicts(); err == nil {
			list, err = reconcile.List(ctx, w, known)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("conflicts of workspace %q: %w", workspace, err)
	}
	return list, nil
}

func (w *Workspace) conflicts() ([]reconcile.Recorded, error) {
	r := w.store.reader()
	defer r.Close()
	return r.conflicts(w.id)
}

// ResolveConflict ends a conflict of a workspace. ErrNoWorkspace, ErrNotExist when there is none of that number, or no copy
// to keep or to remove.
func (s *Store) ResolveConflict(ctx context.Context, workspace string, number uint64, how reconcile.Resolution) error {
	if err := s.resolveConflict(ctx, workspace, number, how); err != nil {
		return fmt.Errorf("resolve conflict %d of workspace %q: %w", number, workspace, err)
	}
	return nil
}

func (s *Store) resolveConflict(ctx context.Context, workspace string, number uint64, how reconcile.Resolution) error {
	if !how.Valid() {
		return fmt.Errorf("keep %q: %w", how, vfs.ErrInvalid)
	}
	w, err := s.OpenWorkspace(ctx, workspace)
	if err != nil {
		return err
	}
	defer w.leave()
	known, err := w.conflicts()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(known, func(r reconcile.Recorded) bool { return r.Number == number })
	if i < 0 {
		return vfs.ErrNotExist
	}
	if err := reconcile.Resolve(ctx, w, known[i].Conflict, how); err != nil {
		return err
	}
	return s.whole(ctx, workspace, func(v *revision, ws workspaceID) error {
		v.keepNotes(ws, []Note{{Name: NoteOfConflict(number)}})
		return nil
	})
}
