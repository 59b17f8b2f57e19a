package fusefs

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// brake lets a reader be stopped. A reader sleeps in read(2), out of which neither closing the descriptor nor anything
// else gets it that works everywhere; waiting for two descriptors instead would cost every request two more system
// calls. So the reader waits for two only while the mount is being ended.
type brake struct {
	device int

	mu    sync.Mutex
	event int // eventfd, readable when the reader is to stop; -1 when the loop has ended
}

// arm makes the reader take the brake into account from its next request on. The caller sees to it that there is one.
func (l *loop) arm(device int) error {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return err
	}
	// Else a request that vanishes between poll and read, because its process is killed, would let the reader sleep.
	if err := unix.SetNonblock(device, true); err != nil {
		return errors.Join(err, unix.Close(event))
	}
	if !l.brake.CompareAndSwap(nil, &brake{device: device, event: event}) {
		return unix.Close(event)
	}
	return nil
}

// wait sleeps until there is a request, and reports false when the brake has been pulled.
func (b *brake) wait() bool {
	fds := []unix.PollFd{{Fd: int32(b.device), Events: unix.POLLIN}, {Fd: int32(b.event), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err != nil && !errors.Is(err, syscall.EINTR):
			return true // reading will tell
		case fds[1].Revents != 0:
			return false
		case fds[0].Revents != 0:
			return true
		}
	}
}

// stop ends reading, if the brake is armed. Requests under way are answered; those that the kernel has not handed out
// fail when the connection is closed.
func (l *loop) stop() {
	l.last.Store(true)
	if b := l.brake.Load(); b != nil {
		if err := b.pull(); err != nil {
			l.log.Error("stopping the reader", "err", err)
		}
	}
}

func (b *brake) pull() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.event < 0 {
		return nil
	}
	_, err := unix.Write(b.event, order.AppendUint64(nil, 1))
	return err
}

// release closes what arm has opened, when the loop has ended.
func (l *loop) release() {
	if b := l.brake.Load(); b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		unix.Close(b.event)
		b.event = -1
	}
}
