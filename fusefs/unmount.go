package fusefs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"golang.org/x/sys/unix"
)

// Unmount ends the mount and returns when it has: no request is under way and the kernel holds nothing. It does not
// make the tree durable; the owner does that afterwards, and then every write that a process was told of is there.
//
// While files are open in it a mount is busy. Then, after a grace, bytes that processes have only written to mapped
// memory are fetched, the mount is taken off the directory, and those who still have files open are served for another
// while; what they do after that fails with ENOTCONN or ECONNABORTED. When ctx ends, the waiting is cut short, not the
// unmount.
//
// The error is [vfs.ErrBusy] when somebody else has detached the mount before while files were open; it ends when they
// are closed, or with this process.
func (s *Server) Unmount(ctx context.Context) error {
	s.brake(ctx)
	err := s.unmountIdle(ctx)
	if errors.Is(err, syscall.EBUSY) {
		s.log.Info("the mount is busy; detaching it", "dir", s.dir)
		s.fetchMapped(ctx)
		if err = unmount(s.dir, true); err == nil {
			s.cutOff(ctx)
			return s.Wait()
		}
	}
	if err == nil {
		return s.Wait()
	}
	if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) {
		return &MountError{Op: "unmount", Dir: s.dir, Err: err}
	}
	if !s.waitFor(ctx, s.drain) { // nothing is mounted there any more
		return &MountError{Op: "unmount", Dir: s.dir, Err: vfs.ErrBusy, Advice: "it is detached; files are open in it"}
	}
	return s.Wait()
}

// brake makes it possible to stop the reader later, for which it has to be woken once, while the mount can be reached.
// statfs(2) always asks the mount. It is a raw system call, like all that this process does with its own mount: in
// os.Open the runtime would wait for an answer that it has to give itself.
func (s *Server) brake(ctx context.Context) {
	if s.wire.fd < 0 || s.ended() || !isMountRoot(s.dir) {
		return
	}
	if err := s.loop.arm(s.wire.fd); err != nil {
		s.log.Error("the reader cannot be stopped", "err", err)
		return
	}
	s.aside(ctx, func() error {
		var st unix.Statfs_t
		return unix.Statfs(s.dir, &st)
	})
}

// cutOff serves a detached mount for a while, and then ends it even if files are open.
func (s *Server) cutOff(ctx context.Context) {
	if s.waitFor(ctx, s.drain) {
		return
	}
	s.log.Warn("files are still open in the mount; cutting them off", "dir", s.dir)
	s.loop.stop()
	if !s.waitFor(ctx, s.drain) {
		s.loop.cancelBlocked()
	}
}

// fetchMapped makes the kernel write back pages that were changed through shared mappings, which a detached mount
// would lose when it is cut off.
func (s *Server) fetchMapped(ctx context.Context) {
	s.aside(ctx, func() error {
		fd, err := unix.Open(s.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Syncfs(fd), unix.Close(fd))
	})
}

// aside runs f, which uses the mount, in a goroutine of its own, and waits for it until ctx ends. Whatever f waits for
// ends with the mount at the latest.
func (s *Server) aside(ctx context.Context, f func() error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(); err != nil {
			s.log.Debug("using the mount to end it", "err", err)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (s *Server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// unmountIdle tries until the mount is not busy, the grace is over or ctx ends.
func (s *Server) unmountIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.grace)
	defer cancel()
	for {
		err := unmount(s.dir, false)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
			return err
		case <-time.After(unmountRetry):
		}
	}
}

// waitFor reports whether the mount ended within d and ctx.
func (s *Server) waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// Unmount takes the mount off dir, whichever process serves it: root by umount2(2), others by fusermount3. A busy
// mount gives [vfs.ErrBusy], a directory with no mount on it [vfs.ErrInvalid].
func Unmount(dir string) error {
	err := unmount(dir, false)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EBUSY):
		return &MountError{Op: "unmount", Dir: dir, Err: vfs.ErrBusy, Advice: "files are open in it"}
	case errors.Is(err, syscall.EINVAL):
		return &MountError{Op: "unmount", Dir: dir, Err: vfs.ErrInvalid, Advice: "nothing is mounted there"}
	}
	return &MountError{Op: "unmount", Dir: dir, Err: err}
}

// unmount asks the kernel. lazy detaches a mount that is busy.
func unmount(dir string, lazy bool) error {
	if os.Geteuid() != 0 {
		return unmountByFusermount(dir, lazy)
	}
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	return unix.Unmount(dir, flags)
}

func unmountByFusermount(dir string, lazy bool) error {
	args := []string{"-u", "-q", "--", dir}
	if lazy {
		args = []string{"-u", "-z", "-q", "--", dir}
	}
	if _, err := exec.LookPath(helperName); err != nil {
		return &MountError{Op: "unmount", Dir: dir, Err: err, Advice: installAdvice}
	}
	err := exec.Command(helperName, args...).Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return syscall.EBUSY // fusermount3 says no more than that it failed
	}
	return err
}

// IsDead reports whether dir is a mount whose daemon has died: every access to it that the kernel cannot answer from
// its caches fails with ENOTCONN. A daemon that lives is asked, by statfs(2), which the kernel never answers by
// itself.
func IsDead(dir string) (bool, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, syscall.ENOTCONN):
		return true, nil
	}
	return false, &os.PathError{Op: "statfs", Path: dir, Err: err}
}

// CleanDead takes dead mounts off dir, so that it can be mounted on again. A directory without one is left alone.
func CleanDead(dir string) error {
	for range maxStacked {
		dead, err := IsDead(dir)
		if err != nil || !dead {
			return err
		}
		if err := unmount(dir, true); err != nil {
			return &MountError{Op: "unmount", Dir: dir, Err: err}
		}
	}
	return &MountError{Op: "unmount", Dir: dir, Err: vfs.ErrBusy, Advice: "there are more dead mounts below"}
}
