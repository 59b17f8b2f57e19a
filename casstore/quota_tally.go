package casstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// The record of a quota says what the workspace's records use of it, so that opening one of a million files takes no time. Each
// revision that changes inodes of such a workspace looks at what they were: some microseconds for each.

// quotaChange is what a revision does to a quota of a workspace that is open.
type quotaChange struct {
	tree   *Workspace
	quota  *quota
	limits Quota
	used   quotaSums // by the records of the revision
	set    bool      // the limits are new
	fresh  bool      // it was counted for that
}

// quotaHeir is a fork that begins with the quota of a workspace, as the revision leaves that.
type quotaHeir struct {
	ws, from workspaceID
	rec      quotaRecord // as it was before
}

// setQuota has the revision give a workspace a quota, or take it away. It holds in memory from when the revision is durable.
func (v *revision) setQuota(ctx context.Context, w *Workspace, limits Quota) error {
	q := w.knownQuota()
	fresh := q == nil
	if fresh {
		if limits == (Quota{}) {
			return nil
		}
		var err error
		if q, err = w.countQuota(ctx, Quota{}); err != nil {
			return err
		}
	}
	v.quotas = append(v.quotas, quotaChange{tree: w, quota: q, limits: limits, used: q.stored, set: true, fresh: fresh})
	v.forced = true
	return nil
}

// tally has the revision write what is used of the quotas of the workspaces that it changes. old is at the head.
func (v *revision) tally(old *reader) error {
	for _, c := range v.cuts {
		q := c.tree.knownQuota()
		if q == nil {
			continue
		}
		ch := v.quotaChange(c.tree.id)
		if ch == nil {
			v.quotas = append(v.quotas, quotaChange{tree: c.tree, quota: q, limits: q.Quota, used: q.stored})
			ch = &v.quotas[len(v.quotas)-1]
		}
		change, err := c.usage(old)
		if err != nil {
			return err
		}
		ch.used = ch.used.plus(change)
	}
	for i := range v.quotas {
		switch ch := &v.quotas[i]; {
		case ch.limits == (Quota{}) && ch.set:
			v.kvs = append(v.kvs, kv{key: keyOfQuota(ch.tree.id)})
		case ch.limits == (Quota{}), !ch.set && ch.used == ch.quota.stored && ch.quota.saved:
		default:
			v.writeQuota(ch.tree.id, quotaRecord{Quota: ch.limits, used: ch.used, known: true})
		}
	}
	for _, h := range v.heirs {
		if ch := v.quotaChange(h.from); ch != nil {
			h.rec.used, h.rec.known = ch.used, true
		}
		v.writeQuota(h.ws, h.rec)
	}
	return nil
}

// quotaChange is what the revision does to the quota of a workspace, or nil.
func (v *revision) quotaChange(ws workspaceID) *quotaChange {
	for i := range v.quotas {
		if v.quotas[i].tree.id == ws {
			return &v.quotas[i]
		}
	}
	return nil
}

func (v *revision) writeQuota(ws workspaceID, rec quotaRecord) {
	v.kvs = append(v.kvs, kv{key: keyOfQuota(ws), value: rec.encode()})
	if rec.known {
		v.needs(secondFormat)
	}
}

// usage is what a cut changes of what the records use.
func (c *cut) usage(old *reader) (sums quotaSums, err error) {
	for _, e := range c.kvs {
		if e.key[0] != keyInode {
			continue
		}
		err := old.get(e.key, func(b []byte) error {
			rec, err := vfs.DecodeInode(b)
			sums.add(rec, -1)
			return err
		})
		if errors.Is(err, vfs.ErrNotExist) {
			err = nil
		}
		if err == nil && e.value != nil {
			var rec vfs.InodeRecord
			rec, err = vfs.DecodeInode(e.value)
			sums.add(rec, 1)
		}
		if err != nil {
			return sums, err
		}
	}
	return sums, nil
}

// applyQuotas has the workspaces know what the revision has done, which is durable.
func (v *revision) applyQuotas() {
	for _, ch := range v.quotas {
		ch.quota.stored, ch.quota.saved = ch.used, true
		if !ch.set {
			continue
		}
		if ch.limits == (Quota{}) {
			ch.tree.dropQuota(ch.quota)
			continue
		}
		ch.tree.mu.Lock()
		ch.quota.Quota = ch.limits
		ch.tree.mu.Unlock()
	}
}

// undoQuotas is for a revision that could not be made: what was counted for it is not needed.
func (v *revision) undoQuotas() {
	for _, ch := range v.quotas {
		if ch.fresh {
			ch.tree.dropQuota(ch.quota)
		}
	}
}

// inheritQuota has a fork begin with the quota of a workspace: as it is after the revision, or as it was at another one.
func (v *revision) inheritQuota(fork, from workspaceID, rev vfs.Rev) error {
	rec, err := v.store.quotaOf(from)
	if err != nil || rec.Quota == (Quota{}) {
		return err
	}
	if rev == 0 {
		v.heirs = append(v.heirs, quotaHeir{fork, from, rec})
		return nil
	}
	then := v.store.readerAt(rev)
	defer then.Close()
	was, err := then.quotaOf(from)
	rec.used, rec.known = was.used, was.known
	v.heirs = append(v.heirs, quotaHeir{ws: fork, rec: rec})
	return err
}

// checkQuotas: what a quota says is used is what the records use.
func (c *checker) checkQuotas() error {
	return c.r.scan([]byte{keyQuota}, nil, true, func(key, value []byte) (bool, error) {
		rec, err := decodeQuota(value)
		if err != nil || len(key) != 9 {
			c.problem(fmt.Sprintf("key %x", key), "is no quota: %v", err)
			return true, nil
		}
		ws := workspaceOfKey(key)
		if !rec.known {
			return true, nil
		}
		var used quotaSums
		err = c.scanPrefix(keyOfNode(keyInode, ws, 0)[:9], func(_, value []byte) {
			if rec, err := vfs.DecodeInode(value); err == nil {
				used.add(rec, 1)
			}
		})
		if err == nil && c.ctx.Err() == nil && used != rec.used {
			c.problem("workspace "+c.spaces[ws], "has %d bytes and %d inodes, its quota says %d and %d",
				used.bytes, used.inodes, rec.used.bytes, rec.used.inodes)
		}
		return c.ctx.Err() == nil, err
	})
}
