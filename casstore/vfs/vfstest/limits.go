package vfstest

const (
	// pageSize is the unit that bytes of files are kept in, in bytes: what a kernel page holds, so that holes lie where
	// a program on Linux expects them.
	pageSize = 4 << 10

	// defaultCapacity is what StatFS tells of a tree without a limit, in bytes: more than tests fill.
	defaultCapacity = 1 << 40

	// maxFiles is the number of inodes that StatFS tells. Nothing enforces it.
	maxFiles = 1 << 32

	// readDirBatch is how many entries ReadDir takes under the mutex before it yields them without.
	readDirBatch = 64

	// hashBlock is the unit that Snapshot reads files in, in bytes: large enough that a read of a store is cheap.
	hashBlock = 64 << 10

	// maxFullRead is the largest file that Snapshot reads whole, in bytes. It takes the word of Seek for what is a hole
	// in a larger one.
	maxFullRead = 8 << 20
)
