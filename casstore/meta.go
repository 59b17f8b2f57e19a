package casstore

import (
	"encoding/binary"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// formatVersion is the version of the layout that FORMAT.md describes. A store of a higher one is not opened.
const formatVersion = 1

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

// revisionRecord says what a revision was. Layout: time varint | workspace | records, uvarints. The workspace is zero
// when a revision touched several.
type revisionRecord struct {
	time    vfs.Time
	ws      workspaceID
	records uint64 // inodes, dirents and attributes written or removed
}

func (r revisionRecord) encode() []byte {
	b := binary.AppendVarint(nil, int64(r.time))
	b = binary.AppendUvarint(b, uint64(r.ws))
	return binary.AppendUvarint(b, r.records)
}

func decodeRevision(b []byte) (revisionRecord, error) {
	v, err := uvarints(b, 3)
	if err != nil {
		return revisionRecord{}, fmt.Errorf("revision record: %w", err)
	}
	return revisionRecord{time: unzigzag(v[0]), ws: workspaceID(v[1]), records: v[2]}, nil
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
	created, n := binary.Varint(b)
	if n <= 0 || checkWorkspaceName(string(b[n:])) != nil {
		return workspaceRecord{}, fmt.Errorf("workspace record %x: %w", b, vfs.ErrCorrupt)
	}
	return workspaceRecord{created: vfs.Time(created), name: string(b[n:])}, nil
}

// checkWorkspaceName returns nil when name may be a workspace's: a name of a file without '@' and ':', which part a
// workspace from a revision and a path on the command line, and not beginning with '-' or '.'.
func checkWorkspaceName(name string) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	if len(name) > maxWorkspaceName {
		return vfs.ErrNameTooLong
	}
	for i, c := range []byte(name) {
		if c <= ' ' || c == 0x7f || c == '@' || c == ':' || (i == 0 && (c == '-' || c == '.')) {
			return vfs.ErrInvalid
		}
	}
	return nil
}

// uvarints decodes exactly n minimal uvarints.
func uvarints(b []byte, n int) ([]uint64, error) {
	out := make([]uint64, 0, n)
	for rest := b; len(out) < n; {
		v, k := binary.Uvarint(rest)
		if k <= 0 || (k > 1 && rest[k-1] == 0) {
			return nil, fmt.Errorf("%x: %w", b, vfs.ErrCorrupt)
		}
		out, rest = append(out, v), rest[k:]
		if len(out) == n && len(rest) > 0 {
			return nil, fmt.Errorf("%x: %w", b, vfs.ErrCorrupt)
		}
	}
	return out, nil
}

func unzigzag(u uint64) vfs.Time { return vfs.Time(int64(u>>1) ^ -int64(u&1)) }
