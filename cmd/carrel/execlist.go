package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/machines"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

func (p *program) psCommand() *cli.Command {
	return &cli.Command{
		Name: "ps", Usage: "list what runs on workspaces", ArgsUsage: "[WORKSPACE]",
		Flags: []cli.Flag{
			storeFlag(), onFlag(),
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "list what has ended within the last hour too"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"},
		},
		Action: p.ps,
	}
}

func (p *program) ps(c *cli.Context) error {
	args, err := arguments(c, 0, 1)
	if err != nil {
		return err
	}
	workspace := ""
	if len(args) > 0 {
		workspace = args[0]
	}
	return p.onExecs(c, func(x *api.Client, _ place) error {
		list, err := x.List(c.Context, workspace)
		if err != nil {
			return err
		}
		return p.listExecs(list, c.Bool("all"), c.Bool("json"))
	})
}

// onExecs works with the execs of the store of the command line, or with those of what --on says.
func (p *program) onExecs(c *cli.Context, f func(x *api.Client, at place) error) error {
	at, err := execsPlace(c)
	if err != nil {
		return err
	}
	if at.joined == "" {
		s, err := p.open(c.Context, at.store, false) // when there is no store, none is to be made
		if err == nil {
			err = s.close()
		}
		if err != nil {
			return err
		}
	}
	return p.withExecsAt(c.Context, at, func(x *api.Client) error { return f(x, at) })
}

// execsPlace is where the execs are that a command is for: in the store, at a mount, or on a machine that has joined.
func execsPlace(c *cli.Context) (at place, err error) {
	on := c.String("on")
	workspace, machine, far := strings.Cut(on, ":")
	switch {
	case on != "" && (!far || isPath(on)):
		return placeAt(on)
	case on != "":
		if err = checkMachine(c, machine); err != nil {
			return at, err
		}
		at.workspace, at.machine = workspace, machine
	}
	at.store, err = storeDir(c)
	return at, err
}

// checkMachine returns a usage error for what is no name of a machine.
func checkMachine(c *cli.Context, name string) error {
	if err := machines.CheckName(name); err != nil {
		return &usageError{c, fmt.Sprintf("--on: %v", err)}
	}
	return nil
}

// execJSON is an exec as scripts see it.
type execJSON struct {
	ID        string        `json:"id"`
	Workspace string        `json:"workspace"`
	Backend   string        `json:"backend"`
	State     string        `json:"state"`
	Created   time.Time     `json:"created"`
	Args      []string      `json:"args,omitempty"`
	Source    string        `json:"source,omitempty"`
	Output    uint64        `json:"output"`
	Result    *execd.Result `json:"result,omitempty"`
}

func (p *program) listExecs(list []*carrelv1.Exec, all, json bool) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	if !json {
		fmt.Fprintln(w, "ID\tWORKSPACE\tBACKEND\tSTATE\tSTARTED\tCOMMAND")
	}
	for _, e := range list {
		if e.Result != nil && !all {
			continue
		}
		if json {
			if err := p.printJSON(execJSONOf(e)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.GetSpec().GetId(), p.shown(e.GetSpec().GetWorkspace()), e.GetSpec().GetBackend(),
			stateWords(e), humanize.Time(e.GetCreated().AsTime()), p.shown(commandLine(e.GetSpec())))
	}
	return w.Flush()
}

func execJSONOf(e *carrelv1.Exec) execJSON {
	s := e.GetSpec()
	j := execJSON{
		ID: s.GetId(), Workspace: s.GetWorkspace(), Backend: s.GetBackend(), State: e.GetState(), Created: e.GetCreated().AsTime(),
		Args: s.GetArgs(), Source: s.GetSource(), Output: e.GetOutputBytes(),
	}
	if e.Result != nil {
		r := api.Result(e.Result)
		j.Result = &r
	}
	return j
}

// stateWords is the state with what it ended with.
func stateWords(e *carrelv1.Exec) string {
	r := e.GetResult()
	switch {
	case r == nil:
		return e.GetState()
	case r.GetStatus() == string(execd.StatusExited):
		return fmt.Sprintf("exited %d", r.GetCode())
	case r.GetSignal() != "":
		return r.GetStatus() + " " + r.GetSignal()
	}
	return r.GetStatus()
}

// commandLineWidth bounds what a list shows of a command.
const commandLineWidth = 60

