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
}

// follow passes everything on to the end, over daemons that die, and returns what the exec's end means for ours.
func (f *follower) follow(ctx context.Context, events *api.Events) error {
	defer func() { events.Close() }()
	for {
		e, err := events.Next()
		switch {
		case err == nil:
			if done, err := f.pass(e); done || err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF):
			return fmt.Errorf("exec %s: its events have no end: %w", f.id, vfs.ErrCorrupt)
		case !errors.Is(err, vfs.ErrClosed):
			return err
		}
		events.Close()
		if events, err = f.again(ctx); err != nil {
			return err
		}
	}
}

// again takes an exec up with the daemon that follows one that died.
func (f *follower) again(ctx context.Context) (*api.Events, error) {
	for deadline := time.Now().Add(ownerPatience); ; {
		events, err := f.execs.Attach(ctx, f.id, f.seen, true)
		if err == nil || time.Now().After(deadline) {
			return events, err
		}
		if err := waitFor(ctx, ownerRetry); err != nil {
			return nil, err
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
