package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/execs"
	"github.com/carrelfs/carrel/cmd/carrel/machines"
	"github.com/carrelfs/carrel/cmd/carrel/serving"
	"github.com/carrelfs/carrel/execd/api"
)

// Config says what a daemon does.
type Config struct {
	Store string        // its directory, absolute and without symlinks; made when there is none
	Key   []byte        // casstore.Options.Key
	Mount control.Mount // the first; the zero Mount for a daemon that is to serve other machines or run things
	Agent string        // what it says it is to them
	// Resume also mounts what a daemon before this one, which died, had mounted.
	Resume bool
	Log    *slog.Logger
	Ready  func() // called when the mount is usable, or when it can be asked to serve
}

// Run is the daemon. It returns when nothing keeps it any more (see Hold), or when ctx ends: then everything is unmounted,
// even when it is busy. In both cases all is durable and the store closed, unless the error says otherwise.
func Run(ctx context.Context, o Config) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
		casstore.OnSlabs(func(bytes int) { debug.SetMemoryLimit(memoryLimit - int64(bytes)) })
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
	x, err := execs.Open(execs.Config{Store: s, Dir: o.Store, Keep: t.keep, Flush: t.flush, Log: o.Log})
	if err != nil {
		return errors.Join(err, l.Close(), s.Close())
	}
	server := control.NewServer(releasing{store, x}, t, o.Log)
	book := machines.NewBook(o.Log)
	register := func(handle func(string, http.Handler), access api.Access) {
		x.Register(handle, access)
		book.Register(handle, access)
	}
	register(server.Handle, nil)
	x.RegisterImages(server.Handle)
	server.Offer(serving.New(serving.Config{
		Store: s, Dir: o.Store, Agent: o.Agent, Log: o.Log, API: register, Machines: book, Keep: t.keep,
	}))
	server.Handle("GET "+holdPath, http.HandlerFunc(t.hold))
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = serve(ctx, o, t, server, x)
	return errors.Join(err, x.Close(), t.close(), server.Close(), <-served, s.Close())
}

// releasing is a store of which a workspace can be removed that a container has open in which nothing runs any more.
type releasing struct {
	control.Store
	execs *execs.Service
}

// RemoveWorkspace implements control.Store.
func (r releasing) RemoveWorkspace(ctx context.Context, name string) error {
	r.execs.Release(name)
	return r.Store.RemoveWorkspace(ctx, name)
}

// openStore waits for a process that has the store open for a moment, but not for another daemon.
func openStore(ctx context.Context, o Config) (*casstore.Store, error) {
	deadline := time.Now().Add(storePatience)
	for {
		s, err := casstore.Open(o.Store, casstore.Options{
			Create: true, Key: o.Key, Logger: o.Log, DefaultHistory: casstore.DefaultHistory,
		})
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
func serve(ctx context.Context, o Config, t *table, server *control.Server, x *execs.Service) error {
	switch err := mountAll(ctx, o, t); {
	case errors.Is(err, errNothingLeft):
		o.Log.Info("nothing was mounted any more: ending")
		return nil
	case err != nil:
		return err
	}
	o.Ready()
	select {
	case <-t.empty:
		o.Log.Info("nothing is mounted or served any more: ending")
		return server.Drain(ctx)
	case <-ctx.Done():
	}
	o.Log.Info("ending")
	err := errors.Join(x.Close(), t.close())
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientPatience)
	defer cancel()
	return errors.Join(err, server.Drain(wait))
}

// errNothingLeft is for a daemon that follows one which had nothing mounted any more, and only served.
var errNothingLeft = errors.New("nothing is left to mount")

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
	switch {
	case len(before) > 0:
	case o.Mount == control.Mount{}:
		return nil
	case before != nil:
		return errNothingLeft
	default:
		return t.Mount(ctx, o.Mount)
	}
	infos, err := t.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i, r := range before {
		t.owe(before[i+1:])
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
			m.Workspace = renamed(m.Workspace, in.Name)
			return t.Mount(ctx, m)
		}
	}
	return fmt.Errorf("mount %q on %s: %w", r.Workspace, r.Dir, vfs.ErrNoWorkspace)
}
