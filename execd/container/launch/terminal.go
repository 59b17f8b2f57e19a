package launch

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenTerminal makes a terminal in the /dev/pts that this process sees (pts(4)), and returns descriptors of its two sides,
// which are close-on-exec.
func OpenTerminal(size Size) (master, slave int, err error) {
	master, err = unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	slave, err = openSlave(master, size)
	if err != nil {
		return -1, -1, errors.Join(err, unix.Close(master))
	}
	return master, slave, nil
}

func openSlave(master int, size Size) (int, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	if err := Resize(master, size); err != nil {
		return -1, err
	}
	return unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
}

// Resize sets the size of a terminal by its master side.
func Resize(master int, size Size) error {
	return unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
}
