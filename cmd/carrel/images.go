package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/execs"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/execd/image"
)

func (p *program) imagesCommand() *cli.Command {
	return &cli.Command{
		Name:   "images",
		Usage:  "list and remove the images that were unpacked for containers",
		Action: noSubcommand("ls, rm or prune"),
		Description: "What 'carrel exec --image' has unpacked stays in the store's directory until nobody has used it for a week, or all\n" +
			"of it is more than 20 GiB. What is removed is unpacked again when it is needed.",
		Subcommands: []*cli.Command{
			{
				Name: "ls", Usage: "list them, the last used first", Action: p.imagesLs,
				Flags: []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"}},
			},
			{
				Name: "rm", Usage: "remove images that nothing uses", ArgsUsage: "IMAGE...", Action: p.imagesRm, Flags: []cli.Flag{storeFlag()},
				Description: "IMAGE is a name that 'carrel images ls' prints, or how only one of them begins.",
			},
			{Name: "prune", Usage: "remove all images that nothing uses", Action: p.imagesPrune, Flags: []cli.Flag{storeFlag()}},
		},
	}
}

// images are those of a daemon.
type images struct{ http.Client }

// withImages works with the images of the store of the command line.
func (p *program) withImages(c *cli.Context, f func(ctx context.Context, m *images) error) error {
	store, err := storeDir(c)
	if err != nil {
		return err
	}
	if err := p.withStore(c, false, func(*opened) error { return nil }); err != nil {
		return err // there is no store, and none is to be made
	}
	ask := func(*control.Client) error { // the connection keeps the daemon there
		t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return control.DialSocket(ctx, store) }}
		defer t.CloseIdleConnections()
		return f(c.Context, &images{http.Client{Transport: t}})
	}
	return p.throughDaemon(c.Context, store, ask, func() error { return p.daemonHere(c.Context, store, ask, "--quiet") })
}

// call makes a request, and reads what is answered.
func (m *images) call(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://carrel"+execs.ImagesPath+path, nil)
	if err != nil {
		return nil, err
	}
	r, err := m.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close() // it is read
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode >= http.StatusBadRequest {
		err = api.PlainError(r.Header, string(b))
	}
	return b, err
}

func (m *images) list(ctx context.Context) (list []image.Kept, err error) {
	b, err := m.call(ctx, http.MethodGet, "")
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(b, &list)
}

func (m *images) remove(ctx context.Context, name string) error {
	_, err := m.call(ctx, http.MethodDelete, "/"+name)
	return err
}

func (p *program) imagesLs(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withImages(c, func(ctx context.Context, m *images) error {
		list, err := m.list(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		if !c.Bool("json") {
			fmt.Fprintln(w, "IMAGE\tSIZE\tLAST USED")
		}
		for _, k := range list {
			if c.Bool("json") {
				if err := p.printJSON(k); err != nil {
					return err
				}
				continue
			}
			used := humanize.Time(k.Used)
			switch {
			case k.InUse:
				used = "in use"
			case k.Used.IsZero():
				used = "damaged"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", k.Name, humanize.IBytes(uint64(k.Bytes)), used)
		}
		return w.Flush()
	})
}

func (p *program) imagesRm(c *cli.Context) error {
	args, err := arguments(c, 1, -1)
	if err != nil {
		return err
	}
	return p.withImages(c, func(ctx context.Context, m *images) error {
		for _, arg := range args {
			list, err := m.list(ctx)
			if err != nil {
				return err
			}
			k, err := imageNamed(list, arg)
			if err == nil {
				err = m.remove(ctx, k.Name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// imageNamed finds the only image whose name begins so.
func imageNamed(list []image.Kept, prefix string) (found image.Kept, err error) {
	n := 0
	for _, k := range list {
		if strings.HasPrefix(k.Name, prefix) {
			found = k
			n++
		}
	}
	switch n {
	case 0:
		return found, fmt.Errorf("image %q: %w", prefix, vfs.ErrNotExist)
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("%d images begin with %q: %w", n, prefix, vfs.ErrInvalid)
}

func (p *program) imagesPrune(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	return p.withImages(c, func(ctx context.Context, m *images) error {
		list, err := m.list(ctx)
		if err != nil {
			return err
		}
		n, freed := 0, int64(0)
		for _, k := range list {
			if k.InUse {
				continue
			}
			switch err := m.remove(ctx, k.Name); {
			case errors.Is(err, vfs.ErrBusy), errors.Is(err, vfs.ErrNotExist):
				continue // it has come into use since, or somebody else has removed it
			case err != nil:
				return err
			}
			n++
			freed += k.Bytes
		}
		_, err = fmt.Fprintf(p.stdout, "removed %s of %s\n", english.Plural(n, "image", ""), humanize.IBytes(uint64(freed)))
		return err
	})
}
