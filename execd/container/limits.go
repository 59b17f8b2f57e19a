package container

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// idleFor is how long a container without execs is kept, so that the next starts fast.
	idleFor = time.Minute
	// outputPatience is how long output is waited for that somebody outside of the exec holds open, once all in it is dead.
	outputPatience = 2 * time.Second
	// runnerDelay is how long after an exec has begun the next runner is prepared: longer than short commands take.
	runnerDelay = 5 * time.Millisecond
	// spareDelay is how long after a container has been made the spare is: longer than a short first exec takes.
	spareDelay = 20 * time.Millisecond
	// MaxCells bounds containers: each has a mount and a process.
	MaxCells = 64
	// startTries is in how many containers an exec is tried of which each has died before it began.
	startTries = 4
	// maxPump is how much output is read at once.
	maxPump = 64 << 10

	// The limits of a cell whose spec has none.
	defaultMemory = 4 << 30
	defaultPids   = 4096
	// tmpSize bounds each directory in memory; what is in them counts as memory of the cell too.
	tmpSize = 4 << 30
	// runtimePatience is how long a runtime may take over a signal, or over what it has left.
	runtimePatience = 10 * time.Second
	// killAgain is how often a runtime is told to kill what it may only just be making.
	killAgain = 50 * time.Millisecond
	// maxRuntimeLog bounds what is read of what a runtime says of itself.
	maxRuntimeLog = 64 << 10
	// maxFiles is how many files a process may have open: what a login has.
	maxFiles = 1 << 16
)

// kept are the capabilities that programs which run as root need to work on files: package managers, tar, git.
var kept = map[string]uint{
	"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_FOWNER": unix.CAP_FOWNER,
	"CAP_FSETID": unix.CAP_FSETID, "CAP_KILL": unix.CAP_KILL, "CAP_SETGID": unix.CAP_SETGID, "CAP_SETUID": unix.CAP_SETUID,
	"CAP_NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE,
}

// keptCaps are the same, as a set.
func keptCaps() (set uint64) {
	for _, number := range kept {
		set |= 1 << number
	}
	return set
}
