package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// layer is a layer that is being unpacked.
type layer struct {
	*tree
	own  map[string]bool // what it has itself, which its opaque directories keep
	dirs []namedDir      // whose attributes come last, when nothing is made in them any more
}

// namedDir is a directory that an archive names.
type namedDir struct {
	name string
	attributes
}

// attributes are what is kept of a header.
type attributes struct {
	mode     fs.FileMode
	uid, gid int
	mtime    time.Time
}

// attributesOf takes no set-user-ID bit: no other tree has what that would give away.
func attributesOf(h *tar.Header) attributes {
	mode := h.FileInfo().Mode()
	mode = mode.Perm() | mode&fs.ModeSticky
	switch h.Typeflag { // and not by the mode, which may say something else
	case tar.TypeDir:
		mode |= fs.ModeDir
	case tar.TypeSymlink:
		mode |= fs.ModeSymlink
	}
	return attributes{mode, h.Uid, h.Gid, h.ModTime}
}

// unpack unpacks the entries of an archive.
func (l *layer) unpack(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return l.finishDirs()
		}
		switch {
		case errors.Is(err, vfs.ErrInterrupted), errors.Is(err, vfs.ErrTooBig):
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
		}
		if err := l.left.takeEntry(h.Name); err != nil {
			return err
		}
		if err := l.entry(h, r); err != nil {
			return fmt.Errorf("%.100q: %w", h.Name, err)
		}
	}
}

// Whiteouts (layer.md): names that take away what is below, which begin alike. Others that begin with whiteoutMeta are
// notes of aufs to itself.
const (
	whiteout     = ".wh."
	whiteoutMeta = ".wh..wh."
	opaque       = ".wh..wh..opq"
)

func (l *layer) entry(h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("an entry of type %q: %w", h.Typeflag, vfs.ErrNotSupported)
	}
	if isMeta(h.Name) {
		return nil
	}
	if h.Uid < 0 || h.Uid >= math.MaxUint32 || h.Gid < 0 || h.Gid >= math.MaxUint32 {
		return fmt.Errorf("it belongs to %d:%d: %w", h.Uid, h.Gid, vfs.ErrInvalid)
	}
	name, err := l.resolve(h.Name)
	if err != nil {
		return err
	}
	base := path.Base(name)
	switch {
	case base == opaque:
		return l.hideAll(path.Dir(name))
	case strings.HasPrefix(base, whiteout):
		return l.hide(path.Dir(name), strings.TrimPrefix(base, whiteout))
	case name == "." && h.Typeflag != tar.TypeDir:
		return fmt.Errorf("the root is a directory: %w", vfs.ErrInvalid)
	}
	for own := name; own != "." && !l.own[own]; own = path.Dir(own) {
		l.own[own] = true
	}
	return l.make(h, name, r)
}

func isMeta(name string) bool {
	for _, e := range strings.Split(name, "/") {
		if strings.HasPrefix(e, whiteoutMeta) && e != opaque {
			return true
		}
	}
	return false
}

// hide removes what lower layers have of a name.
func (l *layer) hide(dir, base string) error {
	if base == "" || base == "." || base == ".." {
		return fmt.Errorf("it hides nothing that there is: %w", vfs.ErrInvalid)
	}
	name := path.Join(dir, base)
	if !l.own[name] {
		return l.root.RemoveAll(name)
	}
	if info, err := l.root.Lstat(name); err != nil || !info.IsDir() {
		return err
	}
	return l.hideAll(name)
}

// hideAll removes what lower layers have in a directory.
func (l *layer) hideAll(dir string) error {
	entries, err := fs.ReadDir(l.root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := l.hide(dir, e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// make makes what an entry describes, in place of what is there.
func (l *layer) make(h *tar.Header, name string, r io.Reader) error {
	info, err := l.root.Lstat(name)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		return l.makeDir(h, name, there, there && info.IsDir())
	}
	if there {
		if err := l.root.RemoveAll(name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeSymlink:
		err = l.symlink(h, name)
	case tar.TypeLink:
		return l.link(h, name) // what it is a link to has its own attributes
	default:
		err = l.makeFile(h, name, r)
	}
	if err != nil {
		return err
	}
	return l.setAttributes(name, attributesOf(h))
}

func (l *layer) makeDir(h *tar.Header, name string, there, isDir bool) error {
	if there && !isDir {
		if err := l.root.RemoveAll(name); err != nil {
			return err
		}
	}
	if !isDir {
		if err := l.mkdir(name); err != nil {
			return err
		}
	}
	l.dirs = append(l.dirs, namedDir{name, attributesOf(h)})
	return nil
}

// finishDirs sets the attributes of directories, those that are in others first.
func (l *layer) finishDirs() error {
	for i := len(l.dirs) - 1; i >= 0; i-- {
		d := l.dirs[i]
		// Later entries may have put something else in its place.
		if info, err := l.root.Lstat(d.name); err != nil || !info.IsDir() {
			continue
		}
		if err := l.setAttributes(d.name, d.attributes); err != nil {
			return err
		}
	}
	return nil
}

// symlink makes a symlink, which may lead anywhere: it is followed in the container alone.
func (l *layer) symlink(h *tar.Header, name string) error {
	if n := len(h.Linkname); n == 0 || n >= maxName || strings.IndexByte(h.Linkname, 0) >= 0 {
		return fmt.Errorf("a symlink to %.20q: %w", h.Linkname, vfs.ErrInvalid)
	}
	return l.root.Symlink(h.Linkname, name)
}

// link makes a hard link. Its target is a file of the image, and is not followed.
func (l *layer) link(h *tar.Header, name string) error {
	target, err := l.resolve(h.Linkname)
	if err != nil {
		return err
	}
	info, err := l.root.Lstat(target)
	if err != nil {
		return fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
	}
	if info.IsDir() {
		return fmt.Errorf("a hard link to a directory: %w", vfs.ErrInvalid)
	}
	return l.root.Link(target, name)
}

func (l *layer) makeFile(h *tar.Header, name string, r io.Reader) error {
	if err := l.left.takeBytes(h.Size); err != nil {
		return err
	}
	f, err := l.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
	}
	return errors.Join(err, f.Close())
}

// setAttributes sets owner, mode and time.
func (l *layer) setAttributes(name string, a attributes) error {
	if os.Geteuid() == 0 {
		if err := l.root.Lchown(name, a.uid, a.gid); err != nil {
			return err
		}
	}
	chmod := l.root.Chmod
	switch a.mode.Type() {
	case fs.ModeSymlink:
		return nil
	case fs.ModeDir:
		chmod = l.chmodDir
	}
	if err := chmod(name, a.mode&^fs.ModeType); err != nil {
		return err
	}
	return l.root.Chtimes(name, time.Time{}, a.mtime)
}
