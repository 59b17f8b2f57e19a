package launch

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// outer is the first process of a workspace's container. It ends when the daemon does not want it any more.
func outer(conn *Conn) int {
	var s Setup
	if _, err := conn.Receive(&s); err != nil {
		return 1
	}
	report := Report{}
	if step, err := s.build(); err != nil {
		report = reportOf(step, err)
	}
	if err := conn.Send(report); err != nil || report.Step != "" {
		return 1
	}
	for {
		var r Request
		fds, err := conn.Receive(&r)
		if err != nil {
			return 0 // and all that runs is killed by the kernel
		}
		if r.Runner {
			err = startRunner(&s.Restrictions, conn)
		} else {
			err = conn.Send(r.place(fds))
		}
		if err = errors.Join(err, closeAll(fds)); err != nil {
			return 1
		}
	}
}

// place puts a tree in its place.
func (r Request) place(fds []int) Report {
	if r.Place == nil || len(fds) != 1 {
		return reportOf("place a tree that was not sent", unix.EINVAL)
	}
	point, err := unix.Open(r.Place.Target, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(r.Place.move(fds[0], point), unix.Close(point))
	}
	if err != nil {
		return reportOf("place "+r.Place.Target, err)
	}
	return Report{}
}

// build makes the container, and says what it could not do.
func (s *Setup) build() (step string, err error) {
	if err := protectSelf(); err != nil {
		return "protect this program", err
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return "set the host name", err
	}
	if s.Loopback {
		if err := loopbackUp(); err != nil {
			return "bring the loopback interface up", err
		}
	}
	return s.buildRoot()
}

// startRunner starts the first process of an exec, and hands it over to the daemon.
func startRunner(r *Restrictions, daemon *Conn) error {
	ours, theirs, err := pair()
	if err != nil {
		return daemon.Send(reportOf("make a socket for an exec", err))
	}
	conn := NewConn(os.NewFile(uintptr(ours), "runner"))
	pidfd, err := forkRunner(theirs)
	err = errors.Join(err, unix.Close(theirs))
	if err == nil {
		err = conn.Send(r) // it takes it from here, whatever comes after
	}
	if err != nil {
		step := "start the first process of an exec"
		if errors.Is(err, unix.ENOENT) {
			step += ", for which this program, being linked dynamically, needs its loader in the root of the container"
		}
		return errors.Join(daemon.Send(reportOf(step, err)), conn.Close())
	}
	return errors.Join(daemon.Send(Report{}, ours, pidfd), conn.Close(), unix.Close(pidfd))
}

func forkRunner(control int) (pidfd int, err error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	pid, err := syscall.ForkExec(self, []string{innerName}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(control)},
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Setsid: true, PidFD: &pidfd},
	})
	if err == nil {
		go unix.Wait4(pid, nil, 0, nil) // so that no zombie is left; it ends with the process
	}
	return pidfd, errors.Join(err, unix.Close(null))
}

// pair is a unix stream socket pair.
func pair() (a, b int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return fds[0], fds[1], err
}
