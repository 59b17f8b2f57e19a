package execd

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Status says in a word how an exec ended.
type Status string

// How an exec can end.
const (
	StatusExited   Status = "exited"   // the program ended by itself; Code is its own
	StatusSignaled Status = "signaled" // a signal ended it
	StatusTimeout  Status = "timeout"  // its time was over
	StatusOOM      Status = "oom"      // it used more memory than it may
	StatusFailed   Status = "failed"   // there was no program to end, see Reason
	StatusLost     Status = "lost"     // the daemon died; how it ended is not known
)

// Result is what is known of an exec once it has ended. It is the data of the last event, in JSON.
type Result struct {
	Status Status          `json:"status"`
	Code   int             `json:"code"`             // as a shell would give it: 128+n for a signal, 124 for a time limit
	Signal string          `json:"signal,omitempty"` // its name
	Reason string          `json:"reason,omitempty"` // what Status does not say, in words
	Value  json.RawMessage `json:"value,omitempty"`

	Before  vfs.Rev  `json:"before"`            // the revision that the exec began with
	After   vfs.Rev  `json:"after"`             // one that holds all that it did; 0 when there is none yet
	Changes *Changes `json:"changes,omitempty"` // nil when they cannot be told
	// Pending is why what the exec did is not yet where it is to go; empty when it is.
	Pending string `json:"pending,omitempty"`

	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Output  uint64    `json:"output"`         // bytes that it wrote
	Lost    uint64    `json:"lost,omitempty"` // of which so many could not be stored

	Backend string `json:"backend,omitempty"` // what ran it
	Why     string `json:"why,omitempty"`     // it was chosen; empty when it was asked for
}

// Changes counts the names that differ between two revisions. A rename is one that is gone and one that is new.
type Changes struct {
	Added    int `json:"added"`
	Modified int `json:"modified"`
	Deleted  int `json:"deleted"`
}

// resultOf translates how a run ended.
func resultOf(x Exit, timedOut bool) Result {
	r := Result{Status: StatusExited, Code: x.Code, Reason: x.Reason, Value: x.Value}
	switch {
	case timedOut:
		r.Status, r.Code = StatusTimeout, CodeTimeout
	case x.OOM:
		r.Status = StatusOOM
	case x.Signal != 0:
		r.Status = StatusSignaled
	case x.Reason != "":
		r.Status = StatusFailed
	}
	if x.Signal != 0 {
		r.Signal = SignalName(x.Signal)
	}
	if r.Value != nil && (len(r.Value) > MaxValue || !json.Valid(r.Value)) {
		r.Reason = fmt.Sprintf("the result value of %d bytes is too large or not JSON", len(r.Value))
		r.Value, r.Status, r.Code = nil, StatusFailed, 1
	}
	return r
}
