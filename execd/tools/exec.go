package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// Execs runs things on the workspace of a set.
type Execs interface {
	// Backends are the names of what can run something, the one that is used when none is named first.
	Backends() []string
	// Start starts an exec and returns its id.
	Start(ctx context.Context, spec execd.Spec) (id string, err error)
	// Follow calls f for the events of an exec after one, and returns after the last, or vfs.ErrInterrupted when ctx ended
	// before.
	Follow(ctx context.Context, id string, after uint64, f func(execd.Event)) error
	// Kill ends an exec and all that it has started.
	Kill(ctx context.Context, id string) error
}

// ExecArgs says what is to be run, or, with ID, which exec is to be looked at again.
type ExecArgs struct {
	Command string            `json:"command,omitempty" jsonschema:"a command line for a shell"`
	Source  string            `json:"source,omitempty" jsonschema:"in place of command, for js: the text of a module; what its default export returns is the value"`
	Backend string            `json:"backend,omitempty" jsonschema:"what runs it; js for source and else the first of those that there are when left out"`
	Cwd     string            `json:"cwd,omitempty" jsonschema:"the directory to run in; the root when left out"`
	Args    []string          `json:"args,omitempty" jsonschema:"parameters of command or source"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"environment variables"`
	Stdin   string            `json:"stdin,omitempty" jsonschema:"standard input"`
	Input   any               `json:"input,omitempty" jsonschema:"for js: any JSON value, which the default export is called with"`
	Timeout float64           `json:"timeout_seconds,omitempty" jsonschema:"kill it after so long; 1800 when left out"`
	Wait    float64           `json:"wait_seconds,omitempty" jsonschema:"answer after so long even if it has not ended; 60 when left out"`

	ID    string `json:"id,omitempty" jsonschema:"in place of command: an exec that was started before, to wait for or to see more of"`
	After string `json:"after,omitempty" jsonschema:"with id: the output from here on, next_after or cut_after of a call before"`
	Kill  bool   `json:"kill,omitempty" jsonschema:"with id: end it"`
}

// ExecResult is how an exec is. It has the beginning and the end of the output, both streams as they came.
type ExecResult struct {
	ID     string `json:"id"`
	Status string `json:"status"` // running, or as execd.Status
	Code   *int   `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"`
	Reason string `json:"reason,omitempty"`
	Value  any    `json:"value,omitempty"`
	// ValueCut says that the value is longer than MaxOutput and was left out.
	ValueCut bool           `json:"value_cut,omitempty"`
	Output   string         `json:"output"`
	CutBytes uint64         `json:"cut_bytes,omitempty"`  // of output in the middle that were left out
	CutAfter string         `json:"cut_after,omitempty"`  // where they begin
	Next     string         `json:"next_after,omitempty"` // where output that is not here begins
	Changes  *execd.Changes `json:"changes,omitempty"`
	Pending  string         `json:"pending,omitempty"`
}

// Exec runs something and waits for its end, or looks at an exec again.
func (s *Set) Exec(ctx context.Context, a ExecArgs) (*ExecResult, error) {
	if s.Execs == nil {
		return nil, fmt.Errorf("exec: nothing can be run on this workspace: %w", vfs.ErrNotSupported)
	}
	if s.ReadOnly {
		return nil, fmt.Errorf("exec: these tools may only read: %w", vfs.ErrReadOnly)
	}
	id := a.ID
	if id == "" {
		spec, err := s.spec(a)
		if err != nil {
			return nil, err
		}
		if id, err = s.Execs.Start(ctx, spec); err != nil {
			return nil, err
		}
	} else if a.Command != "" || a.Source != "" {
		return nil, fmt.Errorf("exec: both id and something to run: %w", vfs.ErrInvalid)
	} else if a.Kill {
		if err := s.Execs.Kill(ctx, id); err != nil && !errors.Is(err, vfs.ErrClosed) {
			return nil, err
		}
	}
	return s.follow(ctx, id, a)
}

// spec translates what a model says.
func (s *Set) spec(a ExecArgs) (execd.Spec, error) {
	backend := a.Backend
	switch {
	case (a.Command == "") == (a.Source == ""):
		return execd.Spec{}, fmt.Errorf("exec: one of command, source and id is needed: %w", vfs.ErrInvalid)
	case backend == "" && a.Source != "":
		backend = "js"
	case backend == "":
		backend = s.Execs.Backends()[0]
	}
	if !slices.Contains(s.Execs.Backends(), backend) {
		return execd.Spec{}, fmt.Errorf("exec: backend %q, there is %s: %w", backend, strings.Join(s.Execs.Backends(), ", "),
			vfs.ErrNotSupported)
	}
	timeout, err := duration(a.Timeout, DefaultTimeout, execd.MaxTimeout)
	if err != nil {
		return execd.Spec{}, err
	}
	var input json.RawMessage
	if a.Input != nil {
		if input, err = json.Marshal(a.Input); err != nil {
			return execd.Spec{}, fmt.Errorf("exec: input: %w: %w", vfs.ErrInvalid, err)
		}
	}
	if len(a.Stdin) > MaxInput || len(input) > MaxInput || len(a.Source) > MaxInput || len(a.Command) > MaxInput {
		return execd.Spec{}, fmt.Errorf("exec: what is to be run, or its input: %w", vfs.ErrTooBig)
	}
	spec := execd.Spec{Backend: backend, Source: a.Source + a.Command, Args: a.Args, Dir: clean(a.Cwd), Stdin: []byte(a.Stdin),
		Input: input, Timeout: timeout}
	if backend == "container" {
		spec.Source, spec.Args = "", append([]string{"sh", "-c", a.Command, "sh"}, a.Args...)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		spec.Env = append(spec.Env, name+"="+a.Env[name])
	}
	return spec, nil
}

func duration(seconds float64, usual, most time.Duration) (time.Duration, error) {
	switch {
	case seconds == 0:
		return usual, nil
	case !(seconds > 0):
		return 0, fmt.Errorf("a time of %v seconds: %w", seconds, vfs.ErrInvalid)
	}
	return time.Duration(min(seconds, most.Seconds()) * float64(time.Second)), nil
}

// follow gathers the output until the exec ends or the time is over.
func (s *Set) follow(ctx context.Context, id string, a ExecArgs) (*ExecResult, error) {
	wait, err := duration(a.Wait, DefaultWait, MaxWait)
	if err != nil {
		return nil, err
	}
	g, err := newGathering(a.After)
	if err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = s.Execs.Follow(timed, id, g.seq, g.event)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("exec %s goes on: %w", id, vfs.ErrInterrupted)
	case err != nil && !(errors.Is(err, vfs.ErrInterrupted) && timed.Err() != nil):
		return nil, err
	}
	return g.answer(id), nil
}
