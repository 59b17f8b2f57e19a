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
func (s *Store) Fork(ctx context.Context, workspace, when, name string) (info Info, err error) {
	err = checkWorkspaceName(name)
	if err == nil && when == "" {
		err = s.whole(ctx, workspace, func(v *revision, ws workspaceID) error {
			info, err = v.fork(ws, 0, name)
			return err
		})
	} else if err == nil {
		info, err = s.forkAt(ctx, workspace, when, name)
	}
	if err != nil {
		if when != "" {
			workspace += "@" + when
		}
		return Info{}, fmt.Errorf("fork %q from %q: %w", name, workspace, err)
	}
	return info, nil
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
	f := forkRecord(s.origins(ws))
	if rev > 0 || len(f) == 0 || v.ownRecords(ws) {
		if rev == 0 {
			rev = v.stateOf(ws)
		}
		f = append(forkRecord{{ws, rev}}, f...)
	}
	if len(f) > maxOrigins {
		return info, fmt.Errorf("it is a fork of a fork, %d times over: %w", maxOrigins, vfs.ErrNotSupported)
	}
	info = Info{
		ID: s.nextWS.Add(1) - 1, Name: name, Created: s.now(), Rev: v.rev, Origin: uint64(f[0].ws), OriginRev: f[0].rev,
	}
	id := workspaceID(info.ID)
	rec := workspaceRecord{created: info.Created, name: name}
	if err := v.inheritQuota(id, ws, at); err != nil {
		return info, err
	}
	v.kvs = append(v.kvs, kv{key: keyOfWorkspace(id), value: rec.encode()}, kv{key: keyOfFork(id), value: f.encode()})
	v.forked = append(v.forked, newFork{id, f})
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

// newFork is a fork that a revision makes.
type newFork struct {
	ws      workspaceID
	origins forkRecord
}

// ownRecords reports whether a fork differs from what it began with, after the revision.
func (v *revision) ownRecords(ws workspaceID) bool { return v.changes(ws) || v.store.hasRecords(ws) }

// dropFork removes what makes a workspace that goes a fork.
func (v *revision) dropFork(ws workspaceID) {
	if len(v.store.origins(ws)) > 0 {
		v.kvs = append(v.kvs, kv{key: keyOfFork(ws)})
		v.unforked = append(v.unforked, ws)
	}
}
