package pack

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// HeaderSize is how many bytes of a pack are in no frame.
const HeaderSize = fileHeader

// The fixed parts of a file, as drawn in the package comment.
const (
	fileMagic        = "CARRELPK"
	plainVersion     = 1
	encryptedVersion = 2
	fileHeader       = 16

	frameMagic  = 0x43484e4b // "CHNK"
	frameHeader = 52
	flagDead    = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what a frame says of the chunk in it.
type Header struct {
	ID        chunk.ID
	Codec     chunk.Codec
	PlainLen  uint32 // bytes of the chunk
	StoredLen uint32 // bytes of its stored form, the payload

	dead bool // the place of a failed write
}

// check says what is wrong with a header, or nothing. A compressed payload is shorter than the plain bytes: whoever
// encodes keeps the shorter of the two. So the length of a frame tells whether it is raw.
func (h Header) check() string {
	switch {
	case h.dead && h != (Header{dead: true, StoredLen: h.StoredLen}):
		return "a dead frame with a chunk"
	case h.dead && h.StoredLen > chunk.MaxSize:
		return fmt.Sprintf("a dead frame of %d bytes", h.StoredLen)
	case h.dead:
		return ""
	case !h.Codec.Valid():
		return h.Codec.String()
	case h.PlainLen > chunk.MaxSize || h.StoredLen > h.PlainLen || (h.Codec == chunk.Raw) != (h.StoredLen == h.PlainLen):
		return fmt.Sprintf("%s of %d bytes in %d", h.Codec, h.PlainLen, h.StoredLen)
	}
	return ""
}

// frameLen returns the length of the whole frame.
func (h Header) frameLen() uint32 { return frameHeader + h.StoredLen }

// append appends the header of a frame with this payload to dst.
func (h Header) append(dst, payload []byte) []byte {
	start := len(dst)
	var flags byte
	if h.dead {
		flags = flagDead
	}
	dst = binary.BigEndian.AppendUint32(dst, frameMagic)
	dst = append(dst, byte(h.Codec), flags, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, h.PlainLen)
	dst = binary.BigEndian.AppendUint32(dst, h.StoredLen)
	dst = append(dst, h.ID[:]...)
	return binary.BigEndian.AppendUint32(dst, h.sum(dst[start:], payload))
}

// sum returns the checksum of a frame from its first 48 bytes and its payload, which may be in parts.
func (h Header) sum(head []byte, payload ...[]byte) uint32 {
	crc := crc32.Checksum(head, castagnoli)
	if h.dead {
		return crc
	}
	for _, part := range payload {
		crc = crc32.Update(crc, castagnoli, part)
	}
	return crc
}

// nonceSum returns the checksum with a nonce behind the payload, if there is one.
func (h Header) nonceSum(crc uint32, nonce []byte) uint32 {
	if h.dead {
		return crc
	}
	return crc32.Update(crc, castagnoli, nonce)
}

// isChunk says why the frame does not hold the chunk that id names, or nothing.
func (h Header) isChunk(id chunk.ID) string {
	switch {
	case h.dead:
		return "a dead frame"
	case h.ID != id:
		return "chunk " + h.ID.String()
	}
	return ""
}

// decodeHeader decodes the header at the start of b and returns its checksum, which it has not checked. what says what
// is wrong, or nothing.
func decodeHeader(b []byte) (h Header, crc uint32, what string) {
	switch {
	case len(b) < frameHeader:
		return Header{}, 0, fmt.Sprintf("a header of %d bytes", len(b))
	case binary.BigEndian.Uint32(b) != frameMagic:
		return Header{}, 0, fmt.Sprintf("no frame but % x", b[:4])
	case b[5]&^flagDead != 0 || b[6] != 0 || b[7] != 0:
		return Header{}, 0, fmt.Sprintf("unknown flags % x", b[5:8])
	}
	h = Header{
		Codec:     chunk.Codec(b[4]),
		PlainLen:  binary.BigEndian.Uint32(b[8:]),
		StoredLen: binary.BigEndian.Uint32(b[12:]),
		ID:        chunk.ID(b[16:48]),
		dead:      b[5] == flagDead,
	}
	return h, binary.BigEndian.Uint32(b[48:]), h.check()
}

// decodeFrame decodes a frame that is all of b, with everything checked but the id. The payload is part of b.
func decodeFrame(b []byte) (h Header, payload []byte, what string) {
	n := min(frameHeader, len(b))
	h, what = decodeParts(nil, b[:n], b[n:])
	return h, b[n:], what
}

// decodeParts decodes a frame whose payload is in parts. That of an encrypted pack has a nonce, and its id stays encrypted.
func decodeParts(nonce, head []byte, payload ...[]byte) (h Header, what string) {
	h, crc, what := decodeHeader(head)
	n := len(head)
	for _, part := range payload {
		n += len(part)
	}
	switch {
	case what != "":
	case int(h.frameLen()) != n:
		what = fmt.Sprintf("a frame of %d bytes, not %d", h.frameLen(), n)
	case h.nonceSum(h.sum(head[:frameHeader-4], payload...), nonce) != crc:
		what = "checksum does not match"
	}
	return h, what
}

// appendFileHeader appends the header of pack id to dst.
func appendFileHeader(dst []byte, version, id uint32) []byte {
	dst = append(dst, fileMagic...)
	dst = binary.BigEndian.AppendUint32(dst, version)
	return binary.BigEndian.AppendUint32(dst, id)
}

// checkFileHeader checks the header of pack id. A pack of another version is not necessarily damaged.
func checkFileHeader(b []byte, version, id uint32) error {
	bad := func(format string, args ...any) error {
		return &CorruptError{Pack: id, What: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(b) != fileHeader || string(b[:8]) != fileMagic:
		return bad("no pack file but %.16q", b)
	case binary.BigEndian.Uint32(b[8:]) != version:
		return fmt.Errorf("pack %s: version %d: %w", name(id), binary.BigEndian.Uint32(b[8:]), ErrVersion)
	case binary.BigEndian.Uint32(b[12:]) != id:
		return bad("the file of pack %d", binary.BigEndian.Uint32(b[12:]))
	}
	return nil
}
