package fusefs

import (
	"errors"
	"os"
	"syscall"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// lookup answers LOOKUP. A missing name is an answer, not an error, so that the kernel keeps it.
//
// The kernel asks for "." and ".." of an inode that it has from a file handle (open_by_handle_at(2)).
func (w *worker) lookup(r *fuse.LookupRequest) error {
	switch r.Name {
	case ".":
		a, err := w.srv.tree.Stat(w.call, vfs.Ino(r.Node))
		return w.entry(a.Ino, a, err)
	case "..":
		return w.parent(vfs.Ino(r.Node))
	}
	a, err := w.srv.tree.Lookup(w.call, vfs.Ino(r.Node), r.Name)
	if errors.Is(err, vfs.ErrNotExist) {
		w.out = appendEntryOut(w.out, &vfs.Attr{}, w.srv.keep(vfs.Ino(r.Node)), 0)
		return nil
	}
	if err == nil && a.Type != vfs.TypeDir {
		w.srv.habits.lookup(vfs.Ino(r.Node))
	}
	return w.entry(vfs.Ino(r.Node), a, err)
}

func (w *worker) parent(dir vfs.Ino) error {
	a, err := w.srv.tree.Stat(w.call, dir)
	switch {
	case err != nil:
		return err
	case a.Parent == 0:
		return syscall.ESTALE // not a directory, or one that was removed
	}
	up, err := w.srv.tree.Stat(w.call, a.Parent)
	return w.entry(dir, up, err)
}

// What an open file is like (FOPEN_ of <linux/fuse.h>).
const (
	foDirectIO       = uint32(1 << 0) // its reads and writes go past the page cache
	foKeepCache      = uint32(1 << 1) // opening it drops no cached bytes
	foParallelWrites = uint32(1 << 6) // with foDirectIO: writes that do not extend the file need not queue up
)

// Handles of open files. Files are served by inode, so a handle only says how a file was opened. What the kernel opens
// without asking has the first.
const (
	cachedHandle uint64 = 0
	directHandle uint64 = 1
)

// createMode decides about the file that a CREATE opens. One that is only written goes past the page cache (see the
// package comment), which also saves a GETXATTR for security.capability before the first write. What is written in less
// than whole pages would not be kept in the cache anyway.
func createMode(flags fuse.OpenFlags) (handle uint64, openFlags uint32) {
	if flags.IsWriteOnly() {
		return directHandle, foDirectIO | foParallelWrites
	}
	return cachedHandle, foKeepCache
}

// create answers CREATE, which makes a file and opens it. The kernel sends it only for a name that it believes to be
// missing. When someone else took the name meanwhile, opening that file here would go around the kernel's check of its
// permissions and O_TRUNC; ESTALE makes the kernel look the name up again and open what is there.
func (w *worker) create(r *fuse.CreateRequest) error {
	a, err := w.srv.tree.Create(w.call, vfs.Ino(r.Node), r.Name, newNode(&r.Header, r.Mode, 0))
	if errors.Is(err, vfs.ErrExist) && r.Flags&fuse.OpenExclusive == 0 {
		return syscall.ESTALE
	}
	if err := w.made(vfs.Ino(r.Node), a, err); err != nil {
		return err
	}
	w.srv.holds.setPlain(a.Ino, true)
	handle, flags := createMode(r.Flags)
	w.out = appendOpenOut(w.out, handle, flags)
	return nil
}

func (w *worker) mkdir(r *fuse.MkdirRequest) error {
	a, err := w.srv.tree.Mkdir(w.call, vfs.Ino(r.Node), r.Name, newNode(&r.Header, r.Mode, 0))
	return w.made(vfs.Ino(r.Node), a, err)
}

func (w *worker) mknod(r *fuse.MknodRequest) error {
	n := newNode(&r.Header, r.Mode, r.Rdev)
	a, err := w.srv.tree.Mknod(w.call, vfs.Ino(r.Node), r.Name, typeOf(r.Mode), n)
	return w.made(vfs.Ino(r.Node), a, err)
}

func (w *worker) symlink(r *fuse.SymlinkRequest) error {
	n := newNode(&r.Header, 0o777, 0)
	a, err := w.srv.tree.Symlink(w.call, vfs.Ino(r.Node), r.NewName, r.Target, n)
	return w.made(vfs.Ino(r.Node), a, err)
}

func (w *worker) readlink(r *fuse.ReadlinkRequest) error {
	target, err := w.srv.tree.Readlink(w.call, vfs.Ino(r.Node))
	if err != nil {
		return err
	}
	w.out = append(w.out, target...)
	return nil
}

// remove answers UNLINK and RMDIR.
func (w *worker) remove(r *fuse.RemoveRequest) error {
	remove := w.srv.tree.Unlink
	if r.Dir {
		remove = w.srv.tree.Rmdir
	}
	return w.named(vfs.Ino(r.Node), remove(w.call, vfs.Ino(r.Node), r.Name))
}

// rename answers RENAME and RENAME2. The kernel notes what a rename changes in what it has cached, but for one thing:
// the ".." in the cached listing of a directory that went elsewhere.
func (w *worker) rename(dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags) error {
	if err := w.srv.tree.Rename(w.call, dir, name, newDir, newName, flags); err != nil {
		return err
	}
	w.changed(dir)
	if dir == newDir {
		return nil
	}
	w.changed(newDir)
	w.forgetParent(newDir, newName)
	if flags&vfs.RenameExchange != 0 {
		w.forgetParent(dir, name)
	}
	return nil
}

func (w *worker) forgetParent(dir vfs.Ino, name string) {
	if a, err := w.srv.tree.Lookup(w.call, dir, name); err == nil && a.Type == vfs.TypeDir {
		w.srv.notes.data(a.Ino)
	}
}

// newNode makes the owner and mode of a new node out of a request. The kernel has applied the umask to the mode.
func newNode(h *fuse.Header, mode os.FileMode, rdev uint32) vfs.NewNode {
	return vfs.NewNode{Mode: unixMode(mode), UID: h.Uid, GID: h.Gid, Rdev: rdev}
}

// unixMode returns the permission bits that the library has made into an os.FileMode.
func unixMode(m os.FileMode) uint32 {
	mode := uint32(m.Perm())
	if m&os.ModeSetuid != 0 {
		mode |= vfs.ModeSetUID
	}
	if m&os.ModeSetgid != 0 {
		mode |= vfs.ModeSetGID
	}
	if m&os.ModeSticky != 0 {
		mode |= vfs.ModeSticky
	}
	return mode
}

// typeOf returns the type in an os.FileMode. One without any is a regular file (mknod(2)).
func typeOf(m os.FileMode) vfs.Type {
	switch {
	case m&os.ModeDir != 0:
		return vfs.TypeDir
	case m&os.ModeSymlink != 0:
		return vfs.TypeSymlink
	case m&os.ModeNamedPipe != 0:
		return vfs.TypeFIFO
	case m&os.ModeSocket != 0:
		return vfs.TypeSocket
	case m&os.ModeCharDevice != 0:
		return vfs.TypeCharDev
	case m&os.ModeDevice != 0:
		return vfs.TypeBlockDev
	}
	return vfs.TypeRegular
}
