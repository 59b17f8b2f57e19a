package vfs

import "errors"

// The errors of a tree and of a store. Layers wrap them with the operation and its operands; callers compare with
// errors.Is. fusefs/errno.go gives each its errno.
var (
	ErrNotExist      = errors.New("no such file or directory")
	ErrExist         = errors.New("file exists")
	ErrNotDir        = errors.New("not a directory")
	ErrIsDir         = errors.New("is a directory")
	ErrNotEmpty      = errors.New("directory not empty")
	ErrNameTooLong   = errors.New("name too long")
	ErrInvalid       = errors.New("invalid argument")
	ErrTooBig        = errors.New("file too large")
	ErrNoSpace       = errors.New("no space left on device")
	ErrQuota         = errors.New("quota exceeded")
	ErrReadOnly      = errors.New("read-only")
	ErrNoXattr       = errors.New("no such attribute")
	ErrXattrTooBig   = errors.New("attribute too large")
	ErrTooManyLinks  = errors.New("too many links")
	ErrNotSupported  = errors.New("not supported")
	ErrNotPermitted  = errors.New("operation not permitted")
	ErrStale         = errors.New("stale inode")
	ErrBusy          = errors.New("busy")
	ErrInterrupted   = errors.New("interrupted")
	ErrNoData        = errors.New("no data past this offset") // Seek found nothing before the end of the file
	ErrCorrupt       = errors.New("corrupt data")
	ErrClosed        = errors.New("closed")
	ErrInUse         = errors.New("in use by another process")
	ErrNewerFormat   = errors.New("made by a newer version")
	ErrNotStore      = errors.New("not a store")
	ErrNoWorkspace   = errors.New("no such workspace")
	ErrWorkspaceBusy = errors.New("workspace is in use")
	ErrVoidCursor    = errors.New("void cursor")             // changes since it cannot be told: take a snapshot
	ErrPushReused    = errors.New("push id used by another") // other records came under the same id
	ErrNoRevision    = errors.New("no such revision")        // of a workspace, or one that is no longer kept
	ErrKey           = errors.New("wrong or missing key")    // of an encrypted store
)

// Errors returns every sentinel of this package, for the tests that take all of them through a translation table.
func Errors() []error {
	return []error{
		ErrNotExist, ErrExist, ErrNotDir, ErrIsDir, ErrNotEmpty, ErrNameTooLong, ErrInvalid, ErrTooBig, ErrNoSpace,
		ErrQuota, ErrReadOnly, ErrNoXattr, ErrXattrTooBig, ErrTooManyLinks, ErrNotSupported, ErrNotPermitted, ErrStale,
		ErrBusy, ErrInterrupted, ErrNoData, ErrCorrupt, ErrClosed, ErrInUse, ErrNewerFormat, ErrNotStore, ErrNoWorkspace,
		ErrWorkspaceBusy, ErrVoidCursor, ErrPushReused, ErrNoRevision, ErrKey,
	}
}
