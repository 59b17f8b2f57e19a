package execs

import (
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/carrelfs/carrel/casstore"
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
	Store *casstore.Store
	Dir   string // the store's
	Log   *slog.Logger
	// Keep keeps the process from ending until release is called. Its error is why that cannot be.
	Keep func() (release func(), err error)
}

// Service runs things on the workspaces of a store.
type Service struct {
	store    *casstore.Store
	cells    *cells
	images   *image.Cache
	backends map[string]execd.Backend
	execs    *execd.Registry
}

// Open returns a service with the execs of the daemon before this one.
func Open(c Config) (*Service, error) {
	s := &Service{store: c.Store}
	var err error
	if s.cells, err = newCells(c.Store, filepath.Join(c.Dir, "cells"), c.Log); err != nil {
		return nil, err
	}
	s.images = image.Open(image.Config{Dir: filepath.Join(c.Dir, "images"), Log: c.Log})
	s.backends = map[string]execd.Backend{
		JS:    js.New(),
		Shell: execd.Func(runShell),
		Container: container.New(container.Config{
			Mount: s.cells.mount, Resolve: fusefs.Resolve, Host: true, Images: s.images, Log: c.Log,
		}),
	}
	s.execs, err = execd.Open(execd.Config{
		Dir: filepath.Join(c.Dir, "exec"), Backends: s.backends, Default: execd.Auto, Choose: choose, Open: s.open, Keep: c.Keep, Log: c.Log,
	})
	return s, err
}

// Register serves the API by the Handle method of a mux, to whom access lets in; anyone when it is nil.
func (s *Service) Register(handle func(pattern string, h http.Handler), access api.Access) {
	api.Register(handle, api.Config{Execs: s.execs, Open: s.open, Access: access})
}

// Close kills what runs and returns when nothing of it does any more.
func (s *Service) Close() error {
	errs := []error{s.execs.Close()}
	for _, b := range s.backends {
		errs = append(errs, b.Close())
	}
	return errors.Join(append(errs, s.images.Close())...)
}
