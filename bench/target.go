package bench

import "context"

// Target is a place to work in, which is compared with others. Its methods are called by one goroutine.
type Target interface {
	// Name is what it is called in reports.
	Name() string
	// Open makes it ready and returns its directory. base is an empty directory of its own on the local disk.
	Open(ctx context.Context, base string) (dir string, err error)
	// Usage says what the target's own processes have used since Open. ok is false when it has none, or they are not
	// known.
	Usage(ctx context.Context) (u Usage, ok bool, err error)
	// Stored returns how many bytes the target keeps. ok is false when only looking at its files can tell.
	Stored(ctx context.Context) (bytes int64, ok bool, err error)
	// Settle returns when what was done before is on the disk, so that the next run does not pay for this one.
	// ok is false when a sync of the directory's filesystem does that.
	Settle(ctx context.Context) (ok bool, err error)
	// Close takes it away, however far Open had come. It must not depend on a context that has ended.
	Close() error
	// Describe says what it is, while it is open.
	Describe() TargetInfo
}

// Usage is what the processes behind a target have used.
type Usage struct {
	CPU      int64  `json:"cpu_ns"`
	PeakRSS  int64  `json:"peak_rss_bytes"`
	Requests uint64 `json:"requests"` // that the kernel has sent
}

// TargetInfo describes a target in a report.
type TargetInfo struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"` // "carrel", "tmpfs", "directory", "peer"
	Filesystem string `json:"filesystem"`
	Command    string `json:"command,omitempty"` // of a peer
}

// plain is the part of a target that has no processes of its own.
type plain struct{}

func (plain) Usage(context.Context) (Usage, bool, error)  { return Usage{}, false, nil }
func (plain) Stored(context.Context) (int64, bool, error) { return 0, false, nil }
func (plain) Settle(context.Context) (bool, error)        { return false, nil }
