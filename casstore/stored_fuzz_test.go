package casstore

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// stored are the decoders of values in the store, by the first byte of a fuzzed input: each decodes and encodes again.
var stored = []func(b []byte) ([]byte, error){
	func(b []byte) ([]byte, error) { r, err := decodeHead(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeRevision(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeWorkspace(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeStanding(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeAppliedPush(b); return r.encode(), err },
	func(b []byte) ([]byte, error) {
		r, err := decodeLease(keyOfNode(keyLease, 1, 2), b)
		return r.encode(), err
	},
	func(b []byte) ([]byte, error) { r, err := decodeLoc(b); return encodeLoc(r), err },
	func(b []byte) ([]byte, error) { r, err := decodeEntry(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeHistory(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeSnapshot(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeFork(b); return r.encode(), err },
	func(b []byte) ([]byte, error) { r, err := decodeQuota(b); return r.encode(), err },
}

// FuzzStored: a value that decodes is canonical, and one that does not is ErrCorrupt.
func FuzzStored(f *testing.F) {
	for kind, b := range [][]byte{
		headRecord{rev: 300, ino: 5, nextWS: 2}.encode(),
		revisionRecord{time: -1, kind: RevisionPush, parts: []revisionPart{{1, 1000}, {2, 1}}}.encode(),
		workspaceRecord{created: -1, name: "demo"}.encode(),
		standingRecord{standing{rev: 7, floor: 3, next: 5, digest: vfs.Digest{1, 2, 3, 4}}, 300}.encode(),
		(&appliedPush{id: vfs.PushID{1}, sum: vfs.PushSum{2}, prev: 6, rev: 300}).encode(),
		lease{vfs.InoRange{First: 2, Last: 4096}, vfs.PeerID{9}}.encode(),
		encodeLoc(pack.Loc{Pack: 1, Off: 4096, Len: 1000}),
		journalEntry{kind: entryLayer, cut: math.MaxUint64, size: 9, mtime: -1}.encode(),
		historyRecord{keep: 1000, start: 300}.encode(),
		snapshotRecord{rev: 300, created: -1, message: "why"}.encode(),
		forkRecord{parent: origin{ws: 2, rev: 300}, layers: []origin{{ws: 2, rev: 300}, {ws: 1, rev: 5}}}.encode(),
		quotaRecord{Quota: Quota{Bytes: 300}, used: quotaSums{5, 7}, known: true}.encode(),
	} {
		f.Add(append([]byte{byte(kind)}, b...))
	}
	flat := forkRecord{parent: origin{ws: 1, rev: 5}, layers: []origin{{ws: 9, rev: 300, of: 200}, {ws: 1, rev: 5}}}
	f.Add(append([]byte{10}, flat.encode()...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		kind, b := int(b[0])%len(stored), b[1:]
		switch again, err := stored[kind](b); {
		case err != nil && !errors.Is(err, vfs.ErrCorrupt):
			t.Fatalf("kind %d, %x: %v", kind, b, err)
		case err == nil && !bytes.Equal(again, b):
			t.Fatalf("kind %d: %x encodes to %x", kind, b, again)
		}
	})
}
