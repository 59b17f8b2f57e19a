package casstore

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// base is the bytes of a file that no longer are in memory only: in line when they are few, else a manifest whose
// chunks are in packs. It is an immutable value. The zero base is empty.
type base struct {
	inline   []byte
	manifest chunk.Manifest
}

func (b base) size() uint64 { return uint64(len(b.inline)) + b.manifest.Size() }

// stored is how many bytes are not in holes.
func (b base) stored() uint64 { return uint64(len(b.inline)) + b.manifest.Stored() }

// storedIn is how many of the bytes [off, end) are not in holes.
func (b base) storedIn(off, end uint64) uint64 {
	n := uint64(len(b.inline))
	return min(n, end) - min(n, off) + b.manifest.StoredIn(off, end)
}

// seek returns the first offset in [off, end) that is in a hole, or that is not; end when there is none.
func (b base) seek(off, end uint64, hole bool) uint64 {
	if n := uint64(len(b.inline)); off < n {
		if !hole {
			return off
		}
		off = n
	}
	for p := range b.manifest.From(off) {
		if p.Start >= end || p.Hole == hole {
			return min(end, max(off, p.Start))
		}
	}
	// Behind the base's end there is nothing but zeros.
	if at := max(off, b.size()); hole && at < end {
		return at
	}
	return end
}

// readBase fills p with the bytes of b from off; zeros are behind its end.
func (s *Store) readBase(ctx context.Context, b base, p []byte, off uint64) error {
	if len(b.inline) > 0 {
		n := 0
		if off < uint64(len(b.inline)) {
			n = copy(p, b.inline[off:])
		}
		clear(p[n:])
		return nil
	}
	done := 0
	for pos := range b.manifest.From(off) {
		if done == len(p) {
			break
		}
		at := off + uint64(done) - pos.Start
		part := p[done:][:min(uint64(len(p)-done), pos.Len-at)]
		done += len(part)
		if pos.Hole {
			clear(part)
			continue
		}
		if err := s.chunks.read(ctx, part, pos.Entry, at); err != nil {
			return fmt.Errorf("at %d: %w", pos.Start, err)
		}
	}
	clear(p[done:])
	return nil
}

// decodeBody makes a base of what a record holds, reading the nodes of a tree from packs.
func (s *Store) decodeBody(b vfs.Body) (base, error) {
	switch b.Kind {
	case vfs.BodyInline:
		return base{inline: b.Data}, nil
	case vfs.BodyExtents:
		entries, err := decodeExtents(b.Data)
		if err != nil {
			return base{}, err
		}
		return base{manifest: chunk.NewManifest(entries)}, nil
	case vfs.BodyTree:
		root, err := decodeRoot(b.Data)
		if err != nil {
			return base{}, err
		}
		m, err := chunk.LoadTree(root, func(id chunk.ID) ([]byte, error) {
			return s.chunks.get(context.Background(), id)
		})
		if err != nil {
			return base{}, mapError(err)
		}
		return base{manifest: m}, nil
	}
	return base{}, nil
}

// encodeBody makes the body of a record. It stores the nodes of a manifest that is too long for one, but for those that
// are in the tree of old, which must be in the record at the head.
func (s *Store) encodeBody(b base, old chunk.Manifest) (vfs.Body, error) {
	switch {
	case b.size() == 0:
		return vfs.Body{}, nil
	case len(b.inline) > 0:
		return vfs.Body{Kind: vfs.BodyInline, Data: b.inline}, nil
	case b.manifest.Len() <= chunk.MaxInline:
		return vfs.Body{Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, b.manifest.Entries())}, nil
	}
	root, err := chunk.BuildTree(b.manifest, old, func(id chunk.ID, plain []byte) error {
		return s.chunks.put(id, plain)
	})
	if err != nil {
		return vfs.Body{}, err
	}
	return vfs.Body{Kind: vfs.BodyTree, Data: chunk.AppendRoot(nil, root)}, nil
}

func decodeExtents(b []byte) ([]chunk.Entry, error) {
	entries, rest, err := chunk.DecodeEntries(b, chunk.MaxInline)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("extents: %d bytes behind them: %w", len(rest), vfs.ErrCorrupt)
	}
	return entries, mapError(err)
}

func decodeRoot(b []byte) (chunk.Root, error) {
	root, rest, err := chunk.DecodeRoot(b)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("manifest root: %d bytes behind it: %w", len(rest), vfs.ErrCorrupt)
	}
	return root, mapError(err)
}

// blocksOfBody is the number of 512-byte units that a record's bytes take, without reading what it refers to.
func blocksOfBody(b vfs.Body, size uint64) uint64 {
	n := uint64(0)
	switch b.Kind {
	case vfs.BodyInline:
		n = uint64(len(b.Data))
	case vfs.BodyExtents:
		if entries, err := decodeExtents(b.Data); err == nil {
			n = chunk.NewManifest(entries).Stored()
		}
	case vfs.BodyTree:
		if root, err := decodeRoot(b.Data); err == nil {
			n = root.Stored
		}
	}
	return min((n+511)/512, (size+4095)/4096*8)
}
