package casstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// replicas says that a store has replicas, whose records may refer to chunks that are not here. Of these chunks it is a
// cache: the collector spares only what has not been pushed or is in use, and runs when the packs are larger than they
// may be.
type replicas struct {
	any    atomic.Bool
	origin atomic.Pointer[Origin]
}

// fetch is find for a chunk that may have to be fetched first.
func (c *chunks) fetch(ctx context.Context, id chunk.ID, read func(pack.Loc) error) error {
	err := c.find(id, read)
	o := c.store.replicas.origin.Load()
	if o == nil {
		return err
	}
	// The collector may take it away again before it is read.
	for try := 0; try < 3 && errors.Is(err, errAbsent); try++ {
		if err := (*o).Fetch(ctx, id); err != nil {
			return err
		}
		err = c.find(id, read)
	}
	return err
}

// errAbsent is for a chunk that is not in the index. Unless it can be fetched, that is damage.
var errAbsent = errors.New("not in the index")

// AddChunks stores chunks that have come from the authority, which it checks: ErrCorrupt.
func (r *Replica) AddChunks(ctx context.Context, list []vfs.Chunk) error {
	s := r.tree.store
	err := r.tree.Authority().call(ctx, "add chunks", func() error {
		vfs.WillBlock(ctx)
		size, err := verifyChunks(list, func() error { return r.tree.alive(ctx) })
		if err == nil {
			err = s.space.admit(ctx, size)
		}
		if err == nil {
			err = s.take(list)
		}
		if err == nil {
			err = s.indexMany(ctx)
		}
		return err
	})
	s.collector.hint()
	return err
}

// Absent returns the chunks that are not here of those with bytes from off to off+n of a file, in their order. It does not
// count what has been written over them since the last flush.
func (r *Replica) Absent(ctx context.Context, ino vfs.Ino, off, n uint64) (ids []chunk.ID, err error) {
	b, release, err := r.baseOf(ctx, ino)
	if err != nil {
		return nil, err
	}
	defer release()
	for p := range b.manifest.From(off) {
		if p.Start >= off+n {
			break
		}
		if p.Hole {
			continue
		}
		there, err := r.tree.store.hasSound(p.ID)
		if err != nil {
			return nil, err
		}
		if !there {
			ids = append(ids, p.ID)
		}
	}
	return ids, nil
}

// baseOf returns what a file has under its unflushed bytes, and what is to be called when that has been used.
func (r *Replica) baseOf(ctx context.Context, ino vfs.Ino) (b base, release func(), err error) {
	node, err := r.tree.acquire(ctx, ino)
	if err != nil {
		return base{}, nil, wrap(err, "read", ino, "")
	}
	node.file.mu.Lock()
	defer node.file.mu.Unlock()
	return node.file.base, func() { r.tree.release(node) }, nil
}

// AbsentAround returns the chunks that are not here of those that a flush reads when n bytes from off of a file are written:
// what is left of the chunks at the ends of the range, and their neighbours, as far as these are so short that they are cut
// anew with them (overlay.widen). With n zero it is for a file whose size becomes off.
func (r *Replica) AbsentAround(ctx context.Context, ino vfs.Ino, off, n uint64) (ids []chunk.ID, err error) {
	b, release, err := r.baseOf(ctx, ino)
	if err != nil {
		return nil, err
	}
	defer release()
	end := b.size()
	o := overlay{store: r.tree.store, under: b, floor: end, size: max(end, off+n), ahead: true}
	in := region{off, off + n}
	switch p, ok := b.manifest.Find(off); {
	case off+n > end:
		in.start = min(off, end) // what lies between is a hole that is written
	case n > 0:
	case !ok || p.Hole || p.Start == off:
		return nil, nil
	default:
		in.start, o.floor, o.size = p.Start, off, off
	}
	in = o.widen(in)
	if p, ok := o.chunkAt(b.manifest, in.start-1); in.start > 0 && ok && p.End() == b.manifest.Size() {
		in.start = p.Start // it is cut anew once much has been appended
	}
	for p := range b.manifest.From(in.start) {
		if p.Start >= in.end {
			break
		}
		if p.Hole || n > 0 && off <= p.Start && p.End() <= off+n {
			continue // nothing of it is read
		}
		there, err := r.tree.store.hasSound(p.ID)
		if err != nil {
			return nil, err
		}
		if !there {
			ids = append(ids, p.ID)
		}
	}
	return ids, nil
}

