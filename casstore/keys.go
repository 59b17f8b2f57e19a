package casstore

import (
	"encoding/binary"

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
	keyBallast   = 'Z' // Z n:4                     → zeros, removed by the next revision
)

type workspaceID uint64

func keyOfWorkspace(ws workspaceID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyWorkspace}, uint64(ws))
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

// nodeOfKey returns the workspace and inode that the key of an inode, dirent, attribute or atime belongs to.
func nodeOfKey(k []byte) (workspaceID, vfs.Ino) {
	return workspaceID(binary.BigEndian.Uint64(k[1:])), vfs.Ino(binary.BigEndian.Uint64(k[9:]))
}
