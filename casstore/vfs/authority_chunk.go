package vfs

import (
	"fmt"
	"slices"

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
// when they are not the ones that the id names. Everyone who accepts a chunk calls it, or a [Checker], first.
func (c Chunk) Plain(dst []byte) ([]byte, error) {
	err := c.checkLengths()
	var plain []byte
	if err == nil {
		plain, err = chunk.Decode(dst, c.Codec, c.Stored, c.PlainLen)
	}
	if err == nil {
		err = chunk.Verify(c.ID, plain)
	}
	if err != nil {
		return nil, c.corrupt(err)
	}
	return plain, nil
}

// Checker is Plain for who does not need the bytes, of several chunks at a time, which takes less: those that are stored as they
// are it does not copy. It keeps memory for the others. The zero Checker is ready, for one call at a time.
type Checker struct {
	ids    [checkedAtOnce]chunk.ID
	plains [checkedAtOnce][]byte
	rooms  [checkedAtOnce][]byte // to decode in
}

// checkedAtOnce is how many chunks a Checker has in memory.
const checkedAtOnce = 4

// Check returns an error that wraps ErrCorrupt when one of the chunks is not what its id names.
func (k *Checker) Check(list ...Chunk) error {
	for part := range slices.Chunk(list, checkedAtOnce) {
		for i, c := range part {
			var err error
			if k.plains[i], err = c.plain(&k.rooms[i]); err != nil {
				return c.corrupt(err)
			}
			k.ids[i] = c.ID
		}
		if err := chunk.VerifyAll(k.ids[:len(part)], k.plains[:len(part)]); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	return nil
}

// plain returns what are to be the plain bytes, which may be in room.
func (c Chunk) plain(room *[]byte) ([]byte, error) {
	if err := c.checkLengths(); err != nil {
		return nil, err
	}
	if c.Codec != chunk.Raw {
		plain, err := chunk.Decode(*room, c.Codec, c.Stored, c.PlainLen)
		if err == nil {
			*room = plain
		}
		return plain, err
	}
	if len(c.Stored) != c.PlainLen {
		return nil, fmt.Errorf("%d bytes stored raw for %d", len(c.Stored), c.PlainLen)
	}
	return c.Stored, nil
}

func (c Chunk) checkLengths() error {
	if c.PlainLen == 0 || len(c.Stored) > chunk.MaxSize {
		return fmt.Errorf("%d bytes stored for %d", len(c.Stored), c.PlainLen)
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
