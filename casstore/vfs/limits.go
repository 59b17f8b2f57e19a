package vfs

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
