package main

import (
	"errors"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

func (p *program) backupCommand() *cli.Command {
	return &cli.Command{
		Name:      "backup",
		Usage:     "write workspaces to stdout, to be loaded elsewhere",
		ArgsUsage: "[WORKSPACE...] > FILE",
		Description: "Writes all workspaces, or those named, with their snapshots and conflicts, and what was merged between them, all as\n" +
			"they are at one moment, also while they are mounted and written to. What forks have in common is there once. With\n" +
			"--since it writes only what has changed since then, which can be loaded where the backup before was. 'carrel load'\n" +
			"reads the stream. Replicas of other stores are left out; atimes, quotas and history are too, and so are snapshots\n" +
			"and conflicts of workspaces of which only the changes are written. The stream of an encrypted store is not\n" +
			"encrypted: pipe it through a program that does that.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.StringFlag{
				Name:  "since",
				Usage: "write what has changed since `WHEN`: the revision that the backup before has printed, a snapshot, or so long ago",
			},
		},
		Action: p.backup,
	}
}

func (p *program) backup(c *cli.Context) error {
	args, err := arguments(c, 0, -1)
	if err != nil {
		return err
	}
	if p.screen {
		return &usageError{c, "a backup would spoil the terminal: redirect stdout"}
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	if casstore.Encrypted(dir) {
		p.warn("the store is encrypted, and what is written is not")
	}
	return p.withStore(c, false, func(s *opened) error {
		r, err := s.Backup(c.Context, casstore.BackupOptions{Workspaces: args, Since: c.String("since")}, p.stdout)
		if err == nil {
			err = p.stdout.Flush()
		}
		if errors.Is(err, vfs.ErrNoRevision) {
			return told(err, "Write a backup of all of it, without --since. 'carrel history --keep' says for how long what was can be read,\n"+
				"and a snapshot can be as long as it is there.")
		}
		if err == nil {
			p.say("revision %d: %d workspaces in %d states, %s; the next backup can be --since %d", r.Rev, r.Workspaces, r.States,
				humanize.IBytes(r.Bytes), r.Rev)
		}
		return err
	})
}
