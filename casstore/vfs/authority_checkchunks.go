package vfs

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// CheckChunks returns the ids of chunks that the records of a push refer to, at any depth of a manifest, and that find does not
// have, or not with the length that is meant: at most MaxChunkIDs of them. The error wraps ErrCorrupt for a manifest that is
// none. It looks at every chunk of every file in the push; a store that knows which of them a file had already need not.
func CheckChunks(p *Push, find func(chunk.ID) (Chunk, bool)) (missing []chunk.ID, err error) {
	absent := make(map[chunk.ID]struct{})
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind != KeyInode || r.Value == nil {
			continue
		}
		if err := findRefs(r.Value, find, absent); err != nil {
			return nil, fmt.Errorf("%v: %w", r.Key, err)
		}
	}
	missing = slices.SortedFunc(maps.Keys(absent), func(a, b chunk.ID) int { return bytes.Compare(a[:], b[:]) })
	return missing[:min(len(missing), MaxChunkIDs)], nil
}

// findRefs adds to absent what a file lacks. Of a tree that lacks nodes, those are all that can be told.
func findRefs(inode []byte, find func(chunk.ID) (Chunk, bool), absent map[chunk.ID]struct{}) error {
	n, err := DecodeInode(inode)
	if err != nil {
		return err
	}
	refs, err := n.ChunkRefs()
	if err != nil {
		return err
	}
	m, whole := chunk.NewManifest(refs.Entries), true
	if refs.Tree != nil {
		m, err = chunk.LoadTree(*refs.Tree, func(id chunk.ID) ([]byte, error) {
			if c, ok := find(id); ok {
				return c.Plain(nil)
			}
			whole = false
			absent[id] = struct{}{}
			return nil, ErrNotExist
		})
	}
	if !whole {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	for e := range m.From(0) {
		if c, ok := find(e.ID); !e.Hole && (!ok || uint64(c.PlainLen) != e.Len) {
			absent[e.ID] = struct{}{}
		}
	}
	return nil
}
