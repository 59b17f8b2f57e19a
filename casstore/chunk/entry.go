package chunk

import (
	"encoding/binary"
	"math/bits"
)

// Entry is one piece of a file: a chunk, or a hole, which reads as zeros and holds no bytes.
type Entry struct {
	ID   ID     // zero for a hole
	Len  uint64 // bytes, at least 1; of a chunk at most MaxSize
	Hole bool
}

// HoleOf returns a hole of n bytes.
func HoleOf(n uint64) Entry { return Entry{Len: n, Hole: true} }

// valid reports whether e may stand in a manifest.
func (e Entry) valid() bool {
	if e.Hole {
		return e.ID.IsZero() && e.Len > 0 && e.Len <= MaxFileSize
	}
	return e.Len > 0 && e.Len <= MaxSize
}

// AppendEntries appends the encoding of a list to dst: the one in the package comment. The list must be one that a
// Manifest holds.
func AppendEntries(dst []byte, entries []Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	for _, e := range entries {
		if e.Hole {
			dst = binary.AppendUvarint(dst, e.Len<<1|1)
			continue
		}
		dst = binary.AppendUvarint(dst, e.Len<<1)
		dst = append(dst, e.ID[:]...)
	}
	return dst
}

// DecodeEntries decodes a list of at most max entries from the start of b, and returns what follows it. Errors wrap
// ErrCorrupt.
func DecodeEntries(b []byte, max int) (entries []Entry, rest []byte, err error) {
	n, b, ok := cutUvarint(b)
	// Every entry takes a byte or more, so this bounds the memory by the input as well.
	if !ok || n > uint64(max) || n > uint64(len(b)) {
		return nil, nil, corrupt("entries: count %d, at most %d in %d bytes", n, max, len(b))
	}
	entries = make([]Entry, 0, n)
	var size uint64
	for range n {
		var e Entry
		if e, b, ok = cutEntry(b); !ok {
			return nil, nil, corrupt("entry %d: bad length or id", len(entries))
		}
		if e.Hole && len(entries) > 0 && entries[len(entries)-1].Hole {
			return nil, nil, corrupt("entry %d: a hole after a hole", len(entries))
		}
		if size += e.Len; size > MaxFileSize {
			return nil, nil, corrupt("entry %d: file longer than %d bytes", len(entries), uint64(MaxFileSize))
		}
		entries = append(entries, e)
	}
	return entries, b, nil
}

// cutEntry decodes one entry from the start of b.
func cutEntry(b []byte) (e Entry, rest []byte, ok bool) {
	head, b, ok := cutUvarint(b)
	if !ok {
		return Entry{}, nil, false
	}
	e = Entry{Len: head >> 1, Hole: head&1 != 0}
	if !e.Hole {
		if len(b) < IDSize {
			return Entry{}, nil, false
		}
		e.ID, b = ID(b[:IDSize]), b[IDSize:]
	}
	return e, b, e.valid()
}

// cutUvarint decodes an uvarint from the start of b, and takes only the shortest form.
func cutUvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n != uvarintLen(v) {
		return 0, nil, false
	}
	return v, b[n:], true
}

// uvarintLen returns the length of v's shortest encoding, in bytes.
func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
