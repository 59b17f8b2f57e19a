package syncwire

import (
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Limits of frames. They are part of the protocol, version 1; a welcome may name lower ones.
const (
	// maxFrame is the longest body of a frame, in bytes. The largest thing that must fit is a record, with room to send
	// many small ones at once; what waits behind a frame waits for a third of a second at 100 Mbit/s.
	maxFrame = 4 << 20

	// maxFirstFrame is the longest body of the first frame of a stream, which comes from somebody unknown yet. A hello
	// with the longest token fits.
	maxFirstFrame = 8 << 10

	// maxControlFrame is the longest body of a frame on a control stream, in bytes: the most ids that a request is about
	// take half of it. A control stream is there as long as its session, and keeps a buffer.
	maxControlFrame = 256 << 10

	// maxToken is the longest token, in bytes: room for signed ones with claims.
	maxToken = 4 << 10

	// maxWorkspace is the longest name of a workspace, in bytes, as stores have it.
	maxWorkspace = 255

	// maxAgent is the longest name that a program gives itself, in bytes. It is shown to people.
	maxAgent = 128

	// maxKeyFile is the longest file of known hosts, or of the keys of clients, in bytes: some ten thousand.
	maxKeyFile = 1 << 20

	// maxService is the longest name of a service, in bytes.
	maxService = 64

	// maxErrorText is the longest text of an error, in bytes. Longer ones are cut.
	maxErrorText = 1 << 10

	// maxRecords is the most records in a frame. In memory a record takes some 80 bytes and its bytes, and on the wire
	// as few as five: this bounds what a full frame of the smallest can take.
	maxRecords = 16 << 10

	// maxOwn is how many of a peer's own pushes an update names.
	maxOwn = vfs.PushMemory

	// maxPushChunks is how many chunks come in one flight with a push.
	maxPushChunks = vfs.MaxChunkIDs

	// maxStored is the longest stored form of a chunk, in bytes. What compression would make longer is stored raw.
	maxStored = chunk.MaxSize
)

// Sizes that a sender chooses.
const (
	// recordsFrame is how many bytes of records are gathered in a frame: large enough that the frame's cost vanishes,
	// small enough that a receiver's buffer is.
	recordsFrame = 64 << 10

	// staleBytes is how many bytes of stale records an outcome says at most, so that it is one frame; a single record
	// always fits.
	staleBytes = 1 << 20

	// chunkBatch is how many bytes of chunks are verified and kept at a time.
	chunkBatch = 4 << 20
)

// Limits of a server. They bound what peers can make it hold; those of one session are in the welcome.
const (
	// defaultPeers is how many sessions a server has at most. One over QUIC with a feed, and nothing to say, was measured at
	// 340 KiB for both ends together.
	defaultPeers = 256

	// maxUnknown is how many streams may be at their first frame, or wait for the hello of their session: each holds a
	// goroutine and up to maxFirstFrame bytes for up to helloTimeout.
	maxUnknown = 512

	// maxRequests is how many requests of a control stream are worked on at a time. A Wait holds one as long as it waits.
	maxRequests = 32

	// maxStreams is how many streams a session has beside its control stream: a feed or two, a push stream for small and
	// one for large pushes, four for bulk, and services.
	maxStreams = 32

	// defaultMemory is how many bytes of pushes and chunks a server receives at a time. Who comes when it is used up waits.
	// It holds eight of the largest pushes at once.
	defaultMemory = 256 << 20

	// pushRecordCost is what a record of a push takes beside its name and value, while it is received and checked.
	pushRecordCost = 256

	// freeFailures is how many bad tokens one address may present before it is refused for failurePause, and
	// maxFailureAddrs of how many addresses that is remembered. When there are more, all new ones share one count.
	freeFailures    = 10
	failurePause    = time.Minute
	maxFailureAddrs = 4096
)

// Times.
const (
	// helloTimeout is how long a stream may take to the end of its first frame, and to the hello of its session.
	helloTimeout = 10 * time.Second

	// stallTimeout is how long a peer may take to accept, or to go on with, what it has begun. One that stalls for longer
	// is as good as gone, and resumes from its cursor when it is not. It is longer than silence, so that a cut which ends
	// no session ends nothing in it either.
	stallTimeout = time.Minute

	// pushTimeout is how long all of a push may take to arrive: 16 MiB of records and 512 MiB of chunks at 10 Mbit/s.
	pushTimeout = 8 * time.Minute

	// updateTimeout is how long the records of one update may take to be sent: a snapshot of a million files at 1 Mbit/s.
	// The store keeps old versions of everything meanwhile. A client that is slower attaches again, and goes on.
	updateTimeout = 30 * time.Minute

	// pairWait is how long a chunk that has come waits for another one to be checked with: longer than the largest takes at 130 MB/s,
	// shorter than anybody notices on a slow link.
	pairWait = 4 * time.Millisecond

	// pingEvery is after how long without a word a client asks whether the server is there, and silence after how long
	// either side takes the other for gone. A cut shorter than that ends no session.
	pingEvery = 15 * time.Second
	silence   = 45 * time.Second

	// closeGrace is how long a side that has said why it closes waits for the other to have read it.
	closeGrace = time.Second

	// firstRetry and lastRetry bound the wait of a client before it connects again.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
)
