package lookback

const (
	// maxOpen is how many snapshots stay open that no call is using. An open one keeps the manifests of some large files; to
	// open one takes some look-ups.
	maxOpen = 16

	// maxIdle is how many snapshots are remembered of which nobody holds an inode, so that what was listed has the same
	// number when it is looked up.
	maxIdle = 4 << 10
)
