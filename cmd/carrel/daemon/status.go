package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Status is a line on the status pipe, from a daemon to its supervisor and from a detached supervisor to its starter.
type Status struct {
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"` // for people, with what to do
	InUse bool   `json:"in_use,omitempty"`
	Fatal bool   `json:"fatal,omitempty"` // trying again would not help
	Exit  int    `json:"exit,omitempty"`  // the exit status of the command that this ends, if it is not the usual one
}

// StatusOf is the status that tells an error; text is the error as people are to read it.
func StatusOf(err error, text string) Status {
	text = text[:min(len(text), maxStatus/8)] // JSON may take six bytes for one
	s := Status{Error: text, InUse: errors.Is(err, vfs.ErrInUse)}
	for _, fatal := range []error{
		vfs.ErrCorrupt, vfs.ErrNewerFormat, vfs.ErrNotStore, vfs.ErrKey, vfs.ErrNoWorkspace, vfs.ErrInvalid, vfs.ErrNotDir,
	} {
		s.Fatal = s.Fatal || errors.Is(err, fatal)
	}
	return s
}

// Err returns the error that a status tells, or nil.
func (s Status) Err() error {
	if s.Error == "" {
		return nil
	}
	return &StatusError{s}
}

// StatusError is an error that another process has put into words.
type StatusError struct{ Status Status }

func (e *StatusError) Error() string { return e.Status.Error }

// Unwrap lets vfs.ErrInUse be recognised.
func (e *StatusError) Unwrap() error {
	if e.Status.InUse {
		return vfs.ErrInUse
	}
	return nil
}

// WriteStatus writes one line. The reader may be gone, and then nobody needs it.
func WriteStatus(w io.Writer, s Status) {
	b, err := json.Marshal(s)
	if err == nil {
		_, _ = w.Write(append(b, '\n'))
	}
}

// readStatuses calls f for every line until the writer has closed the pipe.
func readStatuses(r io.Reader, f func(Status)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxStatus)
	for lines.Scan() {
		var s Status
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			f(s)
		}
	}
}

// ReadStatus reads the one line that a starter waits for. ok is false when the pipe was closed before it.
func ReadStatus(r io.Reader) (s Status, ok bool) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxStatus)
	ok = lines.Scan() && json.Unmarshal(lines.Bytes(), &s) == nil
	return s, ok
}

// The file descriptors that a daemon is started with.
const (
	lifeFD   = 3
	statusFD = 4
)
