package pack

// Options say how a Set works. The zero value has the defaults.
type Options struct {
	// PackSize is where a pack is full, in bytes: DefaultPackSize when zero, at most MaxPackSize. A single frame that
	// is longer still gets a pack.
	PackSize int64

	// Prealloc is how much space is reserved ahead, in bytes: DefaultPrealloc when zero. Below zero nothing is
	// reserved, as on filesystems that cannot: then appends wait for each other.
	Prealloc int64

	// Key encrypts the packs: KeyLen bytes, or none. All packs of a directory have the same.
	Key []byte

	// Hook, when set, is called before every operation on the disk, from any goroutine. An error that it returns is
	// taken for the operation's own, which is not done. It is for tests.
	Hook func(Op) error
}

// Op is an operation on the disk, for Options.Hook.
type Op string

// The operations.
const (
	OpCreate   Op = "create"   // of a pack
	OpAllocate Op = "allocate" // space ahead of the appends
	OpWrite    Op = "write"    // of a file header, a frame, or the mark of a dead frame
	OpRead     Op = "read"     // of a frame
	OpSync     Op = "sync"     // of a pack
	OpSyncDir  Op = "syncdir"  // of the directory
	OpTruncate Op = "truncate" // of a pack, at its end
	OpRemove   Op = "remove"   // of a pack
)

// hook asks the hook about an operation.
func (o *Options) hook(op Op) error {
	if o.Hook == nil {
		return nil
	}
	return o.Hook(op)
}
