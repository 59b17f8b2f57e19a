package control

import "time"

const (
	// Protocol is the version of the frames. Both sides must have the same one: owner and client are the same program,
	// and differ only while it is being replaced.
	Protocol = 1

	// MaxTransfer is the most file bytes in one frame. Longer reads and writes are split by the client, so one call
	// holds little memory on either side; at 1 MiB the cost of a frame is under a hundredth of the cost of the copy.
	MaxTransfer = 1 << 20

	// readDirBatch is how many entries one frame of a listing holds at most: 255-byte names make it 75 KiB.
	readDirBatch = 256

	// logBatch is how many revisions travel at a time, forty bytes each.
	logBatch = 128

	// diffBatch is how many differences travel at a time, some kilobytes each with the longest paths.
	diffBatch = 64

	// conflictBatch is how many conflicts travel at a time: each may have the value of an attribute, 64 KiB.
	conflictBatch = 8

	// maxCalls is how many calls a client has under way at once; more wait in the client. An owner drops a client that
	// sends more, since each costs it a goroutine and up to MaxTransfer of memory.
	maxCalls = 64

	// maxStreams is how many watches a client has at once, beside its calls.
	maxStreams = 16

	// maxTrees is how many workspaces a client has open at once.
	maxTrees = 256

	// maxSessions is how many clients an owner serves at once. A script that starts hundreds of commands waits in
	// the kernel's queue of the socket, not in the owner's memory.
	maxSessions = 128

	// maxQueuedChanges is how far a watcher may fall behind. It is then cut off with ErrClosed, since a lost change
	// would leave it wrong for ever.
	maxQueuedChanges = 1 << 16

	// maxOrigins is how many different origins of changes (vfs.WithOrigin) a client's watchers are told apart by. The
	// changes of further ones come back without an origin, and cannot be skipped.
	maxOrigins = 1 << 12

	// handshakeTimeout is how long either side waits for the first words of the other.
	handshakeTimeout = 10 * time.Second

	// maxSocketPath is the longest path that fits a sockaddr_un with its NUL (unix(7)).
	maxSocketPath = 107
)
