package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// holder is a process, and its group, that holds a mount as long as it runs. Should this process die without a word,
// the kernel sends the holder SIGTERM.
type holder struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has been waited for
	err    error         // of that; to be read when ended is closed
	stderr *tail
}

// hold starts a process. The caller ends it with stop.
func hold(cmd *exec.Cmd) (*holder, error) {
	h := &holder{cmd: cmd, ended: make(chan struct{}), stderr: &tail{}}
	cmd.Dir, cmd.Stderr = "/", h.stderr
	cmd.WaitDelay = killPatience // a grandchild may keep stderr open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		defer close(h.ended)
		// The death signal comes when the thread dies that started the process: this one stays as long as it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			h.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return h, nil
}

// failure is the end of the process, in the words it said itself.
func (h *holder) failure() error {
	<-h.ended
	err := h.err
	if err == nil {
		err = errors.New("it has ended")
	}
	if said := h.stderr.text(); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// until calls ready again and again until it returns true. It gives up when the process has failed, when it has ended
// and mayEnd is false, or when it takes too long.
func (h *holder) until(ctx context.Context, mayEnd bool, ready func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	ended := h.ended
	for {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		select {
		case <-ended:
			if h.err != nil || !mayEnd {
				return h.failure()
			}
			ended = nil // it works in the background
		case <-ctx.Done():
			return fmt.Errorf("it has not mounted: %w", ctx.Err())
		case <-time.After(startRetry):
		}
	}
}

// stop asks the process group to end and waits; one that does not is killed.
func (h *holder) stop() error {
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGTERM) // it may have ended
	select {
	case <-h.ended:
		return nil
	case <-time.After(stopPatience):
	}
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	select {
	case <-h.ended:
		return fmt.Errorf("%s had to be killed", h.cmd.Args[0])
	case <-time.After(killPatience):
		return fmt.Errorf("%s, process %d, cannot be killed", h.cmd.Args[0], h.cmd.Process.Pid)
	}
}

// cleanMount takes away what is still mounted on dir, when its holder should have done so.
func cleanMount(dir string) error {
	for {
		mounted, err := mountedOn(dir)
		if err != nil || !mounted {
			return err
		}
		if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err == nil {
			continue
		}
		if out, err := exec.Command("fusermount3", "-u", "-z", "--", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("unmount %s: %w: %s", dir, err, bytes.TrimSpace(out))
		}
	}
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if over := len(t.end) - maxComplaint; over > 0 {
		t.end = append(t.end[:0], t.end[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.end))
}
