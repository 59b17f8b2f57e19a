package fusefs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"bazil.org/fuse"
	"github.com/carrelfs/carrel/casstore/vfs"
	"golang.org/x/sys/unix"
)

// Options say how a tree is mounted.
type Options struct {
	// Name is the source that /proc/mounts shows; "carrel" when empty.
	Name string
	// ReadOnly makes the kernel refuse every change with EROFS.
	ReadOnly bool
	// AllowOther lets other users in; what they may do is still said by owners and modes. An ordinary user needs
	// user_allow_other in /etc/fuse.conf for it.
	AllowOther bool
	// Doze lets idle CPUs sleep while requests come fast. By default some are kept from it where that helps (see
	// awake.go).
	Doze bool
	// Logger hears what goes wrong; nil for nobody.
	Logger *slog.Logger
}

// MountError says why a directory could not be mounted on, or not be unmounted, and what to do.
type MountError struct {
	Op     string // "mount" or "unmount"
	Dir    string
	Err    error
	Advice string // a sentence, or empty
}

func (e *MountError) Error() string {
	s := fmt.Sprintf("%s %s: %v", e.Op, e.Dir, e.Err)
	if e.Advice != "" {
		s += " (" + e.Advice + ")"
	}
	return s
}

func (e *MountError) Unwrap() error { return e.Err }

// Server is a tree that is mounted. It is a comparable value: changes that come from the mount carry the *Server as
// their origin.
type Server struct {
	tree     vfs.Tree
	volatile func(vfs.Ino) bool // vfs.Volatile of the tree, or nil
	dir      string             // absolute, no symlinks
	log      *slog.Logger
	errors   errorLog
	conn     *fuse.Conn
	wire     wire
	holds    *holds
	notes    *notifier
	loop     loop
	habits   habits
	awake    *awake
	done     chan struct{} // closed when the mount has ended and everything is given back

	requests     atomic.Uint64
	grace, drain time.Duration // unmountGrace and drainGrace
}

// Mount puts tree on dir and serves it. When it returns, the kernel has the mount and requests are answered. The
// caller ends it with [Server.Unmount]; it also ends when somebody else unmounts dir. In both cases [Server.Wait]
// returns.
//
// As root the program mounts by itself, for which main must begin with [HelperMain]; an ordinary user needs
// fusermount3. From here on the process must not open or stat anything inside dir, nor start a child with a working
// directory there: it would wait for itself.
//
// Errors are *[MountError]; they wrap [vfs.ErrNotExist], [vfs.ErrNotDir] and [vfs.ErrNotEmpty] for what is wrong with
// dir.
func Mount(dir string, tree vfs.Tree, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Name == "" {
		o.Name = "carrel"
	}
	dir, err := mountPoint(dir)
	if err != nil {
		return nil, err
	}
	conn, err := connect(dir, o)
	if err != nil {
		return nil, err
	}
	s := newServer(conn, dir, tree, o.Logger)
	if !o.Doze {
		s.awake = newAwake(&s.requests)
	}
	stop := tree.Watch(s, s.notes.changed)
	s.loop.start()
	go s.end(stop)
	return s, nil
}

func newServer(conn *fuse.Conn, dir string, tree vfs.Tree, log *slog.Logger) *Server {
	s := &Server{tree: tree, dir: dir, log: log, conn: conn, holds: newHolds(tree), done: make(chan struct{})}
	if v, ok := tree.(vfs.Volatile); ok {
		s.volatile = v.Volatile
	}
	s.grace, s.drain = unmountGrace, drainGrace
	s.errors.log = log
	s.wire = wire{Conn: conn, fd: rawLayout.device(conn)}
	s.notes = newNotifier(&s.wire, s.holds, log)
	s.loop = loop{
		conn: conn, log: log,
		handle: (*worker).handle,
		make:   func() *worker { return newWorker(s) },
	}
	return s
}

// end waits for the loop and then takes everything down, in the order that lets nobody wait for who has gone: the
// closed connection frees a notification that waits for a lock in the kernel.
func (s *Server) end(stopWatch func()) {
	s.loop.wg.Wait()
	s.loop.release()
	stopWatch()
	s.notes.close()
	if err := s.conn.Close(); err != nil {
		s.log.Debug("closing the connection to the kernel", "err", err)
	}
	s.holds.giveAll()
	s.awake.close()
	close(s.done)
}

// Wait returns when the mount has ended, whoever ended it: nil for an unmount. With an error, which the kernel gave for
// reading requests, a dead mount is left for [CleanDead].
func (s *Server) Wait() error {
	<-s.done
	return s.loop.err
}

// Dir returns the absolute path of the mount point.
func (s *Server) Dir() string { return s.dir }

// Requests returns how many messages the kernel has sent so far.
func (s *Server) Requests() uint64 { return s.requests.Load() }

