package casstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Fork makes a workspace that begins as another one is now, with all bytes of files that are open, or was at a moment when
// when is not empty. It takes no longer and no more space for a large one: what the two have in common stays shared, and
// the fork goes on whatever becomes of the other. ErrNoWorkspace, ErrNoRevision, ErrExist, ErrInvalid.
//
// A fork of a fork of a fork is as good as any, however often that was done: what many of them have changed is put together in
// the background. Only when that has fallen far behind does this wait for it.
func (s *Store) Fork(ctx context.Context, workspace, when, name string) (info Info, err error) {
	err = checkWorkspaceName(name)
	if err == nil {
		info, err = s.forkOnce(ctx, workspace, when, name)
	}
	for errors.Is(err, errDeep) {
		if err = s.flattener.all(ctx, nil); err == nil {
			info, err = s.forkOnce(ctx, workspace, when, name)
		}
	}
	if err != nil {
		if when != "" {
			workspace += "@" + when
		}
		return Info{}, fmt.Errorf("fork %q from %q: %w", name, workspace, err)
	}
	return info, nil
}

// errDeep says that a fork would have too many layers, for now.
var errDeep = errors.New("too many layers")

func (s *Store) forkOnce(ctx context.Context, workspace, when, name string) (info Info, err error) {
	if when != "" {
		return s.forkAt(ctx, workspace, when, name)
	}
	err = s.whole(ctx, workspace, func(v *revision, ws workspaceID) error {
		info, err = v.fork(ws, 0, name)
		return err
	})
	return info, err
}

func (s *Store) forkAt(ctx context.Context, workspace, when, name string) (info Info, err error) {
	view, err := s.openView(workspace, when) // which keeps the revision until the fork does
	if err != nil {
		return info, err
	}
	defer view.Close()
	err = s.edit(ctx, func(v *revision) error {
		info, err = v.fork(view.held.ws, view.held.rev, name)
		return err
	})
	return info, err
}

// fork adds a fork of a workspace to the revision: as this leaves it, when rev is zero.
func (v *revision) fork(ws workspaceID, rev vfs.Rev, name string) (info Info, err error) {
	s := v.store
	if err := s.nameFree(name); err != nil {
		return info, err
	}
	if err := s.isThere(ws); err != nil {
		return info, err
	}
	if err := s.noReplica(ws); err != nil {
		return info, err
	}
	at := rev
	f, _ := s.forkOf(ws)
	own := rev > 0 || len(f.layers) == 0 || v.ownRecords(ws)
	if own || f.parent != f.layers[0] { // or it is what its own parent was then
		if rev == 0 {
			rev = v.stateOf(ws)
		}
		f.parent = origin{ws: ws, rev: rev}
	}
	if own {
		f.layers = append([]origin{f.parent}, f.layers...)
	}
	if len(f.layers) > maxOrigins {
		return info, errDeep
	}
	info = Info{ID: s.nextWS.Add(1) - 1, Name: name, Created: s.now(), Rev: v.rev}
	f.describe(&info)
	id := workspaceID(info.ID)
	rec := workspaceRecord{created: info.Created, name: name}
	if err := v.inheritQuota(id, ws, at); err != nil {
		return info, err
	}
	v.kvs = append(v.kvs, kv{key: keyOfWorkspace(id), value: rec.encode()})
	v.setFork(id, f)
	v.kind, v.of = RevisionFork, id
	s.changed[id] = v.rev
	return info, nil
}

// noReplica returns ErrNotSupported for a replica: it need not have all records and chunks, so no state of it can be kept.
func (s *Store) noReplica(ws workspaceID) error {
	replica, err := s.replicaOf(ws)
	if err == nil && replica != nil {
		err = fmt.Errorf("a replica has its history, snapshots and forks where its authority is: %w", vfs.ErrNotSupported)
	}
	return err
}

// isThere returns ErrNoWorkspace when a workspace has been removed.
func (s *Store) isThere(ws workspaceID) error {
	r := s.reader()
	defer r.Close()
	err := r.get(keyOfWorkspace(ws), func([]byte) error { return nil })
	if errors.Is(err, vfs.ErrNotExist) {
		err = vfs.ErrNoWorkspace
	}
	return err
}

// newFork is a fork that a revision makes, or makes another.
type newFork struct {
	ws workspaceID
	forkRecord
}

// setFork has a revision make a fork, or make it another.
func (v *revision) setFork(ws workspaceID, f forkRecord) {
	v.kvs = append(v.kvs, kv{key: keyOfFork(ws), value: f.encode()})
	v.forked = append(v.forked, newFork{ws, f})
	if !f.plain() {
		v.needs(secondFormat)
	}
}

// describe says what a fork was made of: the nearest that is known.
func (f forkRecord) describe(info *Info) {
	o := f.parent
	if o.ws == 0 {
		o = f.layers[0]
	}
	info.Origin, info.OriginRev = uint64(o.ws), o.shown(o.rev)
}

// ownRecords reports whether a fork differs from what it began with, after the revision.
func (v *revision) ownRecords(ws workspaceID) bool { return v.changes(ws) || v.store.hasRecords(ws) }
