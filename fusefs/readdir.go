package fusefs

import (
	"math"
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Positions of the two names that a tree does not list. They lie below vfs.FirstOffset.
const (
	dotOffset    vfs.Offset = 1
	dotDotOffset vfs.Offset = 2
)

// readdir answers READDIR.
func (w *worker) readdir(r *fuse.ReadRequest) error {
	if r.Size < 0 || r.Offset < 0 {
		return syscall.EINVAL
	}
	return w.list(&r.Header, uint64(r.Offset), uint32(r.Size), w.direntOnly)
}

// list fills the reply to h with as many entries of its directory as fit into size, from an offset on. There is no
// state of an open directory: offsets stay good. add appends one entry, or reports that there is no room for it in as
// many bytes.
func (w *worker) list(h *fuse.Header, off uint64, size uint32, add func(d vfs.Dirent, room int) bool) error {
	if size > maxData || off > math.MaxInt64 {
		return syscall.EINVAL
	}
	dir := vfs.Ino(h.Node)
	w.room(h, int(size))
	w.use(0)
	fits := func(d vfs.Dirent) bool { return add(d, outHeaderSize+int(size)-len(w.out)) }
	after := vfs.Offset(off)
	if after < dotDotOffset {
		full, err := w.dots(dir, after, fits)
		if full || err != nil {
			return err
		}
	}
	if after < vfs.FirstOffset {
		after = 0
	}
	return w.srv.tree.ReadDir(w.call, dir, after, fits)
}

// dots adds "." and "..", and reports whether the reply is full.
func (w *worker) dots(dir vfs.Ino, after vfs.Offset, fits func(vfs.Dirent) bool) (full bool, err error) {
	a, err := w.srv.tree.Stat(w.call, dir)
	if err != nil {
		return false, err
	}
	if after < dotOffset && !fits(vfs.Dirent{Name: ".", Ino: dir, Type: vfs.TypeDir, Offset: dotOffset}) {
		return true, nil
	}
	return !fits(vfs.Dirent{Name: "..", Ino: a.Parent, Type: vfs.TypeDir, Offset: dotDotOffset}), nil
}

func (w *worker) direntOnly(d vfs.Dirent, room int) bool {
	if direntSize(d.Name) > room {
		return false
	}
	w.out = appendDirent(w.out, d)
	return true
}

// direntBare appends a fuse_direntplus without attributes, which says so by node 0.
func (w *worker) direntBare(d vfs.Dirent, room int) bool {
	if entryOutSize+direntSize(d.Name) > room {
		return false
	}
	w.out = appendDirent(append(w.out, noEntry[:]...), d)
	return true
}

var noEntry [entryOutSize]byte

// direntPlus appends a fuse_direntplus, which has the attributes as well: with it the kernel need not look names up one
// by one, at ten times the price. "." and ".." are not looked up, and neither is what has just gone; both have node 0.
func (w *worker) direntPlus(d vfs.Dirent, room int) bool {
	if entryOutSize+direntSize(d.Name) > room {
		return false
	}
	var a vfs.Attr
	if d.Offset >= vfs.FirstOffset {
		var err error
		if a, err = w.srv.tree.Stat(w.call, d.Ino); err == nil {
			w.hold(a.Ino)
			if now, err := w.show(a); err == nil {
				a = now
			}
		}
	}
	w.out = appendDirent(appendEntryOut(w.out, &a, cacheTTL, w.srv.keep(a.Ino)), d)
	return true
}
