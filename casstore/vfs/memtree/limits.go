package memtree

const (
	// pageSize is the unit that bytes of files are kept in, in bytes: what a kernel page holds, so that holes lie where
	// a program on Linux expects them.
	pageSize = 4 << 10

	// defaultCapacity is what StatFS tells of a tree without a limit, in bytes: more than anybody fills.
	defaultCapacity = 1 << 40

	// maxFiles is the number of inodes that StatFS tells. Nothing enforces it.
	maxFiles = 1 << 32

	// readDirBatch is how many entries ReadDir takes under the mutex before it yields them without.
	readDirBatch = 64
)
