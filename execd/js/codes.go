package js

import (
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// codes are what node calls the errors of a tree: the names of errno.h, and the words of strerror(3) as libuv has them.
var codes = []struct {
	err           error
	code, message string
}{
	{errManyEntries, "ERR_FS_DIR_TOO_LARGE", fmt.Sprintf("a directory of more than %d entries", maxEntries)},
	{errTooManyOpen, "EMFILE", "too many open files"},
	{treepath.ErrBadFile, "EBADF", "bad file descriptor"},
	{vfs.ErrNotExist, "ENOENT", "no such file or directory"},
	{vfs.ErrExist, "EEXIST", "file already exists"},
	{vfs.ErrNotDir, "ENOTDIR", "not a directory"},
	{vfs.ErrIsDir, "EISDIR", "illegal operation on a directory"},
	{vfs.ErrNotEmpty, "ENOTEMPTY", "directory not empty"},
	{vfs.ErrNameTooLong, "ENAMETOOLONG", "name too long"},
	{vfs.ErrInvalid, "EINVAL", "invalid argument"},
	{vfs.ErrTooBig, "EFBIG", "file too large"},
	{vfs.ErrNoSpace, "ENOSPC", "no space left on device"},
	{vfs.ErrQuota, "EDQUOT", "disk quota exceeded"},
	{vfs.ErrReadOnly, "EROFS", "read-only file system"},
	{vfs.ErrTooManyLinks, "EMLINK", "too many links"},
	{vfs.ErrNotSupported, "ENOTSUP", "operation not supported"},
	{vfs.ErrNotPermitted, "EPERM", "operation not permitted"},
	{vfs.ErrStale, "ENOENT", "no such file or directory"},
	{vfs.ErrBusy, "EBUSY", "resource busy or locked"},
	{vfs.ErrInterrupted, "EINTR", "interrupted system call"},
	{treepath.ErrLoop, "ELOOP", "too many symbolic links encountered"},
	{treepath.ErrAccess, "EACCES", "permission denied"},
}

// codeOf names an error. What is none of a path's is an error of the disk, to a module.
func codeOf(err error) (code, message string) {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code, c.message
		}
	}
	return "EIO", "i/o error: " + err.Error()
}
