package vfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// KeyKind says what a record is of. The values are part of the protocol, and of the digest.
type KeyKind uint8

// Kinds of key.
const (
	KeyInode  KeyKind = 1 + iota // an inode: no name; the value is an InodeRecord
	KeyDirent                    // the name Name in the directory Ino: the value is a DirentRecord
	KeyXattr                     // the attribute Name of the inode Ino: the value is the attribute's, as it is
)

// Key names a record of a workspace.
type Key struct {
	Kind KeyKind
	Ino  Ino
	Name string
}

// String returns the key for messages.
func (k Key) String() string {
	switch k.Kind {
	case KeyInode:
		return fmt.Sprintf("inode %d", k.Ino)
	case KeyDirent:
		return fmt.Sprintf("name %d/%q", k.Ino, k.Name)
	case KeyXattr:
		return fmt.Sprintf("attribute %d:%q", k.Ino, k.Name)
	}
	return fmt.Sprintf("key of kind %d", k.Kind)
}

// Valid returns nil when there may be a record under k, else ErrInvalid or ErrNameTooLong.
func (k Key) Valid() error {
	err := k.checkName()
	if k.Ino == 0 {
		err = ErrInvalid
	}
	if err != nil {
		return fmt.Errorf("%v: %w", k, err)
	}
	return nil
}

func (k Key) checkName() error {
	switch {
	case k.Kind == KeyInode && k.Name == "":
		return nil
	case k.Kind == KeyDirent:
		return CheckName(k.Name)
	case k.Kind == KeyXattr && len(k.Name) > MaxXattrName:
		return ErrNameTooLong
	case k.Kind == KeyXattr && k.Name != "" && strings.IndexByte(k.Name, 0) < 0:
		return nil
	}
	return ErrInvalid
}

// Compare orders keys as Read yields them, with names in bytewise order: less than zero when k is before o.
func (k Key) Compare(o Key) int {
	switch {
	case k.Ino != o.Ino:
		return sign(k.Ino < o.Ino)
	case k.Kind != o.Kind:
		return sign(k.Kind < o.Kind)
	}
	return strings.Compare(k.Name, o.Name)
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// Record is a key and what is under it. Inodes and dirents are in their canonical encoding (InodeRecord, DirentRecord),
// the same bytes as on disk; an attribute's value stands for itself. The atime of an inode has no record: it is local.
type Record struct {
	Key

	// Value is nil for a tombstone: there is nothing under the key. An empty attribute's is empty and not nil.
	Value []byte

	// Rev is the revision that gave the key this value, or took it away. An authority sets it in what it returns, so
	// that a server can leave out of a peer's feed what that peer itself has pushed. It is zero in a push.
	Rev Rev
}

// Same reports whether two records say the same of a key, whenever they did.
func (r *Record) Same(o *Record) bool {
	return r.Key == o.Key && (r.Value == nil) == (o.Value == nil) && bytes.Equal(r.Value, o.Value)
}

// RecordHash is the SHA-256 of a record:
//
//	kind:1 ino:8 (big-endian) length of name:1 name value
//
// It has no form for a tombstone: what is not there adds nothing to a digest.
type RecordHash [sha256.Size]byte

// Hash returns the hash of a record that is not a tombstone.
func (r *Record) Hash() RecordHash {
	// Most records fit, so that hashing one takes no memory.
	b := make([]byte, 0, 512)
	b = append(b, byte(r.Kind))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Ino))
	b = append(b, byte(len(r.Name)))
	b = append(b, r.Name...)
	return sha256.Sum256(append(b, r.Value...))
}

// Base stands for the record that a change is based on: the first 16 bytes of its hash, or zero when there was none.
// Two versions of a record would have to agree in 128 bits of SHA-256 for a change to be lost.
type Base [16]byte

// Base returns what stands for r as a base.
func (r *Record) Base() Base {
	if r.Value == nil {
		return Base{}
	}
	h := r.Hash()
	return Base(h[:len(Base{})])
}
