package execs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

const (
	// followPace is how long after some news the next come at the earliest: a program that writes all the time is looked at
	// so often, and one that makes many files makes one piece of news of some hundred.
	followPace = 100 * time.Millisecond
	// followHold is for how long a revision is held that nothing has followed. The records of the whole store are kept from
	// the oldest one on that somebody holds.
	followHold = 10 * time.Minute
)

var _ execd.Watched = workspace{}

// Follow implements execd.Watched. It keeps the daemon there, and ends with the service.
func (w workspace) Follow(ctx context.Context, after vfs.Rev, f func(execd.News) error) error {
	release, err := w.service.keep()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.service.closing, func() { cancel(vfs.ErrClosed) })()
	err = w.follow(ctx, after, f)
	if errors.Is(err, vfs.ErrInterrupted) && errors.Is(context.Cause(ctx), vfs.ErrClosed) {
		return fmt.Errorf("watch workspace %q: %w", w.name, vfs.ErrClosed)
	}
	return err
}

func (w workspace) follow(ctx context.Context, after vfs.Rev, f func(execd.News) error) (err error) {
	from, err := w.begin(ctx, after)
	if err != nil {
		return fmt.Errorf("watch workspace %q: %w", w.name, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if after == 0 {
		if err := f(execd.News{Rev: from.Rev()}); err != nil {
			return err
		}
	}
	for tell := after != 0; ; {
		if !tell {
			if tell, err = w.await(ctx, from.Rev()); err != nil {
				return err
			}
		}
		to, err := w.store().OpenView(ctx, w.name, "")
		if err != nil {
			return err
		}
		news, err := w.news(ctx, from, to)
		from, to = to, from
		if err = errors.Join(err, to.Close()); err == nil && (tell || len(news.Changed) > 0) {
			err = f(news)
		}
		tell = false
		if err == nil {
			err = sleep(ctx, followPace)
		}
		if err != nil {
			return err
		}
	}
}

// begin holds the revision from which on is told: that of after, or of now with all that is written.
func (w workspace) begin(ctx context.Context, after vfs.Rev) (*casstore.View, error) {
	when := "" // the newest
	if after != 0 {
		when = strconv.FormatUint(uint64(after), 10)
	} else if _, err := w.tree.Commit(ctx); err != nil {
		return nil, err
	}
	return w.store().OpenView(ctx, w.name, when)
}

// await returns when the workspace has a revision above one, or that one has been held for long enough: then it is told that
// nothing has changed, which is a place to go on from.
func (w workspace) await(ctx context.Context, rev vfs.Rev) (long bool, err error) {
	wait, cancel := context.WithTimeout(ctx, followHold)
	defer cancel()
	_, err = w.tree.Authority().Wait(wait, rev)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return true, nil
	}
	return false, err
}

// news is what has changed between two revisions, both of which are held.
func (w workspace) news(ctx context.Context, from, to *casstore.View) (execd.News, error) {
	news := execd.News{Rev: to.Rev()}
	err := w.differences(ctx, from.Rev(), to.Rev(), func(d execd.Difference) error {
		news.Changed = append(news.Changed, d)
		return nil
	})
	return news, err
}

func (w workspace) differences(ctx context.Context, from, to vfs.Rev, yield func(execd.Difference) error) error {
	return w.store().Diff(ctx, w.at(from), w.at(to), func(d casstore.DiffEntry) error { return yield(differenceOf(d)) })
}

// Differences implements execd.Watched.
func (w workspace) Differences(ctx context.Context, from, to vfs.Rev, yield func(execd.Difference) error) (vfs.Rev, error) {
	held, err := w.begin(ctx, to)
	if err != nil {
		return 0, err
	}
	err = w.differences(ctx, from, held.Rev(), yield)
	return held.Rev(), errors.Join(err, held.Close())
}

var differenceKinds = map[casstore.DiffKind]execd.DifferenceKind{
	casstore.DiffAdded: execd.Added, casstore.DiffRemoved: execd.Removed, casstore.DiffModified: execd.Modified,
	casstore.DiffRenamed: execd.Renamed,
}

func differenceOf(d casstore.DiffEntry) execd.Difference {
	node := d.New
	if d.Kind == casstore.DiffRemoved {
		node = d.Old
	}
	x := execd.Difference{Kind: differenceKinds[d.Kind], Path: d.Path, From: d.From, Type: node.Type, Fields: d.Fields.Names()}
	if node.Type == vfs.TypeRegular {
		x.Size = node.Size
	}
	return x
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", vfs.ErrInterrupted)
	}
}
