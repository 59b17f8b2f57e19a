package execd

import "github.com/carrelfs/carrel/casstore/vfs"

// Why a command could not be started, beside what is so of any exec. Each is what a shell says of it, and has an exit status there.
var (
	// ErrNoProgram is for a program that there is not, or whose interpreter or loader there is not: CodeNoProgram. It is an
	// ErrNotExist of vfs.
	ErrNoProgram error = &startError{"command not found", vfs.ErrNotExist}
	// ErrNotRunnable is for one that there is and that cannot be run: CodeNotRun.
	ErrNotRunnable error = &startError{"cannot execute", nil}
)

// startError is a sentinel with words of its own.
type startError struct {
	text string
	is   error
}

func (e *startError) Error() string { return e.text }
func (e *startError) Unwrap() error { return e.is }
