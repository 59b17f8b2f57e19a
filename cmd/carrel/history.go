package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) historyCommand() *cli.Command {
	return &cli.Command{
		Name:  "history",
		Usage: "say for how long the store keeps what was changed and deleted, or set it",
		Description: "For so long WORKSPACE@2h is the workspace as it was two hours ago, and WORKSPACE@REVISION any revision of\n" +
			"'carrel log'. A new store keeps a day. History takes at most a fifth of the disk, and goes when space is needed;\n" +
			"snapshots stay.",
		Flags: []cli.Flag{
			storeFlag(),
			spanFlag("keep", "keep what was for `TIME`, as 72h or 7d; 0 for nothing", 0),
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: p.history,
	}
}

// historyJSON is what is kept as scripts see it.
type historyJSON struct {
	Keep  float64 `json:"keep_seconds"`
	Start uint64  `json:"start_revision"`
}

// keepHistory does what --keep-history of a mount says.
func (p *program) keepHistory(c *cli.Context) error {
	if !c.IsSet("keep-history") {
		return nil
	}
	return p.withStore(c, true, func(s *opened) error { return s.KeepHistory(c.Context, spanOf(c, "keep-history")) })
}

func (p *program) history(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		if c.IsSet("keep") {
			return s.KeepHistory(c.Context, spanOf(c, "keep"))
		}
		h, err := s.History(c.Context)
		if err != nil {
			return err
		}
		return p.printHistory(h, c.Bool("json"))
	})
}

func (p *program) printHistory(h casstore.History, asJSON bool) (err error) {
	switch {
	case asJSON:
		return p.printJSON(historyJSON{h.Keep.Seconds(), uint64(h.Start)})
	case h.Start == 0:
		_, err = fmt.Fprintln(p.stdout, "no history is kept")
	default:
		_, err = fmt.Fprintf(p.stdout, "kept for %v, from revision %d on\n", h.Keep.Round(time.Second), h.Start)
	}
	return err
}
