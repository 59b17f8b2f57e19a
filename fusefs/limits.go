package fusefs

import "time"

// Limits of the driver.
const (
	// maxWorkers is how many requests may be under way at once: one that reads, all others blocked in the tree. Past it
	// the reader itself blocks, and the kernel keeps the rest in its queue. Each request under way holds one of the
	// library's buffers, of maxWrite and a page, in which a long reply is built as well. So this bounds their memory to
	// 64 MiB; what a request does not fill is never touched and takes none.
	maxWorkers = 64

	// maxIdle is how many workers wait for the next time that the reader blocks. Waking one costs a futex; making one
	// costs a buffer as well.
	maxIdle = 4

	// maxWrite is the longest WRITE that our own INIT allows, in bytes, and by the number of its pages the longest READ.
	// The kernel takes no more than 256 pages (fs.fuse.max_pages_limit).
	maxWrite = 1 << 20

	// shortReply is the length of the replies that a worker has memory of its own for, in bytes, without the header: a
	// page of a listing or of a file.
	shortReply = 4 << 10

	// maxData is the longest READ or READDIR that is answered, in bytes, without its header. With the library's INIT the
	// kernel asks for no more than 32 pages, and the largest page is 64 KiB.
	maxData = 32 * 64 << 10

	// maxReadahead is how far the kernel reads ahead, in bytes. Without it every read of a cold file is one page. A cold
	// file of 64 MiB takes a quarter less time than with the kernel's usual 128 KiB, and 5 % more than with 1 MiB; but
	// twice that much is read for a page that is touched in a mapping, which there takes twice the time, then three times.
	maxReadahead = 512 << 10

	// cacheTTL is how long the kernel may keep names, missing names and attributes. They are taken back by notification
	// when someone else changes them, so this only bounds what a lost notification could cost.
	cacheTTL = 24 * time.Hour

	// blockSize is what stat(2) says is a good size for I/O, in bytes.
	blockSize = 4096

	// longAllocate is the length from which fallocate(2) leaves the reader at once, in bytes.
	longAllocate = 1 << 20

	// longCopy is the length from which copy_file_range(2) leaves the reader at once, in bytes. What is shorter is copied
	// from memory in less time than the hand-over takes.
	longCopy = 64 << 10

	// maxCopy is how much one COPY_FILE_RANGE copies, in bytes: its answer has 32 bits. It ends with a page.
	maxCopy = 1<<32 - 64<<10

	// maxHabits is of how many threads it is remembered how they use listings. A record takes about 50 bytes.
	maxHabits = 64

	// tryBare is how many directories a thread lists until it is tried again whether it can do without attributes. Who
	// cannot has to look up the names of one directory in so many.
	tryBare = 32

	// burst requests within burstTime are many: then waking a CPU for each takes a sixth of all time and more.
	burst     = 16
	burstTime = 4 * time.Millisecond
	// lull is the time after which CPUs may sleep again when there were fewer than burst requests in it.
	lull = 10 * time.Millisecond
	// maxAwake is how many CPUs a machine may have for being kept awake: it is all of them that are.
	maxAwake = 8

	// maxPending is how many notifications may wait for the kernel. Past it they are replaced by one that drops all the
	// kernel knows (see notifier).
	maxPending = 64 << 10

	// signalPoll is how often a blocked request whose process got a harmless signal is looked at again, because the
	// kernel reports only the first signal (see interrupts).
	signalPoll = 50 * time.Millisecond

	// unmountGrace is how long Unmount asks politely before it detaches a busy mount.
	unmountGrace = 2 * time.Second

	// unmountRetry is the pause between two polite attempts.
	unmountRetry = 20 * time.Millisecond

	// drainGrace is how long a detached mount is served for those who still have files open in it.
	drainGrace = 3 * time.Second

	// maxStacked is how many dead mounts CleanDead takes off one directory: a supervisor that mounts over a dead mount
	// makes a stack of them.
	maxStacked = 16

	// maxLoggedErrors is how many different unknown errors are logged, each once.
	maxLoggedErrors = 64
)