// Flush returns when the kernel has dropped whatever is stale by the changes that the tree has told of before the call, or that
// were visible then if it is a [vfs.WatchFlusher]; it is a mount's part in a barrier. It must not be called while holding a lock
// that the tree needs.
func (s *Server) Flush(ctx context.Context) error {
	if err := vfs.FlushWatch(ctx, s.tree); err != nil {
		return err
	}
	return s.notes.flush(ctx)
}

// keep returns for how long the kernel may keep the names in a directory, and the attributes of an inode.
func (s *Server) keep(ino vfs.Ino) time.Duration {
	if s.volatile != nil && s.volatile(ino) {
		return 0
	}
	return cacheTTL
}

// errno returns what the process sees of err, and logs an error whose text it would lose.
func (s *Server) errno(req fuse.Request, err error) syscall.Errno {
	errno, ok := errnoOf(err)
	if !ok || errors.Is(err, vfs.ErrCorrupt) {
		s.errors.unknown(opName(req), uint64(req.Hdr().Node), err)
	}
	return errno
}

// mountPoint checks what can be checked before the kernel is asked, and returns dir without symlinks.
func mountPoint(dir string) (string, error) {
	real, err, advice := checkMountPoint(dir)
	if err != nil {
		return "", &MountError{Op: "mount", Dir: dir, Err: err, Advice: advice}
	}
	return real, nil
}

func checkMountPoint(dir string) (real string, err error, advice string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err, ""
	}
	real, err = filepath.EvalSymlinks(abs)
	if errors.Is(err, os.ErrNotExist) {
		return "", vfs.ErrNotExist, "make the directory first"
	}
	if err == nil && isMountRoot(real) { // may be our own: it must not be opened
		return "", vfs.ErrBusy, "a FUSE filesystem is mounted there; unmount it first"
	}
	if errors.Is(err, syscall.ENOTCONN) {
		return "", vfs.ErrBusy, "a mount whose daemon has died is there; unmount it first"
	}
	if err != nil {
		return "", err, ""
	}
	names, err := os.Open(real)
	if err != nil {
		return "", err, ""
	}
	defer names.Close()
	_, err = names.Readdirnames(1)
	switch {
	case errors.Is(err, io.EOF):
		return real, nil, ""
	case errors.Is(err, syscall.ENOTDIR):
		return "", vfs.ErrNotDir, ""
	case err == nil:
		return "", vfs.ErrNotEmpty, "what is in it would be hidden; use an empty directory"
	}
	return "", err, ""
}

// isMountRoot reports whether dir is where a FUSE filesystem is mounted, without asking that filesystem.
func isMountRoot(dir string) bool {
	var st unix.Statx_t
	flags := unix.AT_STATX_DONT_SYNC | unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if unix.Statx(unix.AT_FDCWD, dir, flags, unix.STATX_INO, &st) != nil || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && mountedFuse(mounts, st.Dev_major, st.Dev_minor)
}

// mountedFuse looks for a device in /proc/self/mountinfo (proc_pid_mountinfo(5)) and reports whether FUSE is there.
func mountedFuse(mounts []byte, major, minor uint32) bool {
	device := fmt.Sprintf("%d:%d", major, minor)
	for line := range bytes.Lines(mounts) {
		before, after, ok := bytes.Cut(line, []byte(" - "))
		fields := bytes.Fields(before)
		if ok && len(fields) > 2 && string(fields[2]) == device {
			return bytes.HasPrefix(after, []byte("fuse"))
		}
	}
	return false
}

// connect makes the mount and returns the connection, on which INIT has been answered.
func connect(dir string, o Options) (*fuse.Conn, error) {
	if !canHandshake() {
		return connectPlain(dir, o)
	}
	conn, err := mountWithHandshake(dir, o)
	if err != nil {
		return nil, err
	}
	if err := lengthenReadahead(dir); err != nil {
		o.Logger.Debug("the kernel reads ahead less than it could", "err", err)
	}
	return conn, nil
}

// connectPlain leaves INIT to the library.
func connectPlain(dir string, o Options) (*fuse.Conn, error) {
	options := []fuse.MountOption{
		fuse.FSName(o.Name), fuse.Subtype(subtype), fuse.DefaultPermissions(),
		fuse.AsyncRead(), fuse.MaxReadahead(maxReadahead), fuse.CacheSymlinks(), fuse.HandleKillPriv(),
	}
	if rawLayout.ok {
		options = append(options, initFlags(fuse.InitDoReaddirplus|fuse.InitExportSupport))
	}
	if o.AllowOther {
		options = append(options, fuse.AllowOther())
	}
	if o.ReadOnly {
		options = append(options, fuse.ReadOnly())
	}
	if os.Geteuid() == 0 {
		return mountBySelf(dir, append(options, fuse.AllowDev(), fuse.AllowSUID()))
	}
	return mountByFusermount(dir, options)
}
