package treepath

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Flag says how to open a file; the meanings are those of open(2).
type Flag uint32

// Flags of OpenFile.
const (
	Read      Flag = 1 << iota // may be read
	Write                      // may be written
	Append                     // every write goes to the end
	Create                     // made when it is not there
	Exclusive                  // with Create: vfs.ErrExist when it is there, a symlink included
	Truncate                   // with Write: emptied
	NoFollow                   // ErrLoop when the path ends at a symlink
)

// File is an open file: an inode with an offset. It is safe for concurrent use; reads and writes that use the offset
// happen one after the other, as those on a shared open file description do.
//
// Its calls run under the context it was opened with, since io.Reader and io.Writer have none; when that ends they
// return vfs.ErrInterrupted. The inode is kept alive (vfs.Tree.Hold) until Close.
type File struct {
	ctx    context.Context
	tree   vfs.Tree
	ino    vfs.Ino
	name   string // as it was opened
	flag   Flag
	device Device // in place of the inode's bytes, or nil

	mu     sync.Mutex // guards what follows
	offset uint64
	closed bool
}

var (
	_ io.ReadWriteCloser = (*File)(nil)
	_ io.ReaderAt        = (*File)(nil)
	_ io.WriterAt        = (*File)(nil)
	_ io.Seeker          = (*File)(nil)
)

// Open opens a file for reading.
func (f FS) Open(ctx context.Context, path string) (*File, error) {
	return f.OpenFile(ctx, path, Read, 0)
}

// CreateFile opens a file for writing, empty, made with mode 0666 less the umask when it is not there.
func (f FS) CreateFile(ctx context.Context, path string) (*File, error) {
	return f.OpenFile(ctx, path, Write|Create|Truncate, 0o666)
}

// OpenFile opens a file as flag says; mode, less the umask, is for one that it makes. A directory can be opened for
// reading, and a Read of it gives vfs.ErrIsDir, as read(2) does. The caller must Close the file.
func (f FS) OpenFile(ctx context.Context, path string, flag Flag, mode uint32) (*File, error) {
	a, err := f.openNode(ctx, path, flag, mode)
	if err != nil {
		return nil, opError("open", path, err)
	}
	file := &File{ctx: ctx, tree: f.Tree, ino: a.Ino, name: path, flag: flag}
	switch a.Type {
	case vfs.TypeRegular, vfs.TypeDir:
	default:
		if f.Device == nil {
			return nil, opError("open", path, vfs.ErrNotSupported)
		}
		file.device, err = f.Device(ctx, f.Abs(path), a, flag)
		if err != nil {
			return nil, opError("open", path, err)
		}
		return file, nil
	}
	f.Tree.Hold(a.Ino)
	if flag&Truncate != 0 && flag&Write != 0 && a.Size > 0 {
		set := vfs.AttrSet{Mask: vfs.SetSize | vfs.SetKillPriv}
		if _, err := f.Tree.SetAttr(ctx, a.Ino, set); err != nil {
			f.Tree.Release(a.Ino, 1)
			return nil, opError("open", path, err)
		}
	}
	return file, nil
}

// openNode finds or makes the node. A name that somebody else makes or removes between the two is looked at again.
func (f FS) openNode(ctx context.Context, path string, flag Flag, mode uint32) (vfs.Attr, error) {
	for range maxSymlinks {
		n, err := f.find(ctx, "open", path, flag&(NoFollow|Exclusive) == 0)
		switch {
		case err == nil && flag&Create != 0 && flag&Exclusive != 0:
			return vfs.Attr{}, vfs.ErrExist
		case err == nil:
			return n.Attr, f.mayOpen(n.Attr, flag)
		case flag&Create == 0 || !is(err, vfs.ErrNotExist):
			return vfs.Attr{}, err
		}
		a, err := f.create(ctx, path, mode)
		if err == nil || !is(err, vfs.ErrExist) {
			return a, err
		}
		// Either somebody made it just now, or the name is a symlink to a file that is not there: open(2) makes that one.
		target, err := f.Readlink(ctx, path)
		if err == nil {
			path = joinTarget(path, target)
		}
	}
	return vfs.Attr{}, ErrLoop
}

func joinTarget(link, target string) string {
	if target != "" && target[0] == '/' {
		return target
	}
	dir, _ := split(link)
	return dir + target
}

func (f FS) mayOpen(a vfs.Attr, flag Flag) error {
	switch {
	case a.Type == vfs.TypeSymlink:
		return ErrLoop
	case a.Type == vfs.TypeDir && flag&(Write|Create) != 0:
		return vfs.ErrIsDir
	}
	var want uint32
	if flag&Read != 0 {
		want |= AccessRead
	}
	if flag&Write != 0 {
		want |= AccessWrite
	}
	return f.Cred.May(a, want)
}