func commandLine(s *carrelv1.Spec) string {
	line := strings.Join(s.GetArgs(), " ")
	if line == "" {
		line = s.GetSource()
	}
	line, _, _ = strings.Cut(line, "\n")
	if r := []rune(line); len(r) > commandLineWidth {
		line = string(r[:commandLineWidth-1]) + "…"
	}
	return line
}

func (p *program) attachCommand() *cli.Command {
	return &cli.Command{
		Name: "attach", Usage: "follow what runs to its end", ArgsUsage: "ID",
		Description: "Prints what it has written and what it writes. Ctrl-C leaves it running. The exit status is its own.",
		Flags: []cli.Flag{
			storeFlag(), onFlag(),
			&cli.Uint64Flag{Name: "after", Usage: "begin after event `N`"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per event"},
		},
		Action: p.attach,
	}
}

func (p *program) attach(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	return p.onExecs(c, func(x *api.Client, at place) error {
		events, err := x.Attach(c.Context, args[0], c.Uint64("after"), false)
		if err != nil {
			return noExec(c, at, "follow", args[0], err)
		}
		f := &follower{
			program: p, execs: x, id: args[0], json: c.Bool("json"), seen: c.Uint64("after"), patience: at.patience(),
		}
		err = f.follow(c.Context, events)
		if errors.Is(err, vfs.ErrNotExist) {
			err = noExec(c, at, "follow", args[0], err)
		}
		return err
	})
}

func (p *program) logsCommand() *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print what was written by what runs, or has run within the last hour", ArgsUsage: "ID",
		Flags: []cli.Flag{
			storeFlag(), onFlag(),
			&cli.Uint64Flag{Name: "after", Usage: "begin after event `N`"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per event"},
		},
		Action: p.logs,
	}
}

// logs passes on the events that there are now.
func (p *program) logs(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	return p.onExecs(c, func(x *api.Client, at place) error {
		e, err := x.Get(c.Context, args[0])
		if err != nil {
			return noExec(c, at, "print the output of", args[0], err)
		}
		f := &follower{program: p, execs: x, id: args[0], json: c.Bool("json"), seen: c.Uint64("after"), quiet: true}
		return f.upTo(c.Context, e.GetLastSeq())
	})
}

// upTo passes events on up to a number.
func (f *follower) upTo(ctx context.Context, last uint64) error {
	if f.seen >= last {
		return nil
	}
	events, err := f.execs.Attach(ctx, f.id, f.seen, false)
	if err != nil {
		return err
	}
	defer events.Close()
	for f.seen < last {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := f.pass(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) killCommand() *cli.Command {
	return &cli.Command{
		Name: "kill", Usage: "end what runs, or send it a signal", ArgsUsage: "ID...",
		Description: "KILL, which is the default, ends everything that it has started; other signals go to the command and\n" +
			"its process group.",
		Flags: []cli.Flag{
			storeFlag(), onFlag(),
			&cli.StringFlag{Name: "signal", Aliases: []string{"s"}, Usage: "send `SIGNAL`", Value: "KILL"},
		},
		Action: p.kill,
	}
}

func (p *program) kill(c *cli.Context) error {
	ids, err := arguments(c, 1, -1)
	if err != nil {
		return err
	}
	if _, err := execd.ParseSignal(c.String("signal")); err != nil {
		return &usageError{c, fmt.Sprintf("there is no signal %q", c.String("signal"))}
	}
	return p.onExecs(c, func(x *api.Client, at place) error {
		for _, id := range ids {
			if err := x.Signal(c.Context, id, c.String("signal")); err != nil {
				return noExec(c, at, "send "+c.String("signal")+" to", id, err)
			}
		}
		return nil
	})
}

// noExec says what could not be done to an exec, of those that --on says. Of one that is not there, or has ended, it is told where to
// look.
func noExec(c *cli.Context, at place, what, id string, err error) error {
	where, flag := "of the store "+at.store, ""
	if on := c.String("on"); on != "" {
		where, flag = "on "+on, " --on "+on
	}
	switch {
	case errors.Is(err, vfs.ErrNotExist) && !errors.Is(err, api.ErrNoMachine):
		return told(fmt.Errorf("%s exec %q %s: there is none of that id, or it was forgotten", what, id, where),
			"'carrel ps --all%s' lists what runs there, and what has ended within the last hour.", flag)
	case errors.Is(err, vfs.ErrClosed) && !errors.Is(err, api.ErrBroken):
		return told(fmt.Errorf("%s exec %q %s: it has ended", what, id, where), "'carrel logs%s %s' prints what it has written.", flag, id)
	}
	return fmt.Errorf("%s exec %q %s: %w", what, id, where, err)
}
