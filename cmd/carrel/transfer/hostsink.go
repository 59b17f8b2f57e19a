package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// HostSink writes into a directory of the host. No symlink below the root is followed, whoever made it.
//
// Owners, and attributes that only root may set, are kept when the process may; warn hears of the others.
type HostSink struct {
	root  *os.File
	owner bool // this process may give files away
	warn  func(string)
	late  []*Entry
	buf   []byte

	parentPath string
	parent     *os.File // the directory at parentPath; nil for the root
}

// NewHostSink returns a sink whose root is the directory at path. warn may be nil. The caller must Close it.
func NewHostSink(path string, warn func(text string)) (*HostSink, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if warn == nil {
		warn = func(string) {}
	}
	return &HostSink{root: f, owner: os.Geteuid() == 0, warn: warn, buf: make([]byte, pieceSize)}, nil
}

// Close lets go of the root.
func (s *HostSink) Close() error {
	return errors.Join(s.leaveParent(), s.root.Close())
}

// Put implements [Sink]. What is there under the name of a node that is no directory is replaced when the new one is
// whole.
func (s *HostSink) Put(ctx context.Context, e *Entry, content Content) error {
	if err := s.put(ctx, e, content); err != nil {
		return fmt.Errorf("write %q: %w", e.Path, err)
	}
	return nil
}

func (s *HostSink) put(ctx context.Context, e *Entry, content Content) error {
	dirPath, name := parent(e.Path)
	dir, err := s.enter(dirPath)
	if err != nil {
		return err
	}
	if e.Type == vfs.TypeDir {
		s.late = append(s.late, e)
		if e.Path == "" {
			return nil
		}
		if err := unix.Mkdirat(dir, name, 0o700); !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	}
	err = s.node(ctx, e, content, dir, name)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	temp := tempName()
	if err := s.node(ctx, e, content, dir, temp); err != nil {
		return err
	}
	if err := unix.Renameat(dir, temp, dir, name); err != nil {
		return errors.Join(err, unix.Unlinkat(dir, temp, 0))
	}
	// Two names of one file are left as they are by a rename.
	if err := unix.Unlinkat(dir, temp, 0); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// enter opens a directory below the root, one name at a time, and keeps it open: the next entry is mostly in it too.
func (s *HostSink) enter(path string) (int, error) {
	if s.parent != nil && s.parentPath == path {
		return int(s.parent.Fd()), nil
	}
	if err := s.leaveParent(); err != nil {
		return 0, err
	}
	if path == "" {
		return int(s.root.Fd()), nil
	}
	at := s.root
	for name := range strings.SplitSeq(path, "/") {
		next, err := open(int(at.Fd()), name, unix.O_DIRECTORY)
		if at != s.root {
			err = errors.Join(err, at.Close())
		}
		if err != nil {
			return 0, err
		}
		at = next
	}
	s.parent, s.parentPath = at, path
	return int(at.Fd()), nil
}

func (s *HostSink) leaveParent() error {
	if s.parent == nil {
		return nil
	}
	err := s.parent.Close()
	s.parent = nil
	return err
}

// node makes a node that is no directory. It leaves nothing behind when it fails.
func (s *HostSink) node(ctx context.Context, e *Entry, content Content, dir int, name string) error {
	switch {
	case e.Link != "":
		return unix.Linkat(int(s.root.Fd()), e.Link, dir, name, 0)
	case e.Type == vfs.TypeRegular:
		return s.file(ctx, e, content, dir, name)
	case e.Type == vfs.TypeSymlink:
		if err := unix.Symlinkat(e.Target, dir, name); err != nil {
			return err
		}
	default:
		if err := unix.Mknodat(dir, name, hostMode(e.Type)|0o600, int(e.Rdev)); err != nil {
			return err
		}
	}
	if err := s.dress(e, dir, name); err != nil {
		return errors.Join(err, unix.Unlinkat(dir, name, 0))
	}
	return nil
}

func hostMode(t vfs.Type) uint32 {
	switch t {
	case vfs.TypeFIFO:
		return unix.S_IFIFO
	case vfs.TypeSocket:
		return unix.S_IFSOCK
	case vfs.TypeCharDev:
		return unix.S_IFCHR
	case vfs.TypeBlockDev:
		return unix.S_IFBLK
	}
	return unix.S_IFREG
}

func (s *HostSink) file(ctx context.Context, e *Entry, content Content, dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	err = s.fill(ctx, e, content, f)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = s.dress(e, dir, name)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(dir, name, 0))
	}
	return nil
}

func (s *HostSink) fill(ctx context.Context, e *Entry, content Content, f *os.File) error {
	put := func(off uint64, p []byte) error {
		_, err := f.WriteAt(p, int64(off))
		return err
	}
	if err := eachPiece(ctx, content, s.buf, put); err != nil {
		return err
	}
	return f.Truncate(int64(e.Size)) // a hole at the end
}

// dress gives a node its metadata, in the one order that works: a change of owner clears set-ID bits and capabilities,
// and anything at all moves the times.
func (s *HostSink) dress(e *Entry, dir int, name string) error {
	if s.owner {
		if err := unix.Fchownat(dir, name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("owner: %w", err)
		}
	}
	if err := s.xattrs(e, procPath(dir, name)); err != nil {
		return err
	}
	if e.Type != vfs.TypeSymlink {
		if err := unix.Fchmodat(dir, name, e.Mode, 0); err != nil {
			return fmt.Errorf("mode: %w", err)
		}
	}
	ts := []unix.Timespec{timespec(e.Atime), timespec(e.Mtime)}
	if err := unix.UtimesNanoAt(dir, name, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("times: %w", err)
	}
	return nil
}

func timespec(t vfs.Time) unix.Timespec {
	sec, nsec := t.Unix()
	return unix.Timespec{Sec: sec, Nsec: int64(nsec)}
}

func (s *HostSink) xattrs(e *Entry, path string) error {
	for _, x := range e.Xattrs {
		err := unix.Lsetxattr(path, x.Name, x.Value, 0)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) {
			s.warn(fmt.Sprintf("%q: attribute %s cannot be set here: %v", e.Path, x.Name, err))
			continue
		}
		if err != nil {
			return fmt.Errorf("extended attribute %q: %w", x.Name, err)
		}
	}
	return nil
}

// Finish implements [Sink]: directories get their metadata, the innermost first.
func (s *HostSink) Finish(context.Context) error {
	for i := len(s.late) - 1; i >= 0; i-- {
		e := s.late[i]
		dirPath, name := parent(e.Path)
		dir, err := s.enter(dirPath)
		if err == nil {
			if e.Path == "" {
				name = "."
			}
			err = s.dress(e, dir, name)
		}
		if err != nil {
			return fmt.Errorf("finish directory %q: %w", e.Path, err)
		}
	}
	s.late = nil
	return nil
}
