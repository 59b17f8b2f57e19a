package mirror

import (
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Limits of a mirror, each with its reason.
const (
	// pushRecords and pushBytes are the most of one push: below what an authority takes, so that what is added to make a
	// part of a large change a tree by itself still fits.
	pushRecords = vfs.MaxPushRecords * 3 / 4
	pushBytes   = vfs.MaxPushBytes * 3 / 4

	// inlineChunks is how many bytes of chunks travel with a push without asking whether the authority has them: a
	// round trip of some milliseconds costs as much as these.
	inlineChunks = 256 << 10

	// chunkBatch is how many bytes of chunks one request brings or takes.
	chunkBatch = 4 << 20

	// leaseSize is how many inode numbers are leased at a time, and leaseLow below how many more are asked for: an
	// archive of a hundred thousand files is unpacked while no authority can be reached.
	leaseSize = vfs.MaxLease
	leaseLow  = vfs.MaxLease / 4

	// retryFirst and retryLast bound the pause after a push or a feed that failed for a reason that may pass.
	retryFirst = 50 * time.Millisecond
	retryLast  = 5 * time.Second

	// readAheadFirst and readAheadMost are how far a sequential reader is read ahead of: doubled with each chunk that it
	// comes to. At 20 ms and 1 Gbit/s 2.5 MB are under way.
	readAheadFirst = 512 << 10
	readAheadMost  = 8 << 20

	// maxReaders bounds the files whose readers are remembered.
	maxReaders = 256

	// prefetches bounds the batches that are fetched ahead at the same time.
	prefetches = 4

	// learnFor is how long after its start a mirror learns which files are read.
	learnFor = 10 * time.Second

	// maxLearned is how many it notes: some 100 KiB on disk.
	maxLearned = 4096

	// prefetchBatch is how many chunks are prefetched at a time: what somebody comes to wait for meanwhile is behind 1 MiB or so.
	prefetchBatch = 8

	// defaultCache is what CacheBytes is when it is zero.
	defaultCache = 10 << 30

	// siblings is of how many entries of a directory that is looked into while metadata is loading the inodes are fetched
	// with it.
	siblings = 4096

	// dirtyMost is how many bytes may be written and not pushed while the authority can be reached; writers then wait for
	// the push. More would be lost with the mirror's disk, and takes longer to push than anybody wants to wait for at the end.
	dirtyMost = 1 << 30

	// linkLook is how long a writer who waits for a push or a merge does so before it looks again whether the authority can be
	// reached.
	linkLook = time.Second

	// writerPatience is how long a join waits to hear whether it is the writer: a few round trips.
	writerPatience = 2 * time.Second

	// noteSize is how much of a push is in one note: Badger keeps values with their keys.
	noteSize = 48 << 10

	// digestPause is how many times as long as a comparison of digests has taken the next one is put off.
	digestPause = 20

	// repairs is how often what a digest says to be wrong is looked for before everything is compared.
	repairs = 3
)
