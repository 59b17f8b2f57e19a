package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/token"
	"github.com/carrelfs/carrel/syncwire"
)

func (p *program) tokenCommand() *cli.Command {
	return &cli.Command{
		Name:   "token",
		Usage:  "make, list and remove the tokens that let other machines in",
		Action: noSubcommand("create, ls or rm"),
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "make a token and print it", Action: p.tokenCreate,
				Description: "The token is printed to stdout, this once: only a hash of it is kept. Put it in a file that only its\n" +
					"holder can read. All tokens for one SUBJECT are the same peer's: a new one goes on with what the old one\n" +
					"began. The rights read and write are for mirrors and files, exec runs programs, and admin lets these have this\n" +
					"machine's network or another root.",
				Flags: []cli.Flag{
					storeFlag(),
					&cli.StringFlag{Name: "for", Usage: "for whom it is: `SUBJECT`; its id when it is not given"},
					&cli.StringFlag{Name: "rights", Usage: "what it allows: `RIGHTS`, some of read,write,exec,admin"},
					&cli.StringSliceFlag{Name: "workspace", Usage: "it is good for `WORKSPACE`; may be given more than once"},
					&cli.BoolFlag{Name: "all", Usage: "it is good for every workspace, those to come too"},
					&cli.StringFlag{Name: "expires", Usage: "it is good for `TIME`, as 12h or 30d; for ever when it is not given"},
				},
			},
			{
				Name: "ls", Usage: "list tokens, without their secrets", Action: p.tokenList,
				Flags: []cli.Flag{storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object per line"}},
			},
			{
				Name: "rm", Usage: "remove tokens", ArgsUsage: "ID...", Action: p.tokenRemove, Flags: []cli.Flag{storeFlag()},
				Description: "Nobody gets in with a removed token any more, and sessions that it began end at once.",
			},
		},
	}
}

func (p *program) tokenCreate(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	now := time.Now()
	t, err := parseToken(c, now)
	if err != nil {
		return err
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	return p.withStore(c, false, func(s *opened) error {
		if err := haveWorkspaces(c.Context, s, t.Workspaces); err != nil {
			return err
		}
		made, text, err := token.Create(dir, t, now)
		if err != nil {
			return err
		}
		p.say("token %s, for %s, may %v on %s, %s; it is not shown again", made.ID, orNobody(made), made.Rights,
			p.coverage(made), expiry(made))
		_, err = fmt.Fprintln(p.stdout, text)
		return err
	})
}

func parseToken(c *cli.Context, now time.Time) (token.Token, error) {
	bad := func(text string) (token.Token, error) { return token.Token{}, &usageError{c, text} }
	t := token.Token{Subject: c.String("for"), Workspaces: c.StringSlice("workspace"), All: c.Bool("all")}
	var ok bool
	switch t.Rights, ok = syncwire.ParseRights(c.String("rights")); {
	case c.String("rights") == "":
		return bad("which rights? --rights read, or read,write, with exec and admin where they are needed")
	case !ok:
		return bad(fmt.Sprintf("--rights %q: some of read, write, exec and admin, with commas between", c.String("rights")))
	case !t.Rights.Has(syncwire.RightRead):
		return bad("without the right to read a token is good for nothing: --rights read," + t.Rights.String())
	case t.All == (len(t.Workspaces) > 0):
		return bad("for which workspaces? Either --workspace WORKSPACE, once or more, or --all")
	}
	if s := c.String("expires"); s != "" {
		d, err := parseDays(s)
		if err != nil || d <= 0 {
			return bad(fmt.Sprintf("--expires %q: write a time from now on, as 12h or 30d", s))
		}
		t.Expires = now.Add(d).UTC().Truncate(time.Second)
	}
	return t, nil
}

// parseDays is time.ParseDuration, and knows days.
func parseDays(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	const most = 100 * 365 // a time.Duration ends a little later
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > most {
		return 0, fmt.Errorf("%q: %w", s, vfs.ErrInvalid)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// orNobody is for whom a token is.
func orNobody(t token.Token) string {
	if t.Subject == t.ID {
		return "nobody in particular"
	}
	return t.Subject
}

// coverage says for which workspaces a token is.
func (p *program) coverage(t token.Token) string {
	if t.All {
		return "all workspaces"
	}
	var names []string
	for _, w := range t.Workspaces {
		names = append(names, p.shown(w))
	}
	return strings.Join(names, ", ")
}

func expiry(t token.Token) string {
	switch {
	case t.Expires.IsZero():
		return "for ever"
	case t.Expired(time.Now()):
		return "expired " + t.Expires.Local().Format(time.RFC3339)
	}
	return "until " + t.Expires.Local().Format(time.RFC3339)
}

// tokenJSON is a token as scripts see it.
type tokenJSON struct {
	ID               string    `json:"id"`
	Subject          string    `json:"subject"`
	Rights           []string  `json:"rights"`
	Workspaces       []string  `json:"workspaces,omitempty"`
	WorkspacesBase64 []string  `json:"workspaces_base64,omitempty"` // when one of Workspaces is not UTF-8
	All              bool      `json:"all"`
	Created          time.Time `json:"created"`
	Expires          time.Time `json:"expires,omitzero"`
	Expired          bool      `json:"expired"`
}

func tokenJSONOf(t token.Token) tokenJSON {
	j := tokenJSON{
		ID: t.ID, Subject: t.Subject, Rights: strings.Split(t.Rights.String(), ","), All: t.All, Created: t.Created,
		Expires: t.Expires, Expired: t.Expired(time.Now()),
	}
	j.Workspaces, j.WorkspacesBase64 = namesJSON(t.Workspaces)
	return j
}

func (p *program) tokenList(c *cli.Context) error {
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	list, err := token.List(dir)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		for _, t := range list {
			if err := p.printJSON(tokenJSONOf(t)); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, t := range list {
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\n", t.ID, t.Subject, t.Rights, p.coverage(t), expiry(t))
	}
	return w.Flush()
}

func (p *program) tokenRemove(c *cli.Context) error {
	ids, err := arguments(c, 1, -1)
	if err != nil {
		return err
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		err := token.Remove(dir, id)
		if errors.Is(err, vfs.ErrNotExist) {
			err = told(fmt.Errorf("remove token %q: there is no such token", id), "'carrel token ls' lists them by id.")
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, endSessions(c.Context, dir))...)
}

// endSessions has the process that serves the store, if there is one, look at the tokens.
func endSessions(ctx context.Context, dir string) error {
	owner, err := control.Dial(ctx, dir)
	if errors.Is(err, control.ErrNoOwner) {
		return nil
	}
	if err == nil {
		err = errors.Join(owner.TokensChanged(ctx), owner.Close())
	}
	if err != nil {
		return told(fmt.Errorf("end the sessions of removed tokens: %w", err), "The file of tokens is as you want it, and nobody "+
			"gets in with a removed token; but sessions\nthat one has begun may go on. End 'carrel serve', or try again.")
	}
	return nil
}
