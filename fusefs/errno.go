package fusefs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// errnos gives every error of package vfs the number that a process sees. The frequent ones come first.
var errnos = []struct {
	err   error
	errno syscall.Errno
}{
	{vfs.ErrNotExist, syscall.ENOENT},
	{vfs.ErrNoXattr, syscall.ENODATA},
	{vfs.ErrExist, syscall.EEXIST},
	{vfs.ErrNotDir, syscall.ENOTDIR},
	{vfs.ErrIsDir, syscall.EISDIR},
	{vfs.ErrNotEmpty, syscall.ENOTEMPTY},
	{vfs.ErrNoData, syscall.ENXIO},
	{vfs.ErrInterrupted, syscall.EINTR},
	{vfs.ErrInvalid, syscall.EINVAL},
	{vfs.ErrNameTooLong, syscall.ENAMETOOLONG},
	{vfs.ErrTooBig, syscall.EFBIG},
	{vfs.ErrNoSpace, syscall.ENOSPC},
	{vfs.ErrQuota, syscall.EDQUOT},
	{vfs.ErrReadOnly, syscall.EROFS},
	{vfs.ErrXattrTooBig, syscall.E2BIG},
	{vfs.ErrTooManyLinks, syscall.EMLINK},
	{vfs.ErrNotSupported, syscall.EOPNOTSUPP},
	{vfs.ErrNotPermitted, syscall.EPERM},
	{vfs.ErrStale, syscall.ESTALE},
	{vfs.ErrBusy, syscall.EBUSY},
	{vfs.ErrCorrupt, syscall.EIO},
	// The rest come from opening a store, or from one that went away under the mount. ENOTCONN is left to mounts
	// without a daemon, which is how a supervisor tells them.
	{vfs.ErrClosed, syscall.ESHUTDOWN},
	{vfs.ErrInUse, syscall.EBUSY},
	{vfs.ErrNewerFormat, syscall.EPROTONOSUPPORT},
	{vfs.ErrNotStore, syscall.ESTALE},
	{vfs.ErrNoWorkspace, syscall.ESTALE},
	{vfs.ErrWorkspaceBusy, syscall.EBUSY},
	{vfs.ErrVoidCursor, syscall.ESTALE},
	{vfs.ErrPushReused, syscall.EINVAL},
	{vfs.ErrNoRevision, syscall.ESTALE},
	{vfs.ErrKey, syscall.EACCES},
	{context.Canceled, syscall.EINTR},
	{context.DeadlineExceeded, syscall.ETIMEDOUT},
}

// errnoOf translates err; ok is false for an error that the table does not know, which is EIO. A bare Errno, as the
// driver's own handlers return it, stands for itself.
func errnoOf(err error) (errno syscall.Errno, ok bool) {
	if errno, ok := err.(syscall.Errno); ok {
		return errno, true
	}
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.errno, true
		}
	}
	return syscall.EIO, false
}

// errorLog logs errors that have no errno, each text once, up to a bound. A process that fails sees only EIO, so the
// text must be somewhere, but one bad sector must not fill the log.
type errorLog struct {
	log  *slog.Logger
	mu   sync.Mutex
	seen map[string]bool
}

func (l *errorLog) unknown(op string, node uint64, err error) {
	text := err.Error()
	l.mu.Lock()
	known := l.seen[text] || len(l.seen) >= maxLoggedErrors
	if !known {
		if l.seen == nil {
			l.seen = make(map[string]bool)
		}
		l.seen[text] = true
	}
	l.mu.Unlock()
	if !known {
		l.log.Error("request failed with an error that has no errno; answered EIO", "op", op, "ino", node, "err", err)
	}
}
