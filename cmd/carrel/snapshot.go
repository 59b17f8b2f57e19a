package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) snapshotCommand() *cli.Command {
	jsonFlag := &cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"}
	return &cli.Command{
		Name:   "snapshot",
		Usage:  "name states of a workspace, which stay as they are",
		Action: noSubcommand("create, ls or rm"),
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "name the present state of a workspace", ArgsUsage: "WORKSPACE NAME",
				Description: "Everything that was written before is in it, also by programs that have the files open. WORKSPACE@NAME\n" +
					"is that state, for ls, cat, get, find, grep, export and, read-only, mount.",
				Flags: []cli.Flag{
					storeFlag(), jsonFlag, &cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "say `WHY`"},
				},
				Action: p.snapshotCreate,
			},
			{
				Name: "ls", Usage: "list the snapshots of a workspace, the oldest first", ArgsUsage: "WORKSPACE",
				Flags: []cli.Flag{storeFlag(), jsonFlag}, Action: p.snapshotList,
			},
			{
				Name: "rm", Usage: "forget snapshots", ArgsUsage: "WORKSPACE NAME...", Flags: []cli.Flag{storeFlag()},
				Description: "What only they have shown is gone then, and its space is free when 'carrel gc' has run.",
				Action:      p.snapshotRemove,
			},
		},
	}
}

// snapshotJSON is a snapshot as scripts see it.
type snapshotJSON struct {
	Name       string    `json:"name"`
	NameBase64 string    `json:"name_base64,omitempty"` // when Name is not UTF-8
	Revision   uint64    `json:"revision"`
	Created    time.Time `json:"created"`
	Message    string    `json:"message,omitempty"`
}

func snapshotJSONOf(sn casstore.Snapshot) snapshotJSON {
	return snapshotJSON{
		Name: strings.ToValidUTF8(sn.Name, "\uFFFD"), NameBase64: base64IfNeeded(sn.Name), Revision: uint64(sn.Rev),
		Created: sn.Created.Go(), Message: strings.ToValidUTF8(sn.Message, "\uFFFD"),
	}
}

func (p *program) snapshotCreate(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		sn, err := s.CreateSnapshot(c.Context, args[0], args[1], c.String("message"))
		if err != nil || !c.Bool("json") {
			return err
		}
		return p.printJSON(snapshotJSONOf(sn))
	})
}

func (p *program) snapshotList(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		list, err := s.Snapshots(c.Context, args[0])
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		for _, sn := range list {
			if c.Bool("json") {
				err = p.printJSON(snapshotJSONOf(sn))
			} else {
				first, _, _ := strings.Cut(sn.Message, "\n")
				_, err = fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", p.shown(sn.Name), sn.Rev,
					sn.Created.Go().Local().Format("2006-01-02 15:04:05"), p.shown(first))
			}
			if err != nil {
				return err
			}
		}
		return w.Flush()
	})
}

func (p *program) snapshotRemove(c *cli.Context) error {
	args, err := arguments(c, 2, -1)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		for _, name := range args[1:] {
			if err := s.RemoveSnapshot(c.Context, args[0], name); err != nil {
				return err
			}
		}
		return nil
	})
}
