package sqlite

import (
	"io"

	sqlitevfs "github.com/ncruces/go-sqlite3/vfs"
)

// pageSize is by how much a temporary file grows.
const pageSize = 64 << 10

// temporary is a file of SQLite's own that has no name: what does not fit into its cache when it sorts, the database that
// is in memory, journals of either. Its memory is counted, and given back when it is closed.
type temporary struct {
	*files
	pages []*[pageSize]byte
	size  int64
}

var _ sqlitevfs.File = (*temporary)(nil)

// ReadAt implements io.ReaderAt.
func (t *temporary) ReadAt(p []byte, off int64) (int, error) {
	if err := t.step(len(p)); err != nil {
		return 0, err
	}
	n := 0
	for n < len(p) && off < t.size {
		page := t.pages[off/pageSize][off%pageSize:]
		page = page[:min(int64(len(page)), t.size-off)]
		m := copy(p[n:], page)
		n, off = n+m, off+int64(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt.
func (t *temporary) WriteAt(p []byte, off int64) (int, error) {
	if err := t.step(len(p)); err != nil {
		return 0, err
	}
	if err := t.grow(off + int64(len(p))); err != nil {
		return 0, err
	}
	n := 0
	for n < len(p) {
		m := copy(t.pages[off/pageSize][off%pageSize:], p[n:])
		n, off = n+m, off+int64(m)
	}
	return n, nil
}

// grow makes the file at least so long.
func (t *temporary) grow(size int64) error {
	for int64(len(t.pages))*pageSize < size {
		if err := t.call.Take(pageSize); err != nil {
			t.ended = err
			return err
		}
		t.pages = append(t.pages, new([pageSize]byte))
	}
	t.size = max(t.size, size)
	return nil
}

// Truncate implements vfs.File.
func (t *temporary) Truncate(size int64) error {
	if size >= t.size {
		return t.grow(size)
	}
	t.size = size
	keep := int((size + pageSize - 1) / pageSize)
	gone := len(t.pages) - keep
	clear(t.pages[keep:])
	t.pages = t.pages[:keep]
	if rest := size % pageSize; rest > 0 {
		clear(t.pages[keep-1][rest:])
	}
	return t.call.Take(-int64(gone) * pageSize)
}

// Close implements io.Closer.
func (t *temporary) Close() error { return t.Truncate(0) }

// Sync implements vfs.File.
func (*temporary) Sync(sqlitevfs.SyncFlag) error { return nil }

// Size implements vfs.File.
func (t *temporary) Size() (int64, error) { return t.size, nil }

// Lock implements vfs.File: nobody else has it.
func (*temporary) Lock(sqlitevfs.LockLevel) error { return nil }

// Unlock implements vfs.File.
func (*temporary) Unlock(sqlitevfs.LockLevel) error { return nil }

// CheckReservedLock implements vfs.File.
func (*temporary) CheckReservedLock() (bool, error) { return false, nil }

// SectorSize implements vfs.File.
func (*temporary) SectorSize() int { return 0 }

// DeviceCharacteristics implements vfs.File.
func (*temporary) DeviceCharacteristics() sqlitevfs.DeviceCharacteristic {
	return sqlitevfs.IOCAP_ATOMIC | sqlitevfs.IOCAP_SEQUENTIAL | sqlitevfs.IOCAP_SAFE_APPEND | sqlitevfs.IOCAP_POWERSAFE_OVERWRITE
}
