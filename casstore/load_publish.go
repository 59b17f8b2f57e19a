package casstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// publish makes everything that was loaded visible, as one revision.
func (l *loader) publish() error {
	defer l.unlock()
	err := l.store.edit(l.ctx, func(v *revision) error {
		p := revision{store: v.store, rev: v.rev} // which is dropped if anything fails
		left := changeBudget{maxLoadChanges, maxLoadChangeBytes}
		for _, sp := range l.spaces {
			if err := sp.publish(&p, &left); err != nil {
				return fmt.Errorf("workspace %q: %w", sp.name, err)
			}
		}
		if err := l.publishMerges(&p); err != nil {
			return err
		}
		if err := l.store.space.room(maxLoadChangeBytes - left.bytes); err != nil {
			return err
		}
		for _, st := range l.states {
			p.pins = append(p.pins, pin{st.space.id, st.rev, -1}) // what stays is pinned for itself
		}
		l.store.seen(l.lastIno)
		v.kvs, v.forked, v.pins = append(v.kvs, p.kvs...), append(v.forked, p.forked...), append(v.pins, p.pins...)
		v.kind, v.loaded, v.forced, v.snapshots = RevisionLoad, p.loaded, true, true
		l.report.Rev = v.rev
		return nil
	})
	l.published = err == nil
	return err
}

func (sp *loadedSpace) publish(v *revision, left *changeBudget) error {
	if sp.there != nil {
		return sp.publishChanges(v, left)
	}
	return sp.publishWhole(v)
}

// publishWhole makes a workspace that has come whole one like all others.
func (sp *loadedSpace) publishWhole(v *revision) error {
	s := v.store
	if err := s.nameFree(sp.name); err != nil {
		return err
	}
	v.kvs = append(v.kvs, kv{key: keyOfWorkspace(sp.id), value: sp.encode()}, kv{key: keyOfLoad(sp.id)})
	if len(sp.origins) > 0 {
		v.setFork(sp.id, forkRecord{parent: sp.origins[0], layers: sp.origins})
	}
	for _, sn := range sp.snapshots {
		rec := snapshotRecord{rev: sn.rev, created: sn.created, message: sn.message}
		v.kvs = append(v.kvs, kv{key: keyOfSnapshot(sp.id, sn.name), value: rec.encode()})
		v.pins = append(v.pins, pin{sp.id, sn.rev, 1})
	}
	s.changed[sp.id] = v.rev
	v.loaded = append(v.loaded, revisionPart{ws: sp.id})
	return nil
}

// publishChanges makes the changes of a workspace that was there. Nobody may have it open, and nobody can open it until unlock.
func (sp *loadedSpace) publishChanges(v *revision, left *changeBudget) error {
	s := v.store
	to := sp.there.layers[0]
	if err := s.isThere(to.ws); err != nil {
		return err
	}
	if err := s.lockOut(to.ws); err != nil {
		return err
	}
	sp.locked = to.ws
	r := s.reader()
	defer r.Close()
	err := r.records(to.ws, vfs.AllInos, to.rev, func(rec vfs.Record) error {
		return fmt.Errorf("it has changed meanwhile: %v: %w", rec.Key, vfs.ErrBusy)
	})
	if err != nil {
		return err
	}
	kvs, err := ownChanges(r, sp.id, to.ws, left)
	if err == nil {
		err = s.hideKeys(kvs, sp.there.layers[1:])
	}
	if err != nil {
		return err
	}
	v.kvs = append(v.kvs, kvs...)
	rec, err := r.quotaOf(to.ws)
	if err != nil {
		return err
	}
	if rec.Quota != (Quota{}) {
		v.writeQuota(to.ws, quotaRecord{Quota: rec.Quota}) // whoever opens it counts
	}
	s.changed[to.ws] = v.rev
	v.loaded = append(v.loaded, revisionPart{to.ws, uint64(len(kvs))})
	return nil
}

// changeBudget is what the changes may still take that a load makes at once in workspaces that are there.
type changeBudget struct{ keys, bytes int }

// ownChanges is what a fork has itself, as another workspace would have it. ErrTooBig when that goes beyond the budget, from
// which it is taken.
func ownChanges(r *reader, ws, as workspaceID, left *changeBudget) (kvs []kv, err error) {
	for _, kind := range inheritedKinds {
		err := r.scanOwn(keyOfNode(kind, ws, 0)[:9], func(item *badger.Item) (bool, error) {
			e := kv{key: origin{ws: as}.in(item.Key())}
			if !isWhiteout(item) {
				value, err := item.ValueCopy(nil)
				if err != nil {
					return false, badgerError(err, item.Key())
				}
				e.value = present(value)
			}
			kvs = append(kvs, e)
			left.keys--
			left.bytes -= len(e.key) + len(e.value)
			return left.keys >= 0 && left.bytes >= 0, nil
		})
		if err != nil {
			return nil, err
		}
		if left.keys < 0 || left.bytes < 0 {
			return nil, fmt.Errorf("more than %d changes or %d bytes of them: load a backup of all of it: %w",
				maxLoadChanges, maxLoadChangeBytes, vfs.ErrTooBig)
		}
	}
	return kvs, nil
}

// unlock is the end of lockOut, for what these have locked themselves.
func (l *loader) unlock() {
	for _, sp := range l.spaces {
		if sp.locked != 0 {
			l.store.unlock(sp.locked)
			sp.locked = 0
		}
	}
}

func (s *Store) isOpen(ws workspaceID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[ws] != nil
}

// dropAll lets go of what the load needs no more: all of it, when it has failed. What it cannot remove is removed when the
// store is opened.
func (l *loader) dropAll(ctx context.Context) error {
	l.staging.end()
	var errs []error
	if !l.published {
		for _, st := range l.states {
			errs = append(errs, l.store.unpin(ctx, pin{st.space.id, st.rev, -1}))
		}
	}
	for _, sp := range l.spaces {
		if sp.there != nil {
			sp.there.close()
		}
		if !l.published || sp.there != nil {
			errs = append(errs, l.store.dropLoad(ctx, sp.id))
		}
	}
	return errors.Join(errs...)
}

// unpin lets go of a revision.
func (s *Store) unpin(ctx context.Context, p pin) error {
	return s.edit(ctx, func(v *revision) error {
		v.pins, v.forced = append(v.pins, p), true
		return nil
	})
}

// dropLoad removes what was loaded under a number.
func (s *Store) dropLoad(ctx context.Context, ws workspaceID) error {
	err := s.purge(ctx, ws)
	if err == nil {
		err = s.edit(ctx, func(v *revision) error {
			v.kvs = append(v.kvs, kv{key: keyOfLoad(ws)})
			return nil
		})
	}
	return err
}

// dropLoads removes what loads have left that a crash has ended.
func (s *Store) dropLoads(ctx context.Context) error {
	left, err := s.loads()
	for _, ws := range left {
		if err == nil {
			err = s.dropLoad(ctx, ws)
		}
	}
	return err
}

// loads returns the workspaces that are being loaded, and those that a load which has failed has left.
func (s *Store) loads() (list []workspaceID, err error) {
	r := s.reader()
	defer r.Close()
	err = r.scan([]byte{keyLoad}, nil, false, func(key, _ []byte) (bool, error) {
		if len(key) != 9 {
			return false, fmt.Errorf("key %x: %w", key, vfs.ErrCorrupt)
		}
		list = append(list, workspaceOfKey(key))
		return true, nil
	})
	return list, err
}
