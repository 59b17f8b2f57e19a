package execd

import (
	"context"
	"encoding/json"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Backend runs one kind of thing. Its methods are safe for concurrent use.
type Backend interface {
	// Start begins a run and returns when it has begun. Its error says that nothing was run, and will not be:
	// ErrNotSupported for a spec that the backend cannot do, ErrNoProgram or ErrNotRunnable for its program, ErrBusy when
	// there is no room. ctx is for the start alone: its end after Start returned means nothing.
	Start(ctx context.Context, j Job, out Output) (Process, error)

	// Close kills all that runs and returns when nothing of the backend is left.
	Close() error
}

// Job is what a backend is to run.
type Job struct {
	Spec          // checked, with an id and a clean Dir
	Tree vfs.Tree // the workspace; not to be closed
}

// Output takes what a run writes. It is safe for concurrent use.
type Output interface {
	// Write adds bytes to the log, in order, and does not keep p. It blocks while a reader holds that is behind. It never
	// fails: what cannot be stored is counted as lost.
	Write(s Stream, p []byte)
}

// Writer returns a writer to one stream of an output, for io.Copy and for what runs in this process.
func Writer(out Output, s Stream) io.Writer { return streamWriter{out, s} }

type streamWriter struct {
	out    Output
	stream Stream
}

func (w streamWriter) Write(p []byte) (int, error) {
	w.out.Write(w.stream, p)
	return len(p), nil
}

// Process is a run that has begun. Its methods are safe for concurrent use, and do nothing once it has ended.
type Process interface {
	// Wait returns when the run is over: nothing of it runs, and all that it wrote was given to the output.
	Wait() Exit
	// Input gives it more standard input and returns when all of p was taken or never will be: ErrClosed then,
	// ErrInterrupted when ctx ended. The first n bytes were taken, and no others. It does not keep p.
	Input(ctx context.Context, p []byte) (n int, err error)
	// CloseInput ends its standard input.
	CloseInput() error
	// Signal sends a signal, by its number on Linux: SIGKILL ends everything that the run has started; others go to
	// the process group of the command.
	Signal(number int) error
	// Resize changes the size of its terminal: ErrNotSupported when it has none.
	Resize(Size) error
}

// Exit is how a run ended.
type Exit struct {
	Code   int    // of the program; 128+n when signal n ended it
	Signal int    // the signal that ended it, or 0
	OOM    bool   // it was ended because it used more memory than it may
	Reason string // why there is no exit code of a program, in words; Code is then what a shell would give
	// Value is what the run returned, JSON of at most MaxValue bytes; nil for none.
	Value json.RawMessage
}
