package execd

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// seal makes what is written down of an exec unreadable to who does not have its key. The zero seal leaves it as it is.
//
// Of a frame the body is sealed; its length and checksum are as of any other, over the sealed body.
type seal struct{ aead cipher.AEAD }

// sealMost is by how much a body gets longer: a nonce of 12 bytes, which the cipher puts before it, and a tag of 16.
const sealMost = 28

// hide seals bytes.
func (s seal) hide(plain []byte) []byte {
	if s.aead == nil {
		return plain
	}
	return s.aead.Seal(nil, nil, plain, nil)
}

// show is the inverse of hide: ErrCorrupt for what was not sealed with this key.
func (s seal) show(b []byte) ([]byte, error) {
	if s.aead == nil {
		return b, nil
	}
	plain, err := s.aead.Open(nil, nil, b, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", vfs.ErrCorrupt, err)
	}
	return plain, nil
}

// hideFrame seals the body of a frame.
func (s seal) hideFrame(frame []byte) []byte {
	if s.aead == nil {
		return frame
	}
	return frameOf(s.hide(frame[frameHeader:]))
}

// showFrame is the inverse, for a whole frame.
func (s seal) showFrame(frame []byte) ([]byte, error) {
	if s.aead == nil {
		return frame, nil
	}
	if err := checkFrame(frame); err != nil {
		return nil, err
	}
	body, err := s.show(frame[frameHeader:])
	if err != nil {
		return nil, fmt.Errorf("an event in a log: %w", err)
	}
	return frameOf(body), nil
}

// frameOf returns a frame with a body.
func frameOf(body []byte) []byte {
	b := make([]byte, frameHeader, frameHeader+len(body))
	binary.BigEndian.PutUint32(b, uint32(len(body)))
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(body, castagnoli))
	return append(b, body...)
}
