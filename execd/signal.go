package execd

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// The exit codes that are not a program's own, as shells and timeout(1) give them.
const (
	CodeTimeout   = 124
	CodeNotRun    = 126 // there is such a program, and it could not be run
	CodeNoProgram = 127 // there is no such program
	codeSignal    = 128 // and the signal's number
)

// maxSignal is the last of the real-time signals.
const maxSignal = 64

// ParseSignal reads a signal: INT, SIGINT or 2.
func ParseSignal(s string) (int, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > maxSignal {
			return 0, fmt.Errorf("signal %d: %w", n, vfs.ErrInvalid)
		}
		return n, nil
	}
	name := strings.ToUpper(s)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if n := unix.SignalNum(name); n != 0 {
		return int(n), nil
	}
	return 0, fmt.Errorf("signal %q: %w", s, vfs.ErrInvalid)
}

// SignalName is the inverse: SIGINT, or a number for one without a name.
func SignalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return strconv.Itoa(n)
}

// ExitOf translates the wait status of a process.
func ExitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Code: codeSignal + int(ws.Signal()), Signal: int(ws.Signal())}
	}
	return Exit{Code: ws.ExitStatus()}
}

// ignoredByDefault reports whether a program that does nothing about a signal lives on (signal(7)).
func ignoredByDefault(n int) bool {
	switch syscall.Signal(n) {
	case unix.SIGCHLD, unix.SIGURG, unix.SIGWINCH, unix.SIGCONT, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return true
	}
	return false
}
