package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

func (p *program) watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "say what changes in a workspace, whoever changes it",
		ArgsUsage: "WORKSPACE[:/PATH]|DIR",
		Description: "Prints what changes at PATH and below it, or in the directory DIR of a mounted workspace, until Ctrl-C: by a\n" +
			"mount, a command, an exec, an agent or another machine, within a moment. A, D, M, R and T are what 'carrel diff' has;\n" +
			"what was done and undone in between is not told, and neither is what was there before. inotify on a mount tells what\n" +
			"is done through that mount alone.\n\n" +
			"With --json, a line of a revision alone says that all up to it was told: --after goes on from there, for as long as the\n" +
			"history is kept. A workspace that was joined is watched where its store is.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.Uint64Flag{Name: "after", Usage: "begin with what has changed since `REVISION`", DefaultText: "now"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"},
		},
		Action: p.watch,
	}
}

// watchJSON is a change as scripts see it, or, with a revision alone, the end of what has changed up to that.
type watchJSON struct {
	Kind       string   `json:"kind,omitempty"`
	Path       string   `json:"path,omitempty"`
	PathBase64 string   `json:"path_base64,omitempty"` // when Path is not UTF-8
	From       string   `json:"from,omitempty"`
	FromBase64 string   `json:"from_base64,omitempty"`
	Type       string   `json:"type,omitempty"`
	Size       uint64   `json:"size,omitempty"`
	Changed    []string `json:"changed,omitempty"`
	Revision   uint64   `json:"revision,omitempty"`
}

func watchJSONOf(d execd.Difference) watchJSON {
	return watchJSON{
		Kind: string(d.Kind), Path: strings.ToValidUTF8(d.Path, "\uFFFD"), PathBase64: base64IfNeeded(d.Path),
		From: strings.ToValidUTF8(d.From, "\uFFFD"), FromBase64: base64IfNeeded(d.From), Type: typeWords[d.Type].word, Size: d.Size,
		Changed: d.Fields,
	}
}

// watching is a watch that goes on over daemons that die.
type watching struct {
	*program
	at   place
	x    *api.Client
	json bool
	rev  vfs.Rev // up to which everything was told; zero before the first answer
}

func (p *program) watch(c *cli.Context) error {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return err
	}
	at, err := parsePlace(c, args[0])
	switch {
	case err != nil:
		return err
	case at.joined != "":
		return told(fmt.Errorf("watch %s: %w", args[0], vfs.ErrNotSupported),
			"It was joined: watch it on the machine where its store is, or by the API there (carrel serve --api).")
	}
	if err := p.storeThere(c.Context, at.store); err != nil {
		return err
	}
	return p.withExecs(c.Context, at.store, "", func(x *api.Client) error {
		w := &watching{p, at, x, c.Bool("json"), vfs.Rev(c.Uint64("after"))}
		return w.run(c.Context)
	})
}

// storeThere returns an error when there is no store, which is not to be made.
func (p *program) storeThere(ctx context.Context, dir string) error {
	s, err := p.open(ctx, dir, false)
	if err != nil {
		return err
	}
	return s.close()
}

const (
	// watchPatience is how long no daemon may be there after one has died.
	watchPatience = time.Minute
	// watchSettled is how long a watch must have lasted to be one by a daemon: who finds none is told so at once.
	watchSettled = time.Second
)

func (w *watching) run(ctx context.Context) error {
	var deadline time.Time // for the next daemon to come
	for {
		before, began := w.rev, time.Now()
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, vfs.ErrClosed):
			return err
		case w.rev != before || deadline.IsZero() || time.Since(began) > watchSettled:
			deadline = time.Now().Add(watchPatience)
		case time.Now().After(deadline):
			return err
		}
		if err := waitFor(ctx, ownerRetry); err != nil {
			return nil
		}
	}
}

// follow tells what comes from one daemon.
func (w *watching) follow(ctx context.Context) error {
	news, err := w.x.Watch(ctx, w.at.workspace, w.at.path, w.rev)
	if err != nil {
		return err
	}
	defer news.Close()
	for {
		m, err := news.Next()
		if err == nil {
			err = w.tell(m)
		}
		if err != nil {
			return err
		}
	}
}

func (w *watching) tell(m *carrelv1.WatchResponse) error {
	for _, c := range m.GetChanges() {
		if err := w.print(api.Change(c)); err != nil {
			return err
		}
	}
	if rev := m.GetRevision(); rev != 0 {
		if w.json {
			if err := w.printJSON(watchJSON{Revision: rev}); err != nil {
				return err
			}
		} else if w.rev == 0 {
			w.say("watching %s:%s from revision %d on", w.shown(w.at.workspace), w.shown(w.at.path), rev)
		}
		w.rev = vfs.Rev(rev)
	}
	return w.stdout.Flush()
}

func (w *watching) print(d execd.Difference) error {
	if w.json {
		return w.printJSON(watchJSONOf(d))
	}
	_, err := fmt.Fprintln(w.stdout, w.diffLine(entryOf(d)))
	return err
}

var diffKindOf = map[execd.DifferenceKind]casstore.DiffKind{
	execd.Added: casstore.DiffAdded, execd.Removed: casstore.DiffRemoved, execd.Modified: casstore.DiffModified,
	execd.Renamed: casstore.DiffRenamed,
}

// entryOf is a difference as far as diffLine looks at it.
func entryOf(d execd.Difference) casstore.DiffEntry {
	node := vfs.Attr{Type: d.Type, Size: d.Size}
	e := casstore.DiffEntry{Kind: diffKindOf[d.Kind], Path: d.Path, From: d.From, Old: node, New: node}
	for i := range 8 {
		if f := casstore.DiffFields(1 << i); len(f.Names()) == 1 && slices.Contains(d.Fields, f.Names()[0]) {
			e.Fields |= f
		}
	}
	return e
}
