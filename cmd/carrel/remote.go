package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/token"
	"github.com/carrelfs/carrel/syncwire"
)

// askPatience is how long a server may take to show its key.
const askPatience = 10 * time.Second

// remoteFlags are those of commands that talk to a server.
func remoteFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "token-file", Usage: "the token for URL is in `FILE`"},
		&cli.StringFlag{
			Name: "known-hosts", Usage: "the keys of servers whose URL does not say it are in `FILE`, lines of HOST:PORT and key",
			DefaultText: "carrel/known_hosts in the user's configuration",
		},
		&cli.BoolFlag{Name: "trust", Usage: "take the key that the server shows, when it is not known yet, and note it there"},
		&cli.StringFlag{
			Name: "client-key", Usage: "show the key in `FILE` to the server, which may want one; 'carrel sync key' makes it",
		},
	}
}

// remote is a workspace on a server, and what lets one in there.
type remote struct {
	syncwire.Target
	options []syncwire.DialOption
	token   []byte
	hosts   syncwire.KnownHosts // where the pin is from; empty when the URL has it
}

// remote puts together what the command line says of a workspace on a server. A server whose key is not known is not
// talked to, unless the user wants to trust what it shows.
func (p *program) remote(c *cli.Context, url string) (r *remote, err error) {
	r = new(remote)
	if r.Target, err = syncwire.ParseTarget(url); err != nil {
		return nil, &usageError{c, err.Error() + "; 'carrel serve' prints URLs"}
	}
	if c.String("token-file") == "" {
		return nil, &usageError{c, "with which token? --token-file FILE, before the URL"}
	}
	if r.token, err = token.ReadFile(c.String("token-file")); err != nil {
		return nil, err
	}
	if path := c.String("client-key"); path != "" {
		id, err := readClientKey(path)
		if err != nil {
			return nil, err
		}
		r.options = append(r.options, syncwire.As(id))
	}
	if r.Pin == (syncwire.Fingerprint{}) {
		err = p.pin(c, r)
	}
	return r, err
}

// readClientKey reads a key, and does not make one: of a new one the server knows nothing.
func readClientKey(path string) (syncwire.Identity, error) {
	if _, err := os.Stat(path); err != nil {
		return syncwire.Identity{}, told(fmt.Errorf("client key: %w", err), "'carrel sync key %s' makes one.", path)
	}
	return syncwire.LoadIdentity(path)
}

// pin finds the key of a server whose URL does not say it.
func (p *program) pin(c *cli.Context, r *remote) error {
	path, err := knownHostsFile(c)
	if err != nil {
		return err
	}
	r.hosts = syncwire.KnownHosts(path)
	known, err := r.hosts.Find(r.Addr)
	if err == nil {
		r.Pin = known.Pin
		return nil
	}
	if !errors.Is(err, vfs.ErrNotExist) {
		return told(err, "Mend that line, or remove it.")
	}
	ctx, cancel := context.WithTimeout(c.Context, askPatience)
	defer cancel()
	shown, err := syncwire.AskFingerprint(ctx, r.Addr)
	if err != nil {
		return err
	}
	if !c.Bool("trust") {
		return told(fmt.Errorf("%s: its key is not known: %w", r.Addr, syncwire.ErrFingerprint),
			"It shows the key %v. Compare that with what 'carrel sync status' says on that machine.\n"+
				"When it is the same: use the URL that 'carrel serve' printed, which has the key in it, or --trust, which notes it\n"+
				"in %s.", shown, path)
	}
	if err := r.hosts.Add(r.Addr, shown); err != nil {
		return err
	}
	p.say("%s shows the key %v, which is trusted from now on (%s)", r.Addr, shown, path)
	r.Pin = shown
	return nil
}

// knownHostsFile is --known-hosts, or the user's own.
func knownHostsFile(c *cli.Context) (string, error) {
	if path := c.String("known-hosts"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", told(fmt.Errorf("find the file of known hosts: %w", err), "Name it: --known-hosts FILE.")
	}
	return filepath.Join(dir, "carrel", "known_hosts"), nil
}

// dialer leads to the server.
func (r *remote) dialer() syncwire.Dialer { return syncwire.DialAuto(r.Addr, r.Pin, nil, r.options...) }

// explain gives an error of the connection the advice that only who knows where the key is from can give.
func (r *remote) explain(err error) error {
	switch {
	case errors.Is(err, syncwire.ErrClientKey):
		return told(err, "Its owner keeps the fingerprints of clients in the file of 'carrel serve --client-keys'.\n"+
			"'carrel sync key FILE' says what yours is; show it with --client-key FILE.")
	case !errors.Is(err, syncwire.ErrFingerprint):
		return err
	case r.hosts == "":
		return told(err, "The key in the URL is not the server's. Somebody else answers there, or its store was made anew:\n"+
			"ask whoever runs it for its URL.")
	}
	line := ""
	if known, findErr := r.hosts.Find(r.Addr); findErr == nil {
		line = fmt.Sprintf(", line %d", known.Line)
	}
	return told(err, "THE SERVER'S KEY HAS CHANGED. Somebody else answers there, or its store was made anew: ask whoever runs it.\n"+
		"If it was, remove what %s says of it%s, and use --trust once.", string(r.hosts), line)
}
