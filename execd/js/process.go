package js

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// startPatience is how long a worker may take until it is ready. It takes milliseconds.
const startPatience = 30 * time.Second

// maxSaid is how much is kept of what a worker itself says, which is nothing unless it fails.
const maxSaid = 4 << 10

// program becomes a worker. Tests have another than themselves.
var program = "/proc/self/exe"

// process is a worker that is ready.
type process struct {
	cmd  *exec.Cmd
	conn net.Conn
	said *said
	end  func() // kills and reaps it, once
}

// startProcess starts a worker and waits until it is ready, or ctx has ended: ErrInterrupted.
func startProcess(ctx context.Context, memory uint64) (*process, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "daemon")
	conn, err := net.FileConn(near) // a copy
	err = errors.Join(err, near.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a worker: %w", err), far.Close())
	}
	p := &process{conn: conn, said: &said{}}
	p.cmd = &exec.Cmd{
		Path: program, Args: []string{worker.Name, strconv.FormatUint(memory, 10)}, Env: []string{},
		Dir: "/", ExtraFiles: []*os.File{far}, Stderr: p.said, SysProcAttr: isolation(),
	}
	err = p.cmd.Start()
	err = errors.Join(err, far.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a worker: %w", err), conn.Close())
	}
	p.end = sync.OnceFunc(p.reap)
	stop := context.AfterFunc(ctx, p.kill)
	err = p.await()
	if !stop() {
		err = fmt.Errorf("start a worker: %w", vfs.ErrInterrupted)
	}
	if err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// isolation gives a worker namespaces of its own where that is allowed: they are a second wall behind its filter. Not of
// mounts: a copy of the daemon's would keep its mounts busy after the daemon has unmounted them.
func isolation() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		a.Cloneflags = unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID
	}
	return a
}

func (p *process) await() error {
	var b [1]byte
	_ = p.conn.SetReadDeadline(time.Now().Add(startPatience)) // a socket takes one
	_, err := io.ReadFull(p.conn, b[:])
	_ = p.conn.SetReadDeadline(time.Time{})
	if err == nil && b[0] == worker.Ready {
		return nil
	}
	err = cmp.Or(err, vfs.ErrInvalid)
	p.kill() // and what it has said is complete
	return fmt.Errorf("a worker did not become ready: %w %s", err, p.said)
}

// alive reports whether a worker that waits is still there. Its pid does not tell: a process that has ended and was not
// waited for has one.
func (p *process) alive() bool {
	raw, err := p.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	waits := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		waits = errors.Is(err, unix.EAGAIN) // neither said anything nor ended
		return true
	})
	return err == nil && waits
}

// kill ends the worker and returns when nothing of it is left. It may be called often.
func (p *process) kill() { p.end() }

func (p *process) reap() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.conn.Close()
	_ = p.cmd.Wait() // its status says nothing that its messages have not
}

// said keeps the beginning of what is written.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *said) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p[:min(len(p), maxSaid-t.buf.Len())])
	return len(p), nil
}

func (t *said) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
