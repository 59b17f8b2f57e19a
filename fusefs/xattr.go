package fusefs

import (
	"strings"
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// checkXattr returns EOPNOTSUPP for a namespace that we do not keep. system. holds POSIX ACLs, and saying that one was
// set would be a lie about who may do what. Who may use trusted. and security. the kernel decides.
func checkXattr(name string) error {
	for _, space := range [...]string{"user.", "trusted.", "security."} {
		if strings.HasPrefix(name, space) {
			if len(name) == len(space) {
				return syscall.EINVAL
			}
			return nil
		}
	}
	return syscall.EOPNOTSUPP
}

func (w *worker) getxattr(r *fuse.GetxattrRequest) error {
	if err := checkXattr(r.Name); err != nil {
		return err
	}
	value, err := w.srv.tree.GetXattr(w.call, vfs.Ino(r.Node), r.Name)
	if err != nil {
		return err
	}
	if err := w.sized(r.Size, len(value)); err != nil || r.Size == 0 {
		return err
	}
	w.out = append(w.out, value...)
	return nil
}

// listxattr answers LISTXATTR with the names, each with a NUL. Names in trusted. are hidden from ordinary users, as
// xattr(7) says; the caller's uid stands in for its capabilities, which we are not told.
func (w *worker) listxattr(r *fuse.ListxattrRequest) error {
	names, err := w.srv.tree.ListXattr(w.call, vfs.Ino(r.Node))
	if err != nil {
		return err
	}
	var list []byte
	for _, name := range names {
		if r.Uid == 0 || !strings.HasPrefix(name, "trusted.") {
			list = append(append(list, name...), 0)
		}
	}
	if err := w.sized(r.Size, len(list)); err != nil || r.Size == 0 {
		return err
	}
	w.out = append(w.out, list...)
	return nil
}

// sized answers a question for a size, which has room for no bytes, with a fuse_getxattr_out; otherwise it checks that
// there is room for all.
func (w *worker) sized(room uint32, have int) error {
	if room == 0 {
		w.out = order.AppendUint64(w.out, uint64(have))
		return nil
	}
	if have > int(room) {
		return syscall.ERANGE
	}
	return nil
}

// Flags of setxattr(2).
const (
	xattrCreate  = 1
	xattrReplace = 2
)

func (w *worker) setxattr(r *fuse.SetxattrRequest) error {
	if err := checkXattr(r.Name); err != nil {
		return err
	}
	var flags vfs.XattrFlags
	if r.Flags&xattrCreate != 0 {
		flags |= vfs.XattrCreate
	}
	if r.Flags&xattrReplace != 0 {
		flags |= vfs.XattrReplace
	}
	err := w.srv.tree.SetXattr(w.call, vfs.Ino(r.Node), r.Name, r.Xattr, flags)
	if r.Name == capabilityXattr {
		w.srv.holds.setPlain(vfs.Ino(r.Node), false)
	}
	return err
}

func (w *worker) removexattr(r *fuse.RemovexattrRequest) error {
	if err := checkXattr(r.Name); err != nil {
		return err
	}
	return w.srv.tree.RemoveXattr(w.call, vfs.Ino(r.Node), r.Name)
}
