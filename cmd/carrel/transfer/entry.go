package transfer

import (
	"context"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Entry is one node on its way.
type Entry struct {
	Path   string // below the transfer's root, names joined by single slashes; empty for the root itself
	Type   vfs.Type
	Mode   uint32 // within vfs.ModeMask
	UID    uint32
	GID    uint32
	Rdev   uint32 // of a device
	Size   uint64 // bytes, of a regular file
	Atime  vfs.Time
	Mtime  vfs.Time
	Target string // of a symlink
	Link   string // when not empty: this is another name of the entry with this Path, and only Path counts
	Xattrs []Xattr
}

// Xattr is one extended attribute.
type Xattr struct {
	Name  string
	Value []byte
}

// Run is a range of a file that is not a hole.
type Run struct{ Off, N uint64 }

// Content is the bytes of a regular file, to be read once, during the visit that gives it.
type Content interface {
	// Runs returns where bytes are, in order and apart. When it is not exact there may be more holes, to be found by
	// looking for zeros.
	Runs(ctx context.Context) (runs []Run, exact bool, err error)
	// Read reads the bytes of the runs, one run after the other.
	io.Reader
}

// Source is a tree that is read once.
type Source interface {
	// Walk calls visit for every node. content is nil unless the entry is a regular file that is no Link. The entry
	// is not used again by the source.
	Walk(ctx context.Context, visit func(e *Entry, content Content) error) error
}

// Sink is a tree that is being written. It is not safe for concurrent use.
type Sink interface {
	// Put makes a node, with all of its metadata but for a directory's.
	Put(ctx context.Context, e *Entry, content Content) error
	// Finish completes what waited for the last entry. Without it the tree lacks its directories' metadata.
	Finish(ctx context.Context) error
}

// Report counts what a transfer moved.
type Report struct {
	Entries uint64 `json:"entries"` // nodes, names of hard links among them
	Files   uint64 `json:"files"`   // regular files, each once
	Bytes   uint64 `json:"bytes"`   // of file content that were read; holes only where the source gives them as zeros
}

// Copy moves a tree. progress, unless nil, hears of every piece. On an error the report says what had been moved.
func Copy(ctx context.Context, from Source, to Sink, progress func(Report)) (Report, error) {
	var r Report
	tell := func() {
		if progress != nil {
			progress(r)
		}
	}
	err := from.Walk(ctx, func(e *Entry, content Content) error {
		if content != nil {
			content = &counted{content, func(n int) { r.Bytes += uint64(n); tell() }}
		}
		if err := to.Put(ctx, e, content); err != nil {
			return err
		}
		r.Entries++
		if content != nil {
			r.Files++
		}
		tell()
		return nil
	})
	if err != nil {
		return r, err
	}
	return r, to.Finish(ctx)
}

// counted tells how many bytes of a content are read.
type counted struct {
	Content
	tell func(n int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Content.Read(p)
	c.tell(n)
	return n, err
}
