package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Quota is what a workspace may hold. Zero: as much as there is room for.
type Quota struct {
	Bytes  uint64 // of its files, holes included: what Info says
	Inodes uint64 // with the root
}

// QuotaUse is a quota and what is used of it: by all files that have a name, and those without that are open.
type QuotaUse struct {
	Quota
	UsedBytes  uint64
	UsedInodes uint64
}

// quotaSums are what inodes use of a quota.
type quotaSums struct{ bytes, inodes int64 }

func (s quotaSums) plus(o quotaSums) quotaSums {
	return quotaSums{s.bytes + o.bytes, s.inodes + o.inodes}
}

// add counts a record in, or out when n is negative.
func (s *quotaSums) add(rec vfs.InodeRecord, n int64) {
	s.bytes += n * chargeOf(rec)
	s.inodes += n
}

// quotaRecord is the quota of a workspace, with what its records use of it, which each revision that changes them keeps right.
//
// Layout: bytes | inodes, uvarints, not both zero; then used bytes | used inodes, when they are known: of a fork of a moment in
// which there was no quota yet, and after a load has changed the workspace, they are counted by who opens it.
type quotaRecord struct {
	Quota
	used  quotaSums
	known bool
}

func (q quotaRecord) encode() []byte {
	b := binary.AppendUvarint(uvarint(q.Bytes), q.Inodes)
	if q.known {
		b = binary.AppendUvarint(b, uint64(q.used.bytes))
		b = binary.AppendUvarint(b, uint64(q.used.inodes))
	}
	return b
}

func decodeQuota(b []byte) (q quotaRecord, err error) {
	v, err := allUvarints(b)
	if err == nil && (len(v) != 2 && len(v) != 4 || v[0] == 0 && v[1] == 0) {
		err = vfs.ErrCorrupt
	}
	if err != nil {
		return quotaRecord{}, fmt.Errorf("quota record %x: %w", b, err)
	}
	q = quotaRecord{Quota: Quota{Bytes: v[0], Inodes: v[1]}, known: len(v) == 4}
	if q.known {
		q.used = quotaSums{int64(v[2]), int64(v[3])}
	}
	return q, nil
}

// quota is what a workspace that is open and has one uses. The tree's lock guards it, but for what is the committer's.
//
// Every inode in memory knows what it is charged with (inode.charged); what is only in the store is charged as its record
// says. A file is charged with its size, which is known when it is written to. How many bytes are in holes is not: small ones
// are filled when a file is flushed.
type quota struct {
	Quota
	bytes, inodes int64

	// The committer's:
	stored quotaSums // what the records at the head use
	saved  bool      // the store says so
}

// quotaOf returns the quota of a workspace: the zero one when it has none.
func (r *reader) quotaOf(ws workspaceID) (q quotaRecord, err error) {
	err = r.get(keyOfQuota(ws), func(b []byte) error {
		q, err = decodeQuota(b)
		return err
	})
	if errors.Is(err, vfs.ErrNotExist) {
		err = nil
	}
	return q, err
}

func (s *Store) quotaOf(ws workspaceID) (quotaRecord, error) {
	r := s.reader()
	defer r.Close()
	return r.quotaOf(ws)
}

// SetQuota bounds what a workspace may hold, from now on. When it holds more already, it can only shrink. A fork begins with
// the quota of what it was made of, and has its own. What mirrors push is bounded too, but no merge, restore or load. It
// counts all records of the workspace if that has not had a quota. ErrNoWorkspace, ErrNotSupported for a replica, ErrInvalid for
// more than 2^62 of either.
func (s *Store) SetQuota(ctx context.Context, workspace string, q Quota) error {
	if q.Bytes > maxQuota || q.Inodes > maxQuota {
		return fmt.Errorf("quota of workspace %q: %d bytes and %d inodes, at most %d: %w", workspace, q.Bytes, q.Inodes,
			uint64(maxQuota), vfs.ErrInvalid)
	}
	w, err := s.OpenWorkspace(ctx, workspace)
	if err == nil {
		defer w.leave()
		err = s.edit(ctx, func(v *revision) error {
			if err := errors.Join(s.noReplica(w.id), s.isThere(w.id)); err != nil {
				return err
			}
			return v.setQuota(ctx, w, q)
		})
	}
	if err != nil {
		return fmt.Errorf("quota of workspace %q: %w", workspace, err)
	}
	return nil
}

