package fusefs

import (
	"errors"
	"math"
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// read answers READ, from the tree straight into the reply.
func (w *worker) read(r *fuse.ReadRequest) error {
	if r.Size < 0 || r.Size > maxData || r.Offset < 0 {
		return syscall.EINVAL
	}
	n, err := w.srv.tree.ReadAt(w.call, vfs.Ino(r.Node), w.room(&r.Header, r.Size), uint64(r.Offset))
	if err != nil {
		return err
	}
	w.use(n)
	return nil
}

// write answers WRITE. All of it is written or none.
//
// When a write is to be durable (O_SYNC, O_DSYNC, RWF_DSYNC) the kernel sends an FSYNC after it, but not for a file
// that goes past its cache; there the write itself must be.
//
// What a process has written into a shared mapping the kernel writes back later, and keeps as the file's when that fails. In a
// file that cannot be written at all it must forget it: others read the same pages.
func (w *worker) write(r *fuse.WriteRequest) error {
	err := w.writeAll(r)
	if r.Flags&fuse.WriteCache != 0 && errors.Is(err, vfs.ErrReadOnly) {
		w.srv.notes.data(vfs.Ino(r.Node))
	}
	return err
}

func (w *worker) writeAll(r *fuse.WriteRequest) error {
	if r.Offset < 0 {
		return syscall.EINVAL
	}
	if err := w.dropCapabilities(vfs.Ino(r.Node)); err != nil {
		return err
	}
	off, err := w.writeOffset(r)
	if err != nil {
		return err
	}
	kill := r.Flags&fuse.WriteKillSUIDGID != 0
	if err := w.srv.tree.WriteAt(w.call, vfs.Ino(r.Node), r.Data, off, kill); err != nil {
		return err
	}
	if uint64(r.Handle) == directHandle && r.FileFlags&syscall.O_DSYNC != 0 {
		w.WillBlock()
		if err := w.srv.tree.Fsync(w.call, vfs.Ino(r.Node)); err != nil {
			return err
		}
	}
	w.out = appendWriteOut(w.out, uint32(len(r.Data)))
	return nil
}

// writeOffset returns where to write. For O_APPEND the kernel says where it believes the file to end, and it learns
// late that somebody else has appended, after he was told that his bytes are safe. So what would overwrite them goes
// to the end instead, and the kernel is told to forget where it has put the bytes in its cache.
//
// Writes with O_DIRECT are taken as they come: the kernel cuts a long one up and sends the pieces at once, so one that
// lies before the end may be an early piece that comes late.
func (w *worker) writeOffset(r *fuse.WriteRequest) (uint64, error) {
	off := uint64(r.Offset)
	appends := r.FileFlags&(syscall.O_APPEND|syscall.O_DIRECT) == syscall.O_APPEND
	if !appends || r.Flags&fuse.WriteCache != 0 {
		return off, nil
	}
	a, err := w.srv.tree.Stat(w.call, vfs.Ino(r.Node))
	if err != nil || off >= a.Size {
		return off, err
	}
	w.srv.notes.data(a.Ino)
	return a.Size, nil
}

// allocModes gives our word for each flag of fallocate(2) that the kernel passes on.
var allocModes = []struct {
	flag fuse.FAllocateFlags
	mode vfs.AllocMode
}{
	{0x01, vfs.AllocKeepSize},  // FALLOC_FL_KEEP_SIZE
	{0x02, vfs.AllocPunchHole}, // FALLOC_FL_PUNCH_HOLE
	{0x10, vfs.AllocZeroRange}, // FALLOC_FL_ZERO_RANGE
}

func (w *worker) allocate(r *fuse.FAllocateRequest) error {
	var mode vfs.AllocMode
	left := r.Mode
	for _, m := range allocModes {
		if left&m.flag != 0 {
			mode |= m.mode
			left &^= m.flag
		}
	}
	if left != 0 {
		return syscall.EOPNOTSUPP
	}
	if r.Length >= longAllocate {
		w.WillBlock()
	}
	return w.srv.tree.Allocate(w.call, vfs.Ino(r.Node), mode, r.Offset, r.Length)
}

// statfs answers STATFS with a fuse_kstatfs.
func (w *worker) statfs() error {
	s, err := w.srv.tree.StatFS(w.call)
	if err != nil {
		return err
	}
	for _, n := range [...]uint64{s.Blocks, s.Free, s.Available, s.Files, s.FilesFree} {
		w.out = order.AppendUint64(w.out, n)
	}
	w.out = order.AppendUint32(w.out, s.BlockSize)
	w.out = order.AppendUint32(w.out, vfs.MaxNameLen)
	w.out = order.AppendUint32(w.out, s.BlockSize) // fragment size: the unit of Blocks (statvfs(3))
	w.out = append(w.out, make([]byte, 28)...)     // padding and spares
	return nil
}

// Searches of lseek(2) that the kernel leaves to us.
const (
	seekData = 3
	seekHole = 4
)

// seek answers LSEEK.
func (w *worker) seek(node vfs.Ino, off uint64, whence uint32) error {
	if off > math.MaxInt64 {
		return syscall.ENXIO
	}
	how := vfs.SeekData
	switch whence {
	case seekData:
	case seekHole:
		how = vfs.SeekHole
	default:
		return syscall.EINVAL
	}
	at, err := w.srv.tree.Seek(w.call, node, off, how)
	if err != nil {
		return err
	}
	w.out = order.AppendUint64(w.out, at)
	return nil
}
