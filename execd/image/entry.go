package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// layer is a layer that is being unpacked.
type layer struct {
	root *os.Root
	left *bounds
	own  map[string]bool // what it has itself, which its opaque directories keep
	dirs []*tar.Header   // whose times and modes come last, when nothing is made in them any more
}

// unpack unpacks the entries of an archive.
func (l *layer) unpack(r *tar.Reader) error {
	l.own = map[string]bool{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return l.finishDirs()
		}
		switch {
		case errors.Is(err, vfs.ErrInterrupted):
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", vfs.ErrInvalid, err)
		}
		if l.left.entries--; l.left.entries < 0 {
			return fmt.Errorf("too many files: %w", vfs.ErrTooBig)
		}
		if err := l.entry(h, r); err != nil {
			return fmt.Errorf("%.100q: %w", h.Name, err)
		}
	}
}

// Whiteouts (layer.md): names that take away what is below, which begin alike.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

func (l *layer) entry(h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("an entry of type %q: %w", h.Typeflag, vfs.ErrNotSupported)
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
	for own := name; own != "."; own = path.Dir(own) {
		l.own[own] = true
	}
	return l.make(h, name, r)
}

// resolve returns the name, without symlinks before its last element, of what an archive calls so. Directories that it needs
// are made.
func (l *layer) resolve(name string) (string, error) {
	switch {
	case len(name) > maxName:
		return "", fmt.Errorf("%.20q: %w", name, vfs.ErrNameTooLong)
	case name == "" || strings.IndexByte(name, 0) >= 0:
		return "", fmt.Errorf("a name %q: %w", name, vfs.ErrInvalid)
	case strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), ".."):
		return "", fmt.Errorf("%q leads out of the image: %w", name, vfs.ErrInvalid)
	}
	at, links, todo := ".", 0, strings.Split(path.Clean(name), "/")
	for i := 0; i < len(todo); i++ {
		switch todo[i] {
		case "", ".":
			continue
		case "..": // of a symlink
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, todo[i])
		if i == len(todo)-1 {
			return next, nil
		}
		target, err := l.enter(next)
		if err != nil {
			return "", err
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("too many symlinks: %w", vfs.ErrInvalid)
		}
		if strings.HasPrefix(target, "/") {
			at = "."
		}
		todo = append(strings.Split(target, "/"), todo[i+1:]...)
		i = -1
	}
	return at, nil
}

// enter makes a directory on the way unless there is one, or returns where a symlink leads.
func (l *layer) enter(name string) (target string, err error) {
	info, err := l.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", l.root.Mkdir(name, 0o755)
	case err != nil:
		return "", err
	case info.Mode().Type() == fs.ModeSymlink:
		return l.root.Readlink(name)
	case !info.IsDir():
		return "", fmt.Errorf("%s: %w", name, vfs.ErrNotDir)
	}
	return "", nil
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
		err = l.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return l.link(h, name) // what it is a link to has its own attributes
	default:
		err = l.makeFile(h, name, r)
	}
	if err != nil {
		return err
	}
	return l.setAttributes(h, name)
}

func (l *layer) makeDir(h *tar.Header, name string, there, isDir bool) error {
	if there && !isDir {
		if err := l.root.RemoveAll(name); err != nil {
			return err
		}
	}
	if !isDir {
		if err := l.root.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	l.dirs = append(l.dirs, &tar.Header{
		Typeflag: h.Typeflag, Name: name, Mode: h.Mode, Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime,
	})
	return nil
}

// finishDirs sets the attributes of directories, those that are in others first.
func (l *layer) finishDirs() error {
	for i := len(l.dirs) - 1; i >= 0; i-- {
		h := l.dirs[i]
		// Later entries may have put something else in its place.
		if info, err := l.root.Lstat(h.Name); err != nil || !info.IsDir() {
			continue
		}
		if err := l.setAttributes(h, h.Name); err != nil {
			return err
		}
	}
	return nil
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
	if h.Size > l.left.bytes {
		return fmt.Errorf("too many bytes: %w", vfs.ErrTooBig)
	}
	l.left.bytes -= h.Size
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

// setAttributes sets owner, mode and time. No other tree has what a set-user-ID bit would give away.
func (l *layer) setAttributes(h *tar.Header, name string) error {
	if os.Geteuid() == 0 {
		if err := l.root.Lchown(name, h.Uid, h.Gid); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeSymlink {
		return nil
	}
	mode := h.FileInfo().Mode()
	if err := l.root.Chmod(name, mode.Perm()|mode&fs.ModeSticky); err != nil {
		return err
	}
	return l.root.Chtimes(name, time.Time{}, h.ModTime)
}
