package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/token"
	"github.com/carrelfs/carrel/syncwire"
)

// serverPatience is how long a server may take to let a client in.
const serverPatience = 15 * time.Second

func (p *program) syncCommand() *cli.Command {
	return &cli.Command{
		Name:   "sync",
		Usage:  "say how what is served and joined is doing, wait for it, and resolve conflicts",
		Action: noSubcommand("status, now, conflicts, resolve or key"),
		Subcommands: append(p.joinCommands(), []*cli.Command{
			{
				Name: "status", Usage: "say what is served, how far behind each peer is, and how a joined workspace is", ArgsUsage: "[URL|DIR]",
				Description: "Says what is served of the store, or, with DIR, how the workspace is doing that is joined there. With a URL as\n" +
					"'carrel serve' prints it, asks that server instead: whether it lets the token in, what it allows, and at which\n" +
					"revision the workspace is. The server must have the key that the URL says; of one without a key,\n" +
					"carrel://HOST:PORT/WORKSPACE, that in the file of known hosts.",
				Flags:  append(remoteFlags(), storeFlag(), &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}),
				Action: p.syncStatus,
			},
			{
				Name: "key", Usage: "print the fingerprint of this client's key, which is made when there is none", ArgsUsage: "FILE",
				Description: "For servers that let in only clients whose keys they know: the owner of the server adds what is printed,\n" +
					"and whose it is, as a line to the file of 'carrel serve --client-keys'. FILE stays here, for --client-key.",
				Action: p.syncKey,
			},
		}...),
	}
}

func (p *program) syncStatus(c *cli.Context) error {
	args, err := arguments(c, 0, 1)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && strings.HasPrefix(args[0], urlScheme):
		return p.serverStatus(c, args[0])
	case len(args) == 1:
		return p.joinStatus(c, args)
	}
	for _, flag := range []string{"token-file", "known-hosts", "trust", "client-key"} {
		if c.IsSet(flag) {
			return &usageError{c, fmt.Sprintf("--%s is for a URL: carrel sync status --%[1]s ... URL", flag)}
		}
	}
	dir, err := storeDir(c)
	if err != nil {
		return err
	}
	list, err := servedFrom(c.Context, dir)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		p.say("nothing of the store %s is served; 'carrel serve' does", dir)
	}
	for _, s := range list {
		if c.Bool("json") {
			err = p.printJSON(servedJSONOf(s))
		} else {
			err = p.printServed(s, time.Now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// servedFrom asks the owner of a store. Without one nothing is served.
func servedFrom(ctx context.Context, dir string) ([]control.Served, error) {
	owner, err := control.Dial(ctx, dir)
	if errors.Is(err, control.ErrNoOwner) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := owner.Served(ctx)
	return list, errors.Join(err, owner.Close())
}

func (p *program) printServed(s control.Served, now time.Time) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	what := "all"
	if s.Workspaces != nil {
		what = p.coverage(token.Token{Workspaces: s.Workspaces})
	}
	t := s.Traffic
	for _, row := range []struct{ name, value string }{
		{"served", what},
		{"at", places(s)},
		{"key", s.Fingerprint},
		{"since", s.Since.Local().Format(time.RFC3339)},
		{"requests", fmt.Sprintf("%d, by %d sessions in all", t.RoundTrips(), t.Sessions)},
		{"feeds", fmt.Sprintf("%d from a snapshot, %d from a cursor; %d updates", t.Snapshots, t.Resumes, t.Updates)},
		{"in, out", fmt.Sprintf("%s, %s", humanize.IBytes(t.WireIn), humanize.IBytes(t.WireOut))},
		{"pushes", fmt.Sprintf("%d applied, %d stale (conflicts), %d lacked chunks", t.Pushes, t.StalePushes, t.MissingPushes)},
		{"chunks in", fmt.Sprintf("%d, %s", t.ChunksIn, humanize.IBytes(t.BytesIn))},
		{"chunks out", fmt.Sprintf("%d, %s", t.ChunksOut, humanize.IBytes(t.BytesOut))},
		{"refused", fmt.Sprintf("%d streams, %d tokens, %d client keys", t.Refused, t.BadTokens, t.BadKeys)},
		{"UDP", udpState(s)},
		{"sessions", fmt.Sprint(len(s.Peers))},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row.name, row.value)
	}
	if err := w.Flush(); err != nil || len(s.Peers) == 0 {
		return err
	}
	fmt.Fprintln(p.stdout)
	fmt.Fprintln(w, "WORKSPACE\tFOR\tPROGRAM\tFROM\tFOR HOW LONG\tBEHIND\tMACHINE")
	for _, x := range s.Peers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %s\t%v\t%s\t%s\n", p.shown(x.Workspace), x.Subject, p.shown(x.Agent), x.Transport,
			x.Addr, now.Sub(x.Since).Round(time.Second), behind(x), cmp.Or(x.Machine, "-"))
	}
	return w.Flush()
}

