package daemon

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNoSupervisor says that a daemon was not started by a supervisor.
var ErrNoSupervisor = errors.New("the daemon is started by 'carrel mount', not by hand")

// Inherit takes over the pipes that the process was started with. The returned context ends when the supervisor is
// gone.
func Inherit(ctx context.Context) (context.Context, io.Writer, error) {
	for _, fd := range []int{lifeFD, statusFD} {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil, ErrNoSupervisor
		}
		unix.CloseOnExec(fd)
	}
	ctx, cancel := context.WithCancel(ctx)
	life := os.NewFile(lifeFD, "life")
	go func() {
		_, _ = io.Copy(io.Discard, life) // ends when the other end is closed, however that happens
		cancel()
	}()
	return ctx, os.NewFile(statusFD, "status"), nil
}
