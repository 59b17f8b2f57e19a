package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/cmd/carrel/join"
)

// joinCommands are the subcommands of sync that are for a workspace which was joined.
func (p *program) joinCommands() []*cli.Command {
	asJSON := &cli.BoolFlag{Name: "json", Usage: "print JSON objects"}
	return []*cli.Command{
		{
			Name: "now", ArgsUsage: "[DIR]", Action: p.syncNow,
			Usage: "return when both sides have everything that was written before, and nothing stale is shown on DIR",
		},
		{
			Name: "conflicts", ArgsUsage: "[DIR]", Action: p.syncConflicts, Flags: []cli.Flag{asJSON},
			Usage: "list what both sides have changed and could not be merged; both versions are there",
		},
		{
			Name: "resolve", ArgsUsage: "NUMBER [DIR]", Action: p.syncResolve,
			Usage: "take a conflict off the list",
			Flags: []cli.Flag{keepFlag()},
		},
	}
}

// askJoin asks the join that the arguments mean.
func (p *program) askJoin(c *cli.Context, args []string, req join.Request) (join.Reply, error) {
	state, err := p.joinedAt(c, args)
	if err != nil {
		return join.Reply{}, err
	}
	return join.Ask(c.Context, state, req)
}

func (p *program) syncNow(c *cli.Context) error {
	args, err := arguments(c, 0, 1)
	if err != nil {
		return err
	}
	_, err = p.askJoin(c, args, join.Request{Op: "now"})
	return err
}

func (p *program) syncConflicts(c *cli.Context) error {
	args, err := arguments(c, 0, 1)
	if err != nil {
		return err
	}
	reply, err := p.askJoin(c, args, join.Request{Op: "conflicts"})
	if err != nil {
		return err
	}
	return p.printConflicts(reply.Conflicts, c.Bool("json"))
}

// printConflicts lists conflicts that are not resolved.
func (p *program) printConflicts(list []reconcile.Listed, asJSON bool) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, x := range list {
		if asJSON {
			if err := p.printJSON(x); err != nil {
				return err
			}
			continue
		}
		copied := x.Copy
		if x.Name != "" {
			copied = fmt.Sprintf("%s=%q", x.Name, x.Value)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", x.Number, x.Kind, x.Time.Local().Format(time.DateTime), p.shown(x.Path), p.shown(copied))
	}
	return w.Flush()
}

func (p *program) syncResolve(c *cli.Context) error {
	args, err := arguments(c, 1, 2)
	if err != nil {
		return err
	}
	number, how, err := resolution(c, args[0])
	if err != nil {
		return err
	}
	_, err = p.askJoin(c, args[1:], join.Request{Op: "resolve", Number: number, How: how})
	return err
}

// joinStatus says how the workspace that was joined on a directory is doing.
func (p *program) joinStatus(c *cli.Context, args []string) error {
	reply, err := p.askJoin(c, args, join.Request{Op: "status"})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.printJSON(reply.Status)
	}
	return p.printJoined(reply.Status)
}

func (p *program) printJoined(s *join.Status) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	link := "connected"
	if !s.Connected {
		link = "not connected"
	}
	if s.Trouble != "" {
		link += ": " + s.Trouble
	}
	metadata := "all here"
	if !s.Whole {
		metadata = "arriving"
	}
	writes := "allowed"
	if s.ReadOnly {
		writes = "not now: another mirror has the workspace to itself"
	}
	for _, row := range []struct{ name, value string }{
		{"joined", p.shown(s.Workspace) + " on " + p.shown(s.Dir)},
		{"link", link},
		{"revision", fmt.Sprint(s.Revision)},
		{"metadata", metadata},
		{"to push", fmt.Sprintf("%d records", s.Pending)},
		{"writes", writes},
		{"conflicts", fmt.Sprint(s.Conflicts)},
		{"runs things as", cmp.Or(s.Machine, "nobody: see 'carrel join --exec-as'")},
		{"pushes", fmt.Sprintf("%d applied, %d made again", s.Pushes, s.Stale)},
		{"came", fmt.Sprintf("%d records, %d chunks of %s", s.Records, s.Chunks, humanize.IBytes(s.ChunkBytes))},
		{"digests", fmt.Sprintf("%d wrong, %d records repaired, %d full comparisons", s.Mismatches, s.Repaired, s.Compared)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row.name, row.value)
	}
	return w.Flush()
}
