package main

import (
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

func (p *program) mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "take what has changed in a fork into another workspace",
		ArgsUsage: "FORK INTO",
		Description: "What has changed in FORK since it was forked, or was last merged, is changed in INTO, in one revision, also while\n" +
			"both are mounted and written to. What only one of the two has changed is as that has it; text files are merged\n" +
			"line by line. Where both have changed the same, INTO's stays, FORK's is beside it as NAME.conflict-FORK-1, and\n" +
			"'carrel conflicts INTO' lists it until it is resolved. What one removed and the other changed stays. Conflicts\n" +
			"are no failure.\n\n" +
			"It prints what is different in INTO, as 'carrel diff' does, and a C before each conflict. The revision before is\n" +
			"in 'carrel log INTO' and can be restored; then the same can be merged again. FORK stays as it is.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only say what would happen"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: p.merge,
	}
}

// mergeJSON is a merge as scripts see it.
type mergeJSON struct {
	Rev       vfs.Rev            `json:"rev,omitempty"`
	DryRun    bool               `json:"dry_run,omitempty"`
	Changes   []diffJSON         `json:"changes"`
	Conflicts []reconcile.Listed `json:"conflicts"`
}

func (p *program) merge(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		report, err := s.Merge(c.Context, args[0], args[1], c.Bool("dry-run"))
		switch {
		case err != nil:
			return err
		case c.Bool("json"):
			return p.printJSON(mergeJSONOf(report, c.Bool("dry-run")))
		}
		return p.printMerge(report, args[1], c.Bool("dry-run"))
	})
}

func mergeJSONOf(report casstore.MergeReport, try bool) mergeJSON {
	j := mergeJSON{Rev: report.Rev, DryRun: try, Changes: []diffJSON{}, Conflicts: []reconcile.Listed{}}
	for _, e := range report.Changes {
		j.Changes = append(j.Changes, diffJSONOf(e))
	}
	j.Conflicts = append(j.Conflicts, report.Conflicts...)
	return j
}

func (p *program) printMerge(report casstore.MergeReport, into string, try bool) error {
	for _, e := range report.Changes {
		if _, err := fmt.Fprintln(p.stdout, p.diffLine(e)); err != nil {
			return err
		}
	}
	for _, x := range report.Conflicts {
		if _, err := fmt.Fprintln(p.stdout, p.conflictLine(x)); err != nil {
			return err
		}
	}
	if n := len(report.Conflicts); n > 0 && !try {
		p.say("%d conflicts: 'carrel conflicts %s' lists them", n, into)
	}
	return nil
}

// conflictLine is a conflict on one line.
func (p *program) conflictLine(x reconcile.Listed) string {
	about := x.Kind
	if x.Copy != "" {
		about += ", " + p.shown(x.Copy)
	}
	return "C  " + p.shown(x.Path) + "  (" + about + ")"
}

func (p *program) conflictsCommand() *cli.Command {
	return &cli.Command{
		Name:      "conflicts",
		Usage:     "list what merges into a workspace could not merge; both versions are there",
		ArgsUsage: "WORKSPACE",
		Description: "Each has a number, a kind, a time, the path that it is about, and the copy beside it, if there is one. The kinds:\n" +
			"bytes, both changed a file; name, both gave a name to something; removed, one removed what the other changed, and it\n" +
			"is there; moved, both moved it, and it is where WORKSPACE had it; attribute, both set it, and the other value is said.",
		Flags:  []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"}},
		Action: p.conflicts,
		Subcommands: []*cli.Command{{
			Name: "resolve", ArgsUsage: "WORKSPACE NUMBER", Action: p.resolveConflict,
			Usage: "take a conflict off the list",
			Flags: []cli.Flag{storeFlag(), keepFlag()},
		}},
	}
}

// keepFlag says how a conflict is resolved.
func keepFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "keep", Value: string(reconcile.KeepBoth),
		Usage: "keep `WHICH`: both; theirs or mine, which has the name then, and the other is removed",
	}
}

// resolution is what a number and the keep flag say.
func resolution(c *cli.Context, arg string) (number uint64, how reconcile.Resolution, err error) {
	number, err = strconv.ParseUint(arg, 10, 64)
	if err != nil {
		return 0, "", &usageError{c, fmt.Sprintf("%q is no number of a conflict", arg)}
	}
	how = reconcile.Resolution(c.String("keep"))
	if !how.Valid() {
		return 0, "", &usageError{c, fmt.Sprintf("--keep %s: it is 'both', 'theirs' or 'mine'", how)}
	}
	return number, how, nil
}

func (p *program) conflicts(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		list, err := s.Conflicts(c.Context, args[0])
		if err != nil {
			return err
		}
		return p.printConflicts(list, c.Bool("json"))
	})
}

func (p *program) resolveConflict(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	number, how, err := resolution(c, args[1])
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error { return s.ResolveConflict(c.Context, args[0], number, how) })
}
