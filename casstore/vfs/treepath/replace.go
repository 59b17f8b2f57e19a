package treepath

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// replaceBuffer is how many bytes ReplaceFile moves at a time.
const replaceBuffer = 256 << 10

// ReplaceFile makes what from gives the bytes of a file. Others see the old bytes or the new ones, never a part, and after
// an error the old ones are there. A file that is made gets mode less the umask; one that is replaced keeps its mode,
// owner and extended attributes. A symlink at the end of path is followed, also to a file that is not there.
//
// A file with several names must stay one file, so it alone is written in place, and that is not atomic.
func (f FS) ReplaceFile(ctx context.Context, path string, from io.Reader, mode uint32) (made bool, err error) {
	at, old, err := f.target(ctx, path)
	if err != nil {
		return false, err
	}
	if old != nil && old.Nlink > 1 {
		return false, opError("replace", path, f.overwrite(ctx, old.Ino, from))
	}
	temp := Place{at.Dir, ".carrel-new-" + rand.Text()}
	n, err := f.Tree.Create(ctx, temp.Dir, temp.Name, f.newNode(0o600))
	if err != nil {
		return false, opError("replace", path, err)
	}
	if _, err = f.fill(ctx, n.Ino, from); err == nil {
		err = f.dress(ctx, n.Ino, old, mode)
	}
	if err == nil {
		err = f.Tree.Rename(ctx, temp.Dir, temp.Name, at.Dir, at.Name, 0)
	}
	if err != nil {
		undone := f.Tree.Unlink(context.WithoutCancel(ctx), temp.Dir, temp.Name)
		return false, errors.Join(opError("replace", path, err), undone)
	}
	return old == nil, nil
}

// target finds the place of a file that is to be written, and the file when it is there.
func (f FS) target(ctx context.Context, path string) (Place, *vfs.Attr, error) {
	for range maxSymlinks {
		n, err := f.find(ctx, "replace", path, true)
		if err == nil {
			return f.replaceable(ctx, path, n)
		}
		if !is(err, vfs.ErrNotExist) {
			return Place{}, nil, err
		}
		link, err := f.Readlink(ctx, path)
		if err != nil { // no symlink: it is to be made
			at, err := f.place(ctx, "replace", path)
			return at, nil, err
		}
		path = joinTarget(path, link)
	}
	return Place{}, nil, opError("replace", path, ErrLoop)
}

func (f FS) replaceable(ctx context.Context, path string, n Node) (Place, *vfs.Attr, error) {
	switch n.Attr.Type {
	case vfs.TypeRegular:
	case vfs.TypeDir:
		return Place{}, nil, opError("replace", path, vfs.ErrIsDir)
	default:
		return Place{}, nil, opError("replace", path, vfs.ErrNotSupported)
	}
	dir, err := f.Tree.Stat(ctx, n.Dir)
	if err == nil {
		err = errors.Join(f.Cred.May(dir, AccessWrite|AccessExec), f.Cred.May(n.Attr, AccessWrite))
	}
	return Place{n.Dir, n.Name}, &n.Attr, opError("replace", path, err)
}

// fill writes all that from gives from the start of a file, and returns how much that was.
func (f FS) fill(ctx context.Context, ino vfs.Ino, from io.Reader) (uint64, error) {
	buf, off := make([]byte, replaceBuffer), uint64(0)
	for {
		n, err := io.ReadFull(from, buf)
		if n > 0 {
			if err := f.Tree.WriteAt(ctx, ino, buf[:n], off, true); err != nil {
				return off, err
			}
			off += uint64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return off, nil
		case err != nil:
			return off, err
		}
	}
}

func (f FS) overwrite(ctx context.Context, ino vfs.Ino, from io.Reader) error {
	size, err := f.fill(ctx, ino, from)
	if err != nil {
		return err
	}
	_, err = f.Tree.SetAttr(ctx, ino, vfs.AttrSet{Mask: vfs.SetSize | vfs.SetKillPriv, Size: size})
	return err
}

// dress gives a new file what the old one had beside its bytes, or mode when there is no old one.
func (f FS) dress(ctx context.Context, ino vfs.Ino, old *vfs.Attr, mode uint32) error {
	set := vfs.AttrSet{Mask: vfs.SetMode, Mode: mode &^ f.Umask & vfs.ModeMask}
	if old != nil {
		set = vfs.AttrSet{Mask: vfs.SetMode | vfs.SetUID | vfs.SetGID, Mode: old.Mode, UID: old.UID, GID: old.GID}
		if f.Cred.UID != 0 {
			set.Mode &^= vfs.ModeSetUID | vfs.ModeSetGID // as write(2) does for whom is not root
		}
		if err := f.copyXattrs(ctx, old.Ino, ino); err != nil {
			return err
		}
	}
	_, err := f.Tree.SetAttr(ctx, ino, set)
	return err
}

func (f FS) copyXattrs(ctx context.Context, from, to vfs.Ino) error {
	names, err := f.Tree.ListXattr(ctx, from)
	if err != nil {
		return err
	}
	for _, name := range names {
		value, err := f.Tree.GetXattr(ctx, from, name)
		if is(err, vfs.ErrNoXattr) {
			continue // removed since it was listed
		}
		if err == nil {
			err = f.Tree.SetXattr(ctx, to, name, value, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
