package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "make a workspace, or a path of it, what it was",
		ArgsUsage: "WORKSPACE@WHEN [PATH]",
		Description: "All at once, also while it is mounted: what was removed comes back, what was made since goes. That is a revision\n" +
			"like any other: 'carrel log WORKSPACE' names the one before it, which can be restored as well.\n\n" +
			"With PATH, that file or directory becomes what it was, with all that was below it, and nothing else changes but\n" +
			"for the other names of hard links. What was moved away from there meanwhile stays where it is.",
		Flags:  []cli.Flag{storeFlag()},
		Action: p.restore,
	}
}

func (p *program) restore(c *cli.Context) error {
	args, err := arguments(c, 1, 2)
	if err != nil {
		return err
	}
	workspace, when, past := casstore.SplitMoment(args[0])
	if !past || when == "" {
		return &usageError{c, fmt.Sprintf("%q does not say to when: write WORKSPACE@WHEN", args[0])}
	}
	path := ""
	if len(args) > 1 {
		path = "/" + strings.TrimPrefix(args[1], "/")
	}
	return p.withStore(c, false, func(s *opened) error { return s.Restore(c.Context, workspace, when, path) })
}
