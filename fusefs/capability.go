package fusefs

import (
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// capabilityXattr holds the capabilities that a program gets when it is run (capabilities(7)).
const capabilityXattr = "security.capability"

// dropCapabilities takes them from a file that is about to be written, truncated or given away, as the kernel does on
// other filesystems: else who may write a program could put his own in its place and have its rights. To the tree it
// is an attribute like others, and FUSE_HANDLE_KILLPRIV_V2, which spares a request before each write, leaves it to us.
//
// Nearly no file has any, so what is known to have none is noted; a change of attributes by others voids the note. It
// is written before the tree is asked, so that an attribute which is set meanwhile, and voids it after, is not missed.
func (w *worker) dropCapabilities(ino vfs.Ino) error {
	if w.srv.holds.setPlain(ino, true) {
		return nil
	}
	err := w.srv.tree.RemoveXattr(w.call, ino, capabilityXattr)
	if err == nil || errors.Is(err, vfs.ErrNoXattr) {
		return nil
	}
	w.srv.holds.setPlain(ino, false)
	return err
}
