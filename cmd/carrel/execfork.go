package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/daemon"
	"github.com/carrelfs/carrel/execd/api"
)

// execFork is the fork that a command is to run in.
type execFork struct {
	of, when string // the workspace, and when it was as the fork begins; now when empty
	name     string
	named    bool // by the user, whose it is then
	merge    bool
}

// forkFlag is --fork or --fork=NAME.
type forkFlag struct {
	set  bool
	name string
}

// Set implements flag.Value. The package gives a flag without a value "true".
func (f *forkFlag) Set(s string) error {
	f.set, f.name = s != "false", s
	if s == "true" || s == "false" {
		f.name = ""
	}
	return nil
}

// String implements flag.Value.
func (f *forkFlag) String() string { return f.name }

// IsBoolFlag says that the flag may be without a value.
func (*forkFlag) IsBoolFlag() bool { return true }

// parseFork returns nil when no fork is wanted.
func parseFork(c *cli.Context, at place, id string) (*execFork, error) {
	asked, _ := c.Generic("fork").(*forkFlag) // which it is
	switch {
	case asked == nil || !asked.set:
		if c.Bool("merge") {
			return nil, &usageError{c, "--merge is of what is different in a fork: give --fork"}
		}
		return nil, nil
	case c.Bool("detach"):
		return nil, &usageError{c, "--fork waits for the end, to say what is different: not with --detach"}
	case at.machine != "":
		return nil, &usageError{c, "--on is for the workspace that the machine has joined: not with --fork"}
	case at.joined != "":
		return nil, told(fmt.Errorf("--fork on a workspace that was joined: %w", vfs.ErrNotSupported),
			"Forks are made where its store is.")
	}
	f := &execFork{name: asked.name, named: asked.name != "", merge: c.Bool("merge")}
	f.of, f.when, _ = casstore.SplitMoment(at.workspace)
	if !f.named {
		f.name = f.of + "-" + id // so that a start which is made again finds it
	}
	return f, nil
}

// execForked runs a command in a fork, says what is different there, and merges that or leaves it.
func (p *program) execForked(ctx context.Context, j *execJob, x *api.Client) (err error) {
	stream := context.WithoutCancel(ctx)         // a signal is for the command; what follows its end is still to be done
	release, err := daemon.Hold(ctx, j.at.store) // or it may end with the exec
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	s, err := p.open(ctx, j.at.store, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	f := j.fork
	if _, err := s.Fork(ctx, f.of, f.when, f.name); err != nil && (f.named || !errors.Is(err, vfs.ErrExist)) {
		return err
	}
	j.spec.Workspace = f.name
	result, ran := p.execThrough(ctx, j, x)
	if result == nil {
		if _, err := x.Get(stream, j.spec.ID); errors.Is(err, vfs.ErrNotExist) { // it was not started
			return errors.Join(ran, f.removeFork(stream, s))
		}
		return ran
	}
	before := fmt.Sprintf("%s@%d", f.name, result.GetRevisionBefore())
	var changes []casstore.DiffEntry
	err = s.Diff(stream, before, f.name, func(d casstore.DiffEntry) error {
		changes = append(changes, d)
		return nil
	})
	if err == nil {
		err = p.endFork(stream, s, f, j.json, changes, ran == nil)
	}
	return errors.Join(ran, err)
}

// forkJSON is what became of a fork, as scripts see it.
type forkJSON struct {
	Event   string     `json:"event"` // fork: it follows the events of the exec
	Fork    string     `json:"fork"`
	Changes []diffJSON `json:"changes"`
	Merged  *mergeJSON `json:"merged,omitempty"`
	Removed bool       `json:"removed,omitempty"` // the fork was
}

// endFork says what is different in a fork, and does what is to be done with it.
func (p *program) endFork(
	ctx context.Context, s *opened, f *execFork, asJSON bool, changes []casstore.DiffEntry, succeeded bool,
) error {
	said := forkJSON{Event: "fork", Fork: f.name, Changes: []diffJSON{}}
	for _, d := range changes {
		said.Changes = append(said.Changes, diffJSONOf(d))
	}
	merge := f.merge && succeeded && len(changes) > 0
	var report casstore.MergeReport
	var err error
	if merge {
		if report, err = s.Merge(ctx, f.name, f.of, false); err != nil {
			return err
		}
		m := mergeJSONOf(report, false)
		said.Merged = &m
	}
	if said.Removed = !f.named && (merge || len(changes) == 0); said.Removed {
		if err := f.removeFork(ctx, s); err != nil {
			return err
		}
	}
	if asJSON {
		return p.printJSON(said)
	}
	p.sayFork(f, changes, report, merge)
	return nil
}

// forkShown is how many of the differences are shown of a fork; 'carrel diff' shows all.
const forkShown = 100

// sayFork says it on standard error: standard output is the command's.
func (p *program) sayFork(f *execFork, changes []casstore.DiffEntry, report casstore.MergeReport, merged bool) {
	for _, d := range changes[:min(len(changes), forkShown)] {
		fmt.Fprintln(p.stderr, p.diffLine(d))
	}
	if n := len(changes) - forkShown; n > 0 {
		p.say("and %d more", n)
	}
	for _, x := range report.Conflicts {
		fmt.Fprintln(p.stderr, p.conflictLine(x))
	}
	switch {
	case len(report.Conflicts) > 0:
		p.say("merged into %s with %d conflicts: 'carrel conflicts %[1]s' lists them", f.of, len(report.Conflicts))
	case merged:
		p.say("merged into %s", f.of)
	case len(changes) == 0:
		p.say("nothing is different in the fork")
	default:
		p.say("that is in the fork %s: 'carrel merge %[1]s %s' takes it over, 'carrel ws rm %[1]s' drops it", f.name, f.of)
	}
}

// removePatience is how long the daemon may take to let go of a workspace on which an exec has ended.
const removePatience = 10 * time.Second

// removeFork removes the fork unless it is the user's.
func (f *execFork) removeFork(ctx context.Context, s *opened) error {
	if f.named {
		return nil
	}
	for deadline := time.Now().Add(removePatience); ; {
		err := s.RemoveWorkspace(ctx, f.name)
		if !errors.Is(err, vfs.ErrWorkspaceBusy) || time.Now().After(deadline) {
			return err
		}
		if err := waitFor(ctx, ownerRetry); err != nil {
			return err
		}
	}
}
