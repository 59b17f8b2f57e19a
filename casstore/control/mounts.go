package control

import "context"

// Mount is one place where a workspace is mounted.
type Mount struct {
	Workspace  string
	Dir        string // absolute, without symlinks, as the owner sees it
	ReadOnly   bool
	AllowOther bool // users other than the one who mounts may enter
	Doze       bool // idle CPUs may sleep however many requests come

	// Requests is how many messages the kernel has sent so far; only in what Mounts returns.
	Requests uint64
}

// Mounts is what an owner that mounts workspaces is asked to do. An owner that does not gives vfs.ErrNotSupported.
type Mounts interface {
	// Mount mounts a workspace, making it when there is none of that name and the mount is not read-only.
	Mount(ctx context.Context, m Mount) error
	// Unmount takes the mount at dir away and returns when its bytes are durable. lazy does so although it is busy:
	// open files go on until they are closed. last says that no other mount is left, and so the owner is about to end.
	Unmount(ctx context.Context, dir string, lazy bool) (last bool, err error)
	// WaitUnmount returns when nothing of this owner is mounted at dir.
	WaitUnmount(ctx context.Context, dir string) error
	// Mounts lists what is mounted, by directory.
	Mounts(ctx context.Context) ([]Mount, error)
}
