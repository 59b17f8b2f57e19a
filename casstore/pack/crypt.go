package pack

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// KeyLen is the length of Options.Key, in bytes: AES-256.
const KeyLen = 32

// nonceLen is how many random bytes stand before each frame of an encrypted pack.
const nonceLen = aes.BlockSize

// encryption makes frames unreadable for whoever does not have the key, and readable for who has. What it hides is the id and the
// payload, one after the other in the stream of AES-256 in counter mode that begins at the frame's nonce. Counter mode lets a
// part of a chunk be read by itself. Nonces are random and not used again, so neither what is stored twice nor what is written
// over a place that a crash has taken back gives anything away.
type encryption struct{ block cipher.Block }

func newEncryption(key []byte) (*encryption, error) {
	if len(key) != KeyLen {
		return nil, fmt.Errorf("a key of %d bytes, not %d", len(key), KeyLen)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &encryption{block}, nil
}

// payloadAt is where the payload begins in the stream.
const payloadAt = len(chunk.ID{})

// apply encrypts or decrypts what stands at a place of the stream, in dst, which may be src.
func (e *encryption) apply(nonce *[nonceLen]byte, at int, dst, src []byte) {
	low, carry := bits.Add64(binary.BigEndian.Uint64(nonce[8:]), uint64(at/aes.BlockSize), 0)
	var counter, skipped [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:], binary.BigEndian.Uint64(nonce[:])+carry)
	binary.BigEndian.PutUint64(counter[8:], low)
	stream := cipher.NewCTR(e.block, counter[:])
	if skip := at % aes.BlockSize; skip > 0 {
		stream.XORKeyStream(skipped[:skip], skipped[:skip])
	}
	stream.XORKeyStream(dst, src)
}

// frame returns a frame with its nonce, in the memory of buf, which has room for all of it.
func (e *encryption) frame(buf []byte, h Header, payload []byte) []byte {
	nonce := (*[nonceLen]byte)(buf[:nonceLen])
	_, _ = rand.Read(nonce[:]) // it never fails
	hidden := buf[nonceLen+frameHeader:][:len(payload)]
	e.apply(nonce, payloadAt, hidden, payload)
	e.apply(nonce, 0, h.ID[:], h.ID[:])
	h.appendEncrypted(buf[:nonceLen], nonce, hidden)
	return buf[:nonceLen+frameHeader+len(payload)]
}

// appendEncrypted is append for a header whose id is encrypted, as the payload is.
func (h Header) appendEncrypted(dst []byte, nonce *[nonceLen]byte, payload []byte) []byte {
	start := len(dst)
	dst = h.append(dst, payload)
	sum := dst[start+frameHeader-4:]
	binary.BigEndian.PutUint32(sum, h.nonceSum(binary.BigEndian.Uint32(sum), nonce[:]))
	return dst
}

// open opens the header of a frame whose payload is in parts, with everything checked but the id. The payload stays as it is.
func (e *encryption) open(nonce *[nonceLen]byte, head []byte, payload ...[]byte) (h Header, what string) {
	h, what = decodeParts(nonce[:], head, payload...)
	if what == "" && !h.dead {
		e.apply(nonce, 0, h.ID[:], h.ID[:])
	}
	return h, what
}

// openAll is open for a frame that is all of b, whose payload it opens as well.
func (e *encryption) openAll(nonce *[nonceLen]byte, b []byte) (h Header, payload []byte, what string) {
	n := min(frameHeader, len(b))
	if h, what = e.open(nonce, b[:n], b[n:]); what == "" && !h.dead {
		e.apply(nonce, payloadAt, b[n:], b[n:])
	}
	return h, b[n:], what
}

// encrypted holds memory for a frame with its nonce.
var encrypted = sync.Pool{New: func() any { return new([nonceLen + maxFrame]byte) }}

// lead is how many bytes stand before each frame.
func (s *Set) lead() int64 {
	if s.enc == nil {
		return 0
	}
	return nonceLen
}

// version is that of the set's packs.
func (s *Set) version() uint32 {
	if s.enc == nil {
		return plainVersion
	}
	return encryptedVersion
}

// taken is how many bytes a frame takes in a pack.
func (s *Set) taken(h Header) int64 { return s.lead() + int64(h.frameLen()) }

// loc returns where a frame is for whose place off was reserved.
func (s *Set) loc(p *pack, off int64, h Header) Loc {
	return Loc{Pack: p.id, Off: uint32(off + s.lead()), Len: h.frameLen()}
}

// writeFrame writes a frame to the place off.
func (s *Set) writeFrame(p *pack, off int64, h Header, stored []byte) error {
	if s.enc == nil {
		return s.write(p, off, h.append(make([]byte, 0, frameHeader), stored), stored)
	}
	buf := encrypted.Get().(*[nonceLen + maxFrame]byte)
	defer encrypted.Put(buf)
	return s.write(p, off, s.enc.frame(buf[:], h, stored))
}

// fillFrame fills parts with the frame at loc, and returns its nonce, which is nil when the set has no key.
func (s *Set) fillFrame(loc Loc, wait func(), parts ...[]byte) (*[nonceLen]byte, error) {
	if s.enc == nil {
		return nil, s.fill(loc, 0, wait, parts...)
	}
	nonce := new([nonceLen]byte)
	return nonce, s.fill(loc, -nonceLen, wait, append([][]byte{nonce[:]}, parts...)...)
}

// readPart fills p with the bytes from off on of a raw chunk whose frame has been verified.
func (s *Set) readPart(p []byte, off int, loc Loc, wait func()) error {
	err := s.fill(loc, frameHeader+off, wait, p)
	if err != nil || s.enc == nil {
		return err
	}
	nonce := new([nonceLen]byte)
	if err := s.fill(loc, -nonceLen, wait, nonce[:]); err != nil {
		return err
	}
	s.reveal(nonce, off, p)
	return nil
}

// decodeFrame decodes a frame that is all of b, with everything checked but the id. The payload is part of b.
func (s *Set) decodeFrame(nonce *[nonceLen]byte, b []byte) (h Header, payload []byte, what string) {
	if s.enc == nil {
		return decodeFrame(b)
	}
	return s.enc.openAll(nonce, b)
}

// decodeParts decodes a frame whose payload is in parts, which it leaves as they are.
func (s *Set) decodeParts(nonce *[nonceLen]byte, head []byte, payload ...[]byte) (h Header, what string) {
	if s.enc == nil {
		return decodeParts(nil, head, payload...)
	}
	return s.enc.open(nonce, head, payload...)
}

// reveal opens the bytes from off on of a payload.
func (s *Set) reveal(nonce *[nonceLen]byte, off int, p []byte) {
	if s.enc != nil {
		s.enc.apply(nonce, payloadAt+off, p, p)
	}
}
