package fusefs

import (
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// oneWay handles the messages that are not answered, and reports whether req was one.
func (w *worker) oneWay(req fuse.Request) bool {
	switch r := req.(type) {
	case *fuse.ForgetRequest:
		w.srv.holds.give(vfs.Ino(r.Node), r.N)
		w.answered = true
		r.Respond()
	case *fuse.BatchForgetRequest:
		for _, f := range r.Forget {
			w.srv.holds.give(vfs.Ino(f.NodeID), f.N)
		}
		w.answered = true
		r.Respond()
	case *fuse.InterruptRequest:
		w.srv.loop.interrupt(r.IntrID)
		w.answered = true
		r.Respond()
	case *fuse.NotifyReply:
		w.answered = true
		release(&r.Header)
	default:
		return false
	}
	return true
}

// dispatch handles a request that is answered. The reply is in w.out unless there is an error.
//
// ENOSYS is more than an error: the kernel never sends that request again. So it is what open, close and the like are
// answered with, which have nothing to tell us; and it must not be the answer to what only failed this time.
func (w *worker) dispatch(req fuse.Request) error {
	switch r := req.(type) {
	case *fuse.LookupRequest:
		return w.lookup(r)
	case *fuse.GetattrRequest:
		return w.attr(w.srv.tree.Stat(w.call, vfs.Ino(r.Node)))
	case *fuse.SetattrRequest:
		return w.setattr(r)
	case *fuse.ReadRequest:
		if r.Dir {
			return w.readdir(r)
		}
		return w.read(r)
	case *fuse.WriteRequest:
		return w.write(r)
	case *fuse.CreateRequest:
		return w.create(r)
	case *fuse.MkdirRequest:
		return w.mkdir(r)
	case *fuse.MknodRequest:
		return w.mknod(r)
	case *fuse.SymlinkRequest:
		return w.symlink(r)
	case *fuse.LinkRequest:
		a, err := w.srv.tree.Link(w.call, vfs.Ino(r.OldNode), vfs.Ino(r.Node), r.NewName)
		return w.made(vfs.Ino(r.Node), a, err)
	case *fuse.ReadlinkRequest:
		return w.readlink(r)
	case *fuse.RemoveRequest:
		return w.remove(r)
	case *fuse.RenameRequest:
		return w.rename(vfs.Ino(r.Node), r.OldName, vfs.Ino(r.NewDir), r.NewName, 0)
	default:
		return w.dispatchRare(req)
	}
}

func (w *worker) dispatchRare(req fuse.Request) error {
	switch r := req.(type) {
	case *fuse.GetxattrRequest:
		return w.getxattr(r)
	case *fuse.SetxattrRequest:
		return w.setxattr(r)
	case *fuse.ListxattrRequest:
		return w.listxattr(r)
	case *fuse.RemovexattrRequest:
		return w.removexattr(r)
	case *fuse.StatfsRequest:
		return w.statfs()
	case *fuse.FsyncRequest:
		w.WillBlock()
		return w.srv.tree.Fsync(w.call, vfs.Ino(r.Node))
	case *fuse.FAllocateRequest:
		return w.allocate(r)
	case *fuse.ReleaseRequest, *fuse.DestroyRequest:
		return nil
	case *fuse.UnrecognizedRequest:
		return w.unrecognized(r)
	default: // OPEN, OPENDIR, FLUSH, ACCESS, POLL, and the locks, which stay in the kernel
		return syscall.ENOSYS
	}
}
