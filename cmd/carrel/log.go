package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) logCommand() *cli.Command {
	return &cli.Command{
		Name:      "log",
		Usage:     "list the revisions of a workspace, the newest first",
		ArgsUsage: "WORKSPACE",
		Description: "Each can be looked at: WORKSPACE@REVISION is the workspace as it was, for ls, cat, get, find, grep, export\n" +
			"and, read-only, mount. A * marks those that are no longer kept; 'carrel history' says how far back they are.\n" +
			"The number of changes counts files, directories, names and attributes that were written or removed.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.Uint64Flag{Name: "number", Aliases: []string{"n"}, Usage: "list at most `N`; 0 for all", Value: 20},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"},
		},
		Action: p.log,
	}
}

// revisionJSON is a revision as scripts see it.
type revisionJSON struct {
	Revision uint64    `json:"revision"`
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind"`
	Changes  uint64    `json:"changes"`
	Snapshot string    `json:"snapshot,omitempty"`
	Kept     bool      `json:"kept"`
}

func (p *program) log(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	n, most := uint64(0), c.Uint64("number")
	return p.withStore(c, false, func(s *opened) error {
		var failed error
		err := s.Log(c.Context, args[0], func(e casstore.LogEntry) bool {
			failed = p.printRevision(e, c.Bool("json"))
			n++
			return failed == nil && (most == 0 || n < most)
		})
		if err == nil {
			err = failed
		}
		return err
	})
}

func (p *program) printRevision(e casstore.LogEntry, asJSON bool) error {
	if asJSON {
		return p.printJSON(revisionJSON{
			uint64(e.Rev), e.Time.Go(), e.Kind.String(), e.Records, strings.ToValidUTF8(e.Snapshot, "\uFFFD"), e.Readable,
		})
	}
	mark, name := " ", ""
	if !e.Readable {
		mark = "*"
	}
	if e.Snapshot != "" {
		name = "  " + p.shown(e.Snapshot)
	}
	_, err := fmt.Fprintf(p.stdout, "%8d%s %s  %-8s  %s%s\n", e.Rev, mark, e.Time.Go().Local().Format("2006-01-02 15:04:05"),
		e.Kind, english.Plural(int(e.Records), "change", ""), name)
	return err
}
