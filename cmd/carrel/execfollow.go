package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// statusError is an error with the exit status that goes with it.
type statusError struct {
	err    error
	status int
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// follower passes on what happens in an exec.
type follower struct {
	*program
	execs  *api.Client
	id     string
	json   bool
	seen   uint64           // the last event that was passed on
	result *carrelv1.Result // once it has ended
	quiet  bool             // the end is not passed on as our own
	why    bool             // which backend it was is said

	patience time.Duration // how long it may take until the exec can be taken up again
}

// follow passes everything on to the end, over daemons that die and machines that are away for a while, and returns what the exec's
// end means for ours.
func (f *follower) follow(ctx context.Context, events *api.Events) error {
	defer func() { events.Close() }()
	var lost time.Time // since when nothing has come; zero while all is well
	for {
		e, err := events.Next()
		switch {
		case err == nil:
			lost = time.Time{}
			if done, err := f.pass(e); done || err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF):
			return fmt.Errorf("exec %s: its events have no end: %w", f.id, vfs.ErrCorrupt)
		case !isAway(err, !lost.IsZero()):
			return err
		case lost.IsZero():
			lost = time.Now()
		}
		again, err := f.again(ctx, lost)
		if err != nil {
			return err
		}
		events.Close()
		events = again
	}
}

// isAway reports whether an error says that who runs an exec cannot be asked now. That a machine is not there says so of one that
// was there before.
func isAway(err error, before bool) bool {
	return errors.Is(err, vfs.ErrClosed) || before && errors.Is(err, api.ErrNoMachine)
}

// again takes an exec up with the daemon that follows one that died, or with a machine that comes back.
func (f *follower) again(ctx context.Context, lost time.Time) (*api.Events, error) {
	for {
		if err := waitFor(ctx, ownerRetry); err != nil {
			return nil, err
		}
		events, err := f.execs.Attach(ctx, f.id, f.seen, true)
		if err == nil || !isAway(err, true) || time.Since(lost) > f.patience {
			return events, err
		}
	}
}

// pass passes one event on. done says that it was the last.
func (f *follower) pass(e *carrelv1.Event) (done bool, err error) {
	f.seen = max(f.seen, e.GetSeq())
	if f.json {
		if err := f.printJSON(eventJSONOf(e)); err != nil {
			return false, err
		}
	} else if err := f.show(e); err != nil {
		return false, err
	}
	if err := f.stdout.Flush(); err != nil || e.GetExit() == nil {
		return false, err
	}
	f.result = e.GetExit()
	return true, f.ended(f.result)
}

// show writes output where the program would have.
func (f *follower) show(e *carrelv1.Event) (err error) {
	switch x := e.GetEvent().(type) {
	case *carrelv1.Event_Stdout:
		_, err = f.stdout.Write(x.Stdout)
	case *carrelv1.Event_Stderr:
		_, err = f.stderr.Write(x.Stderr)
	case *carrelv1.Event_Exit:
		if v := x.Exit.GetValueJson(); v != "" {
			_, err = fmt.Fprintln(f.stdout, v)
		}
	case *carrelv1.Event_Gap:
		f.say("%s of output are not in the log any more", humanize.IBytes(x.Gap.GetLostBytes()))
	}
	return err
}

// ended says what an exit status does not, and passes it on.
func (f *follower) ended(r *carrelv1.Result) error {
	if f.why {
		f.say("exec %s: ran in %s: %s", f.id, r.GetBackend(), cmp.Or(r.GetWhy(), "as asked"))
	}
	switch status := execd.Status(r.GetStatus()); {
	case status == execd.StatusTimeout:
		f.say("exec %s: its time was over", f.id)
	case status == execd.StatusOOM:
		f.say("exec %s: it used more memory than it may", f.id)
	case r.GetReason() != "":
		f.say("exec %s: %s", f.id, r.GetReason())
	}
	if r.GetPending() != "" {
		f.say("exec %s: what it did is not yet where it is to go: %s", f.id, r.GetPending())
	}
	if r.GetCode() == 0 || f.quiet {
		return nil
	}
	return exitError(r.GetCode())
}

// eventJSON is an event as scripts see it.
type eventJSON struct {
	Seq    uint64        `json:"seq"`
	Time   *time.Time    `json:"time,omitempty"`
	Event  string        `json:"event"` // stdout, stderr, gap, exit
	Text   *string       `json:"text,omitempty"`
	Base64 []byte        `json:"base64,omitempty"` // when the bytes are not UTF-8
	First  uint64        `json:"first,omitempty"`  // of the events that are missing
	Lost   uint64        `json:"lost,omitempty"`   // bytes of output that are missing
	Result *execd.Result `json:"result,omitempty"`
}

func eventJSONOf(e *carrelv1.Event) eventJSON {
	j := eventJSON{Seq: e.GetSeq()}
	if e.Time != nil {
		t := e.GetTime().AsTime()
		j.Time = &t
	}
	output := func(name string, p []byte) {
		j.Event = name
		if text := string(p); utf8.ValidString(text) {
			j.Text = &text
		} else {
			j.Base64 = p
		}
	}
	switch x := e.GetEvent().(type) {
	case *carrelv1.Event_Stdout:
		output("stdout", x.Stdout)
	case *carrelv1.Event_Stderr:
		output("stderr", x.Stderr)
	case *carrelv1.Event_Gap:
		j.Event, j.First, j.Lost = "gap", x.Gap.GetFirstSeq(), x.Gap.GetLostBytes()
	case *carrelv1.Event_Exit:
		r := api.Result(x.Exit)
		j.Event, j.Result = "exit", &r
	}
	return j
}
