package casstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// findChunks looks for the chunks that the records of a push refer to, at any depth. The collector spares what it finds:
// a collection that is under way is told of it, and one that begins before the push is applied makes it look again.
func (j *pushJob) findChunks(alive func() error) error {
	s := j.tree.store
	j.marking = s.collector.markings.Load()
	j.chunks = make(map[chunk.ID]struct{})
	if len(j.push.Records) > vfs.MaxPushRecords {
		return nil // CheckPush says so
	}
	r := s.reader()
	defer r.Close()
	f := chunkFinder{job: j, absent: make(map[chunk.ID]struct{}), alive: alive}
	for i := range j.push.Records {
		rec := &j.push.Records[i]
		if rec.Kind != vfs.KeyInode || rec.Value == nil {
			continue
		}
		n, err := vfs.DecodeInode(rec.Value)
		if err != nil {
			return nil // CheckPush says what is wrong
		}
		refs, err := n.ChunkRefs()
		if err != nil {
			return nil
		}
		if err := f.find(r, rec.Ino, refs); err != nil {
			return err
		}
	}
	return nil
}

// chunkFinder sorts chunks into those that are there and those that are not.
type chunkFinder struct {
	job    *pushJob
	absent map[chunk.ID]struct{}
	buf    []byte
	alive  func() error
}

// find looks for what the body of a file refers to, but for what it refers to already at the head.
func (f *chunkFinder) find(r *reader, ino vfs.Ino, refs vfs.ChunkRefs) error {
	if len(refs.Entries) == 0 && refs.Tree == nil {
		return nil
	}
	m := chunk.NewManifest(refs.Entries)
	if refs.Tree != nil {
		whole, ok, err := f.manifest(*refs.Tree)
		if err != nil || !ok {
			return err
		}
		m = whole
	}
	known, err := f.known(r, ino)
	if err != nil {
		return err
	}
	for p := range m.From(0) {
		if _, ok := known[p.Entry]; ok || p.Hole {
			continue
		}
		if err := f.look(p.ID, p.Len); err != nil {
			return err
		}
	}
	return nil
}

// known returns the chunks of a file as it is at the head.
func (f *chunkFinder) known(r *reader, ino vfs.Ino) (map[chunk.Entry]struct{}, error) {
	s := f.job.tree.store
	rec, err := r.inode(f.job.tree.id, ino)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := s.decodeBody(rec.Body)
	if err != nil {
		return nil, nil // it is damaged; the push may bring a whole one
	}
	known := make(map[chunk.Entry]struct{})
	for p := range b.manifest.From(0) {
		if !p.Hole {
			known[p.Entry] = struct{}{}
		}
	}
	return known, nil
}

// manifest returns the manifest of a tree. It is not ok when nodes are missing: then everything is noted that can be told
// to be missing without them. What is no manifest is the push's error.
func (f *chunkFinder) manifest(root chunk.Root) (m chunk.Manifest, ok bool, err error) {
	s := f.job.tree.store
	var failed error
	get := func(id chunk.ID) ([]byte, error) {
		if failed = f.look(id, 0); failed != nil {
			return nil, failed
		}
		if _, ok := f.absent[id]; ok {
			return nil, vfs.ErrNotExist
		}
		plain, err := s.chunks.get(context.Background(), id)
		if errors.Is(err, vfs.ErrCorrupt) {
			s.guests.setDamaged(id, true)
			f.miss(id)
			return nil, vfs.ErrNotExist
		}
		failed = err
		return plain, err
	}
	m, err = chunk.LoadTree(root, get)
	switch {
	case err == nil || failed != nil:
		return m, err == nil, failed
	case errors.Is(err, vfs.ErrNotExist):
		return m, false, f.walk(root, get, &failed)
	}
	f.job.chunksErr = fmt.Errorf("manifest %v: %w: %w", root.ID, vfs.ErrCorrupt, err)
	return m, false, nil
}

// walk notes everything below a root that is missing.
func (f *chunkFinder) walk(root chunk.Root, get func(chunk.ID) ([]byte, error), failed *error) error {
	err := chunk.WalkTree(root, get, func(e chunk.Entry, node bool) error {
		if err := f.look(e.ID, 0); err != nil {
			*failed = err
			return err
		}
		if _, absent := f.absent[e.ID]; absent && node {
			return chunk.SkipNode
		}
		return nil
	})
	if *failed == nil && err != nil {
		return nil // what is wrong with it can wait until nothing is missing
	}
	return *failed
}

// look notes whether a chunk is there, with n plain bytes unless n is zero.
func (f *chunkFinder) look(id chunk.ID, n uint64) error {
	if _, absent := f.absent[id]; absent {
		return nil
	}
	if err := f.alive(); err != nil {
		return err
	}
	there, err := f.job.tree.store.hasSound(id)
	if there && n > 0 {
		there, err = f.hasLength(id, n)
	}
	switch {
	case err != nil:
		return err
	case there:
		f.job.chunks[id] = struct{}{}
	default:
		f.miss(id)
	}
	return nil
}

func (f *chunkFinder) miss(id chunk.ID) {
	f.absent[id] = struct{}{}
	if len(f.job.missing) < vfs.MaxChunkIDs {
		f.job.missing = append(f.job.missing, id)
	}
}

// hasLength reports whether a chunk has n plain bytes. A raw one shows that in the index, and one that a peer has just
// written is remembered; of others the frame says it.
func (f *chunkFinder) hasLength(id chunk.ID, n uint64) (bool, error) {
	s := f.job.tree.store
	if length, ok := s.guests.length(id); ok {
		return length == n, nil
	}
	loc, err := s.chunks.locate(id)
	if errors.Is(err, vfs.ErrNotExist) {
		return false, nil
	}
	if err != nil || loc.Raw(n) {
		return err == nil, err
	}
	c, err := s.storedChunk(id, &f.buf)
	return c.Stored != nil && uint64(c.PlainLen) == n, err
}
