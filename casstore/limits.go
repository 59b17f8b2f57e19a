package casstore

import (
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Limits and sizes of a store, each with its reason.
const (
	// defaultBuffer bounds the dirty file bytes in memory. Flushing keeps up with a writer at a few hundred megabytes a
	// second; this takes the bursts.
	defaultBuffer = 128 << 20

	// defaultCommitEvery is how long a change may stay in memory only. Each commit is durable and costs a few
	// milliseconds of disk, so a second is cheap; temporary files that live shorter are never stored.
	defaultCommitEvery = time.Second

	// flushAhead is how many dirty bytes of one file start its flush: a dozen megabytes amortise the rewrite of the
	// tail chunk, and keep the hashing close behind the writer.
	flushAhead = 16 << 20

	// lagLimit is how many dirty bytes of a file a periodic commit still waits for. A file with more is in the middle
	// of a bulk write; it is committed as it was when last flushed, and whole in a later commit.
	lagLimit = 16 << 20

	// inlineDirty is how many dirty bytes a commit for an fsync waits for of other files: those that go into a record,
	// with what the buffer charges for them.
	inlineDirty = vfs.MaxInline + 1<<10

	// discardEvery is after how many revisions Badger is told that older ones need not be kept.
	discardEvery = 64

	// cacheCost bounds the clean inodes and dirents kept in memory, in units of some 300 bytes.
	cacheCost = 150_000

	// cacheBatch is how many the cache gives up at a time, so that eviction does not run at every operation.
	cacheBatch = 1_000

	// chunkCache bounds the decoded chunks kept in memory. The kernel caches pages; this one serves neighbouring reads
	// of one chunk and the rewriting of tails.
	chunkCache = 32 << 20

	// captureSlice is how many changed objects a commit encodes before it lets go of the tree lock for a moment.
	captureSlice = 256

	// dirBatch is how many entries a listing collects under the tree lock at a time.
	dirBatch = 512

	// dirLoad is the largest directory that a listing from its start keeps in memory whole.
	dirLoad = 8_192

	// minHole is the shortest run of zeros that is made a hole when a caller asks for one: the size of a page.
	minHole = 4 << 10

	// maxWorkspaceName is the longest name of a workspace, in bytes: it must be good as a file name anywhere.
	maxWorkspaceName = vfs.MaxNameLen

	// minShare is the shortest range whose chunks are shared and not copied: below it there is seldom a whole one.
	minShare = chunk.AvgSize

	// spaceSlack is how much is admitted before the free space of the disk is asked for again.
	spaceSlack = 8 << 20

	// recordCost is what a changed record is taken to need on disk until it is committed: its bytes in the log and in
	// a table, and a share of the compaction.
	recordCost = 1 << 10

	// recordBudget bounds what is promised for changed records in memory: some ten thousand of them, about as many bytes
	// of heap.
	recordBudget = 128 << 20

	// smallDisk is the size of disk below which the store keeps its tables and its reserve small.
	smallDisk = 2 << 30

	// removedWorth is how many bytes of records must have been removed before Badger is compacted on a full disk.
	removedWorth = 256 << 10

	// pushPatience is how long Badger may take to write what it has in memory to a table, and pushPoll how often it is
	// asked.
	pushPatience = 10 * time.Second
	pushPoll     = 5 * time.Millisecond

	// gcGarbage is how many bytes must have been deleted or replaced before the collector runs unasked.
	gcGarbage = 256 << 20

	// gcDeadShare is the share of a pack that must be dead before it is rewritten, in percent.
	gcDeadShare = 50
)