func (f FS) create(ctx context.Context, path string, mode uint32) (vfs.Attr, error) {
	at, err := f.place(ctx, "open", path)
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.Tree.Create(ctx, at.Dir, at.Name, f.newNode(mode))
}

func (f FS) newNode(mode uint32) vfs.NewNode {
	return vfs.NewNode{Mode: mode &^ f.Umask, UID: f.Cred.UID, GID: f.Cred.GID}
}

// Name returns the path as it was opened.
func (f *File) Name() string { return f.name }

// Device returns what stands for the file's bytes when it is a FIFO or a device, else nil.
func (f *File) Device() Device { return f.device }

// Stat returns the attributes of the open file.
func (f *File) Stat() (vfs.Attr, error) {
	a, err := f.tree.Stat(f.ctx, f.ino)
	return a, opError("stat", f.name, err)
}

// Read implements io.Reader, from the offset.
func (f *File) Read(p []byte) (int, error) {
	if f.device != nil {
		return f.device.Read(p)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.readAtLocked(p, f.offset)
	f.offset += uint64(n)
	return n, err
}

// ReadAt implements io.ReaderAt; it leaves the offset alone.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || f.device != nil {
		return 0, opError("read", f.name, vfs.ErrInvalid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.readAtLocked(p, uint64(off))
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *File) readAtLocked(p []byte, off uint64) (int, error) {
	switch {
	case f.closed:
		return 0, opError("read", f.name, vfs.ErrClosed)
	case f.flag&Read == 0:
		return 0, opError("read", f.name, ErrBadFile)
	case len(p) == 0:
		return 0, nil
	}
	n, err := f.tree.ReadAt(f.ctx, f.ino, p, off)
	if err != nil {
		return n, opError("read", f.name, f.dirError(err))
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// dirError makes of a tree's refusal of a directory's bytes what read(2) says.
func (f *File) dirError(err error) error {
	if a, serr := f.tree.Stat(f.ctx, f.ino); serr == nil && a.Type == vfs.TypeDir {
		return vfs.ErrIsDir
	}
	return err
}

// Write implements io.Writer, at the offset or, with Append, at the end.
func (f *File) Write(p []byte) (int, error) {
	if f.device != nil {
		return f.device.Write(p)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flag&Append != 0 {
		a, err := f.tree.Stat(f.ctx, f.ino)
		if err != nil {
			return 0, opError("write", f.name, err)
		}
		f.offset = a.Size
	}
	n, err := f.writeAtLocked(p, f.offset)
	f.offset += uint64(n)
	return n, err
}

// WriteAt implements io.WriterAt; it leaves the offset alone.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || f.device != nil {
		return 0, opError("write", f.name, vfs.ErrInvalid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writeAtLocked(p, uint64(off))
}

func (f *File) writeAtLocked(p []byte, off uint64) (int, error) {
	switch {
	case f.closed:
		return 0, opError("write", f.name, vfs.ErrClosed)
	case f.flag&Write == 0:
		return 0, opError("write", f.name, ErrBadFile)
	case len(p) == 0:
		return 0, nil
	}
	if err := f.tree.WriteAt(f.ctx, f.ino, p, off, true); err != nil {
		return 0, opError("write", f.name, err)
	}
	return len(p), nil
}

// Seek implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if f.device != nil {
		return 0, opError("seek", f.name, ErrSeek)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var from uint64
	switch whence {
	case io.SeekCurrent:
		from = f.offset
	case io.SeekEnd:
		a, err := f.tree.Stat(f.ctx, f.ino)
		if err != nil {
			return 0, opError("seek", f.name, err)
		}
		from = a.Size
	}
	to := int64(from) + offset
	if from > math.MaxInt64 || to < 0 {
		return 0, opError("seek", f.name, vfs.ErrInvalid)
	}
	f.offset = uint64(to)
	return to, nil
}

// Truncate sets the size.
func (f *File) Truncate(size uint64) error {
	if f.flag&Write == 0 {
		return opError("truncate", f.name, vfs.ErrInvalid)
	}
	_, err := f.tree.SetAttr(f.ctx, f.ino, vfs.AttrSet{Mask: vfs.SetSize | vfs.SetKillPriv, Size: size})
	return opError("truncate", f.name, err)
}

// Sync returns when the file is durable.
func (f *File) Sync() error { return opError("sync", f.name, f.tree.Fsync(f.ctx, f.ino)) }

// Close lets go of the inode. A second Close gives vfs.ErrClosed.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return opError("close", f.name, vfs.ErrClosed)
	}
	f.closed = true
	if f.device != nil {
		return f.device.Close()
	}
	f.tree.Release(f.ino, 1)
	return nil
}

// String says what is open, for error messages.
func (f *File) String() string { return fmt.Sprintf("%s (inode %d)", f.name, f.ino) }
