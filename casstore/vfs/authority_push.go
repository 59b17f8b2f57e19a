package vfs

import (
	"crypto/sha256"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// PushID tells one push of a peer from its others. The peer makes it at random, and sends a push that it has had no answer
// to again under the same id.
type PushID [16]byte

// Push is what a mirror asks an authority to make of the workspace: records that together turn one valid tree into
// another. It holds at most MaxPushRecords records, each key once, and MaxPushBytes of names and values.
type Push struct {
	ID      PushID
	Records []PushRecord
}

// PushRecord is a record and what it replaces. The base is what the mirror last had from the authority under the key,
// so a push that passes overwrites nothing that its maker has not seen.
type PushRecord struct {
	Record
	Base Base
}

// PushSum stands for the contents of a push, to tell a retry from another push under the same id.
type PushSum [sha256.Size]byte

// Sum returns the SHA-256 of the bases and records of p, in their order:
//
//	base:16 present:1 hash of the record:32
//
// A tombstone has present 0, and is hashed with an empty value.
func (p *Push) Sum() (sum PushSum) {
	h := sha256.New()
	for i := range p.Records {
		r := &p.Records[i]
		present := byte(1)
		if r.Value == nil {
			present = 0
		}
		hash := r.Hash()
		h.Write(append(append(r.Base[:len(r.Base):len(r.Base)], present), hash[:]...))
	}
	h.Sum(sum[:0])
	return sum
}

// Outcome is an authority's answer to a push.
type Outcome struct {
	// Position is that of the revision which holds the push, when it was applied. Otherwise it is of a revision that holds
	// what Stale says. The Oldest of a repeated answer may be newer than the first time.
	Position Position

	// Prev is the workspace's revision just before the push, when it was applied: a mirror that is there has, with its
	// own push, everything up to Position.
	Prev Rev

	// Stale are current records of keys that are not what the push is based on, at least one of them and not more than
	// MaxStale: nothing was applied. The mirror has its base, its own and these, and reconciles.
	Stale []Record

	// Missing are ids of chunks that records of the push refer to and that are not there, at least one of them and not
	// more than MaxChunkIDs: nothing was applied.
	Missing []chunk.ID
}

// Applied reports whether the push was applied.
func (o *Outcome) Applied() bool { return len(o.Stale) == 0 && len(o.Missing) == 0 }
