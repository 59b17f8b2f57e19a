package vfs

import (
	"encoding/binary"
	"fmt"
)

// BodyKind says how an inode's record holds what the inode contains. The values are part of the format.
type BodyKind uint8

// Kinds of body.
const (
	BodyNone    BodyKind = iota // nothing: an empty file, a directory, a FIFO, a socket, a device
	BodyInline                  // the bytes of a file of at most MaxInline bytes
	BodyExtents                 // a file's chunks and holes: package chunk's list of entries
	BodyTree                    // the root of a file's manifest: package chunk's Root
	BodyTarget                  // the target of a symlink
)

// Body is what an inode contains, as its record holds it. The bytes of extents and of a tree are package chunk's.
type Body struct {
	Kind BodyKind
	Data []byte
}

// InodeRecord is the record of an inode. Its atime is not part of it: that is local to a store and never replicated.
type InodeRecord struct {
	Type   Type
	Mode   uint32
	Nlink  uint32
	UID    uint32
	GID    uint32
	Rdev   uint32
	Parent Ino // of a directory
	Size   uint64
	Xattrs uint32 // how many extended attributes it has
	Mtime  Time
	Ctime  Time
	Btime  Time // when the inode was made; its atime until one is set
	Body   Body
}

// DirentRecord is the record of a name in a directory. The name and the directory are in its key.
type DirentRecord struct {
	Ino  Ino
	Type Type
}

// Append appends the canonical encoding of r to dst:
//
//	type u8 | mode | nlink | uid | gid | rdev | parent | size | xattrs   (uvarints)
//	mtime | ctime | btime                                               (varints: zig-zag, nanoseconds)
//	body kind u8 | body bytes, to the end
func (r *InodeRecord) Append(dst []byte) []byte {
	dst = append(dst, byte(r.Type))
	for _, v := range [...]uint64{
		uint64(r.Mode), uint64(r.Nlink), uint64(r.UID), uint64(r.GID), uint64(r.Rdev), uint64(r.Parent), r.Size,
		uint64(r.Xattrs),
	} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, t := range [...]Time{r.Mtime, r.Ctime, r.Btime} {
		dst = binary.AppendVarint(dst, int64(t))
	}
	dst = append(dst, byte(r.Body.Kind))
	return append(dst, r.Body.Data...)
}

// DecodeInode decodes what Append encodes. The record's body aliases b. ErrCorrupt for anything that is not canonical
// or breaks a limit.
func DecodeInode(b []byte) (InodeRecord, error) {
	d := decoder{b: b}
	r := InodeRecord{
		Type:   Type(d.byte()),
		Mode:   d.uint32(),
		Nlink:  d.uint32(),
		UID:    d.uint32(),
		GID:    d.uint32(),
		Rdev:   d.uint32(),
		Parent: Ino(d.uvarint()),
		Size:   d.uvarint(),
		Xattrs: d.uint32(),
		Mtime:  Time(d.varint()),
		Ctime:  Time(d.varint()),
		Btime:  Time(d.varint()),
		Body:   Body{Kind: BodyKind(d.byte())},
	}
	if d.failed {
		return InodeRecord{}, fmt.Errorf("inode record of %d bytes: %w", len(b), ErrCorrupt)
	}
	if len(d.b) > 0 {
		r.Body.Data = d.b
	}
	if err := r.Valid(); err != nil {
		return InodeRecord{}, err
	}
	return r, nil
}

// Valid reports what no record may hold, as ErrCorrupt: fields out of range, or a body that does not go with the type
// and the size. It does not look into extents and trees.
func (r *InodeRecord) Valid() error {
	switch {
	case !r.Type.Valid():
		return fmt.Errorf("inode record: type %d: %w", r.Type, ErrCorrupt)
	case r.Mode&^ModeMask != 0:
		return fmt.Errorf("inode record: mode %o: %w", r.Mode, ErrCorrupt)
	case r.Size > MaxFileSize:
		return fmt.Errorf("inode record: size %d: %w", r.Size, ErrCorrupt)
	case (r.Type == TypeDir) != (r.Parent != 0):
		return fmt.Errorf("inode record: type %d with parent %d: %w", r.Type, r.Parent, ErrCorrupt)
	case !r.bodyFits():
		return fmt.Errorf("inode record: type %d of size %d with body kind %d of %d bytes: %w",
			r.Type, r.Size, r.Body.Kind, len(r.Body.Data), ErrCorrupt)
	}
	return nil
}

func (r *InodeRecord) bodyFits() bool {
	n := uint64(len(r.Body.Data))
	switch r.Body.Kind {
	case BodyNone:
		return n == 0 && r.Size == 0 && r.Type != TypeSymlink
	case BodyInline:
		return r.Type == TypeRegular && n == r.Size && n > 0 && n <= MaxInline
	case BodyExtents: // also of small files: until December 2026 a copy could leave one so
		return r.Type == TypeRegular && n > 0 && r.Size > 0
	case BodyTree:
		return r.Type == TypeRegular && n > 0 && r.Size > MaxInline
	case BodyTarget:
		return r.Type == TypeSymlink && n == r.Size && n > 0 && n <= MaxSymlinkLen
	}
	return false
}

// Append appends the canonical encoding of r to dst: type u8 | ino uvarint.
func (r *DirentRecord) Append(dst []byte) []byte {
	return binary.AppendUvarint(append(dst, byte(r.Type)), uint64(r.Ino))
}

// DecodeDirent decodes what Append encodes: ErrCorrupt for anything else.
func DecodeDirent(b []byte) (DirentRecord, error) {
	d := decoder{b: b}
	r := DirentRecord{Type: Type(d.byte()), Ino: Ino(d.uvarint())}
	if d.failed || len(d.b) != 0 || !r.Type.Valid() || r.Ino == 0 {
		return DirentRecord{}, fmt.Errorf("dirent record %x: %w", b, ErrCorrupt)
	}
	return r, nil
}

// decoder reads fields off the front of b. Once one does not fit, failed stays set and all others are zero.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) byte() byte {
	if d.failed || len(d.b) == 0 {
		d.failed = true
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// uvarint rejects encodings that are longer than they need to be: equal values have equal bytes.
func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.failed || n <= 0 || (n > 1 && d.b[n-1] == 0) {
		d.failed = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) uint32() uint32 {
	v := d.uvarint()
	if v > 1<<32-1 {
		d.failed = true
		return 0
	}
	return uint32(v)
}
