package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// The names by which this program is started to be something else. A container cannot: the program is not in it.
const (
	OuterName = "carrel-container-outer"
	innerName = "carrel-container-inner"
)

// controlFD is the socket to the daemon.
const controlFD = 3

// It is here that the process becomes something else, see the package comment for why so early.
func init() {
	var role func(*Conn) int
	switch os.Args[0] {
	case OuterName:
		role = outer
	case innerName:
		role = inner
	default:
		return
	}
	// What the daemon was started with, and does not know of, must not get to commands.
	if err := unix.CloseRange(controlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		os.Exit(1)
	}
	// Nothing in the container may trace this process or read its memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		os.Exit(1)
	}
	os.Exit(role(NewConn(os.NewFile(controlFD, "control"))))
}
