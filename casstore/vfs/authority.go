package vfs

import (
	"context"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// Authority is one workspace where its revisions are made, as replication sees it: state, not operations. What travels
// is the current record of an inode, dirent or attribute, or its tombstone. Identity is the inode, so renaming a
// directory of any size is a few records, hard links stay hard links, a newcomer needs no history, and applying a change
// never walks a path that a symlink could bend. Operations (rename, write) would need all of their history in order, and
// a rule for each pair of them that can meet.
//
// Every method is safe for concurrent use. Errors wrap the sentinels of this package: ErrInterrupted when the context
// ended, ErrClosed when the authority was closed, ErrNoWorkspace when the workspace was removed, ErrInvalid for an
// argument over its limit (limits.go) or malformed. A call that failed has had no effect. Slices that are passed in are
// not kept; slices that are returned belong to the caller, but for those that a yield function is given, which are good
// only until it returns. No lock is held while a yield function runs, and it may call the authority. The error of a
// yield function ends the call and is returned as it is.
//
// syncwire/wiretest holds the kit that proves an implementation. One in memory, of less than a hundred lines, is the example
// "Authority" of package syncwire. It is put together from what this package offers for every other: CheckPush and
// CheckChunks decide on a push, Digest, Query and SumsOf do the reading, Guard looks at arguments, and Head wakes who
// waits; PushLog, LeaseLog and ChunkMap stand in for what a store keeps on disk.
type Authority interface {
	// Position returns where the workspace stands: that of its newest revision.
	Position(ctx context.Context) (Position, error)

	// Wait returns the position once its revision is above after; at once when it is already. While somebody waits, an
	// authority whose tree is also written by others (a mount beside it) makes revisions of what they write without
	// delay, so that a feed need not poll and does not lag.
	Wait(ctx context.Context, after Rev) (Position, error)

	// Barrier makes everything that was written to the workspace before the call durable and part of a revision, and
	// returns a position that holds it. With nothing new it makes no revision.
	Barrier(ctx context.Context) (Position, error)

	// Read yields what a query asks for, as it is at one revision, and returns the position of that revision. What is
	// written while it runs is not in it. Memory is bounded whatever the size of the workspace.
	//
	// Records come in ascending order of inode numbers, each key once: of one number the inode first, then its dirents,
	// then its attributes, in an order that is the same whenever the same state is read. So a snapshot that was cut off
	// is taken up at the last number that began, and made whole by a Read since the revision at which it began.
	//
	// ErrVoidCursor when the changes since q.Since can no longer be told, or never could: it is of another epoch, above
	// the newest revision, or below Position.Oldest.
	Read(ctx context.Context, q Query, yield func(Record) error) (Position, error)

	// Get returns the current records of up to MaxGetKeys keys, in the order of keys, with nil values for those that are
	// not there, as they are at one revision.
	Get(ctx context.Context, keys []Key) ([]Record, Rev, error)

	// Sums returns the digests of the records of up to MaxSumRanges intervals, as they are at one revision. It locates
	// a difference between two replicas in a few steps, by narrowing an interval.
	Sums(ctx context.Context, ranges []InoRange) ([]Digest, Rev, error)

	// LeaseInos gives a peer a range of n numbers (1 to MaxLease), or of fewer, which nobody else is given, ever. A lease
	// is durable when the call returns and does not end: a peer that was offline for months may use what it was leased.
	LeaseInos(ctx context.Context, peer PeerID, n uint64) (InoRange, error)

	// Push applies a peer's records, all of them as one revision or none. It is durable when the call returns.
	// ErrReadOnly when the workspace cannot be written, ErrNoSpace and ErrQuota when there is no room, ErrBusy when others
	// kept changing what the push changes: it may be made again.
	//
	// An authority decides in this order:
	//
	//  1. A push of that id which was applied before, for that peer, is answered as before, without effect: ErrPushReused
	//     when its records were others. At least the newest PushMemory pushes of each peer are remembered, durably,
	//     together with their effect. Pushes that were not applied are not remembered.
	//  2. CheckPush, against the live state. Keys that are not what the push is based on are returned as Outcome.Stale,
	//     and an error for records that would not leave a tree.
	//  3. Every chunk that the records refer to must be there, at any depth of a manifest, with the length that its
	//     entry says. Those that are not are returned as Outcome.Missing.
	//  4. All records become one revision. A push whose records are all as they are already makes none.
	//
	// Records of local changes that have no revision yet are in the live state. They get one before they are returned as
	// stale, so that the position of the outcome holds what was returned.
	Push(ctx context.Context, peer PeerID, p Push) (Outcome, error)

	Chunks
}

// Chunks is a set of chunks by their ids. Chunks travel in stored form: compressed once, never again.
type Chunks interface {
	// MissingChunks returns those of up to MaxChunkIDs ids that are not there, in the order of ids. A chunk whose bytes
	// are damaged or gone counts as missing, so that it is sent again, and repaired.
	MissingChunks(ctx context.Context, ids []chunk.ID) ([]chunk.ID, error)

	// ReadChunks yields those of up to MaxChunkIDs ids that are there and sound, in the order of ids. The caller knows
	// by what is left out what was missing.
	ReadChunks(ctx context.Context, ids []chunk.ID, yield func(Chunk) error) error

	// WriteChunks keeps chunks for the pushes that will refer to them: up to MaxChunkIDs of them. It checks each by its
	// hash, and with ErrCorrupt for one that is not what its id says none is kept. Chunks to which no record refers may be
	// dropped after ChunkGrace; nothing else is promised for them, not even that they outlive the process. ErrQuota when
	// there are too many of them.
	WriteChunks(ctx context.Context, chunks []Chunk) error
}

// Position is where a workspace stands at one revision.
type Position struct {
	Cursor

	// Oldest is the lowest revision since which changes can still be told. What was removed before is forgotten.
	Oldest Rev

	// Digest is of all records at the revision.
	Digest Digest
}

// InoRange is an interval of inode numbers, both ends in it. It is not empty: First is not above Last.
type InoRange struct {
	First, Last Ino
}

// AllInos holds every inode number.
var AllInos = InoRange{First: 0, Last: 1<<64 - 1}

// Valid reports whether r is an interval at all.
func (r InoRange) Valid() bool { return r.First <= r.Last }

// Contains reports whether ino is in r.
func (r InoRange) Contains(ino Ino) bool { return r.First <= ino && ino <= r.Last }

// PeerID tells one mirror from others at an authority: whose leases and whose pushes are meant. Whoever serves an
// authority derives it from the identity that it has verified and from the mirror's own id, so that no peer can take
// another's.
type PeerID [16]byte
