package chunk

import (
	"encoding/hex"
	"fmt"

	"github.com/minio/sha256-simd"
)

// IDSize is the length of an ID, in bytes.
const IDSize = 32

// ID names a chunk: the SHA-256 of its plain bytes. The zero ID names none.
type ID [IDSize]byte

// Sum returns the name of the chunk that holds plain.
func Sum(plain []byte) ID { return sha256.Sum256(plain) }

// Verify returns nil when plain is the chunk that id names, else an error that wraps ErrCorrupt.
func Verify(id ID, plain []byte) error { return id.verify(Sum(plain)) }

// VerifyAll is [Verify] of several, by [Sums]. It returns the error of the first that is not what its id says.
func VerifyAll(ids []ID, plains [][]byte) error {
	sums := make([]ID, len(ids))
	Sums(sums, plains)
	for i, id := range ids {
		if err := id.verify(sums[i]); err != nil {
			return err
		}
	}
	return nil
}

func (id ID) verify(sum ID) error {
	if sum != id {
		return fmt.Errorf("chunk %s: bytes hash to %s: %w", id, sum, ErrCorrupt)
	}
	return nil
}

// String returns id as 64 hexadecimal digits in lower case.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id names no chunk.
func (id ID) IsZero() bool { return id == ID{} }

// ParseID is the inverse of String; it takes digits of either case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*IDSize {
		return ID{}, fmt.Errorf("chunk id %.80q: want %d hexadecimal digits", s, 2*IDSize)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("chunk id %q: %w", s, err)
	}
	return id, nil
}
