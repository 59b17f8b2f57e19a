package fusefs

import (
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// copyRange is a fuse_copy_file_range_in, without the two handles.
type copyRange struct {
	src, dst    vfs.Ino
	off, dstOff uint64
	n           uint64 // bytes
	flags       uint64
}

// decodeCopyRange takes the body apart: handle, offset, destination, its handle, its offset, length, flags.
func decodeCopyRange(src vfs.Ino, body []byte) (c copyRange, ok bool) {
	if len(body) < 56 {
		return c, false
	}
	field := func(i int) uint64 { return order.Uint64(body[8*i:]) }
	return copyRange{
		src: src, off: field(1), dst: vfs.Ino(field(2)), dstOff: field(4), n: field(5), flags: field(6),
	}, true
}

// copyFileRange answers COPY_FILE_RANGE, with at most limit bytes. The kernel has written back the dirty pages of both
// ranges before, and drops what it has cached of the destination afterwards, but only when it is told that the bytes
// were copied: so after an error, which leaves some of them copied, that is up to us.
//
// It does not say whether the set-ID bits are to go, as it does for a write (FUSE_HANDLE_KILLPRIV_V2). They stay for
// root, who alone has CAP_FSETID in most cases.
func (w *worker) copyFileRange(r *fuse.UnrecognizedRequest, body []byte, limit uint64) (copied uint64, err error) {
	c, ok := decodeCopyRange(vfs.Ino(r.Node), body)
	switch {
	case !ok:
		return 0, syscall.EIO
	case c.flags != 0:
		return 0, syscall.EINVAL
	}
	if err := w.dropCapabilities(c.dst); err != nil {
		return 0, err
	}
	if r.Uid != 0 {
		if err := w.dropSetID(c.dst); err != nil {
			return 0, err
		}
	}
	if c.n >= longCopy {
		w.WillBlock()
	}
	copied, err = w.srv.tree.CopyRange(w.call, c.src, c.off, c.dst, c.dstOff, min(c.n, limit))
	if err != nil {
		w.srv.notes.data(c.dst)
	}
	return copied, err
}

// dropSetID takes the set-ID bits away, as chown(2) to the same owner does.
func (w *worker) dropSetID(ino vfs.Ino) error {
	a, err := w.srv.tree.Stat(w.call, ino)
	if err != nil || a.Mode&(vfs.ModeSetUID|vfs.ModeSetGID) == 0 {
		return err
	}
	_, err = w.srv.tree.SetAttr(w.call, ino, vfs.AttrSet{Mask: vfs.SetUID | vfs.SetKillPriv, UID: a.UID})
	w.srv.notes.attr(ino)
	return err
}
