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
			"mounted. While a file is damaged so that its chunks are not known, only what was written since is freed.",
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

	Unreadable uint64 `json:"unreadable_manifests"`
	Spared     uint64 `json:"spared_bytes"`
}

func (p *program) gc(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		r, err := s.GC(c.Context)
		if r.Unreadable > 0 {
			p.warn(fmt.Sprintf("lists of chunks are damaged (%d), and nobody knows which chunks their files have. So %s of packs stay,\n"+
				"whatever is in them. 'carrel check' names the files: when they are removed, from history and snapshots too, or their pack is\n"+
				"put back from a copy of the store, all is collected again.", r.Unreadable, humanize.IBytes(r.Spared)))
		}
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
