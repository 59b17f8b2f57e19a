package daemon

import "time"

const (
	// memoryLimit is how much memory the daemon's heap and the slabs of large writes (casstore/writebuf) may have together,
	// in bytes: where Go's collector works harder to keep the heap to what the slabs leave of it. What the store holds of
	// the heap is bounded lower (casstore/limits.go); without a limit it grows to twice that between two collections.
	// A limit for the heap alone has to leave room for all slabs, which small files do not use, and was so near to what
	// ten thousands of those hold that the collector ran all the time. Beside both is what is mapped of files: the
	// program, and some 40 MiB of Badger's.
	memoryLimit = 280 << 20

	// storePatience is how long a daemon waits for a store that another process has open: a command that works on it
	// for a moment, or a daemon that is just ending.
	storePatience = 30 * time.Second
	// storeRetry is how often it tries.
	storeRetry = 25 * time.Millisecond

	// clientPatience is how long a daemon that was told to end waits for commands that work through it. After its last
	// unmount it waits as long as they take.
	clientPatience = 2 * time.Second

	// A daemon that dies is started again at once. When it dies soon after, the supervisor waits, twice as long each
	// time, so that a store that kills its daemon does not keep a core busy.
	firstDelay = 100 * time.Millisecond
	maxDelay   = 10 * time.Second
	// calmAfter is how long a daemon must live for its predecessors' deaths to be forgotten.
	calmAfter = time.Minute

	// maxStatus is the longest line on the status pipe, in bytes; a longer text is cut.
	maxStatus = 64 << 10
)
