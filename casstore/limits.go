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

	// usageMarks is how many chunks are looked at to say what they are there for, some forty bytes each.
	usageMarks = 1 << 20

	// discardEvery is after how many revisions Badger is told that older ones need not be kept.
	discardEvery = 64

	// cacheCost bounds the inodes and dirents kept in memory, as far as they are clean, in units of costUnit bytes: an
	// entry is one, an inode one and what its bytes in line, its target, its manifest and its open file take. It is enough
	// for some 30,000 small files, and a fifth of what the daemon may have.
	cacheCost = 200_000
	costUnit  = 256

	// cacheBatch is how many the cache gives up at a time, so that eviction does not run at every operation.
	cacheBatch = 1_000

	// chunkCache bounds the decoded chunks kept in memory. The kernel caches pages; this one serves neighbouring reads
	// of one compressed chunk: of some fifty files that are read at once.
	chunkCache = 16 << 20

	// memtableSize is how many bytes of records Badger keeps in memory, a third more with what it adds, before it writes a
	// table of them; up to four of these are there when the disk does not keep up. Each has a log on the disk of twice the
	// size, mapped. smallMemtable is for small disks.
	memtableSize  = 8 << 20
	smallMemtable = 4 << 20

	// memtablesWritten is how many tables that come from memory are merged at once, and memtablesMost from how many on
	// writers wait for that: so many that a merge is worth it, which reads and writes all of the level below.
	memtablesWritten = 6
	memtablesMost    = 16

	// tableSize is how large Badger's tables are on the disk, but for those that come straight from memory: a gigabyte of
	// records is 4,000 open files. A merge builds up to thirteen at a time, and two merges may be under way. Each is in
	// memory until the disk has it: its records as they are, three or four times as many bytes, the blocks compressed,
	// with room for blocks that do not compress, and what allocators that double leave over. That is fourteen times its
	// size; so tables of a megabyte took up to 360 MiB.
	tableSize = 256 << 10

	// blockCacheSize bounds the blocks of tables that are kept decompressed, and indexCacheSize their indexes. A block that
	// is not there is in the operating system's cache, and takes three microseconds to decompress.
	blockCacheSize = 16 << 20
	indexCacheSize = 32 << 20

	// mappedMost is how many bytes of files the process may have mapped in memory before it lets go of Badger's tables;
	// the program itself is 20 MiB of them, and Badger's logs as much. When what it cannot let go of is more, it does so
	// for each mappedStep more, for mappedRest: what a compaction has mapped and not finished it can let go of later.
	mappedMost = 48 << 20
	mappedStep = 16 << 20
	mappedRest = 250 * time.Millisecond

	// It looks for every mappedEvery keys read, each of which can bring 64 KiB in, though most are neighbours; and every
	// mappedPoll, in which a compaction maps ten megabytes, from a commit on until there has been no change mappedStill
	// times.
	mappedEvery = 256
	mappedPoll  = 20 * time.Millisecond
	mappedStill = 50

	// compactorsAfter is after how long without a commit Badger's compactors end. A compaction begins up to a second after
	// what makes it necessary.
	compactorsAfter = 10 * time.Second

	// maxPlaces bounds the raw chunks that are known to be whole, a hundred bytes each: enough for ten gigabytes.
	maxPlaces = 64 << 10

	// combineMost is how many dirty bytes of a file, in several layers, are copied together to be flushed at once, with
	// what the buffer charges for them: what the journal may hold of a file, and a little more.
	combineMost = 2 << 20

	// journalMost is how many dirty bytes an fsync puts into the journal; more goes into chunks at once, which costs less
	// for each byte. journalTotal is how many of a file may be there, with what the buffer charges for them: they are
	// in memory as well, and written again when the store is opened after a crash.
	journalMost  = 64 << 10
	journalTotal = 1 << 20

	// journalLayers is how many layers of a file may be there: a flush takes them into chunks one by one, each time
	// looking through those that are left.
	journalLayers = 128

	// journalPiece is the longest run of bytes in one entry of the journal: Badger keeps it in its tables.
	journalPiece = 32 << 10

	// captureSlice is how many changed objects a commit encodes before it lets go of the tree lock for a moment.
	captureSlice = 256

	// maxConflicts bounds the conflicts of a workspace that are remembered. Beyond it the oldest are forgotten; the copies
	// stay.
	maxConflicts = 10_000

	// mergeKeys is how many records may be different in what is merged: they are in memory meanwhile, half a kilobyte each.
	mergeKeys = 1 << 18

	// mergeText and mergeLines are the largest file that is merged line by line. The time that takes may grow with the square
	// of the lines: 0.6 s for ten thousand, five for forty thousand.
	mergeText  = 1 << 20
	mergeLines = 10_000

	// mergeNameLen is how much of the name of what is merged stands in the names of copies.
	mergeNameLen = 64

	// restoreNames is how many names a path that is restored may have, then and now: they are in memory meanwhile, some
	// hundred bytes each.
	restoreNames = 1 << 20

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

	// smallDisk is the size of disk below which the store keeps its memtables and its reserve small.
	smallDisk = 2 << 30

	// largeReserve and smallReserve are the free space that is kept: for logs of memtables, two of which may be full beside
	// a merge of tables, and for what the collector copies.
	largeReserve = 128 << 20
	smallReserve = 32 << 20

	// removedWorth is how many bytes of records must have been removed before Badger is compacted on a full disk.
	removedWorth = 256 << 10

	// pushPatience is how long Badger may take to write what it has in memory to a table, and pushPoll how often it is
	// asked.
	pushPatience = 10 * time.Second
	pushPoll     = 5 * time.Millisecond

	// gcStepShare is the part of what is in packs, as a divisor, that must have been deleted or replaced before the collector runs
	// unasked, between gcStepLeast and gcStepMost bytes.
	gcStepShare = 4
	gcStepLeast = 32 << 20
	gcStepMost  = 256 << 20

	// gcBehind is how many times as many must have been, with those that are being collected, before the size of the packs
	// counts, and gcBrake how long a writer waits at most for each megabyte then: it gets to 30 MB/s.
	gcBehind = 2
	gcBrake  = 30 * time.Millisecond

	// gcHistory is how many bytes of history must have been found for it to be worth a collection when they have passed.
	gcHistory = 256 << 20

	// gcDeadShare is the share of a pack that must be dead before it is rewritten, in percent, and gcAskedShare that share when
	// somebody has asked for it: what is left takes a quarter more than it needs.
	gcDeadShare  = 50
	gcAskedShare = 20

	// gcAtOnce is how many bytes the collector copies for one revision, for which it waits until all that others have written is
	// durable: half a second's work.
	gcAtOnce = 128 << 20

	// gcUrgentShare is that share when space is needed, and gcLeastShare when even a little of it is.
	gcUrgentShare = 10
	gcLeastShare  = 1

	// listMost is how many chunks of packs that are to be emptied the collector holds at a time, some fifty bytes each.
	listMost = 256 << 10

	// windowRevisions, windowAge and windowBytes bound the window in which cursors are valid. Marks of it are kept in
	// memory, one for discardEvery revisions. A day is what a machine that is switched off over night needs. What has
	// been written in the window is kept, or half as much as all tables if that is more: a mirror that is further behind
	// than that takes a snapshot at no more cost.
	windowRevisions = 1 << 20
	windowAge       = 24 * time.Hour
	windowBytes     = 64 << 20

	// historyBytes bounds the records that are written in the time that history is kept for: what was replaced stays in
	// Badger, which writes all of it anew as it compacts. A tenth of a small disk, if that is less.
	historyBytes = 1 << 30

	// historyShare is the part of the disk, in percent, that the chunks of history may take; with the records it is a
	// fifth.
	historyShare = 10

	// markApart is how far apart in time marks of a window are: for a day they take two megabytes.
	markApart = time.Second

	// historySlack is the part of its age, as a divisor, by which the history may be older before it begins anew, which is a record
	// in a commit; markApart at the least.
	historySlack = 256

	// logKept is how many revisions the log has of a store that keeps no history.
	logKept = 4 << 10

	// forgetBatch is how many entries of the log are removed at a time, more than come meanwhile.
	forgetBatch = 4 * discardEvery

	// flattenOver is how many layers a fork may have before the background makes fewer of them, down to two thirds: a record
	// that is in none of them is looked for in each, 10 microseconds for all of these. maxOrigins is how many it may have at
	// all: a fork that would have more waits for the background.
	flattenOver = 12
	maxOrigins  = 64

	// flattenBatch is for how much in records, with recordCost for each, a merge of layers makes a revision, for which others
	// wait for a millisecond. flattenRest is how many times as long as one took it rests then.
	flattenBatch = 512 << 10
	flattenRest  = 2

	// flattenCount is up to how many records a layer is counted: beyond it, it is merged when nothing else is left.
	flattenCount = 1 << 18

	// flattenAge is how many revisions old a layer must be, and at least as many as it has records, to be copied so that what
	// was replaced since need not be kept for it.
	flattenAge = 64 << 10

	// maxDepth bounds how deep directories are taken to be nested: with more there is a loop.
	maxDepth = 1 << 20

	// maxMessage is the longest message of a snapshot, in bytes.
	maxMessage = 4 << 10

	// viewManifests bounds the manifests of large files that a view of a revision keeps decoded.
	viewManifests = 64

	// feedDelay is how long a change waits for others before it is committed while a feed waits for it. Programs make
	// several changes together: a file that is made, written and closed is in one commit, also through a mount.
	feedDelay = 2 * time.Millisecond

	// feedShare is how many times as long as a commit has taken the next one for a feed is put off: what a feed asks for
	// takes a fifth of the disk's time.
	feedShare = 4

	// maxGuests bounds the chunks that peers have written and nothing refers to: some 100 MB of memory, and 128 GiB of
	// chunks of average size.
	maxGuests = 1 << 20

	// maxDamaged bounds the damaged chunks that are remembered. Of a disk with more there is no hope.
	maxDamaged = 64 << 10

	// pushTries is how often a push is checked anew because the tree has changed where it does. Each time everything is
	// committed before, so only a tree that changes all the time gets there.
	pushTries = 8

	// pushPeers is of how many peers the pushes are remembered in memory, some 10 KB for each. Those of others are read.
	pushPeers = 1 << 10

	// maxRanges bounds the ranges of numbers that a replica has for new inodes: a lease is asked for when few are left.
	maxRanges = 64

	// defaultCache is what packs may take of a store with replicas.
	defaultCache = 10 << 30

	// cachePacks is of how many packs such a cache consists at least: what is evicted goes a pack at a time, the oldest
	// first.
	cachePacks = 16

	// indexAhead is how many entries of the index may wait in memory for the next revision before one is made for them.
	indexAhead = 32 << 10

	// maxFrame is the longest frame of a backup: a chunk of the largest size, or a batch of records.
	maxFrame = chunk.MaxSize + 64<<10

	// streamBatch and streamChunks are for how many bytes of records a frame of a backup is written, and for how many chunks
	// that they refer to; a record is shorter than what is left to maxFrame then.
	streamBatch  = 128 << 10
	streamChunks = 4 << 10

	// streamRemembered is how many chunks a backup knows to be in its stream, a hundred bytes each: enough for 128 GiB. Of
	// more, some are in it twice.
	streamRemembered = 1 << 20

	// loadChunkBytes is how many bytes of chunks a load gathers to hash them on all processors. loadBatch is for how much in
	// records, with recordCost for each, it makes a revision: all others wait for its chunks to be looked for meanwhile.
	// maxLoadChanges and maxLoadChangeBytes bound the changes of workspaces that are there, which are made at once: they are
	// in memory, some 300 bytes for each beside its own, and in one revision, for which all others wait.
	loadChunkBytes     = 4 << 20
	loadBatch          = 2 << 20
	maxLoadChanges     = 1 << 20
	maxLoadChangeBytes = 256 << 20

	// loadUnreferred is for how many chunks a load makes a revision of the records that refer to them, whatever these take:
	// until then they are guests, of which there may be maxGuests.
	loadUnreferred = 64 << 10

	// loadLoose is for how many chunks that no record refers to yet, since one was written, a load writes records of its own, some
	// fifty bytes for each: a quarter of the guests that there may be.
	loadLoose = maxGuests / 4

	// maxQuota is the largest quota, in bytes or inodes: sums of what is used, signed, stay far from their own ends.
	maxQuota = 1 << 62

	// maxIno is the highest number that an inode from elsewhere may have: a store gives the numbers above it.
	maxIno = 1 << 62
)