// udpState says how the sockets are through which clients come by QUIC, and whether sending is cheap.
func udpState(s control.Served) string {
	var parts []string
	for _, x := range s.Sockets {
		parts = append(parts, fmt.Sprintf("buffers of %s in, %s out, %d packets dropped", humanize.IBytes(x.ReadBuffer),
			humanize.IBytes(x.WriteBuffer), x.Dropped))
	}
	quic, gso := 0, 0
	for _, p := range s.Peers {
		if p.Transport == "quic" {
			quic++
		}
		if p.GSO {
			gso++
		}
	}
	if quic > 0 {
		parts = append(parts, fmt.Sprintf("GSO for %d of %d sessions", gso, quic))
	}
	return strings.Join(parts, "; ")
}

// behind says how far behind a peer is.
func behind(x control.Peer) string {
	switch n := x.Behind; {
	case x.Sent == 0:
		return "follows no feed"
	case n == 0:
		return "nothing"
	default:
		return fmt.Sprintf("%d revisions, %v", n, x.Lag.Round(100*time.Millisecond))
	}
}

// servedJSON is what is served, as scripts see it.
type servedJSON struct {
	URL              string        `json:"url"`                  // of a workspace, when its name is put behind it
	Workspaces       []string      `json:"workspaces,omitempty"` // absent for all
	WorkspacesBase64 []string      `json:"workspaces_base64,omitempty"`
	UDP              string        `json:"udp"`
	TCP              string        `json:"tcp"`
	Unix             string        `json:"unix,omitempty"`
	Metrics          string        `json:"metrics,omitempty"`
	ClientKeys       string        `json:"client_keys,omitempty"`
	Fingerprint      string        `json:"fingerprint"`
	Since            time.Time     `json:"since"`
	SessionsBegun    uint64        `json:"sessions_begun"`
	Requests         uint64        `json:"requests"`
	Snapshots        uint64        `json:"feeds_from_snapshot"`
	Resumes          uint64        `json:"feeds_from_cursor"`
	Updates          uint64        `json:"updates"`
	StreamBytesIn    uint64        `json:"stream_bytes_in"`
	StreamBytesOut   uint64        `json:"stream_bytes_out"`
	Sockets          []udpJSON     `json:"udp_sockets"`
	Pushes           uint64        `json:"pushes"`
	StalePushes      uint64        `json:"stale_pushes"`
	MissingPushes    uint64        `json:"missing_pushes"`
	ChunksIn         uint64        `json:"chunks_in"`
	ChunksOut        uint64        `json:"chunks_out"`
	BytesIn          uint64        `json:"chunk_bytes_in"`
	BytesOut         uint64        `json:"chunk_bytes_out"`
	BadTokens        uint64        `json:"bad_tokens"`
	BadClientKeys    uint64        `json:"bad_client_keys"`
	Refused          uint64        `json:"refused_streams"`
	Sessions         []sessionJSON `json:"sessions"`
}

// udpJSON is a UDP socket, as scripts see it.
type udpJSON struct {
	Addr        string `json:"address"`
	ReadBuffer  uint64 `json:"read_buffer"`
	WriteBuffer uint64 `json:"write_buffer"`
	Dropped     uint64 `json:"dropped_packets"`
}

