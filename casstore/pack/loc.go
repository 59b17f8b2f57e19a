package pack

import (
	"encoding/binary"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// LocSize is the length of an encoded Loc, in bytes.
const LocSize = 12

// Loc is where a frame is.
type Loc struct {
	Pack uint32
	Off  uint32 // bytes from the start of the file
	Len  uint32 // bytes of the whole frame
}

// Append appends the encoding of l to dst: the three numbers, big-endian, 12 bytes.
func (l Loc) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, l.Pack)
	dst = binary.BigEndian.AppendUint32(dst, l.Off)
	return binary.BigEndian.AppendUint32(dst, l.Len)
}

// DecodeLoc decodes a Loc that is all of b. What no frame can have wraps [chunk.ErrCorrupt].
func DecodeLoc(b []byte) (Loc, error) {
	if len(b) != LocSize {
		return Loc{}, fmt.Errorf("location of %d bytes: %w", len(b), chunk.ErrCorrupt)
	}
	l := Loc{
		Pack: binary.BigEndian.Uint32(b),
		Off:  binary.BigEndian.Uint32(b[4:]),
		Len:  binary.BigEndian.Uint32(b[8:]),
	}
	if !l.valid() {
		return Loc{}, fmt.Errorf("location %s: %w", l, chunk.ErrCorrupt)
	}
	return l, nil
}

// String returns the location for messages.
func (l Loc) String() string { return fmt.Sprintf("%s at %d+%d", name(l.Pack), l.Off, l.Len) }

// Raw reports whether a chunk of so many plain bytes is stored as it is: compressed ones take less.
func (l Loc) Raw(plainLen uint64) bool { return uint64(l.Len) == frameHeader+plainLen }

func (l Loc) valid() bool {
	return l.Pack > 0 && l.Off >= fileHeader && l.Len >= frameHeader && l.Len <= maxFrame
}

// corrupt returns an error that says what is wrong with the frame at l.
func (l Loc) corrupt(format string, args ...any) error {
	return &CorruptError{Pack: l.Pack, Off: l.Off, What: fmt.Sprintf(format, args...)}
}
