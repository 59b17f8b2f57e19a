package casstore

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Past is the snapshots of one workspace, whatever its name is meanwhile. It is a value, and stays good until the store is
// closed; of a workspace that has been removed it has none.
type Past struct {
	store *Store
	ws    workspaceID
}

// Past returns the workspace's snapshots.
func (w *Workspace) Past() Past { return Past{w.store, w.id} }

// Past returns the snapshots of the workspace that the view is of, younger ones too.
func (v *View) Past() Past { return Past{v.store, v.held.ws} }

// Changed returns when a snapshot of any workspace was made or removed last, in this life of the store: another time after each
// that did, and after the snapshot is there or gone.
func (p Past) Changed() vfs.Time { return vfs.Time(p.store.snapshotsAt.Load()) }

// Snapshots returns the snapshots there are, the oldest first.
func (p Past) Snapshots(context.Context) ([]Snapshot, error) {
	list, err := p.store.snapshotsOf(p.ws)
	if err != nil {
		return nil, fmt.Errorf("snapshots of workspace %d: %w", p.ws, err)
	}
	return list, nil
}

// Snapshot returns one of them. ErrNoRevision when there is none of that name.
func (p Past) Snapshot(_ context.Context, name string) (Snapshot, error) {
	rec, err := p.store.snapshot(p.ws, name)
	if err != nil {
		return Snapshot{}, fmt.Errorf("workspace %d: %w", p.ws, err)
	}
	return rec.named(name), nil
}

// Open returns the workspace as a snapshot shows it. Unlike one of [Store.OpenView], the view ends with the snapshot: once that
// is removed, calls give ErrNoRevision, and nothing is kept for the view. ErrNoRevision when the snapshot is gone already, or
// another has its name.
func (p Past) Open(ctx context.Context, sn Snapshot) (*View, error) {
	v, err := p.open(ctx, sn)
	if err != nil {
		return nil, fmt.Errorf("open snapshot %q of workspace %d: %w", sn.Name, p.ws, err)
	}
	return v, nil
}

func (p Past) open(ctx context.Context, sn Snapshot) (*View, error) {
	s := p.store
	h := held{pin: pin{ws: p.ws, rev: sn.Rev, n: 1}, origins: s.origins(p.ws)}
	if err := s.hold(&h); err != nil {
		return nil, err
	}
	v, err := s.viewOf(h, sn.Name)
	if err != nil {
		return nil, err
	}
	// From here on whoever removes the snapshot ends the view. Before, he did not know of it.
	now, err := p.Snapshot(ctx, sn.Name)
	if err == nil && now != sn {
		err = fmt.Errorf("another one has the name: %w", vfs.ErrNoRevision)
	}
	if err != nil {
		v.end(err)
		return nil, err
	}
	return v, nil
}

// endViews ends what was opened of a snapshot that has been removed; of all of a workspace when the name is empty.
func (s *Store) endViews(ws workspaceID, snapshot string) {
	for _, v := range s.openViews() {
		if v.held.ws == ws && v.snapshot != "" && (snapshot == "" || v.snapshot == snapshot) {
			v.end(fmt.Errorf("snapshot %q was removed: %w", v.snapshot, vfs.ErrNoRevision))
		}
	}
}

// snapshotsChanged notes that the snapshots are others now.
func (s *Store) snapshotsChanged() {
	for {
		was := s.snapshotsAt.Load()
		if s.snapshotsAt.CompareAndSwap(was, max(was+1, int64(s.now()))) {
			return
		}
	}
}
