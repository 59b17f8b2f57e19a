package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/container/launch"
)

// errCellDead is for an exec that found its container gone: another one takes its place. errFirstDied is for a new one.
var (
	errCellDead  = errors.New("the container has died")
	errFirstDied = errors.New("its first process has died")
)

// cell is a container: namespaces and a first process, in which execs of one workspace run.
type cell struct {
	backend *Backend
	key     cellKey       // of a spare, changed once under Backend.mu
	ready   chan struct{} // closed when it is open, or could not be opened
	err     error         // why not; to be read when ready is closed, as is givenUp
	givenUp bool          // who was to open it did not wait for that
	dead    chan struct{} // closed when its first process has ended

	uses int         // guarded by Backend.mu, as is idle
	idle *time.Timer // runs while it is not used

	// Set by open; all but release before there is a workspace.
	release func() error
	unhold  func() // of the image that is its root, if any
	group   *cgroup
	cmd     *exec.Cmd

	preparing sync.WaitGroup // of the next runner

	asking sync.Mutex // held for a question to the first process and its answer
	conn   *launch.Conn
	next   *runner // guarded by asking; nil while there is none
}

func newCell(b *Backend, key cellKey) *cell {
	return &cell{backend: b, key: key, ready: make(chan struct{}), dead: make(chan struct{})}
}

// open makes the container.
func (c *cell) open(ctx context.Context) {
	if err := c.build(ctx); err != nil {
		c.err = fmt.Errorf("container of workspace %q: %w", c.key.workspace, err)
	}
}

func (c *cell) build(ctx context.Context) error {
	dir, release, err := c.backend.config.Mount(ctx, c.key.workspace)
	if err != nil {
		return err
	}
	c.release = release
	switch {
	case rootless():
		return c.furnish(dir)
	case c.cmd != nil:
		return c.admit(dir)
	}
	if err := c.furnish(""); err != nil {
		return err
	}
	err = c.admit(dir)
	if errors.Is(err, errCellDead) {
		return errFirstDied // and so may the next
	}
	return err
}

// rootless reports whether a container needs a user namespace, out of which nothing can be done for it once it is there.
func rootless() bool { return os.Geteuid() != 0 }

// furnish makes the container but for the workspace, when dir is empty.
func (c *cell) furnish(dir string) error {
	if err := c.holdRoot(); err != nil {
		return err
	}
	setup, err := setupFor(c.key.root, dir, c.key.hostNet)
	if err != nil {
		return err
	}
	if c.group, err = newCgroup(cgroupRoot, "/proc/self/cgroup", c.key.limits); err != nil {
		c.backend.degraded(err)
	}
	if setup.Restrictions, err = c.restrictions(); err != nil {
		return err
	}
	if err := c.launch(); err != nil {
		return err
	}
	return c.setUp(setup)
}

// holdRoot keeps the image that is the root, if it is one, where it is. A spare may come too late for that.
func (c *cell) holdRoot() error {
	if c.backend.config.Images == nil {
		return nil
	}
	unhold, ok := c.backend.config.Images.Hold(c.key.root)
	if !ok {
		return fmt.Errorf("the image in %s was removed: %w", c.key.root, vfs.ErrNotExist)
	}
	c.unhold = unhold
	return nil
}

// setUp has the first process build the container. It is put under its limits meanwhile, which takes the kernel as long.
func (c *cell) setUp(setup launch.Setup) error {
	var report launch.Report
	if err := c.conn.Send(setup); err != nil {
		return err
	}
	if err := c.group.join(c.cmd.Process.Pid); err != nil {
		return fmt.Errorf("put it under its limits: %w", err)
	}
	if _, err := c.conn.Receive(&report); err != nil {
		return errors.Join(errFirstDied, err)
	}
	return report.Err()
}

// admit puts a workspace into the container. Only the kernel goes there: nothing asks the mount for anything.
func (c *cell) admit(dir string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("take the mount: %w", err)
	}
	c.asking.Lock()
	defer c.asking.Unlock()
	_, err = c.askLocked(launch.Request{Place: workspaceBind(dir)}, tree)
	return errors.Join(err, unix.Close(tree))
}

// launch starts the first process.
func (c *cell) launch() error {
	conn, child, err := socketPair()
	if err != nil {
		return err
	}
	defer child.Close() // the process has its own
	c.conn = conn
	flags := unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if !c.key.hostNet {
		flags |= unix.CLONE_NEWNET
	}
	attr := &syscall.SysProcAttr{Cloneflags: uintptr(flags), Setsid: true}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{launch.OuterName}, Dir: "/", Env: []string{},
		ExtraFiles: []*os.File{child}, SysProcAttr: attr,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	c.cmd = cmd
	go func() {
		_ = cmd.Wait() // how it ended says nothing
		c.backend.forget(c)
		close(c.dead)
	}()
	return nil
}

// kill ends all that runs in the container.
func (c *cell) kill() {
	select {
	case <-c.ready:
	default:
		return // whoever enters it finds the backend closed
	}
	if c.cmd != nil {
		_ = c.cmd.Process.Kill() // it may have ended
	}
}

// close ends the container and takes back what it had.
func (c *cell) close() error {
	var errs []error
	if c.cmd != nil {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.dead
	}
	c.preparing.Wait()
	if c.next != nil {
		errs = append(errs, c.next.close())
	}
	if c.conn != nil {
		errs = append(errs, c.conn.Close())
	}
	if c.group != nil {
		errs = append(errs, c.group.remove())
	}
	if c.release != nil {
		errs = append(errs, c.release())
	}
	if c.unhold != nil {
		c.unhold()
	}
	return errors.Join(errs...)
}

// restrictions are those of every command in the container.
func (c *cell) restrictions() (launch.Restrictions, error) {
	program, err := filter()
	if err != nil {
		return launch.Restrictions{}, err
	}
	limits, err := c.processLimits()
	return launch.Restrictions{Caps: keptCaps(), Filter: program, Limits: limits}, err
}

// processLimits are those of each process: what there is no group for, and what groups do not limit.
func (c *cell) processLimits() ([]launch.Limit, error) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, err
	}
	list := []launch.Limit{
		{Resource: unix.RLIMIT_NOFILE, Max: min(files.Max, maxFiles)}, {Resource: unix.RLIMIT_CORE},
	}
	if !c.group.has("memory") {
		list = append(list, launch.Limit{Resource: unix.RLIMIT_AS, Max: c.key.limits.Memory})
	}
	if !c.group.has("pids") {
		list = append(list, launch.Limit{Resource: unix.RLIMIT_NPROC, Max: uint64(c.key.limits.Pids)})
	}
	return list, nil
}

// socketPair returns a connection and the other end of it, for another process.
func socketPair() (*launch.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return launch.NewConn(os.NewFile(uintptr(fds[0]), "container")), os.NewFile(uintptr(fds[1]), "container"), nil
}
