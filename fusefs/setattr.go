package fusefs

import (
	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// setattr answers SETATTR. The kernel sends one without any field for chown(path, -1, -1), which only reads.
func (w *worker) setattr(r *fuse.SetattrRequest) error {
	set := attrSetOf(r)
	if set.Mask == 0 {
		return w.attr(w.srv.tree.Stat(w.call, vfs.Ino(r.Node)))
	}
	if set.Mask&(vfs.SetSize|vfs.SetUID|vfs.SetGID) != 0 {
		if err := w.dropCapabilities(vfs.Ino(r.Node)); err != nil {
			return err
		}
	}
	return w.attr(w.srv.tree.SetAttr(w.call, vfs.Ino(r.Node), set))
}

// attrSetOf says in our words what a SETATTR asks for. A change of owner always takes the set-ID bits away; for a
// change of size the kernel says so (FUSE_HANDLE_KILLPRIV_V2).
func attrSetOf(r *fuse.SetattrRequest) vfs.AttrSet {
	set := vfs.AttrSet{
		Mode: unixMode(r.Mode), UID: r.Uid, GID: r.Gid, Size: r.Size,
		Atime: vfs.TimeOf(r.Atime), Mtime: vfs.TimeOf(r.Mtime),
	}
	for _, f := range setattrFields {
		if r.Valid&f.valid != 0 {
			set.Mask |= f.set
		}
	}
	// The kernel sets both bits for "now", and then the time in the request is not to be read.
	if set.Mask&vfs.SetAtimeNow != 0 {
		set.Mask &^= vfs.SetAtime
	}
	if set.Mask&vfs.SetMtimeNow != 0 {
		set.Mask &^= vfs.SetMtime
	}
	return set
}

var setattrFields = []struct {
	valid fuse.SetattrValid
	set   vfs.SetMask
}{
	{fuse.SetattrMode, vfs.SetMode},
	{fuse.SetattrUid, vfs.SetUID | vfs.SetKillPriv},
	{fuse.SetattrGid, vfs.SetGID | vfs.SetKillPriv},
	{fuse.SetattrSize, vfs.SetSize},
	{fuse.SetattrAtime, vfs.SetAtime},
	{fuse.SetattrMtime, vfs.SetMtime},
	{fuse.SetattrAtimeNow, vfs.SetAtimeNow},
	{fuse.SetattrMtimeNow, vfs.SetMtimeNow},
	{fuse.SetattrKillSUIDGID, vfs.SetKillPriv},
}
