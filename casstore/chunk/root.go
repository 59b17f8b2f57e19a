package chunk

import "encoding/binary"

// Root names the tree of a manifest that is too long for a record.
type Root struct {
	ID     ID     // of the root node
	Level  int    // of the root node
	Len    uint64 // entries
	Size   uint64 // bytes
	Stored uint64 // bytes that are not in holes
}

// MaxRootLen is the longest encoding of a Root, in bytes.
const MaxRootLen = IDSize + 1 + 3*binary.MaxVarintLen64

// AppendRoot appends the encoding of a root to dst: the one in the package comment.
func AppendRoot(dst []byte, r Root) []byte {
	dst = append(dst, r.ID[:]...)
	dst = append(dst, byte(r.Level))
	dst = binary.AppendUvarint(dst, r.Len)
	dst = binary.AppendUvarint(dst, r.Size)
	return binary.AppendUvarint(dst, r.Stored)
}

// DecodeRoot decodes a root from the start of b, and returns what follows it. Errors wrap ErrCorrupt.
func DecodeRoot(b []byte) (r Root, rest []byte, err error) {
	if len(b) < IDSize+1 {
		return Root{}, nil, corrupt("root: %d bytes", len(b))
	}
	r.ID, r.Level, b = ID(b[:IDSize]), int(b[IDSize]), b[IDSize+1:]
	for _, v := range []*uint64{&r.Len, &r.Size, &r.Stored} {
		var ok bool
		if *v, b, ok = cutUvarint(b); !ok {
			return Root{}, nil, corrupt("root: bad number")
		}
	}
	return r, b, r.check()
}

// check returns an error that wraps ErrCorrupt unless there may be a tree with this root.
func (r Root) check() error {
	switch {
	case r.Level > MaxLevel:
		return corrupt("root: level %d", r.Level)
	case r.Len <= MaxInline || r.Len > MaxEntries:
		return corrupt("root: %d entries", r.Len)
	case r.Size < r.Len || r.Size > MaxFileSize:
		return corrupt("root: %d entries of %d bytes", r.Len, r.Size)
	case r.Stored > r.Size:
		return corrupt("root: %d bytes stored of %d", r.Stored, r.Size)
	}
	return nil
}
