package fusefs

import (
	"bytes"
	"math"
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Requests that are younger than the library (<linux/fuse.h>).
const (
	opRename2         = 45
	opLseek           = 46
	opCopyFileRange   = 47
	opSyncFS          = 50
	opCopyFileRange64 = 53 // the same, with an answer of 64 bits

	opReaddirPlus = 44 // known to the library, but not decoded
)

// unrecognized handles requests that the library does not know. ENOSYS makes the kernel do without: STATX becomes
// GETATTR, O_TMPFILE is refused, ioctl(2) is ENOTTY.
func (w *worker) unrecognized(r *fuse.UnrecognizedRequest) error {
	body := rawLayout.body(&r.Header)
	if body == nil {
		return syscall.ENOSYS
	}
	switch r.Opcode {
	case opReaddirPlus:
		return w.readdirPlus(&r.Header, body)
	case opRename2:
		return w.rename2(vfs.Ino(r.Node), body)
	case opLseek:
		return w.lseek(vfs.Ino(r.Node), body)
	case opCopyFileRange:
		n, err := w.copyFileRange(r, body, maxCopy)
		w.out = appendWriteOut(w.out, uint32(n))
		return err
	case opCopyFileRange64: // answered with a fuse_copy_file_range_out
		n, err := w.copyFileRange(r, body, math.MaxUint64)
		w.out = order.AppendUint64(w.out, n)
		return err
	case opSyncFS:
		w.WillBlock()
		return w.srv.tree.Sync(w.call)
	}
	return syscall.ENOSYS
}

// readdirPlus takes a fuse_read_in apart: handle, offset, size.
func (w *worker) readdirPlus(h *fuse.Header, body []byte) error {
	if len(body) < 20 {
		return syscall.EIO
	}
	off, size := order.Uint64(body[8:]), order.Uint32(body[16:])
	if w.srv.habits.list(h.Pid, vfs.Ino(h.Node), off == 0) && w.srv.keep(vfs.Ino(h.Node)) > 0 {
		return w.list(h, off, size, w.direntPlus)
	}
	return w.list(h, off, size, w.direntBare)
}

// Flags of renameat2(2).
const (
	renameNoReplace = 1
	renameExchange  = 2
)

// rename2 takes a fuse_rename2_in apart: new directory, flags, padding, both names with their NULs.
func (w *worker) rename2(dir vfs.Ino, body []byte) error {
	if len(body) < 16 {
		return syscall.EIO
	}
	newDir, bits := vfs.Ino(order.Uint64(body)), order.Uint32(body[8:])
	names := bytes.SplitN(body[16:], []byte{0}, 3)
	if len(names) != 3 {
		return syscall.EIO
	}
	var flags vfs.RenameFlags
	if bits&renameNoReplace != 0 {
		flags |= vfs.RenameNoReplace
	}
	if bits&renameExchange != 0 {
		flags |= vfs.RenameExchange
	}
	if bits&^(renameNoReplace|renameExchange) != 0 {
		return syscall.EINVAL
	}
	return w.rename(dir, string(names[0]), newDir, string(names[1]), flags)
}

// lseek takes a fuse_lseek_in apart: handle, offset, whence, padding.
func (w *worker) lseek(node vfs.Ino, body []byte) error {
	if len(body) < 20 {
		return syscall.EIO
	}
	return w.seek(node, order.Uint64(body[8:]), order.Uint32(body[16:]))
}