// sessionJSON is a session of a peer.
type sessionJSON struct {
	Workspace       string    `json:"workspace"`
	WorkspaceBase64 string    `json:"workspace_base64,omitempty"`
	Subject         string    `json:"subject"`
	Peer            string    `json:"peer"`
	Agent           string    `json:"agent"`
	Transport       string    `json:"transport"`
	Address         string    `json:"address,omitempty"`
	GSO             bool      `json:"gso"`
	Since           time.Time `json:"since"`
	Head            uint64    `json:"head_revision"`
	Follows         bool      `json:"follows"`
	Sent            uint64    `json:"sent_revision"`
	Acked           uint64    `json:"acked_revision"`
	Behind          uint64    `json:"behind_revisions"`
	BehindSeconds   float64   `json:"behind_seconds"`
	Machine         string    `json:"machine,omitempty"` // for 'carrel exec --on'
}

func servedJSONOf(s control.Served) servedJSON {
	t := s.Traffic
	j := servedJSON{
		URL: urlOf(s, ""), UDP: s.Listen, TCP: s.TLS, Unix: s.Unix, Metrics: s.Metrics, ClientKeys: s.ClientKeys, Fingerprint: s.Fingerprint,
		Since: s.Since, Pushes: t.Pushes, StalePushes: t.StalePushes, MissingPushes: t.MissingPushes, ChunksIn: t.ChunksIn,
		ChunksOut: t.ChunksOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut, BadTokens: t.BadTokens,
		BadClientKeys: t.BadKeys, Refused: t.Refused,
		SessionsBegun: t.Sessions, Requests: t.RoundTrips(), Snapshots: t.Snapshots, Resumes: t.Resumes, Updates: t.Updates,
		StreamBytesIn: t.WireIn, StreamBytesOut: t.WireOut, Sockets: []udpJSON{}, Sessions: []sessionJSON{},
	}
	for _, x := range s.Sockets {
		j.Sockets = append(j.Sockets, udpJSON(x))
	}
	j.Workspaces, j.WorkspacesBase64 = namesJSON(s.Workspaces)
	for _, x := range s.Peers {
		name, _ := namesJSON([]string{x.Workspace})
		j.Sessions = append(j.Sessions, sessionJSON{
			Workspace: name[0], WorkspaceBase64: base64IfNeeded(x.Workspace), Subject: x.Subject,
			Peer: fmt.Sprintf("%x", x.ID), Agent: x.Agent, Transport: x.Transport, Address: x.Addr, GSO: x.GSO, Since: x.Since,
			Head: uint64(x.Head), Follows: x.Sent != 0, Sent: uint64(x.Sent), Acked: uint64(x.Acked), Behind: x.Behind,
			BehindSeconds: x.Lag.Seconds(), Machine: x.Machine,
		})
	}
	return j
}

// serverJSON is what a server says to a client.
type serverJSON struct {
	Server   string  `json:"server"` // what it says it is
	Peer     string  `json:"peer"`
	Rights   string  `json:"rights"`
	Epoch    string  `json:"epoch"`
	Revision vfs.Rev `json:"revision"`
	Digest   string  `json:"digest"`
}

// serverStatus asks a server with a token.
func (p *program) serverStatus(c *cli.Context, url string) error {
	r, err := p.remote(c, url)
	if err != nil {
		return err
	}
	client := syncwire.NewClient(syncwire.ClientConfig{
		Dialer: r.dialer(), Workspace: r.Workspace, Agent: "carrel " + version(),
		Token: func(context.Context) ([]byte, error) { return r.token, nil },
	})
	defer client.Close() // nothing is pushed
	ctx, cancel := context.WithTimeout(c.Context, serverPatience)
	defer cancel()
	w, err := client.Welcome(ctx)
	if err != nil {
		if cause := client.Stats().Err; cause != nil && ctx.Err() != nil {
			err = cause // why it was not let in, rather than that time is over
		}
		return r.explain(fmt.Errorf("ask %s: %w", r.Addr, err))
	}
	return p.printServer(c.Bool("json"), serverJSON{
		Server: w.Agent, Peer: fmt.Sprintf("%x", w.Peer), Rights: w.Rights.String(),
		Epoch: fmt.Sprintf("%x", w.Position.Epoch), Revision: w.Position.Rev, Digest: fmt.Sprintf("%x", w.Position.Digest),
	})
}

func (p *program) printServer(asJSON bool, j serverJSON) error {
	if asJSON {
		return p.printJSON(j)
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "server\t%s\n", p.shown(j.Server))
	fmt.Fprintf(w, "may\t%s\n", j.Rights)
	fmt.Fprintf(w, "revision\t%d\n", j.Revision)
	return w.Flush()
}
