package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

const (
	// ownerPatience is how long a command waits for an owner that has the store and does not serve it: one that is
	// just opening or closing it.
	ownerPatience = 10 * time.Second
	// ownerRetry is how often it looks.
	ownerRetry = 25 * time.Millisecond
)

func storeFlag() cli.Flag {
	return &cli.StringFlag{Name: "store", Usage: "work on the store in `DIR`"}
}

// storeDir returns the store's directory, absolute and without symlinks where it exists.
func storeDir(c *cli.Context) (string, error) {
	dir := ""
	for _, x := range c.Lineage() {
		if s := x.String("store"); s != "" && dir == "" {
			dir = s
		}
	}
	if dir == "" {
		dir = os.Getenv("CARREL_STORE")
	}
	if data := os.Getenv("XDG_DATA_HOME"); dir == "" && filepath.IsAbs(data) {
		dir = filepath.Join(data, "carrel")
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", told(fmt.Errorf("find the store: %w", err), "Name it: --store DIR, or set CARREL_STORE.")
		}
		dir = filepath.Join(home, ".local", "share", "carrel")
	}
	return realPath(dir)
}

// realPath makes a path absolute and resolves the symlinks in the part of it that exists.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) && path != "/" {
		dir, err := realPath(filepath.Dir(path))
		return filepath.Join(dir, filepath.Base(path)), err
	}
	return real, err
}

// opened is a store, in this process or another. It must be closed.
type opened struct {
	control.Store
	owner *control.Client // nil when this process is the owner
	close func() error
}

// open finds the owner of the store, or becomes it. create makes a store that is not there.
func (p *program) open(ctx context.Context, dir string, create bool) (*opened, error) {
	deadline := time.Now().Add(p.patience)
	for {
		c, err := control.Dial(ctx, dir)
		if err == nil {
			return &opened{Store: c, owner: c, close: c.Close}, nil
		}
		if !errors.Is(err, control.ErrNoOwner) && !errors.Is(err, vfs.ErrClosed) {
			return nil, err
		}
		o, err := p.own(dir, create)
		if !errors.Is(err, vfs.ErrInUse) || time.Now().After(deadline) {
			return o, noStore(dir, err)
		}
		if err := waitFor(ctx, ownerRetry); err != nil {
			return nil, err
		}
	}
}

// noStore says what to do when there is no store.
func noStore(dir string, err error) error {
	if !errors.Is(err, vfs.ErrNotStore) {
		return err
	}
	if entries, readErr := os.ReadDir(dir); readErr == nil && len(entries) > 0 {
		return told(err, "%s holds something else. Name another directory with --store DIR, or set CARREL_STORE.", dir)
	}
	return told(err, "There is no store yet. 'carrel mount WORKSPACE DIR' or 'carrel ws create WORKSPACE' makes "+
		"it;\n--store DIR or CARREL_STORE names another.")
}

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// own opens the store in this process and serves it to others meanwhile.
func (p *program) own(dir string, create bool) (*opened, error) {
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	s, err := casstore.Open(dir, casstore.Options{Create: create, Key: key, DefaultHistory: casstore.DefaultHistory})
	if err != nil {
		return nil, err
	}
	l, err := control.Listen(dir)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	store := control.Own(s)
	server := control.NewServer(store, nil, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return &opened{Store: store, close: func() error { return p.disown(s, server, served) }}, nil
}

// disown waits for the commands that work through this process, and closes the store.
func (p *program) disown(s *casstore.Store, server *control.Server, served <-chan error) error {
	if n := server.Busy(); n > 0 {
		p.say("waiting for %d other commands that use the store through this one", n)
	}
	return errors.Join(server.Drain(context.Background()), server.Close(), <-served, s.Close())
}

// withStore runs f on the store of the command line.
func (p *program) withStore(c *cli.Context, create bool, f func(s *opened) error) error {
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	s, err := p.open(c.Context, dir, create)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.close())
}

// withWorkspace runs f on a workspace. What f did is durable when it returns nil.
func (p *program) withWorkspace(c *cli.Context, name string, f func(w control.Workspace) error) error {
	return p.withStore(c, false, func(s *opened) error {
		w, err := s.OpenWorkspace(c.Context, name)
		if err != nil {
			return err
		}
		return errors.Join(f(w), w.Close())
	})
}
