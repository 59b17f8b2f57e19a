package casstore

import (
	"context"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Incoming is what a replica takes over from its authority, as one revision.
type Incoming struct {
	// Records are put into the live tree, all at once; the base of each is that of the record which the replica has. They
	// make a valid tree of a valid one, as vfs.CheckPush says, but may refer to chunks that are not here. The authority has
	// them, unless Bases says otherwise.
	Records []vfs.PushRecord
	// Mending says that the tree which the replica has may be none, and that Records are held to vfs.CheckMending.
	Mending bool
	// Raw records are written as they are, unchecked and past the live tree: of inodes that nobody has seen yet. Those that
	// were changed here all the same are left as they are.
	Raw   []vfs.Record
	Bases []Basis
	Notes []Note

	// Of a workspace that takes over what it was, or what another is:
	kind RevisionKind
	also func(*revision) error // writes what goes with it
}

// Apply takes over what came from the authority. When records have another base, because they were changed meanwhile,
// their keys are returned and nothing has happened; all changes up to then have their basis. ErrBusy when the tree keeps
// changing there, ErrInvalid for what would not be a tree.
func (r *Replica) Apply(ctx context.Context, in Incoming) (stale []vfs.Key, err error) {
	w := r.tree
	err = w.Authority().call(ctx, "apply", func() error {
		vfs.WillBlock(ctx)
		j := &pushJob{
			tree: w, push: &vfs.Push{Records: in.Records}, origin: vfs.OriginOf(ctx), done: make(chan error, 1), incoming: &in,
		}
		err := w.store.committer.push(ctx, j)
		for _, rec := range j.outcome.Stale {
			stale = append(stale, rec.Key)
		}
		return err
	})
	return stale, err
}

// write has a revision write what goes with the records.
func (in *Incoming) write(v *revision, w *Workspace) error {
	for i := range in.Records {
		w.store.seen(in.Records[i].Ino)
	}
	for i := range in.Raw {
		w.store.seen(in.Raw[i].Ino)
	}
	if err := in.writeBases(v, w); err != nil {
		return err
	}
	v.keepNotes(w.id, in.Notes)
	if w.replica != nil {
		v.saveNumbers(w)
	}
	if in.also != nil {
		return in.also(v)
	}
	return nil
}

// writeBases has a revision write the bases. What the replica has under a key that is in no record may have changed since the
// caller has looked: then it is not what the authority has any more, and keeps a basis, or nobody would know of the change.
func (in *Incoming) writeBases(v *revision, w *Workspace) error {
	if w.replica == nil {
		return nil
	}
	head := w.store.reader()
	defer head.Close()
	written := make(map[vfs.Key]bool, len(in.Records))
	for i := range in.Records {
		key := in.Records[i].Key
		written[key] = true
		// What was changed here meanwhile, and to the same, is not stale.
		if _, known, err := head.basis(w.id, key); err != nil {
			return err
		} else if known {
			v.setBasis(w, Basis{Key: key, Same: true})
		}
	}
	for _, b := range in.Bases {
		if b.Same && !written[b.Key] {
			now, err := head.value(w.id, b.Key)
			if err != nil {
				return err
			}
			b.Same = reconcile.Equal(now, b.Value)
		}
		v.setBasis(w, b)
	}
	return nil
}

// applyRaw writes the raw records of a job.
func (j *pushJob) applyRaw(r *reader) error {
	v := j.tree.store.newRevision()
	v.push, v.forced, v.kind = j, true, RevisionPush
	v.index = j.tree.store.chunks.uncommitted()
	c := &cut{tree: j.tree, gen: pushGen}
	for _, rec := range j.incoming.Raw {
		_, changed, err := r.basis(j.tree.id, rec.Key)
		if err != nil {
			return err
		}
		if changed {
			continue
		}
		c.kvs = append(c.kvs, kv{key: keyOfRecord(j.tree.id, rec.Key), value: rec.Value})
	}
	c.records = uint64(len(c.kvs))
	v.cuts = []*cut{c}
	return v.write(r)
}
