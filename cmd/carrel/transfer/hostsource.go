package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// HostSource reads a directory or another node of the host. Symlinks below Path are nodes, never followed.
type HostSource struct {
	Path string
	As   string            // the path that the root has as an entry; empty for the transfer's root
	Warn func(text string) // hears of what cannot be kept; may be nil
}

// Walk implements [Source].
func (s *HostSource) Walk(ctx context.Context, visit func(*Entry, Content) error) error {
	mark := func(e *Entry, c Content) error {
		if err := visit(e, c); err != nil {
			return &visitError{err}
		}
		return nil
	}
	w := &hostWalk{visit: mark, warn: s.Warn, linked: linked[hostFile]{}}
	err := w.node(ctx, unix.AT_FDCWD, s.Path, s.Path, s.As)
	if v := (*visitError)(nil); errors.As(err, &v) {
		return v.error
	}
	return err
}

// visitError is an error of the visitor, which is not one of reading the host.
type visitError struct{ error }

// hostFile identifies a file of the host.
type hostFile struct{ dev, ino uint64 }

type hostWalk struct {
	visit  func(*Entry, Content) error
	warn   func(string)
	linked linked[hostFile]
}

// node visits the node that name leads to in the open directory dir, and what is below it. hostPath is for people.
func (w *hostWalk) node(ctx context.Context, dir int, name, hostPath, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := w.visitNode(ctx, dir, name, hostPath, path)
	if err == nil || errors.As(err, new(*visitError)) || errors.As(err, new(*hostError)) {
		return err
	}
	return &hostError{hostPath, err}
}

// hostError names the file of the host that could not be read.
type hostError struct {
	path string
	err  error
}

func (e *hostError) Error() string { return fmt.Sprintf("read %s: %v", e.path, e.err) }
func (e *hostError) Unwrap() error { return e.err }

func (w *hostWalk) visitNode(ctx context.Context, dir int, name, hostPath, path string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	e := entryOfStat(&st)
	e.Path = path
	if e.Type != vfs.TypeDir && st.Nlink > 1 {
		first, err := w.linked.seen(hostFile{st.Dev, st.Ino}, path)
		if err != nil {
			return err
		}
		if first != "" {
			return w.visit(&Entry{Path: path, Type: e.Type, Link: first}, nil)
		}
	}
	switch e.Type {
	case vfs.TypeRegular:
		return w.file(dir, name, hostPath, e)
	case vfs.TypeDir:
		return w.directory(ctx, dir, name, hostPath, e)
	case vfs.TypeSymlink:
		target, err := readlinkat(dir, name)
		if err != nil {
			return err
		}
		e.Target = target
	}
	err := w.xattrs(e, func(buf []byte) (int, error) { return unix.Llistxattr(procPath(dir, name), buf) },
		func(x string, buf []byte) (int, error) { return unix.Lgetxattr(procPath(dir, name), x, buf) })
	if err != nil {
		return err
	}
	return w.visit(e, nil)
}

// procPath names a node in an open directory, for system calls that take no directory.
func procPath(dir int, name string) string {
	if dir == unix.AT_FDCWD {
		return name
	}
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name
}

func entryOfStat(st *unix.Stat_t) *Entry {
	return &Entry{
		Type: hostType(st.Mode), Mode: st.Mode & vfs.ModeMask, UID: st.Uid, GID: st.Gid, Rdev: uint32(st.Rdev),
		Size:  uint64(st.Size),
		Atime: vfs.TimeFromUnix(st.Atim.Unix()), Mtime: vfs.TimeFromUnix(st.Mtim.Unix()),
	}
}

func hostType(mode uint32) vfs.Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return vfs.TypeDir
	case unix.S_IFLNK:
		return vfs.TypeSymlink
	case unix.S_IFIFO:
		return vfs.TypeFIFO
	case unix.S_IFSOCK:
		return vfs.TypeSocket
	case unix.S_IFCHR:
		return vfs.TypeCharDev
	case unix.S_IFBLK:
		return vfs.TypeBlockDev
	}
	return vfs.TypeRegular
}

func readlinkat(dir int, name string) (string, error) {
	buf := make([]byte, vfs.MaxSymlinkLen+1)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// open opens what was a regular file or a directory a moment ago. O_NONBLOCK: should it have become a FIFO, the open
// must not wait for a writer.
func open(dir int, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(dir, name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (w *hostWalk) file(dir int, name, hostPath string, e *Entry) error {
	f, err := open(dir, name, 0)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if err := w.fileXattrs(e, f); err != nil {
		return err
	}
	return w.visit(e, &hostContent{file: f, path: hostPath, size: e.Size})
}

func (w *hostWalk) directory(ctx context.Context, dir int, name, hostPath string, e *Entry) error {
	f, err := open(dir, name, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if err := w.fileXattrs(e, f); err != nil {
		return err
	}
	path := e.Path
	if err := w.visit(e, nil); err != nil {
		return err
	}
	for {
		names, err := f.Readdirnames(1000)
		for _, name := range names {
			if err := w.node(ctx, int(f.Fd()), name, hostPath+"/"+name, join(path, name)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *hostWalk) fileXattrs(e *Entry, f *os.File) error {
	return w.xattrs(e, func(buf []byte) (int, error) { return unix.Flistxattr(int(f.Fd()), buf) },
		func(x string, buf []byte) (int, error) { return unix.Fgetxattr(int(f.Fd()), x, buf) })
}

// xattrs reads the extended attributes that are kept. Reading with a buffer of the largest size there can be takes one
// call where asking for the size takes two, and has no race.
func (w *hostWalk) xattrs(e *Entry, list func([]byte) (int, error), get func(string, []byte) (int, error)) error {
	buf := xattrBuffers.Get().(*[]byte)
	defer xattrBuffers.Put(buf)
	n, err := list(*buf)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list extended attributes: %w", err)
	}
	for _, name := range splitNames((*buf)[:n]) {
		if !keptXattr(name) {
			if w.warn != nil {
				w.warn(fmt.Sprintf("%q: attribute %s belongs to the filesystem and is not copied", e.Path, name))
			}
			continue
		}
		n, err := get(name, *buf)
		if errors.Is(err, unix.ENODATA) {
			continue // removed since
		}
		if err != nil {
			return fmt.Errorf("extended attribute %q: %w", name, err)
		}
		e.Xattrs = append(e.Xattrs, Xattr{name, append([]byte(nil), (*buf)[:n]...)})
	}
	return nil
}

// hostContent is an open file of the host.
type hostContent struct {
	file   *os.File
	path   string // for people
	size   uint64
	reader *runReader
}

func (c *hostContent) Runs(context.Context) ([]Run, bool, error) {
	next := func(off uint64) (uint64, bool, error) {
		data, err := unix.Seek(int(c.file.Fd()), int64(off), unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return 0, false, nil
		}
		return uint64(data), err == nil, err
	}
	hole := func(off uint64) (uint64, error) {
		end, err := unix.Seek(int(c.file.Fd()), int64(off), unix.SEEK_HOLE)
		if errors.Is(err, unix.ENXIO) {
			return off, nil // cut since; the read will say so
		}
		return uint64(end), err
	}
	runs, err := findRuns(c.size, next, hole)
	c.reader = &runReader{runs: append([]Run(nil), runs...), readAt: func(p []byte, off uint64) (int, error) {
		return unix.Pread(int(c.file.Fd()), p, int64(off))
	}}
	if err != nil {
		err = &hostError{c.path, err}
	}
	return runs, true, err
}

func (c *hostContent) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &hostError{c.path, err}
	}
	return n, err
}
