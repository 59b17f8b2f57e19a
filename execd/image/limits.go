package image

const (
	// maxDocument bounds an index, a manifest or a config: what registries accept.
	maxDocument = 4 << 20
	// maxLayers is more than any builder makes (127).
	maxLayers = 512
	// maxDepth bounds indexes in indexes.
	maxDepth = 4
	// maxEntries bounds what an image has of files and directories, in all layers together: each costs an inode.
	maxEntries = 2 << 20
	// maxBytes bounds the bytes of files in all layers together. A layer can be compressed a thousandfold.
	maxBytes = 64 << 30
	// maxBlobs bounds what is remembered of a tarball.
	maxBlobs = 1 << 16
	// maxName bounds a name in an archive (PATH_MAX).
	maxName = 4096
	// maxLinks is how many symlinks one name may lead through (path_resolution(7)).
	maxLinks = 40
	// maxWindow bounds the memory that a zstd frame may ask for: what its own tool accepts.
	maxWindow = 128 << 20
)
