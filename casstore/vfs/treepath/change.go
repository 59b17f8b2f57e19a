package treepath

import (
	"context"
	"errors"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Errors of an open file that vfs has no word for.
var (
	// ErrBadFile says that a file was not opened for this (EBADF).
	ErrBadFile = errors.New("bad file descriptor")
	// ErrSeek says that what is open has no offset (ESPIPE).
	ErrSeek = errors.New("illegal seek")
)

func is(err, target error) bool { return errors.Is(err, target) }

// Mkdir makes a directory with mode less the umask.
func (f FS) Mkdir(ctx context.Context, path string, mode uint32) error {
	at, err := f.place(ctx, "mkdir", path)
	if err != nil {
		return f.orExist(ctx, "mkdir", path, err)
	}
	_, err = f.Tree.Mkdir(ctx, at.Dir, at.Name, f.newNode(mode))
	return opError("mkdir", path, err)
}

// orExist turns the refusal of a path that has no last name ("/", "a/..") into what mkdir(2) says of one that is there.
func (f FS) orExist(ctx context.Context, op, path string, err error) error {
	if is(err, vfs.ErrInvalid) {
		if _, serr := f.Stat(ctx, path); serr == nil {
			return opError(op, path, vfs.ErrExist)
		}
	}
	return err
}

// MkdirAll makes a directory and those above it that are missing. A directory that is there is fine.
func (f FS) MkdirAll(ctx context.Context, path string, mode uint32) error {
	a, err := f.Stat(ctx, path)
	switch {
	case err == nil && a.Type == vfs.TypeDir:
		return nil
	case err == nil:
		return opError("mkdir", path, vfs.ErrExist)
	case !is(err, vfs.ErrNotExist):
		return err
	}
	if dir, _ := split(path); dir != "" && dir != "/" {
		if err := f.MkdirAll(ctx, dir, mode|0o300); err != nil {
			return err
		}
	}
	err = f.Mkdir(ctx, path, mode)
	if is(err, vfs.ErrExist) {
		if a, serr := f.Stat(ctx, path); serr == nil && a.Type == vfs.TypeDir {
			return nil // somebody else was as fast
		}
	}
	return err
}

// Symlink makes path a symlink that holds target.
func (f FS) Symlink(ctx context.Context, target, path string) error {
	at, err := f.place(ctx, "symlink", path)
	if err != nil {
		return f.orExist(ctx, "symlink", path, err)
	}
	n := f.newNode(0)
	n.Mode = 0o777
	_, err = f.Tree.Symlink(ctx, at.Dir, at.Name, target, n)
	return opError("symlink", path, err)
}

// Link gives what old leads to (a symlink itself, if it is one) another name.
func (f FS) Link(ctx context.Context, old, path string) error {
	n, err := f.find(ctx, "link", old, false)
	if err != nil {
		return err
	}
	at, err := f.place(ctx, "link", path)
	if err != nil {
		return f.orExist(ctx, "link", path, err)
	}
	_, err = f.Tree.Link(ctx, n.Attr.Ino, at.Dir, at.Name)
	return opError("link", path, err)
}

// Mkfifo makes a FIFO with mode less the umask. What it carries is the business of FS.Device.
func (f FS) Mkfifo(ctx context.Context, path string, mode uint32) error {
	at, err := f.place(ctx, "mkfifo", path)
	if err != nil {
		return f.orExist(ctx, "mkfifo", path, err)
	}
	_, err = f.Tree.Mknod(ctx, at.Dir, at.Name, vfs.TypeFIFO, f.newNode(mode))
	return opError("mkfifo", path, err)
}

// Remove removes a file or an empty directory.
func (f FS) Remove(ctx context.Context, path string) error {
	at, n, err := f.victim(ctx, "remove", path)
	if err != nil {
		return err
	}
	if n.Type == vfs.TypeDir {
		return opError("remove", path, f.Tree.Rmdir(ctx, at.Dir, at.Name))
	}
	return opError("remove", path, f.Tree.Unlink(ctx, at.Dir, at.Name))
}

// victim finds a name that is to go away, and checks the sticky bit of the directory that it is in.
func (f FS) victim(ctx context.Context, op, path string) (Place, vfs.Attr, error) {
	at, err := f.place(ctx, op, path)
	if err != nil {
		return at, vfs.Attr{}, err
	}
	a, err := f.Tree.Lookup(ctx, at.Dir, at.Name)
	if err != nil {
		return at, a, opError(op, path, err)
	}
	if f.Cred.UID != 0 {
		dir, err := f.Tree.Stat(ctx, at.Dir)
		if err != nil {
			return at, a, opError(op, path, err)
		}
		if dir.Mode&vfs.ModeSticky != 0 && !f.Cred.owns(dir) && !f.Cred.owns(a) {
			return at, a, opError(op, path, vfs.ErrNotPermitted)
		}
	}
	return at, a, nil
}

// RemoveAll removes path and all below it; nothing there is fine. It stops at the first error.
func (f FS) RemoveAll(ctx context.Context, path string) error {
	a, err := f.Lstat(ctx, path)
	if err != nil {
		if is(err, vfs.ErrNotExist) {
			return nil
		}
		return err
	}
	if a.Type == vfs.TypeDir {
		entries, err := f.ReadDir(ctx, path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := f.RemoveAll(ctx, path+"/"+e.Name); err != nil {
				return err
			}
		}
	}
	err = f.Remove(ctx, path)
	if is(err, vfs.ErrNotExist) {
		return nil
	}
	return err
}

// Rename moves a name, atomically putting it in the place of one that is there, as rename(2) says.
func (f FS) Rename(ctx context.Context, old, path string) error {
	from, _, err := f.victim(ctx, "rename", old)
	if err != nil {
		return err
	}
	to, _, err := f.victim(ctx, "rename", path)
	if is(err, vfs.ErrNotExist) {
		to, err = f.place(ctx, "rename", path)
	}
	if err != nil {
		return err
	}
	return opError("rename", path, f.Tree.Rename(ctx, from.Dir, from.Name, to.Dir, to.Name, 0))
}

// Chmod sets the permission bits (vfs.ModeMask) of what path leads to. vfs.ErrNotPermitted unless the caller owns it.
func (f FS) Chmod(ctx context.Context, path string, mode uint32) error {
	return f.setAttr(ctx, "chmod", path, true, vfs.AttrSet{Mask: vfs.SetMode, Mode: mode & vfs.ModeMask})
}

// Chown sets owner and group of what path leads to; follow says whether through a symlink at its end. ^uint32(0) leaves
// either as it is. Only root may give a file away; an owner may choose among its own groups.
func (f FS) Chown(ctx context.Context, path string, uid, gid uint32, follow bool) error {
	set := vfs.AttrSet{Mask: vfs.SetKillPriv, UID: uid, GID: gid}
	if uid != ^uint32(0) {
		set.Mask |= vfs.SetUID
	}
	if gid != ^uint32(0) {
		set.Mask |= vfs.SetGID
	}
	if set.Mask == vfs.SetKillPriv {
		_, err := f.find(ctx, "chown", path, follow)
		return err
	}
	if f.Cred.UID != 0 && (set.Mask&vfs.SetUID != 0 && uid != f.Cred.UID || set.Mask&vfs.SetGID != 0 && !f.Cred.in(gid)) {
		return opError("chown", path, vfs.ErrNotPermitted)
	}
	return f.setAttr(ctx, "chown", path, follow, set)
}

// Chtimes sets access and modification time; follow says whether through a symlink at its end. Nil leaves one as it is.
func (f FS) Chtimes(ctx context.Context, path string, atime, mtime *vfs.Time, follow bool) error {
	var set vfs.AttrSet
	if atime != nil {
		set.Mask, set.Atime = set.Mask|vfs.SetAtime, *atime
	}
	if mtime != nil {
		set.Mask, set.Mtime = set.Mask|vfs.SetMtime, *mtime
	}
	return f.setAttr(ctx, "chtimes", path, follow, set)
}

// Truncate sets the size of the file that path leads to.
func (f FS) Truncate(ctx context.Context, path string, size uint64) error {
	file, err := f.OpenFile(ctx, path, Write, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

func (f FS) setAttr(ctx context.Context, op, path string, follow bool, set vfs.AttrSet) error {
	n, err := f.find(ctx, op, path, follow)
	if err != nil {
		return err
	}
	if !f.Cred.owns(n.Attr) {
		return opError(op, path, vfs.ErrNotPermitted)
	}
	_, err = f.Tree.SetAttr(ctx, n.Attr.Ino, set)
	return opError(op, path, err)
}

// ReadFile returns the bytes of a file. The file must not be larger than limit bytes (0 for any size): vfs.ErrTooBig.
func (f FS) ReadFile(ctx context.Context, path string, limit uint64) ([]byte, error) {
	file, err := f.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := io.Reader(file)
	if limit > 0 {
		r = io.LimitReader(file, int64(limit)+1)
	}
	b, err := io.ReadAll(r)
	if err == nil && limit > 0 && uint64(len(b)) > limit {
		err = opError("read", path, vfs.ErrTooBig)
	}
	return b, err
}

// WriteFile makes data the bytes of a file, made with mode less the umask when it is not there.
func (f FS) WriteFile(ctx context.Context, path string, data []byte, mode uint32) error {
	file, err := f.OpenFile(ctx, path, Write|Create|Truncate, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
