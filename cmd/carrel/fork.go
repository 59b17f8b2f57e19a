package main

import (
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) forkCommand() *cli.Command {
	return &cli.Command{
		Name:      "fork",
		Usage:     "make a workspace that begins as another one is, or was",
		ArgsUsage: "WORKSPACE[@WHEN] NEW",
		Description: "It takes a moment and next to no space, however large the workspace is, also while that is mounted and\n" +
			"written to: what the two have in common is stored once. From then on each is a workspace by itself, and either\n" +
			"can be removed.",
		Flags:  []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: p.fork,
	}
}

func (p *program) fork(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	workspace, when, _ := casstore.SplitMoment(args[0])
	return p.withStore(c, false, func(s *opened) error {
		in, err := s.Fork(c.Context, workspace, when, args[1])
		if err != nil || !c.Bool("json") {
			return err
		}
		return p.printJSON(workspaceJSONOf(in, false))
	})
}
