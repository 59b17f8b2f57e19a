package chunk

import (
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Codec says how the stored form of a chunk is made from its plain bytes. The values are part of the format.
type Codec uint8

// The codecs.
const (
	Raw  Codec = 1 // stored as it is
	S2   Codec = 2 // one block of S2, the extension of Snappy: github.com/klauspost/compress/s2
	Zstd Codec = 3 // one frame of Zstandard (RFC 8878), with its content size and without a checksum
)

// Valid reports whether c is one of the codecs above.
func (c Codec) Valid() bool { return c >= Raw && c <= Zstd }

// String returns the codec's name.
func (c Codec) String() string {
	switch c {
	case Raw:
		return "raw"
	case S2:
		return "s2"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// Encode returns the stored form of a chunk, made fast: s2 where that saves at least a sixteenth, else raw. The result
// is plain itself when raw, otherwise in dst's memory when dst has room for [EncodedCap] bytes, otherwise new. Large
// chunks are probed first, so what does not compress costs next to nothing.
func Encode(dst, plain []byte) (Codec, []byte) {
	if !promising(plain) {
		return Raw, plain
	}
	stored := s2.Encode(dst[:cap(dst)], plain)
	if !saves(stored, plain) {
		return Raw, plain
	}
	return S2, stored
}

// EncodedCap returns the capacity of dst with which Encode of n plain bytes takes no memory.
func EncodedCap(n int) int { return s2.MaxEncodedLen(n) }

// promising reports whether a chunk is worth compressing. The middle is looked at too: an archive of pictures begins
// with a header, and a program's picture with its code.
func promising(plain []byte) bool {
	if len(plain) < probeAbove {
		return true
	}
	mid := len(plain) / 2
	return promisingProbe(plain[:probeSize]) || promisingProbe(plain[mid:mid+probeSize])
}

func promisingProbe(probe []byte) bool {
	n := s2.EstimateBlockSize(probe)
	return n >= 0 && n <= len(probe)-len(probe)/minSaving
}

func saves(stored, plain []byte) bool {
	return len(stored) <= len(plain)-len(plain)/minSaving && len(stored) < len(plain)
}

// Recompress returns the stored form of a chunk with zstd, for times when there is nothing else to do: it takes
// several times as long as Encode. The rest is as with Encode. Concurrent calls wait for each other.
func Recompress(dst, plain []byte) (Codec, []byte) {
	stored := zstdEncoder().EncodeAll(plain, dst[:0])
	if !saves(stored, plain) {
		return Raw, plain
	}
	return Zstd, stored
}

// Decode returns the plainLen plain bytes of a chunk from its stored form: in dst's memory when that is large enough,
// otherwise new; never in stored's. Whatever is wrong with the arguments wraps ErrCorrupt. It does not check the id.
func Decode(dst []byte, codec Codec, stored []byte, plainLen int) ([]byte, error) {
	if plainLen < 0 || plainLen > MaxSize {
		return nil, corrupt("decode %s: %d plain bytes", codec, plainLen)
	}
	switch codec {
	case Raw:
		return decodeRaw(dst, stored, plainLen)
	case S2:
		return decodeS2(dst, stored, plainLen)
	case Zstd:
		return decodeZstd(dst, stored, plainLen)
	}
	return nil, corrupt("decode: %s", codec)
}

func decodeRaw(dst, stored []byte, plainLen int) ([]byte, error) {
	if len(stored) != plainLen {
		return nil, corrupt("decode raw: %d bytes for %d", len(stored), plainLen)
	}
	return append(dst[:0], stored...), nil
}

func decodeS2(dst, stored []byte, plainLen int) ([]byte, error) {
	n, err := s2.DecodedLen(stored)
	if err != nil || n != plainLen {
		return nil, corrupt("decode s2: a block of %d bytes for %d (%v)", n, plainLen, err)
	}
	plain, err := s2.Decode(room(dst, plainLen), stored)
	if err != nil {
		return nil, corrupt("decode s2: %v", err)
	}
	return plain, nil
}

// decodeZstd relies on the decoder's limit: it writes to no more than the capacity it is given.
func decodeZstd(dst, stored []byte, plainLen int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(stored); err != nil || h.FrameContentSize != uint64(plainLen) {
		return nil, corrupt("decode zstd: no frame of %d bytes (%v)", plainLen, err)
	}
	plain, err := zstdDecoder().DecodeAll(stored, room(dst, plainLen)[:0:plainLen])
	if err != nil || len(plain) != plainLen {
		return nil, corrupt("decode zstd: %d bytes for %d (%v)", len(plain), plainLen, err)
	}
	return plain, nil
}

// room returns n bytes, in dst's memory when that is enough. It is never nil: to s2 and zstd nil means no limit.
func room(dst []byte, n int) []byte {
	if cap(dst) >= n && dst != nil {
		return dst[:n]
	}
	return slices.Grow([]byte{}, n)[:n]
}

// zstdEncoder is shared, and has one worker: compressing with it is for idle times.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(MaxSize),
		zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
})

var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxSize),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
})