// Quota returns the quota of a workspace and what it holds. ErrNoWorkspace.
func (s *Store) Quota(ctx context.Context, workspace string) (use QuotaUse, err error) {
	w, err := s.OpenWorkspace(ctx, workspace)
	if err == nil {
		defer w.leave()
		use, err = w.quotaUse(ctx)
	}
	if err != nil {
		return QuotaUse{}, fmt.Errorf("quota of workspace %q: %w", workspace, err)
	}
	return use, nil
}

func (w *Workspace) quotaUse(ctx context.Context) (use QuotaUse, err error) {
	q := w.knownQuota()
	if q == nil { // it is counted, and not kept
		err = w.store.edit(ctx, func(*revision) error {
			if q = w.knownQuota(); q != nil {
				return nil // it has been set while this waited, and stays
			}
			var err error
			q, err = w.countQuota(ctx, Quota{})
			w.dropQuota(q)
			return err
		})
		if err != nil {
			return use, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return QuotaUse{Quota: q.Quota, UsedBytes: uint64(max(0, q.bytes)), UsedInodes: uint64(max(0, q.inodes))}, nil
}

func (w *Workspace) knownQuota() *quota {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quota
}

// loadQuota has a workspace that is being opened know its quota.
func (w *Workspace) loadQuota() error {
	rec, err := w.store.quotaOf(w.id)
	switch {
	case err != nil || rec.Quota == (Quota{}):
		return err
	case rec.known:
		w.quota = &quota{Quota: rec.Quota, bytes: rec.used.bytes, inodes: rec.used.inodes, stored: rec.used, saved: true}
		return nil
	}
	_, err = w.countQuota(context.Background(), rec.Quota)
	return err
}

// dropQuota ends counting, unless another quota has come.
func (w *Workspace) dropQuota(q *quota) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quota == q {
		w.quota = nil
	}
}

// countQuota has a workspace know what it uses. The head stands still. Everything in memory is charged at one moment, and
// changes from then on; the rest is what the records at the head say.
func (w *Workspace) countQuota(ctx context.Context, limits Quota) (*quota, error) {
	q := &quota{Quota: limits}
	r := w.store.reader()
	defer r.Close()
	w.mu.Lock()
	here := make(map[vfs.Ino]struct{}, len(w.inodes))
	w.quota = q
	for ino, n := range w.inodes {
		here[ino] = struct{}{}
		n.counted, n.charged = false, 0
		w.charge(n)
	}
	w.mu.Unlock()
	var rest quotaSums // of those that are not here
	err := r.scan(keyOfNode(keyInode, w.id, 0)[:9], nil, true, func(key, value []byte) (bool, error) {
		_, ino := nodeOfKey(key)
		rec, err := vfs.DecodeInode(value)
		q.stored.add(rec, 1)
		if _, again := here[ino]; !again {
			rest.add(rec, 1)
		}
		return ctx.Err() == nil, err
	})
	if err == nil && ctx.Err() != nil {
		err = vfs.ErrInterrupted
	}
	if err != nil {
		w.dropQuota(q)
		return q, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q.bytes += rest.bytes
	q.inodes += rest.inodes
	return q, nil
}

// chargeOf is what an inode costs of a quota that is as its record says.
func chargeOf(rec vfs.InodeRecord) int64 {
	if rec.Type != vfs.TypeRegular {
		return 0
	}
	return int64(rec.Size)
}

// charge has the quota know of an inode as it is now. The tree's lock is held.
func (w *Workspace) charge(n *inode) {
	if w.quota == nil {
		return
	}
	alive := !n.gone || w.isHeld(n)
	bytes := int64(0)
	if alive && n.regular() {
		bytes = int64(n.attr.Size)
	}
	q := w.quota
	q.bytes += bytes - n.charged
	switch {
	case alive && !n.counted:
		q.inodes++
	case !alive && n.counted:
		q.inodes--
	}
	n.counted, n.charged = alive, bytes
}

// roomForInode returns ErrQuota when there may be no more inodes. The tree's lock is held.
func (w *Workspace) roomForInode() error {
	if q := w.quota; q != nil && q.Inodes > 0 && q.inodes >= int64(q.Inodes) {
		return fmt.Errorf("%d inodes: %w", q.inodes, vfs.ErrQuota)
	}
	return nil
}

// roomFor returns ErrQuota when a file may not get a size. One that does not grow always may. The tree's lock is held.
func (w *Workspace) roomFor(n *inode, size uint64) error {
	q := w.quota
	if q == nil || q.Bytes == 0 || size <= uint64(n.charged) || q.bytes+int64(size)-n.charged <= int64(q.Bytes) {
		return nil
	}
	return fmt.Errorf("%d bytes of %d are used: %w", q.bytes, q.Bytes, vfs.ErrQuota)
}

// limitStatFS has statfs(2) show what the quota leaves.
func (w *Workspace) limitStatFS(st *vfs.StatFS) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.quota
	if q == nil {
		return
	}
	if q.Bytes > 0 {
		free := (q.Bytes - min(q.Bytes, uint64(max(0, q.bytes)))) / uint64(st.BlockSize)
		st.Blocks = q.Bytes / uint64(st.BlockSize)
		st.Free, st.Available = min(st.Free, free), min(st.Available, free)
		st.Free, st.Available = min(st.Free, st.Blocks), min(st.Available, st.Blocks)
	}
	if q.Inodes > 0 {
		st.Files = q.Inodes
		st.FilesFree = min(st.FilesFree, q.Inodes-min(q.Inodes, uint64(max(0, q.inodes))))
	}
}

// quota returns ErrQuota when a push would make more of a workspace than there may be.
func (p *pushPlan) quota() error {
	w := p.job.tree
	if p.job.incoming != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.quota
	if q == nil {
		return nil
	}
	var more quotaSums
	for _, node := range p.order {
		more = more.plus(node.usesMore(w))
	}
	if more.bytes > 0 && q.Bytes > 0 && q.bytes+more.bytes > int64(q.Bytes) {
		return fmt.Errorf("%d bytes more, %d of %d are used: %w", more.bytes, q.bytes, q.Bytes, vfs.ErrQuota)
	}
	if more.inodes > 0 && q.Inodes > 0 && q.inodes+more.inodes > int64(q.Inodes) {
		return fmt.Errorf("%d inodes more, %d of %d are used: %w", more.inodes, q.inodes, q.Inodes, vfs.ErrQuota)
	}
	return nil
}

// usesMore is how much more an inode uses after a push than before. What is removed and held is used until that ends, as when it is
// removed here.
func (node *plannedNode) usesMore(w *Workspace) (more quotaSums) {
	node.sees()
	n := node.n
	if node.record == nil {
		return more
	}
	was := quotaSums{}
	if n != nil && n.counted {
		was = quotaSums{-n.charged, -1}
	}
	switch {
	case node.removed():
		if w.holds[node.ino] > 0 {
			return more
		}
		return was
	case n != nil && n.attr.Type == node.rec.Type && !node.bytes: // which has its size from memory, if it is a file
		return quotaSums{0, was.inodes + 1}
	}
	more.add(node.rec, 1)
	return more.plus(was)
}
