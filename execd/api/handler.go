package api

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api/carrel/v1/carrelv1connect"
)

// Config is what the API serves.
type Config struct {
	Execs  *execd.Registry
	Open   func(ctx context.Context, workspace string) (execd.Workspace, error)
	Access Access // Anyone when nil
}

// Register puts the API on a mux, by its Handle method.
func Register(handle func(pattern string, h http.Handler), c Config) {
	if c.Access == nil {
		c.Access = Anyone
	}
	path, h := carrelv1connect.NewExecServiceHandler(&service{c.Execs, c.Access}, connect.WithReadMaxBytes(maxRequest))
	handle(path, h)
	path, h = carrelv1connect.NewFilesServiceHandler(filesService{c}, connect.WithReadMaxBytes(maxRequest))
	handle(path, h)
	p := plain{c}
	handle("GET /c/{ws}/file/{path...}", p.reading(p.get))
	handle("PUT /c/{ws}/file/{path...}", p.changing(p.put))
	handle("DELETE /c/{ws}/file/{path...}", p.changing(p.remove))
	handle("GET /c/{ws}/find", p.reading(p.find))
	handle("GET /c/{ws}/grep", p.reading(p.grep))
	handle("GET /c/{ws}/watch", http.HandlerFunc(p.watchEvents))
	handle("POST /c/{ws}/exec", http.HandlerFunc(p.run))
	handle("GET /c/{ws}/exec/{id}/events", http.HandlerFunc(p.events))
}

// plain is the surface for scripts.
type plain struct{ Config }
