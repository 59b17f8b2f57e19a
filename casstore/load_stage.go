package casstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// staging writes the records of one state after the other, where nobody sees them.
type staging struct {
	space   *loadedSpace // of the state that is open, or nil
	base    *reader      // that the state is on, or nil
	digest  vfs.Digest
	records []vfs.Record // not written yet
	size    int

	unreferred int           // chunks that have been stored since records were written
	loose      []chunk.Entry // these
	standIns   int           // records that stand for such chunks
}

// begin begins a state on a base, which it closes when it ends.
func (g *staging) begin(sp *loadedSpace, base *reader, d vfs.Digest) {
	*g = staging{space: sp, base: base, digest: d}
}

func (g *staging) end() {
	if g.base != nil {
		g.base.Close()
	}
	*g = staging{}
}

// open reports whether there is a state that has not ended.
func (g *staging) open() bool { return g.space != nil }

// add takes a record in.
func (g *staging) add(r vfs.Record) error {
	err := r.Key.Valid()
	if err == nil && r.Ino > maxIno {
		err = fmt.Errorf("a number above %d: %w", uint64(maxIno), vfs.ErrCorrupt)
	}
	if err == nil && r.Value != nil {
		err = validValue(&r)
	}
	if err == nil && r.Value == nil && g.base == nil {
		err = fmt.Errorf("removed of a whole state: %w", vfs.ErrCorrupt)
	}
	if err != nil {
		return fmt.Errorf("record %v: %w: %w", r.Key, vfs.ErrCorrupt, err)
	}
	if err := g.count(r); err != nil {
		return err
	}
	g.records = append(g.records, r)
	g.size += recordCost + len(r.Name) + len(r.Value)
	return nil
}

// validValue reports what no record may hold.
func validValue(r *vfs.Record) (err error) {
	switch r.Kind {
	case vfs.KeyInode:
		var rec vfs.InodeRecord
		if rec, err = vfs.DecodeInode(r.Value); err == nil {
			_, err = rec.ChunkRefs()
		}
	case vfs.KeyDirent:
		_, err = vfs.DecodeDirent(r.Value)
	case vfs.KeyXattr:
		if len(r.Value) > vfs.MaxXattrSize {
			err = vfs.ErrXattrTooBig
		}
	}
	return err
}

// count has the digest know of a record.
func (g *staging) count(r vfs.Record) error {
	if g.base == nil {
		g.digest.Add(&r)
		return nil
	}
	var change digestChange
	err := change.replace(g.base, g.base.known.ws, r)
	g.digest = g.digest.Plus(change.delta)
	return err
}

// flush writes the records as a revision, the last of a state if it is; then that stays readable.
func (g *staging) flush(ctx context.Context, s *Store, last bool) (vfs.Rev, error) {
	if err := s.space.admitRecords(ctx, g.size); err != nil {
		return 0, err
	}
	var rev vfs.Rev
	nodes, referred := make(map[chunk.ID]struct{}), make(map[chunk.ID]struct{})
	err := s.edit(ctx, func(v *revision) error {
		rev = v.rev
		for i := range g.records {
			r := &g.records[i]
			if r.Kind == vfs.KeyInode && r.Value != nil {
				if err := s.chunkRefs(ctx, r.Value, nodes, referred); err != nil {
					return err
				}
			}
		}
		kvs, err := g.kvs(v)
		if err != nil {
			return err
		}
		v.kvs = append(v.kvs, kvs...)
		v.forced = true
		if last {
			v.pins = append(v.pins, pin{g.space.id, v.rev, 1})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.guests.settle(referred)
	g.records, g.size, g.unreferred, g.loose = nil, 0, 0, nil
	return rev, nil
}

// kvs are the keys that the records change, each once.
func (g *staging) kvs(v *revision) (kvs []kv, err error) {
	seen := make(map[vfs.Key]struct{}, len(g.records))
	for i := range g.records {
		r := &g.records[i]
		if _, again := seen[r.Key]; again {
			return nil, fmt.Errorf("record %v comes twice: %w", r.Key, vfs.ErrCorrupt)
		}
		seen[r.Key] = struct{}{}
		kvs = append(kvs, kv{key: keyOfRecord(g.space.id, r.Key), value: r.Value})
		if r.Value == nil && r.Kind == vfs.KeyInode {
			kvs = append(kvs, kv{key: keyOfNode(keyAtime, g.space.id, r.Ino)})
		}
	}
	return kvs, v.store.hideKeys(kvs, g.space.origins)
}

// hideKeys makes whiteouts of the removals of what one of some origins has.
func (s *Store) hideKeys(kvs []kv, origins []origin) error {
	if len(origins) == 0 {
		return nil
	}
	r := s.reader()
	defer r.Close()
	for i := range kvs {
		e := &kvs[i]
		if e.value != nil {
			continue
		}
		err := r.getFrom(origins, e.key, func([]byte) error { return nil })
		if err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
		e.hide = err == nil
	}
	return nil
}
