package container

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/container/launch"
)

// runner is the first process of an exec, from this side. It is started before there is an exec, and has its namespaces, its
// /proc and a thread that is restricted as the command will be, so that the exec begins at once.
type runner struct {
	conn  *launch.Conn
	pidfd *os.File
}

// takeRunner returns a runner that nobody else has.
func (c *cell) takeRunner() (*runner, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	r := c.next
	c.next = nil
	if r != nil && !r.dead() {
		return r, nil
	}
	if r != nil { // the lack of memory of another exec may have ended it
		if err := r.close(); err != nil {
			return nil, err
		}
	}
	return c.newRunner()
}

// prepare starts the next runner, unless there is one. Who needs one and finds none hears why not.
func (c *cell) prepare() {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.next == nil {
		c.next, _ = c.newRunner()
	}
}

// prepareAfter has the next runner started when an exec is over, or has run for long enough: not at once, since its command
// would have to share the processors with that.
func (c *cell) prepareAfter(over <-chan struct{}) {
	c.preparing.Go(func() {
		wait := time.NewTimer(runnerDelay)
		defer wait.Stop()
		select {
		case <-over:
		case <-wait.C:
		}
		c.prepare()
	})
}

// newRunner has the first process of the container start one. The caller holds c.asking.
func (c *cell) newRunner() (*runner, error) {
	fds, err := c.askLocked(launch.Request{Runner: true})
	if err != nil {
		return nil, err
	}
	if len(fds) != 2 {
		return nil, fmt.Errorf("the first process sent %d descriptors: %w", len(fds), vfs.ErrInvalid)
	}
	for _, fd := range fds {
		err = errors.Join(err, unix.SetNonblock(fd, true)) // so that the poller takes it
	}
	r := &runner{launch.NewConn(os.NewFile(uintptr(fds[0]), "runner")), os.NewFile(uintptr(fds[1]), "pidfd")}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// askLocked asks the first process of the container for something, with these descriptors.
func (c *cell) askLocked(q launch.Request, fds ...int) ([]int, error) {
	var report launch.Report
	if err := c.conn.Send(q, fds...); err != nil {
		return nil, errCellDead
	}
	got, err := c.conn.Receive(&report)
	if err != nil {
		return nil, errCellDead
	}
	err = report.Err()
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		err = fmt.Errorf("%w: %w", vfs.ErrBusy, err)
	case errors.Is(err, unix.ENOENT) && q.Runner:
		err = fmt.Errorf("%w: %w", vfs.ErrNotSupported, err)
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

// dead reports whether nothing of it runs any more: a pidfd can be read then.
func (r *runner) dead() (dead bool) {
	raw, err := r.pidfd.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { dead = readable(fd) })
	}
	return dead || err != nil
}

// waitDead waits for that.
func (r *runner) waitDead() {
	raw, err := r.pidfd.SyscallConn()
	if err == nil {
		err = raw.Read(readable)
	}
	if err != nil {
		panic(err) // it is open until this has returned
	}
}

func readable(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// kill ends it, and everything that it has started.
func (r *runner) kill() {
	raw, err := r.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) }) // it may have ended
}

func (r *runner) close() error {
	r.kill()
	return errors.Join(r.conn.Close(), r.pidfd.Close())
}
