package casstore

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// The first byte of a key says what it leads to. Integers are big-endian, so keys sort as their numbers do.
const (
	keyFormat    = 'F' // F                         → formatRecord
	keyHead      = 'H' // H                         → headRecord
	keyWorkspace = 'W' // W ws:8                    → workspaceRecord
	keyRevision  = 'R' // R rev:8                   → revisionRecord
	keyPack      = 'P' // P pack:4                  → committed end, uvarint
	keyChunk     = 'C' // C id:32                   → pack.Loc, 12 bytes
	keyInode     = 'I' // I ws:8 ino:8              → vfs.InodeRecord
	keyDirent    = 'D' // D ws:8 dir:8 hash:8 name  → vfs.DirentRecord
	keyXattr     = 'X' // X ws:8 ino:8 name         → value
	keyAtime     = 'A' // A ws:8 ino:8              → atime, varint
	keyWindow    = 'O' // O                         → first revision of the window, uvarint
	keyStanding  = 'G' // G ws:8                    → standingRecord
	keyLease     = 'L' // L ws:8 first:8            → lease
	keyPush      = 'U' // U ws:8 peer:16 rev:8      → appliedPush
	keyJournal   = 'J' // J ws:8 ino:8 number:8     → journalEntry
	keyHistory   = 'K' // K                         → historyRecord
	keySnapshot  = 'S' // S ws:8 name               → snapshotRecord
	keyReplica   = 'B' // B ws:8                    → numbers: of a workspace that is a replica
	keyBasis     = 'Y' // Y ws:8 ino:8 kind:1 name  → what the authority had: present u8 | value
	keyNote      = 'N' // N ws:8 name               → of whoever keeps the replica; of conflicts
	keyFork      = 'T' // T ws:8                    → forkRecord
	keyMerge     = 'M' // M ws:8 from:8             → mergeRecord
	keyQuota     = 'Q' // Q ws:8                    → Quota
	keyLoad      = 'V' // V ws:8                    → nothing: a workspace that is being loaded
	keyBallast   = 'Z' // Z n:4                     → zeros, removed by the next revision
)

type workspaceID uint64

func keyOfWorkspace(ws workspaceID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyWorkspace}, uint64(ws))
}

// keyOfMerge is the key of what was merged of one workspace into another.
func keyOfMerge(into, from workspaceID) []byte {
	k := binary.BigEndian.AppendUint64([]byte{keyMerge}, uint64(into))
	return binary.BigEndian.AppendUint64(k, uint64(from))
}

func keyOfRevision(r vfs.Rev) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyRevision}, uint64(r))
}

func keyOfPack(p uint32) []byte { return binary.BigEndian.AppendUint32([]byte{keyPack}, p) }

func keyOfChunk(id chunk.ID) []byte { return append([]byte{keyChunk}, id[:]...) }

// keyOfNode is the key of an inode's record or atime, or the prefix of its dirents or attributes.
func keyOfNode(kind byte, ws workspaceID, ino vfs.Ino) []byte {
	k := make([]byte, 0, 1+8+8+8+32)
	k = append(k, kind)
	k = binary.BigEndian.AppendUint64(k, uint64(ws))
	return binary.BigEndian.AppendUint64(k, uint64(ino))
}

func keyOfDirent(ws workspaceID, dir vfs.Ino, name string) []byte {
	k := keyOfNode(keyDirent, ws, dir)
	k = binary.BigEndian.AppendUint64(k, nameHash(name))
	return append(k, name...)
}

func keyOfXattr(ws workspaceID, ino vfs.Ino, name string) []byte {
	return append(keyOfNode(keyXattr, ws, ino), name...)
}

func keyOfJournal(ws workspaceID, ino vfs.Ino, number uint64) []byte {
	return binary.BigEndian.AppendUint64(keyOfNode(keyJournal, ws, ino), number)
}

// journalKey is the inverse of keyOfJournal.
func journalKey(k []byte) (ws workspaceID, ino vfs.Ino, number uint64, err error) {
	if len(k) != prefixLen+8 {
		return 0, 0, 0, fmt.Errorf("key %x: %w", k, vfs.ErrCorrupt)
	}
	ws, ino = nodeOfKey(k)
	return ws, ino, binary.BigEndian.Uint64(k[prefixLen:]), nil
}

func keyOfSnapshot(ws workspaceID, name string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{keySnapshot}, uint64(ws)), name...)
}

func keyOfFork(ws workspaceID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyFork}, uint64(ws))
}

func keyOfQuota(ws workspaceID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyQuota}, uint64(ws))
}

func keyOfLoad(ws workspaceID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyLoad}, uint64(ws))
}

func keyOfStanding(ws workspaceID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyStanding}, uint64(ws))
}

// keyOfRecord is the key under which a workspace has a record that is replicated.
func keyOfRecord(ws workspaceID, k vfs.Key) []byte {
	switch k.Kind {
	case vfs.KeyDirent:
		return keyOfDirent(ws, k.Ino, k.Name)
	case vfs.KeyXattr:
		return keyOfXattr(ws, k.Ino, k.Name)
	}
	return keyOfNode(keyInode, ws, k.Ino)
}

// recordOfKey is the inverse of keyOfRecord. ok is false for keys of what is not replicated.
func recordOfKey(k []byte) (key vfs.Key, ok bool, err error) {
	skip := prefixLen
	switch k[0] {
	case keyInode:
		key.Kind = vfs.KeyInode
	case keyDirent:
		key.Kind, skip = vfs.KeyDirent, direntLen
	case keyXattr:
		key.Kind = vfs.KeyXattr
	default:
		return key, false, nil
	}
	if len(k) < skip || (len(k) == skip) != (key.Kind == vfs.KeyInode) {
		return key, false, fmt.Errorf("key %x: %w", k, vfs.ErrCorrupt)
	}
	_, key.Ino = nodeOfKey(k)
	key.Name = string(k[skip:])
	return key, true, nil
}

const (
	prefixLen = 1 + 8 + 8     // of the keys of one node
	direntLen = prefixLen + 8 // of a dirent's key before the name
)

// hashBits is the width of a name's hash. With eight bits below it for names of one hash, an offset in a listing is 63
// bits, the most that telldir(3) can carry.
const hashBits = 55

// nameHash orders a directory: entries are listed by the hash of their name, so that an offset stays good whatever
// comes and goes. It is never zero, which leaves the lowest offsets to "." and "..".
func nameHash(name string) uint64 {
	h := xxhash.Sum64String(name) & (1<<hashBits - 1)
	return max(h, 1)
}

// workspaceOfKey returns the workspace that a key belongs to.
func workspaceOfKey(k []byte) workspaceID { return workspaceID(binary.BigEndian.Uint64(k[1:])) }

// nodeOfKey returns the workspace and inode that the key of an inode, dirent, attribute or atime belongs to.
func nodeOfKey(k []byte) (workspaceID, vfs.Ino) {
	return workspaceID(binary.BigEndian.Uint64(k[1:])), vfs.Ino(binary.BigEndian.Uint64(k[9:]))
}
