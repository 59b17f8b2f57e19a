package main

import (
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
)

func (p *program) quotaCommand() *cli.Command {
	return &cli.Command{
		Name: "quota", Usage: "bound what a workspace may hold, or say what it holds", ArgsUsage: "WORKSPACE",
		Description: "Bytes are those of its files by their sizes, holes included; inodes are files, directories and all else. Who\n" +
			"writes more gets EDQUOT, and 'df' shows what is left. A fork begins with the bounds of what it was made of, and has\n" +
			"its own. A merge, a restore and a load may go beyond them. 'none' removes a bound; without any flag it says what is\n" +
			"used. It works while the workspace is mounted.",
		Flags: []cli.Flag{
			storeFlag(), &cli.StringFlag{Name: "bytes", Usage: "at most `SIZE` bytes (10G), or none"},
			&cli.StringFlag{Name: "inodes", Usage: "at most `NUMBER` inodes, or none"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: p.quota,
	}
}

// quotaJSON is a quota as scripts see it.
type quotaJSON struct {
	Bytes      uint64 `json:"bytes,omitempty"`
	Inodes     uint64 `json:"inodes,omitempty"`
	UsedBytes  uint64 `json:"used_bytes"`
	UsedInodes uint64 `json:"used_inodes"`
}

func (p *program) quota(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		use, err := s.Quota(c.Context, args[0])
		if err != nil {
			return err
		}
		if c.IsSet("bytes") || c.IsSet("inodes") {
			if err := readQuota(c, &use.Quota); err != nil {
				return err
			}
			return s.SetQuota(c.Context, args[0], use.Quota)
		}
		if c.Bool("json") {
			return p.printJSON(quotaJSON{use.Bytes, use.Inodes, use.UsedBytes, use.UsedInodes})
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "bytes\t%s\n", usedOf(humanize.IBytes(use.UsedBytes), humanize.IBytes(use.Bytes), use.Bytes > 0))
		fmt.Fprintf(w, "inodes\t%s\n", usedOf(humanize.Comma(int64(use.UsedInodes)), humanize.Comma(int64(use.Inodes)), use.Inodes > 0))
		return w.Flush()
	})
}

func usedOf(used, bound string, bounded bool) string {
	if !bounded {
		return used + ", unbounded"
	}
	return used + " of " + bound
}

// readQuota sets what the command line says.
func readQuota(c *cli.Context, q *casstore.Quota) (err error) {
	if text := c.String("bytes"); text == "none" {
		q.Bytes = 0
	} else if c.IsSet("bytes") {
		if q.Bytes, err = humanize.ParseBytes(text); err != nil || q.Bytes == 0 {
			return &usageError{c, fmt.Sprintf("--bytes %q is no size: write 10G, 500M, or none", text)}
		}
	}
	if text := c.String("inodes"); text == "none" {
		q.Inodes = 0
	} else if c.IsSet("inodes") {
		if q.Inodes, err = strconv.ParseUint(text, 10, 63); err != nil || q.Inodes == 0 {
			return &usageError{c, fmt.Sprintf("--inodes %q is no number of inodes: write 100000, or none", text)}
		}
	}
	return nil
}
