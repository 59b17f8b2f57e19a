package main

import (
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"
)

func (p *program) gcCommand() *cli.Command {
	return &cli.Command{
		Name:  "gc",
		Usage: "free the space of what was deleted",
		Description: "The store does this by itself when enough was deleted; this does it now. It works while workspaces are\n" +
			"mounted.",
		Flags:  []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: p.gc,
	}
}

// gcJSON is a collection as scripts see it.
type gcJSON struct {
	Live    uint64 `json:"live_chunks"`
	Dead    uint64 `json:"dead_chunks"`
	Moved   uint64 `json:"moved_bytes"`
	Freed   uint64 `json:"freed_bytes"`
	Removed uint64 `json:"removed_packs"`
}

func (p *program) gc(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		r, err := s.GC(c.Context)
		switch {
		case err != nil:
			return err
		case c.Bool("json"):
			return p.printJSON(gcJSON(r))
		}
		_, err = fmt.Fprintf(p.stdout, "freed %s: %d packs removed, %s moved; %d chunks are in use\n",
			humanize.IBytes(r.Freed), r.Removed, humanize.IBytes(r.Moved), r.Live)
		return err
	})
}