// ChunksOf returns the chunks that the record of a file refers to, at any depth, and that of before did not; either may be
// nil.
func (r *Replica) ChunksOf(ctx context.Context, record, before []byte) ([]chunk.ID, error) {
	old, err := r.refs(ctx, before)
	if err != nil {
		return nil, err
	}
	now, err := r.refs(ctx, record)
	if err != nil {
		return nil, err
	}
	var ids []chunk.ID
	for id := range now {
		if _, ok := old[id]; !ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// WithHoles returns the record of a file with holes in the place of chunks that are nowhere. lost is false when it refers to none.
func (r *Replica) WithHoles(
	ctx context.Context, record []byte, nowhere map[chunk.ID]struct{},
) (left []byte, lost bool, err error) {
	ids, err := r.ChunksOf(ctx, record, nil)
	if err != nil || !slices.ContainsFunc(ids, func(id chunk.ID) bool { _, gone := nowhere[id]; return gone }) {
		return nil, false, err
	}
	rec, err := vfs.DecodeInode(bytes.Clone(record))
	if err != nil {
		return nil, false, err
	}
	s := r.tree.store
	entries := []chunk.Entry{chunk.HoleOf(rec.Size)} // when it is not even known which there are
	if b, err := s.decodeBody(rec.Body); err == nil {
		entries = b.manifest.Entries()
	} else if !errors.Is(err, vfs.ErrCorrupt) {
		return nil, false, err
	}
	for i, e := range entries {
		if _, gone := nowhere[e.ID]; gone && !e.Hole {
			entries[i] = chunk.HoleOf(e.Len)
		}
	}
	rec.Body, err = s.encodeBody(base{manifest: chunk.NewManifest(entries)}, chunk.Manifest{})
	return rec.Append(nil), true, err
}

func (r *Replica) refs(ctx context.Context, record []byte) (map[chunk.ID]struct{}, error) {
	if record == nil {
		return nil, nil
	}
	rec, err := vfs.DecodeInode(record)
	if err != nil {
		return nil, err
	}
	ids := make(map[chunk.ID]struct{})
	return ids, r.tree.store.markBody(ctx, rec.Body, func(e chunk.Entry) { ids[e.ID] = struct{}{} })
}

// markReplicas marks what the authority may lack: the chunks of files whose records have a basis.
func (s *Store) markReplicas(ctx context.Context, m *marked) error {
	r := s.reader()
	defer r.Close()
	return r.scan([]byte{keyBasis}, nil, false, func(k, _ []byte) (bool, error) {
		key, err := basisKey(k)
		if err != nil || key.Kind != vfs.KeyInode {
			return err == nil, err
		}
		ws, ino := nodeOfKey(k)
		value, err := r.value(ws, key)
		if err != nil || value == nil {
			return err == nil, err
		}
		body := value
		rec, err := vfs.DecodeInode(value)
		if err == nil {
			body, err = rec.Body.Data, s.markBody(ctx, rec.Body, m.live.mark)
		}
		err = m.note(state{ws: ws, ino: ino, body: body}, err)
		return err == nil && ctx.Err() == nil, err
	})
}

// skipAbsent leaves out what is below a node of a manifest that is not here: all of it came from the authority.
func (s *Store) skipAbsent(id chunk.ID) error {
	there, err := s.chunks.has(id)
	if err == nil && !there {
		return chunk.SkipNode
	}
	return err
}

// overCache is how many bytes the packs of a store with replicas are over what they may take.
func (s *Store) overCache() (over int64) {
	for _, p := range s.packs.Packs() {
		over += int64(p.Size)
	}
	return over - defaulted(s.opt.CacheBytes, defaultCache)
}

// LoadManifest has the manifest of a file's record here, if it has one in chunks.
func (r *Replica) LoadManifest(ctx context.Context, record []byte) error {
	rec, err := vfs.DecodeInode(record)
	if err != nil || rec.Body.Kind != vfs.BodyTree {
		return err
	}
	vfs.WillBlock(ctx)
	_, err = r.tree.store.decodeBody(rec.Body)
	return err
}
