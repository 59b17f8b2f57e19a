package casstore

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Version is what a replica knows of a key: what it has itself, and what the authority had last.
type Version struct {
	Mine   []byte // nil: nothing
	Theirs []byte // the same as Mine unless Pending
	// Pending says that it was changed here, and the authority does not know that yet.
	Pending bool
}

// Edit is a key that was changed here and not at the authority.
type Edit struct {
	Key          vfs.Key
	Mine, Theirs []byte
}

// Versions returns what is known of keys, all at one revision.
func (r *Replica) Versions(keys []vfs.Key) ([]Version, error) {
	w := r.tree
	head := w.store.reader()
	defer head.Close()
	out := make([]Version, len(keys))
	for i, k := range keys {
		v := &out[i]
		var err error
		if v.Mine, err = head.value(w.id, k); err == nil {
			v.Theirs, v.Pending, err = head.basis(w.id, k)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", k, err)
		}
		if !v.Pending {
			v.Theirs = v.Mine
		}
	}
	return out, nil
}

// Names yields the names of the dirents or attributes of an inode, as the newest revision has them.
func (r *Replica) Names(kind vfs.KeyKind, ino vfs.Ino, yield func(string) bool) error {
	head := r.tree.store.reader()
	defer head.Close()
	v := pushView{r: head, ws: r.tree.id}
	return v.Names(kind, ino, yield)
}

// Pending yields the edits that the authority does not have, in the order of inode numbers, and returns the workspace's
// revision that they are of.
func (r *Replica) Pending(ctx context.Context, yield func(Edit) error) (rev vfs.Rev, err error) {
	w := r.tree
	err = w.Authority().call(ctx, "pending", func() error {
		head, p := w.editsReader()
		defer head.Close()
		rev = p.Rev
		return head.edits(vfs.AllInos, func(e Edit) error {
			if err := w.alive(ctx); err != nil {
				return err
			}
			return yield(e)
		})
	})
	return rev, err
}

// Theirs returns the digests of what the authority had of the inodes in ranges, as far as the replica knows.
func (r *Replica) Theirs(ctx context.Context, ranges []vfs.InoRange) (sums []vfs.Digest, err error) {
	w := r.tree
	err = w.Authority().call(ctx, "their digests", func() error {
		head, p := w.editsReader()
		defer head.Close()
		sums = make([]vfs.Digest, len(ranges))
		for i, in := range ranges {
			d := p.Digest
			if in != vfs.AllInos {
				if d, err = head.digest(w.id, in, func() error { return w.alive(ctx) }); err != nil {
					return err
				}
			}
			err := head.edits(in, func(e Edit) error {
				d.Remove(&vfs.Record{Key: e.Key, Value: e.Mine})
				d.Add(&vfs.Record{Key: e.Key, Value: e.Theirs})
				return nil
			})
			if err != nil {
				return err
			}
			sums[i] = d
		}
		return nil
	})
	return sums, err
}

// ReadTheirs yields the records of the inodes in a range as the authority had them, as far as the replica knows: in the
// order of inode numbers, those of one in any order.
func (r *Replica) ReadTheirs(ctx context.Context, in vfs.InoRange, yield func(vfs.Record) error) error {
	w := r.tree
	head, _ := w.editsReader()
	defer head.Close()
	edits := make(map[vfs.Key][]byte)
	var order []vfs.Record // of edits, for those that are no longer here
	err := head.edits(in, func(e Edit) error {
		edits[e.Key] = e.Theirs
		if e.Mine == nil && e.Theirs != nil {
			order = append(order, vfs.Record{Key: e.Key, Value: e.Theirs})
		}
		return nil
	})
	if err != nil {
		return err
	}
	upTo := func(ino vfs.Ino) error {
		for ; len(order) > 0 && order[0].Ino <= ino; order = order[1:] {
			if err := yield(order[0]); err != nil {
				return err
			}
		}
		return nil
	}
	err = head.records(w.id, in, 0, func(rec vfs.Record) error {
		if err := w.alive(ctx); err != nil {
			return err
		}
		if rec.Ino > 0 {
			if err := upTo(rec.Ino - 1); err != nil {
				return err
			}
		}
		if value, edited := edits[rec.Key]; edited {
			if rec.Value = value; value == nil {
				return nil
			}
		}
		return yield(rec)
	})
	if err == nil {
		err = upTo(in.Last)
	}
	return err
}
