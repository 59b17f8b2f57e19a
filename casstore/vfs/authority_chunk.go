package vfs

import (
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Chunk is a chunk in stored form, as it lies in a pack and as it travels.
type Chunk struct {
	ID       chunk.ID
	Codec    chunk.Codec
	PlainLen int    // bytes, 1 to chunk.MaxSize
	Stored   []byte // at most chunk.MaxSize bytes
}

// Plain returns the chunk's plain bytes, in dst's memory when that is large enough, or an error that wraps ErrCorrupt
// when they are not the ones that the id names. Everyone who accepts a chunk calls it, or Check, first.
func (c Chunk) Plain(dst []byte) ([]byte, error) {
	if err := c.checkLengths(); err != nil {
		return nil, err
	}
	plain, err := chunk.Decode(dst, c.Codec, c.Stored, c.PlainLen)
	if err == nil {
		err = chunk.Verify(c.ID, plain)
	}
	if err != nil {
		return nil, c.corrupt(err)
	}
	return plain, nil
}

// Check is Plain for who does not need the bytes: those that are stored as they are it does not copy. It returns room, or
// what it has taken in its place because that was too small, to be given to the next Check.
func (c Chunk) Check(room []byte) ([]byte, error) {
	if c.Codec != chunk.Raw {
		plain, err := c.Plain(room)
		if err != nil {
			return room, err
		}
		return plain, nil
	}
	err := c.checkLengths()
	if err == nil && len(c.Stored) != c.PlainLen {
		err = c.corrupt(fmt.Errorf("%d bytes stored raw for %d", len(c.Stored), c.PlainLen))
	}
	if err != nil {
		return room, err
	}
	if err := chunk.Verify(c.ID, c.Stored); err != nil {
		return room, c.corrupt(err)
	}
	return room, nil
}

func (c Chunk) checkLengths() error {
	if c.PlainLen == 0 || len(c.Stored) > chunk.MaxSize {
		return fmt.Errorf("chunk %v: %d bytes stored for %d: %w", c.ID, len(c.Stored), c.PlainLen, ErrCorrupt)
	}
	return nil
}

func (c Chunk) corrupt(err error) error {
	return fmt.Errorf("chunk %v: %w: %w", c.ID, ErrCorrupt, err)
}

// ChunkRefs is what the body of a file's record refers to.
type ChunkRefs struct {
	// Entries are the chunks of a body of extents.
	Entries []chunk.Entry
	// Tree is the root of a manifest's tree, nil when the body is none. What lies below must be looked up.
	Tree *chunk.Root
}

// ChunkRefs returns what r's body refers to, or ErrCorrupt when the body is not one that goes with the size.
func (r *InodeRecord) ChunkRefs() (ChunkRefs, error) {
	var refs ChunkRefs
	var size uint64
	var rest []byte
	var err error
	switch r.Body.Kind {
	case BodyExtents:
		refs.Entries, rest, err = chunk.DecodeEntries(r.Body.Data, chunk.MaxInline)
		for _, e := range refs.Entries {
			size += e.Len
		}
	case BodyTree:
		var root chunk.Root
		root, rest, err = chunk.DecodeRoot(r.Body.Data)
		refs.Tree, size = &root, root.Size
	default:
		return ChunkRefs{}, nil
	}
	if err != nil || len(rest) != 0 || size != r.Size {
		return ChunkRefs{}, fmt.Errorf("body of %d bytes, %d left over, for %d (%v): %w",
			size, len(rest), r.Size, err, ErrCorrupt)
	}
	return refs, nil
}
