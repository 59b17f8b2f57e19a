package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

func (p *program) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "say what is different between two workspaces, or states of one",
		ArgsUsage: "WORKSPACE[@WHEN] WORKSPACE[@WHEN]",
		Description: "Both must be states of one workspace or of forks of it. A is for what was added, D for deleted, M for modified,\n" +
			"R for renamed, T when only times are different; what is different of M and R is said behind the path. Renames are\n" +
			"known, not guessed. It takes as long as there are differences, whatever the size of the workspaces.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.BoolFlag{Name: "stat", Usage: "print counts only"},
			&cli.BoolFlag{Name: "patch", Aliases: []string{"p"}, Usage: "print how the text of files has changed, as a unified diff"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"},
		},
		Action: p.diff,
	}
}

// diffJSON is a difference as scripts see it.
type diffJSON struct {
	Kind       string   `json:"kind"`
	Path       string   `json:"path"`
	PathBase64 string   `json:"path_base64,omitempty"` // when Path is not UTF-8
	From       string   `json:"from,omitempty"`
	FromBase64 string   `json:"from_base64,omitempty"`
	Type       string   `json:"type"`
	Changed    []string `json:"changed,omitempty"`
	OldSize    *uint64  `json:"old_size,omitempty"`
	NewSize    *uint64  `json:"new_size,omitempty"`
}

// statJSON is the sum of all differences.
type statJSON struct {
	Added    int   `json:"added"`
	Removed  int   `json:"removed"`
	Modified int   `json:"modified"`
	Renamed  int   `json:"renamed"`
	Bytes    int64 `json:"bytes"` // by which the files have grown altogether
}

func (p *program) diff(c *cli.Context) error {
	args, err := arguments(c, 2, 2)
	if err != nil {
		return err
	}
	if c.Bool("patch") && (c.Bool("json") || c.Bool("stat")) {
		return &usageError{c, "--patch is neither --json nor --stat"}
	}
	return p.withStore(c, false, func(s *opened) error {
		switch {
		case c.Bool("stat"):
			return p.diffStat(c, s, args)
		case c.Bool("patch"):
			return p.diffPatch(c.Context, s, args)
		}
		return s.Diff(c.Context, args[0], args[1], func(e casstore.DiffEntry) error {
			if c.Bool("json") {
				return p.printJSON(diffJSONOf(e))
			}
			_, err := fmt.Fprintln(p.stdout, p.diffLine(e))
			return err
		})
	})
}

func diffJSONOf(e casstore.DiffEntry) diffJSON {
	j := diffJSON{
		Kind: e.Kind.String(), Path: strings.ToValidUTF8(e.Path, "\uFFFD"), PathBase64: base64IfNeeded(e.Path),
		From: strings.ToValidUTF8(e.From, "\uFFFD"), FromBase64: base64IfNeeded(e.From), Changed: e.Fields.Names(),
	}
	if e.Old.Ino != 0 {
		j.Type, j.OldSize = typeWords[e.Old.Type].word, &e.Old.Size
	}
	if e.New.Ino != 0 {
		j.Type, j.NewSize = typeWords[e.New.Type].word, &e.New.Size
	}
	return j
}

// diffLine is a difference on one line.
func (p *program) diffLine(e casstore.DiffEntry) string {
	letter := map[casstore.DiffKind]string{
		casstore.DiffAdded: "A", casstore.DiffRemoved: "D", casstore.DiffModified: "M", casstore.DiffRenamed: "R",
	}[e.Kind]
	if e.Kind == casstore.DiffModified && e.Fields == casstore.DiffTimes {
		letter = "T"
	}
	line := letter + "  "
	if e.From != "" {
		line += p.shown(e.From) + " -> "
	}
	line += p.shown(e.Path)
	if e.New.Type == vfs.TypeDir || e.Kind == casstore.DiffRemoved && e.Old.Type == vfs.TypeDir {
		line = strings.TrimSuffix(line, "/") + "/"
	}
	// That the times are different goes without saying where the bytes are.
	if f := e.Fields; f&casstore.DiffBytes != 0 {
		e.Fields = f &^ casstore.DiffTimes
	}
	if names := e.Fields.Names(); len(names) > 0 && letter != "T" {
		line += "  (" + strings.Join(names, ", ") + ")"
	}
	return line
}

func (p *program) diffStat(c *cli.Context, s *opened, args []string) error {
	var st statJSON
	err := s.Diff(c.Context, args[0], args[1], func(e casstore.DiffEntry) error {
		counts := map[casstore.DiffKind]*int{
			casstore.DiffAdded: &st.Added, casstore.DiffRemoved: &st.Removed, casstore.DiffModified: &st.Modified,
			casstore.DiffRenamed: &st.Renamed,
		}
		*counts[e.Kind]++
		st.Bytes += fileBytes(e.New) - fileBytes(e.Old)
		return nil
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.printJSON(st)
	}
	_, err = fmt.Fprintf(p.stdout, "%d added, %d removed, %d modified, %d renamed; %+d bytes\n",
		st.Added, st.Removed, st.Modified, st.Renamed, st.Bytes)
	return err
}

func fileBytes(a vfs.Attr) int64 {
	if a.Type != vfs.TypeRegular {
		return 0
	}
	return int64(a.Size)
}

// diffPatch holds both sides as they are while it reads what is in their files.
func (p *program) diffPatch(ctx context.Context, s *opened, args []string) (err error) {
	var sides [2]control.Workspace
	var names [2]string
	for i, arg := range args {
		if sides[i], names[i], err = still(ctx, s, arg); err != nil {
			break
		}
		defer func() { err = errors.Join(err, sides[i].Close()) }()
	}
	var entries []casstore.DiffEntry
	if err == nil {
		err = s.Diff(ctx, names[0], names[1], func(e casstore.DiffEntry) error {
			entries = append(entries, e)
			return nil
		})
	}
	for _, e := range entries {
		if err == nil {
			err = p.patch(ctx, sides, e)
		}
	}
	return err
}

// still opens a workspace as it is now, or was, and returns a name for that which stays good while it is open.
func still(ctx context.Context, s *opened, name string) (control.Workspace, string, error) {
	workspace, _, past := casstore.SplitMoment(name)
	if !past {
		w, err := s.OpenWorkspace(ctx, name)
		if err == nil {
			err = errors.Join(w.Sync(ctx), w.Close())
		}
		if err != nil {
			return nil, "", err
		}
		name += "@0s"
	}
	w, err := s.OpenWorkspace(ctx, name)
	if err != nil {
		return nil, "", err
	}
	rev, err := w.Commit(ctx) // of what does not change: the revision that it is
	if err != nil {
		return nil, "", errors.Join(err, w.Close())
	}
	return w, fmt.Sprintf("%s@%d", workspace, rev), nil
}
