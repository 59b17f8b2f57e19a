package fusefs

import (
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Positions of the two names that a tree does not list. They lie below vfs.FirstOffset.
const (
	dotOffset    vfs.Offset = 1
	dotDotOffset vfs.Offset = 2
)

// readdir answers READDIR: as many names as fit, from an offset on. There is no state of an open directory: the offsets
// stay good.
func (w *worker) readdir(r *fuse.ReadRequest) error {
	if r.Size < 0 || r.Size > maxData || r.Offset < 0 {
		return syscall.EINVAL
	}
	dir, after := vfs.Ino(r.Node), vfs.Offset(r.Offset)
	w.room(r.Size)
	w.use(0)
	add := func(d vfs.Dirent) bool {
		if len(w.out)-outHeaderSize+direntSize(d.Name) > r.Size {
			return false
		}
		w.out = appendDirent(w.out, d)
		return true
	}
	if after < dotDotOffset {
		full, err := w.dots(dir, after, add)
		if full || err != nil {
			return err
		}
	}
	if after < vfs.FirstOffset {
		after = 0
	}
	return w.srv.tree.ReadDir(w.call, dir, after, add)
}

// dots adds "." and "..", and reports whether the reply is full.
func (w *worker) dots(dir vfs.Ino, after vfs.Offset, add func(vfs.Dirent) bool) (full bool, err error) {
	a, err := w.srv.tree.Stat(w.call, dir)
	if err != nil {
		return false, err
	}
	if after < dotOffset && !add(vfs.Dirent{Name: ".", Ino: dir, Type: vfs.TypeDir, Offset: dotOffset}) {
		return true, nil
	}
	return !add(vfs.Dirent{Name: "..", Ino: a.Parent, Type: vfs.TypeDir, Offset: dotDotOffset}), nil
}
