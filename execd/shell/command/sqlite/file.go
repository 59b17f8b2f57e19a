package sqlite

import (
	sqlitevfs "github.com/ncruces/go-sqlite3/vfs"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// file is an open file of the tree. Only that of a database can be locked.
type file struct {
	*treepath.File
	*files
	locks *locks
	held  held
}

var (
	_ sqlitevfs.File          = (*file)(nil)
	_ sqlitevfs.FileLockState = (*file)(nil)
)

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.step(len(p)); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// WriteAt implements io.WriterAt.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if err := f.step(len(p)); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error { return f.File.Truncate(uint64(size)) }

// Sync implements vfs.File.
func (f *file) Sync(sqlitevfs.SyncFlag) error { return f.File.Sync() }

// Size implements vfs.File.
func (f *file) Size() (int64, error) {
	a, err := f.File.Stat()
	return int64(a.Size), err
}

// SectorSize implements vfs.File.
func (*file) SectorSize() int { return 0 } // SQLite's default

// DeviceCharacteristics implements vfs.File. A tree never changes bytes beside those that are written.
func (*file) DeviceCharacteristics() sqlitevfs.DeviceCharacteristic {
	return sqlitevfs.IOCAP_POWERSAFE_OVERWRITE
}

// Lock implements vfs.File.
func (f *file) Lock(level sqlitevfs.LockLevel) error {
	if f.locks == nil {
		return nil
	}
	return f.locks.lock(&f.held, level)
}

// Unlock implements vfs.File.
func (f *file) Unlock(level sqlitevfs.LockLevel) error {
	if f.locks != nil {
		f.locks.unlock(&f.held, level)
	}
	return nil
}

// CheckReservedLock implements vfs.File.
func (f *file) CheckReservedLock() (bool, error) { return f.locks != nil && f.locks.isReserved(), nil }

// LockState implements vfs.FileLockState.
func (f *file) LockState() sqlitevfs.LockLevel { return f.held.level }

// Close implements io.Closer.
func (f *file) Close() error {
	if f.locks != nil {
		f.locks.unlock(&f.held, sqlitevfs.LOCK_NONE)
		f.locks.release()
		f.locks = nil
	}
	return f.File.Close()
}
