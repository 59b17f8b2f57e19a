package fusefs

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"bazil.org/fuse"
)

// The kernel sends FUSE_INTERRUPT when the process that waits for a request gets any signal, once for each request. A
// disk filesystem lets only a signal that kills interrupt it: stat(2) has no EINTR, and a page fault that is
// interrupted by a progress timer would be SIGBUS. So a request is cancelled only when its thread is being killed.
// While it has some other signal it is looked at again every signalPoll, because of a kill that comes later the kernel
// does not tell.
//
// An interrupt is read after its request, by whoever got the token from the request's worker, which had registered
// the request before. So a request that is not registered has been answered, and its interrupt means nothing.

// interrupt handles FUSE_INTERRUPT of request id.
func (l *loop) interrupt(id fuse.RequestID) {
	l.mu.Lock()
	w := l.blocked[id]
	var pid uint32
	if w != nil {
		pid = w.pid
	}
	l.mu.Unlock()
	if w == nil {
		return
	}
	killed := dying(pid)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.blocked[id] == nil:
	case killed:
		l.blocked[id].call.cancel()
	default:
		l.signals[id] = pid
		if len(l.signals) == 1 {
			l.wg.Add(1)
			go l.watchSignals()
		}
	}
}

// watchSignals cancels requests whose thread is killed after it got a harmless signal. It ends when there are none.
func (l *loop) watchSignals() {
	defer l.wg.Done()
	tick := time.NewTicker(signalPoll)
	defer tick.Stop()
	for range tick.C {
		killed := l.killed()
		l.mu.Lock()
		for _, id := range killed {
			if w := l.blocked[id]; w != nil {
				w.call.cancel()
			}
			delete(l.signals, id)
		}
		left := len(l.signals)
		l.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

func (l *loop) killed() []fuse.RequestID {
	l.mu.Lock()
	pids := make(map[fuse.RequestID]uint32, len(l.signals))
	for id, pid := range l.signals {
		pids[id] = pid
	}
	l.mu.Unlock()
	var ids []fuse.RequestID
	for id, pid := range pids {
		if dying(pid) {
			ids = append(ids, id)
		}
	}
	return ids
}

// dying reports whether the thread has SIGKILL pending, as every thread of a process has that a signal is killing. A
// thread that we cannot see counts as dying: better an EINTR too many than a process that cannot be killed.
func dying(tid uint32) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(int(tid)) + "/status")
	if err != nil {
		return true
	}
	return pendingKill(status)
}

// pendingKill reads the masks of pending signals in /proc/PID/status (proc_pid_status(5)).
func pendingKill(status []byte) bool {
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if s := string(name); s != "SigPnd" && s != "ShdPnd" {
			continue
		}
		mask, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		if err == nil && mask&(1<<(syscall.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}
