package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

func (p *program) serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve workspaces to other machines",
		ArgsUsage: "[WORKSPACE...]",
		Description: "Serves the named workspaces, or all that there are and will be, until Ctrl-C or SIGTERM. Prints to stdout,\n" +
			"for each workspace, the URL that its clients need; each needs a token too, which 'carrel token create' makes. The key\n" +
			"in the URL is made when the store is first served, and is the file server.key in the store.\n\n" +
			"When the store is mounted its daemon serves, while this stays. When it is not, this starts a daemon, and mounts\n" +
			"that are made meanwhile end with it.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.StringFlag{
				Name: "listen", Usage: "listen on `ADDR`, UDP and TCP; port 0 takes one that is free",
				Value: ":" + syncwire.DefaultPort,
			},
			&cli.StringFlag{Name: "tls", Usage: "listen on `ADDR` for TCP, not on that of --listen"},
			&cli.StringFlag{
				Name: "unix", Usage: "listen on the unix socket `PATH`", DefaultText: "sync.sock in the store",
			},
			&cli.StringFlag{
				Name: "client-keys", Usage: "let in only clients that show a key whose fingerprint begins a line of `FILE`, and a token;\n" +
					"'carrel sync key' makes one. At the unix socket no key is wanted",
			},
			&cli.StringFlag{
				Name: "api", Usage: "serve execs and files by HTTP over TLS on `ADDR`, and by HTTP/3 where sessions come by QUIC, to who has a token",
			},
			&cli.StringFlag{
				Name: "metrics", Usage: "answer /metrics (Prometheus) and /healthz by HTTP on `ADDR`, to everybody who gets there;\n" +
					"without a host that is this machine alone",
			},
		},
		Action: p.serve,
	}
}

// errOwnerGone says that who had the store open has ended in order, or for good.
var errOwnerGone = errors.New("the process that had the store open has ended")

// serveJob is what is to be served.
type serveJob struct {
	store   string
	options control.ServeOptions
	said    bool // where it is served
}

func parseServeJob(c *cli.Context) (*serveJob, error) {
	names, err := arguments(c, 0, -1)
	if err != nil {
		return nil, err
	}
	j := &serveJob{options: control.ServeOptions{
		Workspaces: names, Listen: c.String("listen"), TLS: c.String("tls"), Unix: c.String("unix"),
		Metrics: c.String("metrics"), API: c.String("api"), ClientKeys: c.String("client-keys"),
	}}
	if len(names) == 0 {
		j.options.Workspaces = nil
	}
	for flag, addr := range map[string]*string{"listen": &j.options.Listen, "tls": &j.options.TLS, "metrics": &j.options.Metrics,
		"api": &j.options.API} {
		if err := completeAddress(addr, flag == "metrics"); err != nil {
			return nil, &usageError{c, fmt.Sprintf("--%s %q: write HOST:PORT or :PORT", flag, *addr)}
		}
	}
	for _, path := range []*string{&j.options.Unix, &j.options.ClientKeys} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil { // the daemon has another working directory
			return nil, err
		}
	}
	j.store, err = storeDir(c)
	return j, err
}

// completeAddress checks an address, and gives one that is for this machine alone a host.
func completeAddress(addr *string, local bool) error {
	if *addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(*addr)
	if err == nil && port == "" {
		err = vfs.ErrInvalid
	}
	if err == nil && local && host == "" {
		*addr = net.JoinHostPort("127.0.0.1", port)
	}
	return err
}

func (p *program) serve(c *cli.Context) error {
	j, err := parseServeJob(c)
	if err != nil {
		return err
	}
	// While there is someone to tell: whether there is a store, and what is to be served.
	err = p.withStore(c, false, func(s *opened) error { return haveWorkspaces(c.Context, s, j.options.Workspaces) })
	if err != nil {
		return err
	}
	for {
		err := p.throughDaemon(c.Context, j.store,
			func(owner *control.Client) error { return p.serveThrough(c.Context, j, owner) },
			func() error { return p.serveHere(c.Context, j) })
		if errors.Is(err, vfs.ErrBusy) {
			return told(err, "'carrel sync status' says what this store serves already; --listen, --tls, --api and --metrics take "+
				"other addresses.")
		}
		if !errors.Is(err, errOwnerGone) || c.Context.Err() != nil {
			return err
		}
	}
}

// haveWorkspaces returns ErrNoWorkspace when one of names is missing.
func haveWorkspaces(ctx context.Context, s control.Store, names []string) error {
	infos, err := s.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(infos, func(in casstore.Info) bool { return in.Name == name }) {
			return fmt.Errorf("workspace %q: %w", name, vfs.ErrNoWorkspace)
		}
	}
	return nil
}

// serveThrough has a daemon that is there serve until ctx ends, and the one that follows it should it crash.
func (p *program) serveThrough(ctx context.Context, j *serveJob, owner *control.Client) error {
	for {
		infos, err := owner.Workspaces(ctx)
		if err == nil {
			err = owner.Serve(ctx, j.options, func(now control.Served) { p.sayServed(j, now, infos) })
		}
		if ctx.Err() != nil || !errors.Is(err, vfs.ErrClosed) {
			return err
		}
		p.say("the daemon that served has ended; waiting for the next one")
		if owner, err = redial(ctx, j.store); err != nil {
			return errOwnerGone
		}
		defer owner.Close() // nothing is changed through it
	}
}

// serveHere starts a daemon that has nothing mounted, has it serve, and ends it.
func (p *program) serveHere(ctx context.Context, j *serveJob) error {
	return p.daemonHere(ctx, j.store, func(owner *control.Client) error { return p.serveThrough(ctx, j, owner) })
}

// sayServed tells where workspaces are, once. When another daemon serves on, it is to do so at the same addresses.
func (p *program) sayServed(j *serveJob, now control.Served, infos []casstore.Info) {
	names := j.options.Workspaces
	j.options = now.ServeOptions
	if j.said {
		return
	}
	j.said = true
	what := "all workspaces"
	if names != nil {
		var shown []string
		for _, name := range names {
			shown = append(shown, p.shown(name))
		}
		what = strings.Join(shown, ", ")
	} else {
		for _, in := range infos {
			names = append(names, in.Name)
		}
	}
	p.say("serving %s at %s; Ctrl-C ends it", what, places(now))
	for _, name := range names {
		fmt.Fprintln(p.stdout, urlOf(now, name))
	}
	_ = p.stdout.Flush() // the error stays, and is reported at the end
}

// places lists where something is served.
func places(now control.Served) string {
	list := []string{now.Listen + " (UDP)", now.TLS + " (TCP)"}
	if now.Unix != "" {
		list = append(list, now.Unix)
	}
	if now.API != "" {
		list = append(list, "https://"+now.API)
	}
	if now.Metrics != "" {
		list = append(list, "http://"+now.Metrics+"/metrics")
	}
	return strings.Join(list, ", ")
}

// urlOf is what a client of a workspace needs to know, beside a token.
func urlOf(now control.Served, workspace string) string {
	_, port, err := net.SplitHostPort(now.Listen)
	pin, pinErr := syncwire.ParseFingerprint(now.Fingerprint)
	if err != nil || pinErr != nil {
		return "" // no owner says so
	}
	return syncwire.Target{Addr: net.JoinHostPort(now.Host, port), Pin: pin, Workspace: workspace}.String()
}
