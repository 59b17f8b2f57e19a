package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) workspaceCommand() *cli.Command {
	jsonFlag := &cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"}
	return &cli.Command{
		Name:   "ws",
		Usage:  "make, list, rename, bound and remove workspaces",
		Action: noSubcommand("create, ls, info, rename, quota or rm"),
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "make an empty workspace", ArgsUsage: "WORKSPACE", Flags: []cli.Flag{storeFlag(), jsonFlag},
				Description: "Makes the store too, when there is none.", Action: p.wsCreate,
			},
			{Name: "ls", Usage: "list workspaces", Flags: []cli.Flag{storeFlag(), jsonFlag}, Action: p.wsList},
			{Name: "info", Usage: "describe a workspace", ArgsUsage: "WORKSPACE", Flags: []cli.Flag{storeFlag(), jsonFlag},
				Action: p.wsInfo},
			{Name: "rename", Usage: "give a workspace another name", ArgsUsage: "WORKSPACE NAME",
				Flags: []cli.Flag{storeFlag()}, Action: p.wsRename},
			p.quotaCommand(),
			{
				Name: "rm", Usage: "remove workspaces with all that is in them", ArgsUsage: "WORKSPACE...",
				Flags:       []cli.Flag{storeFlag()},
				Description: "A workspace that is mounted or in use is not removed. There is no way back.", Action: p.wsRemove,
			},
		},
	}
}

// noSubcommand is for a command that does nothing by itself. which says what it knows.
func noSubcommand(which string) cli.ActionFunc {
	return func(c *cli.Context) error {
		if name := c.Args().First(); name != "" {
			return unknownCommand(c, name)
		}
		return &usageError{c, "which command? " + which}
	}
}

// workspaceJSON is a workspace as scripts see it.
type workspaceJSON struct {
	Name       string    `json:"name"`
	NameBase64 string    `json:"name_base64,omitempty"` // when Name is not UTF-8
	ID         uint64    `json:"id"`
	Created    time.Time `json:"created"`
	Revision   uint64    `json:"revision"`
	Inodes     *uint64   `json:"inodes,omitempty"` // only of info
	Bytes      *uint64   `json:"bytes,omitempty"`  // only of info

	Origin         uint64 `json:"origin_id,omitempty"` // of a fork
	OriginRevision uint64 `json:"origin_revision,omitempty"`
}

func workspaceJSONOf(in casstore.Info, sums bool) workspaceJSON {
	w := workspaceJSON{
		Name: strings.ToValidUTF8(in.Name, "\uFFFD"), NameBase64: base64IfNeeded(in.Name), ID: in.ID,
		Created: in.Created.Go(), Revision: uint64(in.Rev),
		Origin: in.Origin, OriginRevision: uint64(in.OriginRev),
	}
	if sums {
		w.Inodes, w.Bytes = &in.Inodes, &in.Bytes
	}
	return w
}

func (p *program) wsCreate(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	return p.withStore(c, true, func(s *opened) error {
		in, err := s.CreateWorkspace(c.Context, args[0])
		if err != nil || !c.Bool("json") {
			return err
		}
		return p.printJSON(workspaceJSONOf(in, false))
	})
}

func (p *program) wsList(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		list, err := s.Workspaces(c.Context)
		for _, in := range list {
			if c.Bool("json") {
				err = p.printJSON(workspaceJSONOf(in, false))
			} else {
				_, err = fmt.Fprintln(p.stdout, p.shown(in.Name))
			}
			if err != nil {
				return err
			}
		}
		return err
	})
}

func (p *program) wsInfo(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		in, err := s.Info(c.Context, args[0])
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return p.printJSON(workspaceJSONOf(in, true))
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "name\t%s\n", p.shown(in.Name))
		fmt.Fprintf(w, "created\t%s\n", in.Created.Go().Local().Format(time.RFC3339))
		fmt.Fprintf(w, "revision\t%d\n", in.Rev)
		if in.Origin > 0 {
			fmt.Fprintf(w, "fork of\t%s\n", p.originName(c.Context, s, in))
		}
		fmt.Fprintf(w, "inodes\t%d\n", in.Inodes)
		fmt.Fprintf(w, "bytes\t%d (%s)\n", in.Bytes, humanize.IBytes(in.Bytes))
		return w.Flush()
	})
}

// originName says what a workspace is a fork of.
func (p *program) originName(ctx context.Context, s *opened, in casstore.Info) string {
	list, err := s.Workspaces(ctx)
	i := slices.IndexFunc(list, func(o casstore.Info) bool { return o.ID == in.Origin })
	if err != nil || i < 0 {
		return fmt.Sprintf("a workspace that was removed, at revision %d", in.OriginRev)
	}
	return fmt.Sprintf("%s@%d", p.shown(list[i].Name), in.OriginRev)
}

func (p *program) wsRename(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error { return s.RenameWorkspace(c.Context, args[0], args[1]) })
}

func (p *program) wsRemove(c *cli.Context) error {
	args, err := arguments(c, 1, -1)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		for _, name := range args {
			if err := s.RemoveWorkspace(c.Context, name); err != nil {
				return err
			}
		}
		return nil
	})
}
