package casstore

import (
	"context"
	"encoding/binary"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// idSet is a set of chunks of a whole store, of which it keeps eight bytes each. It may take one for another that is in
// it: a collector then leaves a chunk that nobody needs, once in a great many stores.
type idSet map[uint64]struct{}

func (s idSet) add(id chunk.ID) { s[binary.LittleEndian.Uint64(id[:])] = struct{}{} }

// mark is add for an entry of a manifest.
func (s idSet) mark(e chunk.Entry) { s.add(e.ID) }

func (s idSet) has(id chunk.ID) bool {
	_, ok := s[binary.LittleEndian.Uint64(id[:])]
	return ok
}

// marked are the chunks that something refers to, and apart from them those that history does.
type marked struct {
	live, past idSet
	unreadable map[bodyID]error // of whose chunks some may not be marked
}

// mark returns all chunks that something refers to.
func (s *Store) mark(ctx context.Context) (*marked, error) {
	m := &marked{live: make(idSet), past: make(idSet), unreadable: make(map[bodyID]error)}
	if err := s.markMemory(ctx, m.live.mark, m.note); err != nil {
		return nil, err
	}
	if s.replicas.any.Load() {
		return m, s.markReplicas(ctx, m)
	}
	return m, s.markRecords(ctx, m)
}

// markMemory calls add for the chunks that something in memory refers to, which need not be in any record. What cannot be read
// is noted, and left out if that returns no error.
func (s *Store) markMemory(ctx context.Context, add func(chunk.Entry), note func(state, error) error) error {
	for id := range s.chunks.uncommitted() {
		add(chunk.Entry{ID: id})
	}
	s.guests.mark(s.now(), add)
	for _, w := range s.openWorkspaces() {
		if err := w.markOpen(ctx, add, note); err != nil {
			return err
		}
	}
	return nil
}

// markBody calls add for each chunk that a body refers to; nodes of manifests have no length.
func (s *Store) markBody(ctx context.Context, b vfs.Body, add func(chunk.Entry)) error {
	switch b.Kind {
	case vfs.BodyExtents:
		entries, err := decodeExtents(b.Data)
		markEntries(entries, add)
		return err
	case vfs.BodyTree:
		root, err := decodeRoot(b.Data)
		if err != nil {
			return err
		}
		get := func(id chunk.ID) ([]byte, error) { return s.chunks.get(ctx, id) }
		return mapError(chunk.WalkTree(root, get, func(e chunk.Entry, node bool) error {
			add(e)
			if node && s.replicas.any.Load() {
				return s.skipAbsent(e.ID)
			}
			return nil
		}))
	}
	return nil
}

func markEntries(entries []chunk.Entry, add func(chunk.Entry)) {
	for _, e := range entries {
		if !e.Hole {
			add(e)
		}
	}
}

// markOpen marks what the files in memory refer to, which need not be in any record.
func (w *Workspace) markOpen(ctx context.Context, add func(chunk.Entry), note func(state, error) error) error {
	w.mu.Lock()
	var files []*file
	stored := make(map[vfs.Ino]vfs.Body)
	for ino, n := range w.inodes {
		if n.file != nil && (w.replica == nil || n.gen != 0 || n.gone) { // a clean one can be fetched again
			files = append(files, n.file)
		}
		if n.gone {
			stored[ino] = n.stored.body // in no record any more, and perhaps not loaded
		}
	}
	w.mu.Unlock()
	for _, f := range files {
		f.mu.Lock()
		bases := []base{f.base, f.flushed.base, f.saved.base}
		f.mu.Unlock()
		for _, b := range bases {
			markEntries(b.manifest.Entries(), add)
		}
	}
	for ino, b := range stored {
		err := w.store.markBody(ctx, b, add)
		if err := note(state{ws: w.id, ino: ino, body: b.Data}, err); err != nil {
			return err
		}
	}
	return nil
}
