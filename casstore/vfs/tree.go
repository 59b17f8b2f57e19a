package vfs

import "context"

// Tree is one live workspace.
//
// Every method is safe for concurrent use. A method's effect is visible to every call that starts after it returned;
// it is durable once Fsync, Sync or Commit has returned nil after it, and some seconds later at the latest. Errors
// wrap the sentinels of this package. Slices that are passed in belong to the caller again when the call returns, and
// slices that are returned belong to the caller.
//
// A name is checked first: ErrNameTooLong over MaxNameLen, ErrInvalid when empty, ".", ".." or with '/' or NUL in it.
// A directory argument that is not a directory gives ErrNotDir; one that has been removed gives ErrNotExist; an inode
// that is gone gives ErrStale. A tree that cannot be written gives ErrReadOnly to every change. A cancelled context
// gives ErrInterrupted, and the change has not happened.
//
// A call that is about to wait for a disk or a peer says so by [WillBlock] on its context.
type Tree interface {
	// Lookup returns the inode that name leads to: ErrNotExist when there is none.
	Lookup(ctx context.Context, dir Ino, name string) (Attr, error)

	// Stat returns the attributes of an inode.
	Stat(ctx context.Context, ino Ino) (Attr, error)

	// SetAttr changes attributes and returns all of them. ErrTooBig for a size over MaxFileSize, ErrIsDir or
	// ErrInvalid for the size of what is not a regular file.
	SetAttr(ctx context.Context, ino Ino, set AttrSet) (Attr, error)

	// ReadDir yields the entries of dir after an offset, in the order of their offsets, without "." and "..", until
	// yield returns false. It holds memory for a few entries however many there are. Entries that are added or removed
	// meanwhile may be yielded or not, all others exactly once. No lock is held while yield runs.
	ReadDir(ctx context.Context, dir Ino, after Offset, yield func(Dirent) bool) error

	// Create makes an empty regular file. ErrExist when the name is taken.
	Create(ctx context.Context, dir Ino, name string, n NewNode) (Attr, error)
	// Mkdir makes an empty directory. ErrExist when the name is taken.
	Mkdir(ctx context.Context, dir Ino, name string, n NewNode) (Attr, error)
	// Mknod makes a node of type t: TypeRegular, TypeFIFO, TypeSocket or a device. ErrExist when the name is taken.
	Mknod(ctx context.Context, dir Ino, name string, t Type, n NewNode) (Attr, error)
	// Symlink makes a symlink that holds target, 1 to MaxSymlinkLen bytes. ErrExist when the name is taken.
	Symlink(ctx context.Context, dir Ino, name, target string, n NewNode) (Attr, error)
	// Link gives ino another name. ErrNotPermitted for a directory, ErrTooManyLinks past MaxLinks.
	Link(ctx context.Context, ino Ino, dir Ino, name string) (Attr, error)

	// Unlink removes a name of what is not a directory (ErrIsDir). The inode goes when it has no name, no open File
	// and no Hold left.
	Unlink(ctx context.Context, dir Ino, name string) error
	// Rmdir removes an empty directory: ErrNotDir, ErrNotEmpty.
	Rmdir(ctx context.Context, dir Ino, name string) error
	// Rename moves a name, atomically putting it in the place of one that is there, as rename(2) says: a directory
	// replaces only an empty directory (ErrNotEmpty, ErrNotDir), anything else only what is no directory (ErrIsDir);
	// two names of one inode stay as they are; ErrInvalid moves a directory into itself.
	Rename(ctx context.Context, dir Ino, name string, newDir Ino, newName string, flags RenameFlags) error
	// Readlink returns the target of a symlink: ErrInvalid for anything else.
	Readlink(ctx context.Context, ino Ino) (string, error)

	// ReadAt reads into p from offset off of a regular file. It returns fewer bytes than len(p) only at the end of the
	// file, without an error.
	ReadAt(ctx context.Context, ino Ino, p []byte, off uint64) (int, error)
	// WriteAt writes all of p at offset off, extending the file where needed, and sets mtime and ctime. killPriv
	// removes the set-ID bits. ErrTooBig past MaxFileSize, ErrNoSpace when the bytes could not be stored later.
	WriteAt(ctx context.Context, ino Ino, p []byte, off uint64, killPriv bool) error
	// Allocate does what mode says to n bytes from off.
	Allocate(ctx context.Context, ino Ino, mode AllocMode, off, n uint64) error
	// CopyRange copies n bytes from off of src to dstOff of dst, as copy_file_range(2) says, and returns how many: fewer
	// than n only where src ends. A tree that can shares what is stored instead. ErrInvalid when the two ranges overlap
	// in one file, ErrTooBig past MaxFileSize. After an error some of the bytes may have been copied.
	CopyRange(ctx context.Context, src Ino, off uint64, dst Ino, dstOff, n uint64) (uint64, error)
	// Seek finds data or a hole at or after off: ErrNoData when off is at or past the end, or no data follows.
	Seek(ctx context.Context, ino Ino, off uint64, whence Whence) (uint64, error)

	// GetXattr returns the value of an extended attribute, ErrNoXattr when there is none of that name.
	GetXattr(ctx context.Context, ino Ino, name string) ([]byte, error)
	// SetXattr sets one. ErrXattrTooBig past MaxXattrSize; ErrNoSpace when the names would pass MaxXattrList.
	SetXattr(ctx context.Context, ino Ino, name string, value []byte, flags XattrFlags) error
	// ListXattr returns the names of all, in bytewise order.
	ListXattr(ctx context.Context, ino Ino) ([]string, error)
	// RemoveXattr removes one, ErrNoXattr when there is none of that name.
	RemoveXattr(ctx context.Context, ino Ino, name string) error

	// Fsync returns when the bytes and attributes of ino, and every name there was at the call, are durable.
	Fsync(ctx context.Context, ino Ino) error
	// Sync returns when everything done before the call is durable.
	Sync(ctx context.Context) error
	// Commit is Sync, and returns the revision that holds it.
	Commit(ctx context.Context) (Rev, error)
	// StatFS returns the state of the disk below.
	StatFS(ctx context.Context) (StatFS, error)

	// Hold keeps an inode alive when its last name goes, as an open file does, until it has been Released as often as
	// it was held. An inode that is gone already is not brought back.
	Hold(ino Ino)
	// Release takes back n Holds.
	Release(ino Ino, n uint64)

	// Watch calls f for every change, from whatever caller, in the order in which they became visible, with no lock
	// held, from one goroutine. Changes whose origin is skip, when that is not nil, are left out: they cost no wake-up.
	// f must not block for long and may call the tree. stop returns when f will not be called again; it must not be
	// called from f.
	Watch(skip any, f func(Change)) (stop func())
}

// WatchFlusher is what a tree implements besides that can say when it has told of its changes, which it does after they became
// visible.
type WatchFlusher interface {
	// FlushWatch returns when whoever watches has been told of everything that was visible before the call: f of Watch has
	// returned. It must not be called from there.
	FlushWatch(ctx context.Context) error
}

// FlushWatch calls the method of a tree that has it.
func FlushWatch(ctx context.Context, tree Tree) error {
	if f, ok := tree.(WatchFlusher); ok {
		return f.FlushWatch(ctx)
	}
	return nil
}

// Volatile is what a tree implements besides that has directories in which names come and go without a [Change]. Whoever
// keeps what a tree has told him must not do so with these.
type Volatile interface {
	// Volatile reports whether an inode is such a directory: its attributes, and which names are in it and where they lead,
	// are to be asked for each time. What they lead to is like any other inode.
	Volatile(ino Ino) bool
}
