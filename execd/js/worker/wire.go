package worker

import (
	"fmt"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Job is what the daemon sends first: what is to be run.
type Job struct {
	Main   string // the path of the module, absolute
	Source string // its text; empty when it is the file Main
	Args   []string
	Env    []string
	Dir    string
	Input  string // JSON, or empty
}

// Call is what the worker asks of the daemon. Calls are answered in any order, each once.
type Call struct {
	ID     uint64
	Op     string // one of those in execd/js, which says what the rest means
	Path   string
	Path2  string
	Data   []byte
	Number int64
	Offset int64
	Size   int64
	Flag   bool
}

// Reply answers a Call.
type Reply struct {
	ID      uint64
	Code    string // as node gives it: ENOENT; empty when all went well
	Message string
	Data    []byte
}

// End is the last that a worker sends.
type End struct {
	Code   int
	Value  []byte // JSON, or nil
	OOM    bool
	Reason string // why there is no exit code of the program
}

// call is an End as a Call, whose Op is OpEnd.
func (e End) call() Call {
	return Call{Op: OpEnd, Number: int64(e.Code), Data: e.Value, Flag: e.OOM, Path: e.Reason}
}

// EndOf reads an End from a Call.
func EndOf(c Call) End { return End{Code: int(c.Number), Value: c.Data, OOM: c.Flag, Reason: c.Path} }

// Ops that are no operations on files.
const (
	OpBegun  = "begun"  // the job was taken: it comes first, and is not answered
	OpEnd    = "end"    // an End; not answered
	OpWrite  = "write"  // Data to standard output, or to standard error with Flag
	OpStdin  = "stdin"  // more of standard input; no Data is its end
	OpModule = "module" // the text of a module
)

// Limited reads at most so much of one message: what is at the other end may have been taken over.
type Limited struct {
	from io.Reader
	left int
}

// NewLimited returns a reader that fails once more than MaxMessage was read since the last Next.
func NewLimited(from io.Reader) *Limited { return &Limited{from, MaxMessage} }

// Read implements io.Reader.
func (l *Limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a message of more than %d bytes: %w", MaxMessage, vfs.ErrTooBig)
	}
	n, err := l.from.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// Next lets the reader go on with another message.
func (l *Limited) Next() { l.left = MaxMessage }
