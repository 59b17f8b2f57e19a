package image

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// bounds is what may still be unpacked.
type bounds struct {
	entries int64
	names   int64 // bytes of names
	bytes   int64 // of files
	full    error // what it means that there are no more bytes
}

var usualBounds = bounds{maxEntries, maxNames, maxBytes, vfs.ErrTooBig}

// on returns bounds that leave half of a disk's space to others.
func (b bounds) on(dir string) (bounds, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return b, fmt.Errorf("look for space: %w", err)
	}
	if half := int64(min(s.Bavail/2*uint64(s.Bsize), maxBytes)); half < b.bytes {
		b.bytes, b.full = half, vfs.ErrNoSpace
	}
	return b, nil
}

// takeEntry counts one more file or directory.
func (b *bounds) takeEntry(name string) error {
	b.entries--
	b.names -= int64(len(name))
	if b.entries < 0 || b.names < 0 {
		return fmt.Errorf("too many files, or names: %w", vfs.ErrTooBig)
	}
	return nil
}

// takeBytes counts the bytes of a file.
func (b *bounds) takeBytes(n int64) error {
	if n > b.bytes {
		return fmt.Errorf("more bytes than there may be: %w", b.full)
	}
	b.bytes -= n
	return nil
}

// plain is how long the archive may be that comes next: each ends with some blocks of nothing.
func (b *bounds) plain() int64 { return b.bytes + (b.entries+endBlocks)*maxOverhead }

const endBlocks = 16
