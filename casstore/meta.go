package casstore

import (
	"encoding/binary"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// The versions of the layout that FORMAT.md describes. A store is of the lowest that has what is in it; one of a higher version
// than the last is not opened.
const (
	firstFormat   = 1
	secondFormat  = 2 // quotas with what is used of them, and forks that are not plain
	formatVersion = secondFormat
)

const formatMagic = "carrel\x00s"

// formatRecord says that a Badger directory is a store, and which. Layout: magic 8 bytes | version uvarint | epoch 16
// bytes. What follows the epoch belongs to later versions that stay readable, and is skipped.
type formatRecord struct {
	version uint64
	epoch   vfs.Epoch
}

func (r formatRecord) encode() []byte {
	b := binary.AppendUvarint([]byte(formatMagic), r.version)
	return append(b, r.epoch[:]...)
}

func decodeFormat(b []byte) (formatRecord, error) {
	if len(b) < len(formatMagic) || string(b[:len(formatMagic)]) != formatMagic {
		return formatRecord{}, fmt.Errorf("format record %x: %w", b, vfs.ErrNotStore)
	}
	version, n := binary.Uvarint(b[len(formatMagic):])
	rest := b[len(formatMagic)+max(n, 0):]
	switch {
	case n <= 0:
		return formatRecord{}, fmt.Errorf("format record %x: %w", b, vfs.ErrCorrupt)
	case version > formatVersion:
		return formatRecord{}, fmt.Errorf("format version %d, this program knows up to %d: %w",
			version, formatVersion, vfs.ErrNewerFormat)
	case len(rest) < len(vfs.Epoch{}):
		return formatRecord{}, fmt.Errorf("format record %x: %w", b, vfs.ErrCorrupt)
	}
	return formatRecord{version: version, epoch: vfs.Epoch(rest[:len(vfs.Epoch{})])}, nil
}

// headRecord is written last in a revision: what is above its revision is torn. Layout: rev | next inode | next
// workspace, uvarints.
type headRecord struct {
	rev    vfs.Rev
	ino    vfs.Ino // the lowest number that no inode has had
	nextWS workspaceID
}

func (r headRecord) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(r.rev))
	b = binary.AppendUvarint(b, uint64(r.ino))
	return binary.AppendUvarint(b, uint64(r.nextWS))
}

func decodeHead(b []byte) (headRecord, error) {
	v, err := uvarints(b, 3)
	if err != nil {
		return headRecord{}, fmt.Errorf("head record: %w", err)
	}
	return headRecord{rev: vfs.Rev(v[0]), ino: vfs.Ino(v[1]), nextWS: workspaceID(v[2])}, nil
}

// revisionRecord says what a revision was. Layout: time varint | workspace | records | kind, uvarints; then workspace and
// records again for each workspace more. Without any workspace both are zero.
type revisionRecord struct {
	time  vfs.Time
	kind  RevisionKind
	parts []revisionPart
}

// revisionPart is how many records of a workspace a revision has written or removed: inodes, dirents and attributes.
type revisionPart struct {
	ws      workspaceID
	records uint64
}

func (r revisionRecord) encode() []byte {
	parts := r.parts
	if len(parts) == 0 {
		parts = []revisionPart{{}}
	}
	b := binary.AppendVarint(nil, int64(r.time))
	for i, p := range parts {
		b = binary.AppendUvarint(b, uint64(p.ws))
		b = binary.AppendUvarint(b, p.records)
		if i == 0 {
			b = binary.AppendUvarint(b, uint64(r.kind))
		}
	}
	return b
}

func decodeRevision(b []byte) (r revisionRecord, err error) {
	v, err := allUvarints(b)
	if err == nil && (len(v) < 4 || len(v)%2 != 0) {
		err = vfs.ErrCorrupt
	}
	if err != nil {
		return r, fmt.Errorf("revision record %x: %w", b, err)
	}
	r.time, r.kind = unzigzag(v[0]), RevisionKind(v[3])
	parts := append([]uint64{v[1], v[2]}, v[4:]...)
	if len(v) == 4 && v[1] == 0 && v[2] == 0 {
		parts = nil
	}
	for i := 0; i < len(parts); i += 2 {
		if parts[i] == 0 {
			err = vfs.ErrCorrupt
		}
		r.parts = append(r.parts, revisionPart{workspaceID(parts[i]), parts[i+1]})
	}
	if err != nil || uint64(r.kind) != v[3] {
		return r, fmt.Errorf("revision record %x: %w", b, vfs.ErrCorrupt)
	}
	return r, nil
}

// records is how many records a revision has of all workspaces.
func (r revisionRecord) records() (n uint64) {
	for _, p := range r.parts {
		n += p.records
	}
	return n
}

// workspaceRecord is a workspace's entry in the store. Layout: created varint | name, to the end.
type workspaceRecord struct {
	created vfs.Time
	name    string
}

func (r workspaceRecord) encode() []byte {
	return append(binary.AppendVarint(nil, int64(r.created)), r.name...)
}

func decodeWorkspace(b []byte) (workspaceRecord, error) {
	created, name, err := cutUvarint(b)
	if err != nil || checkWorkspaceName(string(name)) != nil {
		return workspaceRecord{}, fmt.Errorf("workspace record %x: %w", b, vfs.ErrCorrupt)
	}
	return workspaceRecord{created: unzigzag(created), name: string(name)}, nil
}

// checkWorkspaceName returns nil when name may be a workspace's: a name of a file without '@' and ':', which part a
// workspace from a revision and a path on the command line, and not beginning with '-' or '.'.
func checkWorkspaceName(name string) error {
	if len(name) > maxWorkspaceName {
		return vfs.ErrNameTooLong
	}
	if name == "" {
		return fmt.Errorf("a name is not empty: %w", vfs.ErrInvalid)
	}
	for i, c := range []byte(name) {
		switch {
		case c <= ' ' || c == 0x7f:
			return fmt.Errorf("a name has no spaces and control characters: %w", vfs.ErrInvalid)
		case c == '/' || c == '@' || c == ':':
			return fmt.Errorf("a name has no %q: %w", c, vfs.ErrInvalid)
		case i == 0 && (c == '-' || c == '.'):
			return fmt.Errorf("a name does not begin with %q: %w", c, vfs.ErrInvalid)
		}
	}
	return nil
}

// cutUvarint takes a minimal uvarint off the front of b.
func cutUvarint(b []byte) (v uint64, rest []byte, err error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, vfs.ErrCorrupt
	}
	return v, b[n:], nil
}

// uvarints decodes exactly n minimal uvarints.
func uvarints(b []byte, n int) ([]uint64, error) {
	v, err := allUvarints(b)
	if err == nil && len(v) != n {
		err = fmt.Errorf("%x: %w", b, vfs.ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// allUvarints decodes minimal uvarints, as many as there are.
func allUvarints(b []byte) ([]uint64, error) {
	out := make([]uint64, 0, 4)
	for rest := b; len(rest) > 0; {
		v, after, err := cutUvarint(rest)
		if err != nil {
			return nil, fmt.Errorf("%x: %w", b, err)
		}
		out, rest = append(out, v), after
	}
	return out, nil
}

func unzigzag(u uint64) vfs.Time { return vfs.Time(int64(u>>1) ^ -int64(u&1)) }
