package image

import "time"

const (
	// KeepFor is how long an image is kept that nobody uses. It can be unpacked again from where it came.
	KeepFor = 7 * 24 * time.Hour
	// KeepBytes is how much is kept, in all images together, of those that nobody uses: some dozen of a language with its
	// tools.
	KeepBytes = 20 << 30
	// sweepEvery is how often it is looked for what is not to be kept. Nobody waits for that.
	sweepEvery = time.Hour

	// maxDocument bounds an index, a manifest or a config: what registries accept.
	maxDocument = 4 << 20
	// maxLayers is more than any builder makes (127).
	maxLayers = 512
	// maxDepth bounds indexes in indexes.
	maxDepth = 4
	// maxEntries bounds what an image has of files and directories, in all layers together, those included that no archive
	// names but has something in: each costs an inode.
	maxEntries = 2 << 20
	// maxNames bounds the bytes of all names together, which are remembered for a while: 60 for each entry.
	maxNames = 128 << 20
	// maxBytes bounds the bytes of files in all layers together. A layer can be compressed a thousandfold.
	maxBytes = 64 << 30
	// maxOverhead is what an archive may have beside the bytes of a file: its headers, and what fills up blocks.
	maxOverhead = 4 << 10
	// maxBlobs bounds what is remembered of a tarball, and maxBlobName the names.
	maxBlobs    = 1 << 16
	maxBlobName = 512
	// maxName bounds a name in an archive (PATH_MAX), maxElement what is between two slashes (NAME_MAX).
	maxName    = 4096
	maxElement = 255
	// maxNesting is in how many directories one may be. The kernel walks through all of them for each file.
	maxNesting = 256
	// maxLinks is how many symlinks one name may lead through (path_resolution(7)).
	maxLinks = 40
	// maxWindow bounds the memory that a zstd frame may ask for: what its own tool accepts.
	maxWindow = 128 << 20
)
