package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Config says what a daemon does.
type Config struct {
	Store string        // its directory, absolute and without symlinks; made when there is none
	Mount control.Mount // the first
	// Resume also mounts what a daemon before this one, which died, had mounted.
	Resume bool
	Log    *slog.Logger
	Ready  func() // called when the mount is usable
}

// Run is the daemon. It returns when the last mount has gone, or when ctx ends: then everything is unmounted, even when
// it is busy. In both cases all is durable and the store closed, unless the error says otherwise.
func Run(ctx context.Context, o Config) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	s, err := openStore(ctx, o)
	if err != nil {
		return err
	}
	l, err := control.Listen(o.Store)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	store := control.Own(s)
	t := newTable(store, o.Store, o.Log)
	server := control.NewServer(store, t, o.Log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = serve(ctx, o, t, server)
	return errors.Join(err, t.close(), server.Close(), <-served, s.Close())
}

// openStore waits for a process that has the store open for a moment, but not for another daemon.
func openStore(ctx context.Context, o Config) (*casstore.Store, error) {
	deadline := time.Now().Add(storePatience)
	for {
		s, err := casstore.Open(o.Store, casstore.Options{Create: true, Logger: o.Log})
		if !errors.Is(err, vfs.ErrInUse) || time.Now().After(deadline) {
			return s, err
		}
		if c, dialErr := control.Dial(ctx, o.Store); dialErr == nil {
			mounts := c.Owner().Mounts
			if closeErr := c.Close(); closeErr != nil || mounts {
				return nil, errors.Join(err, closeErr)
			}
		}
		select {
		case <-time.After(storeRetry):
		case <-ctx.Done():
			return nil, fmt.Errorf("open the store: %w", vfs.ErrInterrupted)
		}
	}
}

// serve mounts, says so, and waits for the end.
func serve(ctx context.Context, o Config, t *table, server *control.Server) error {
	if err := mountAll(ctx, o, t); err != nil {
		return err
	}
	o.Ready()
	select {
	case <-t.empty:
		o.Log.Info("nothing is mounted any more: ending")
		return server.Drain(ctx)
	case <-ctx.Done():
	}
	o.Log.Info("ending")
	err := t.close()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientPatience)
	defer cancel()
	return errors.Join(err, server.Drain(wait))
}

// mountAll makes the first mount, or those that a dead daemon had. Of these one that fails is logged: it must not keep
// the others away.
func mountAll(ctx context.Context, o Config, t *table) error {
	var before []recorded
	var err error
	if o.Resume {
		if before, err = readRecord(o.Store); err != nil {
			o.Log.Error("what was mounted before is not known", "err", err)
		}
	}
	if len(before) == 0 {
		return t.Mount(ctx, o.Mount)
	}
	infos, err := t.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range before {
		if err := mountAgain(ctx, t, r, infos); err != nil {
			o.Log.Error("mount again", "err", err)
			errs = append(errs, err)
		}
	}
	if len(errs) == len(before) {
		return errors.Join(errs...)
	}
	return nil
}

// mountAgain never makes a workspace: what was mounted had one, whatever its name is now.
func mountAgain(ctx context.Context, t *table, r recorded, infos []casstore.Info) error {
	for _, in := range infos {
		if in.ID == r.ID {
			m := r.mount()
			m.Workspace = in.Name
			return t.Mount(ctx, m)
		}
	}
	return fmt.Errorf("mount %q on %s: %w", r.Workspace, r.Dir, vfs.ErrNoWorkspace)
}
