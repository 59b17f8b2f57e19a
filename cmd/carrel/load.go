package main

import (
	"errors"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

func (p *program) loadCommand() *cli.Command {
	return &cli.Command{
		Name:      "load",
		Usage:     "read from stdin what 'carrel backup' has written",
		ArgsUsage: "< FILE",
		Description: "Makes the workspaces of a backup. Of one that was written with --since it makes the changes, in workspaces that are\n" +
			"as they were when the changes began, and that nobody has open. Nothing can be seen of it until all of it has been read and\n" +
			"verified; a stream that is damaged or cut off changes nothing. Makes the store too, when there is none.",
		Flags: []cli.Flag{
			storeFlag(), &cli.StringFlag{Name: "as", Usage: "call the only workspace of the backup `NAME`"},
			&cli.BoolFlag{Name: "json", Usage: "print what was loaded as a JSON object"},
		},
		Action: p.load,
	}
}

// loadJSON is a load as scripts see it.
type loadJSON struct {
	Revision   uint64 `json:"revision"`
	Workspaces uint64 `json:"workspaces"`
	States     uint64 `json:"states"`
	Records    uint64 `json:"records"`
	Chunks     uint64 `json:"chunks"`
	Bytes      uint64 `json:"bytes"`
}

func (p *program) load(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withStore(c, true, func(s *opened) error {
		r, err := s.Load(c.Context, casstore.LoadOptions{As: c.String("as")}, p.stdin)
		switch {
		case errors.Is(err, vfs.ErrExist):
			return told(err, "Rename or remove that workspace; a backup of a single one can be loaded --as another.")
		case errors.Is(err, vfs.ErrCorrupt):
			return told(err, "Nothing was loaded: the stream is not what 'carrel backup' has written, or it was cut off.")
		case err != nil:
			return err
		case c.Bool("json"):
			return p.printJSON(loadJSON{
				Revision: uint64(r.Rev), Workspaces: r.Workspaces, States: r.States, Records: r.Records, Chunks: r.Chunks, Bytes: r.Bytes,
			})
		}
		p.say("loaded %d workspaces in %d states, %s", r.Workspaces, r.States, humanize.IBytes(r.Bytes))
		return nil
	})
}
