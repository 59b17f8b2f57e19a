package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
)

// Func runs one command to its end and returns its exit status: 0 to 125, 126 and 127 for what cannot be run and what
// is not there, 128 and the signal's number for one that a signal ended. It returns within 50 ms of ctx's end.
type Func func(ctx context.Context, p *Process) int

// Table leads from names to commands. A Lookup in it costs the shell nothing but the map.
type Table map[string]Func

// Grammar says of commands, by name, what of their arguments they have not: an option, or a command of git's. It runs
// nothing. A command that is not in it takes what there is, or says so itself.
type Grammar map[string]func(args []string) error

// Process is what a command is started with: a virtual process. A command may change its own copy, never what it
// points to.
type Process struct {
	Args   []string // Args[0] is the name it was called by
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	FS     treepath.FS // its files; relative paths start at Dir
	Dir    string      // absolute working directory
	Env    []string    // NAME=value, in bytewise order of the names

	// FD returns what is open as a descriptor, 0 to 2 included. Nil when nothing above 2 is.
	FD func(n int) (io.ReadWriter, bool)

	// Run runs another command by p.Args[0], be it a builtin, a function of the table or a script's file; functions of
	// the script are not seen, as they are not by execvp(3). It gives 127 and says so when there is none.
	Run Func

	// Refused is what Run says of a command that cannot be started, a format of its name and the reason: each command that
	// runs others has words of its own. They are the shell's when it is empty.
	Refused string

	Meter *Meter           // what the script may still use; nil for no bound
	Now   func() time.Time // the clock
	Rand  *rand.Rand       // safe for this process alone
}

// Getenv returns the value of an environment variable.
func (p *Process) Getenv(name string) (string, bool) {
	i, ok := slices.BinarySearchFunc(p.Env, name, func(entry, name string) int {
		key, _, _ := strings.Cut(entry, "=")
		return strings.Compare(key, name)
	})
	if !ok {
		return "", false
	}
	return p.Env[i][len(name)+1:], true
}

// Errorf writes "name: message" and a newline to Stderr, where name is Args[0].
func (p *Process) Errorf(format string, args ...any) {
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.Args[0], fmt.Sprintf(format, args...))
}

// Step counts n units of work, about a microsecond each, against the script's bound. It returns an error when the
// command is to end: the context's, or that the bound is reached. Call it in every loop whose length the input decides.
func (p *Process) Step(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return p.Meter.Step(n)
}

// Fail returns the exit status for an error that ends a command, and says what it is when anybody should hear of it: 141
// without a word for a closed pipe, as SIGPIPE does, 130 for the context's end.
func (p *Process) Fail(ctx context.Context, err error) int {
	switch {
	case errors.Is(err, ErrPipe):
		return StatusPipe
	case ctx.Err() != nil:
		return StatusInterrupted
	}
	p.Errorf("%s", Reason(err))
	return 1
}

// Exit statuses of a command that was ended.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
	StatusInterrupted   = 130
	StatusKilled        = 137
	StatusPipe          = 141
	StatusTerminated    = 143
)

// ErrPipe is what a write to a pipe gives that nobody will read from (EPIPE).
var ErrPipe = errors.New("broken pipe")

// ErrFiles is what an open gives to a process that has as many files open as it may (EMFILE).
var ErrFiles = errors.New("too many open files")

// reasons are the words of strerror(3) for the errors that a tree and its files give.
var reasons = []struct {
	err  error
	text string
}{
	{vfs.ErrNotExist, "No such file or directory"},
	{vfs.ErrExist, "File exists"},
	{vfs.ErrNotDir, "Not a directory"},
	{vfs.ErrIsDir, "Is a directory"},
	{vfs.ErrNotEmpty, "Directory not empty"},
	{vfs.ErrNameTooLong, "File name too long"},
	{vfs.ErrInvalid, "Invalid argument"},
	{vfs.ErrTooBig, "File too large"},
	{vfs.ErrNoSpace, "No space left on device"},
	{vfs.ErrQuota, "Disk quota exceeded"},
	{vfs.ErrReadOnly, "Read-only file system"},
	{vfs.ErrNoXattr, "No data available"},
	{vfs.ErrTooManyLinks, "Too many links"},
	{vfs.ErrNotSupported, "Operation not supported"},
	{vfs.ErrNotPermitted, "Operation not permitted"},
	{vfs.ErrStale, "Stale file handle"},
	{vfs.ErrBusy, "Device or resource busy"},
	{vfs.ErrInterrupted, "Interrupted system call"},
	{vfs.ErrCorrupt, "Input/output error"},
	{vfs.ErrClosed, "Bad file descriptor"},
	{treepath.ErrLoop, "Too many levels of symbolic links"},
	{treepath.ErrAccess, "Permission denied"},
	{treepath.ErrBadFile, "Bad file descriptor"},
	{treepath.ErrSeek, "Illegal seek"},
	{ErrPipe, "Broken pipe"},
	{ErrFiles, "Too many open files"},
}

// Reason returns the words in which a command tells a user of an error: those of strerror(3) where the system has them.
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.text
		}
	}
	return err.Error()
}
