package main

import (
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "verify the store",
		Description: "Verifies that all records, chunks and packs are as FORMAT.md says, but for the bytes of chunks, which only\n" +
			"--bytes reads. The exit status is 1 when something is not. It changes nothing, and works while workspaces are\n" +
			"mounted.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.BoolFlag{Name: "bytes", Usage: "also read and hash every chunk"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: p.check,
	}
}

// checkJSON is a check as scripts see it.
type checkJSON struct {
	OK       bool          `json:"ok"`
	Records  uint64        `json:"records"`
	Chunks   uint64        `json:"chunks"`
	Packs    uint64        `json:"packs"`
	Bytes    uint64        `json:"bytes"`
	Problems []problemJSON `json:"problems"`
	More     uint64        `json:"more_problems"` // that are only counted
}

type problemJSON struct {
	Where string `json:"where"`
	What  string `json:"what"`
}

func (p *program) check(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		b := p.newBar("check", -1, false)
		defer b.close()
		r, err := s.Check(c.Context, casstore.CheckOptions{
			Bytes:    c.Bool("bytes"),
			Progress: func(done, _ uint64) { b.set(done) },
		})
		if err != nil {
			return err
		}
		b.close()
		return p.printCheck(r, c.Bool("json"))
	})
}

func (p *program) printCheck(r casstore.CheckReport, asJSON bool) error {
	bad := len(r.Problems) > 0 || r.More > 0
	if asJSON {
		j := checkJSON{!bad, r.Records, r.Chunks, r.Packs, r.Bytes, []problemJSON{}, r.More}
		for _, x := range r.Problems {
			j.Problems = append(j.Problems, problemJSON(x))
		}
		if err := p.printJSON(j); err != nil {
			return err
		}
	} else {
		for _, x := range r.Problems {
			fmt.Fprintf(p.stdout, "%s: %s\n", x.Where, x.What)
		}
		p.say("%d records, %d chunks in %d packs, %s", r.Records, r.Chunks, r.Packs, humanize.IBytes(r.Bytes))
	}
	if !bad {
		return nil
	}
	p.say("%d problems", uint64(len(r.Problems))+r.More)
	return errQuiet
}
