package join

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/execs"
	"github.com/carrelfs/carrel/cmd/carrel/machines"
)

// execsName is the socket of what runs on a joined workspace, in the state's directory, which only its user may enter.
const execsName = "exec.sock"

const (
	// headPatience is how long a client may take to send the head of a request.
	headPatience = 10 * time.Second
	// lastWords is how long those who follow an exec may take to be told of its end when the join ends.
	lastWords = 2 * time.Second
)

// runner runs things on the workspace for whoever asks at the socket, and, under a name, for those who may at the server. The API
// is that of a store's daemon (execd/api).
type runner struct {
	execs   *execs.Service
	offer   *machines.Listener // nil when nothing is run for others
	servers []*http.Server
	served  chan error // an error of each server
}

func newRunner(s *session) (*runner, error) {
	c := &s.config
	x, err := execs.Open(execs.Config{
		Mirror: &execs.Mirror{Mirror: s.mirror, Workspace: c.Workspace}, Dir: c.State, Log: c.Log,
		Flush: func(ctx context.Context, _ string) error { return s.server.Flush(ctx) },
	})
	if err != nil {
		return nil, fmt.Errorf("run things: %w", err)
	}
	l, err := listenAt(filepath.Join(c.State, execsName))
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	r := &runner{execs: x, served: make(chan error)}
	mux := http.NewServeMux()
	x.Register(mux.Handle, nil)
	r.serve(&http.Server{
		Handler: mux, ReadHeaderTimeout: headPatience, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}, l)
	if c.Machine != "" {
		mux := http.NewServeMux()
		x.Register(mux.Handle, machines.Access)
		r.offer = machines.Listen(s.client, c.Machine, c.Log)
		r.serve(machines.NewServer(mux, c.Log), r.offer)
	}
	return r, nil
}

func (r *runner) serve(h *http.Server, l net.Listener) {
	r.servers = append(r.servers, h)
	go func() { r.served <- h.Serve(l) }()
}

// close kills what runs, and tells who follows it.
func (r *runner) close() error {
	err := r.execs.Close()
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	for _, h := range r.servers {
		if h.Shutdown(ctx) != nil {
			_ = h.Close() // of a listener that is closed, and clients that do not read
		}
	}
	for range r.servers {
		if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}
	return err
}

// listenAt listens at a path where a join that died may have listened: the state is ours now.
func listenAt(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

// DialExecs connects to what runs things on the workspace of a join. vfs.ErrNotExist when none runs with the state.
func DialExecs(ctx context.Context, state string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(state, execsName))
	if err != nil {
		return nil, fmt.Errorf("no join runs with the state %s: %w: %w", state, vfs.ErrNotExist, err)
	}
	return c, nil
}
