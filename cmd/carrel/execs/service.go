package execs

import (
	"context"
	"crypto/cipher"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/execd/container"
	"github.com/carrelfs/carrel/execd/image"
	"github.com/carrelfs/carrel/execd/js"
	"github.com/carrelfs/carrel/fusefs"
)

// Names of backends. execd.Auto is one more.
const (
	Container = "container"
	Shell     = "shell" // interprets bash in this process
	JS        = "js"    // runs modules of JavaScript
)

// Backends are the names of all, the first the one that is used when none is named.
var Backends = []string{execd.Auto, Shell, Container, JS}

// Config is what a service needs.
type Config struct {
	Store  *casstore.Store // which has the workspaces
	Mirror *Mirror         // in place of a store: the one workspace that there is
	Dir    string          // the store's, or the mirror's
	Log    *slog.Logger
	// Flush returns when the kernel has forgotten what is stale in the mounts of a workspace that others have made. Nil when there
	// are none.
	Flush func(ctx context.Context, workspace string) error
	// Keep keeps the process from ending until release is called. Its error is why that cannot be. Nil when nothing would end
	// it.
	Keep func() (release func(), err error)
}

// Service runs things on the workspaces of a store, or on that of a mirror.
type Service struct {
	config     Config
	places     places
	cells      *cells
	images     *image.Cache
	containers *container.Backend
	backends   map[string]execd.Backend
	execs      *execd.Registry
	closing    context.Context // ends when Close begins
	close      func() error
}

// places is where workspaces are.
type places interface {
	// open opens the workspace of an exec: it is execd.Config.Open.
	open(ctx context.Context, name string) (execd.Workspace, error)
	// tree opens a workspace that is to be mounted.
	tree(ctx context.Context, name string) (vfs.Tree, func() error, error)
}

// Open returns a service with the execs of the daemon before this one.
func Open(c Config) (*Service, error) {
	if c.Keep == nil {
		c.Keep = func() (func(), error) { return func() {}, nil }
	}
	s := &Service{config: c}
	var closes context.CancelFunc
	s.closing, closes = context.WithCancel(context.Background())
	s.close = sync.OnceValue(func() error {
		closes()
		return s.end()
	})
	s.places = stored{s}
	if c.Mirror != nil {
		s.places = mirrored{s}
	}
	var err error
	if s.cells, err = newCells(s.places.tree, filepath.Join(c.Dir, "cells"), c.Log); err != nil {
		return nil, err
	}
	s.images = image.Open(image.Config{Dir: filepath.Join(c.Dir, "images"), Log: c.Log})
	s.containers = container.New(container.Config{
		Mount: s.cells.mount, Resolve: fusefs.Resolve, Host: true, Images: s.images, Bundles: filepath.Join(c.Dir, "bundles"),
		Log: c.Log,
	})
	scripts := newScripts(newRemotes(c.Dir))
	s.backends = map[string]execd.Backend{JS: js.New(), Shell: execd.Func(scripts.run), Container: s.containers}
	s.execs, err = execd.Open(execd.Config{
		Dir: filepath.Join(c.Dir, "exec"), Backends: s.backends, Default: execd.Auto, Choose: scripts.choose,
		Open: s.places.open, Keep: c.Keep, AEAD: s.aead, Log: c.Log,
	})
	if err != nil {
		closes()
		return nil, errors.Join(err, s.closeBackends())
	}
	return s, nil
}

// Register serves the API by the Handle method of a mux, to whom access lets in; anyone when it is nil.
func (s *Service) Register(handle func(pattern string, h http.Handler), access api.Access) {
	api.Register(handle, api.Config{Execs: s.execs, Open: s.places.open, Access: access})
}

// Release lets go of a workspace that nothing runs on: the next exec there starts as the first one does.
func (s *Service) Release(workspace string) { s.containers.Release(workspace) }

// Flush returns when the kernel has forgotten what is stale in every mount of a workspace.
func (s *Service) Flush(ctx context.Context, workspace string) error {
	err := s.cells.flush(ctx, workspace)
	if s.config.Flush != nil {
		err = errors.Join(err, s.config.Flush(ctx, workspace))
	}
	return err
}

// settlePatience is how long who has changed something waits for the mounts that show it. The kernel drops a name in
// microseconds, unless a process that waits for something else has the directory locked.
const settlePatience = 2 * time.Second

// settle is Flush for as long as it is worth waiting.
func (s *Service) settle(ctx context.Context, workspace string) {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	if err := s.Flush(ctx, workspace); err != nil {
		s.config.Log.Debug("mounts may show for a moment what has changed", "workspace", workspace, "err", err)
	}
}

// aead is what an exec's log and state are encrypted with. A mirror is not encrypted, and neither is what ran on it.
func (s *Service) aead(id string) (cipher.AEAD, error) {
	if s.config.Store == nil {
		return nil, nil
	}
	return s.config.Store.AEAD("exec " + id)
}

func (s *Service) keep() (release func(), err error) { return s.config.Keep() }

// Close kills what runs and returns when nothing of it does any more.
func (s *Service) Close() error { return s.close() }

func (s *Service) end() error { return errors.Join(s.execs.Close(), s.closeBackends()) }

func (s *Service) closeBackends() error {
	var errs []error
	for _, b := range s.backends {
		errs = append(errs, b.Close())
	}
	return errors.Join(append(errs, s.images.Close())...)
}
