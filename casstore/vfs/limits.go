package vfs

import "time"

// Limits of a workspace tree. Every implementation of [Tree] enforces them, and every decoder checks lengths against
// them before it takes memory.
const (
	// MaxNameLen is the longest name of a dirent, in bytes: NAME_MAX of every Linux filesystem.
	MaxNameLen = 255

	// MaxSymlinkLen is the longest target of a symlink, in bytes: PATH_MAX less its terminating NUL.
	MaxSymlinkLen = 4095

	// MaxFileSize is the largest size of a file, in bytes: 16 TiB, as much as ext4 holds with 4 KiB blocks.
	MaxFileSize = 16 << 40

	// MaxXattrName is the longest name of an extended attribute, in bytes (XATTR_NAME_MAX).
	MaxXattrName = 255

	// MaxXattrSize is the largest value of an extended attribute, in bytes (XATTR_SIZE_MAX).
	MaxXattrSize = 64 << 10

	// MaxXattrList is the most that the names of one inode's attributes take together, each with its NUL
	// (XATTR_LIST_MAX). A list that is longer could not be read through the kernel.
	MaxXattrList = 64 << 10

	// MaxLinks is the largest link count of a file: one byte below what an ext4 file of many links shows, and far from
	// where programs that keep it in 16 bits break.
	MaxLinks = 65000

	// MaxInline is the largest file kept inside its record, in bytes.
	MaxInline = 4 << 10

	// MaxRecord is the largest encoded record, in bytes. An attribute's value and its header are the longest.
	MaxRecord = MaxXattrSize + 1<<10
)

// Limits of what an [Authority] is asked in one call.
const (
	// MaxPushRecords is the most records of a push. Unpacking an archive makes two for each file; a mirror sends many
	// thousand files in one revision, and the check of a push, a few hundred bytes a record, stays in the tens of
	// megabytes.
	MaxPushRecords = 64 << 10

	// MaxPushBytes is the most that the names and values of a push take together. It holds as many records of common
	// size as MaxPushRecords, and 240 of the largest attributes.
	MaxPushBytes = 16 << 20

	// MaxStale is the most records that an authority returns when a push is based on other ones. A mirror that far
	// behind learns the rest from its feed, which holds all of them.
	MaxStale = 1 << 10

	// PushMemory is how many of a peer's newest pushes an authority remembers at least. A peer has fewer under way.
	PushMemory = 64

	// MaxGetKeys is the most keys of one Get. The answer is in memory whole: usually some kilobytes, and at the worst,
	// when all are attributes of the largest size, 16 MiB.
	MaxGetKeys = 256

	// MaxSumRanges is the most intervals of one Sums. With that many, one inode among 2^32 is found in four steps.
	MaxSumRanges = 256

	// MaxLease is the most inode numbers of one lease. A mirror asks for more long before it has used them up; there are
	// 2^44 leases of this size.
	MaxLease = 1 << 20

	// MaxChunkIDs is the most chunks that one call is about: a hundredth of a second of looking up, and 512 MiB of
	// plain bytes of average size, of which nobody holds more than one or two in memory.
	MaxChunkIDs = 4 << 10

	// ChunkGrace is how long an authority keeps a chunk at least that nothing refers to: a push follows its chunks in
	// the same flight, or, of a mirror that is told what is missing, within its next round trips.
	ChunkGrace = 10 * time.Minute
)
