package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/urfave/cli/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/execs"
	"github.com/carrelfs/carrel/execd/api"
	"github.com/carrelfs/carrel/execd/mcp"
)

const (
	// mcpHeaderPatience is how long a client may take to send the head of a request.
	mcpHeaderPatience = 10 * time.Second
	// mcpDrain is how long requests may take that are under way when the server ends.
	mcpDrain = 5 * time.Second
)

func (p *program) mcpCommand() *cli.Command {
	return &cli.Command{
		Name:      "mcp",
		Usage:     "offer a workspace to an agent, as tools of the Model Context Protocol",
		ArgsUsage: "[WORKSPACE]",
		Description: "The agent starts this command and talks to it by standard input and output, or connects to it with --http.\n" +
			"The tools are read, write, edit, ls, find, grep, delete, diff, snapshot and exec. The workspace is made when\n" +
			"there is none of that name, and may be left out when there is one alone. WORKSPACE@WHEN can only be read.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.BoolFlag{Name: "read-only", Usage: "offer only tools that change nothing"},
			&cli.BoolFlag{Name: "no-exec", Usage: "do not offer exec"},
			&cli.StringFlag{Name: "root", Usage: "show `PATH` of the workspace as its root; exec is not offered then"},
			&cli.StringFlag{Name: "http", Usage: "serve streamable HTTP at `ADDRESS`, such as localhost:4480"},
			&cli.StringFlag{Name: "token-file", Usage: "with --http: clients show the token in `FILE`, which is made when there is none"},
			&cli.StringFlag{Name: "tls-cert", Usage: "with --http: serve TLS with the certificates in `FILE`"},
			&cli.StringFlag{Name: "tls-key", Usage: "and the key in `FILE`"},
		},
		Action: p.mcp,
	}
}

// mcpJob is what the command line asks for.
type mcpJob struct {
	store, workspace, root  string
	readOnly, exec, history bool
	address, token          string
	cert, key               string
}

func (p *program) parseMCP(c *cli.Context) (*mcpJob, error) {
	args, err := arguments(c, 0, 1)
	if err != nil {
		return nil, err
	}
	j := &mcpJob{root: c.String("root"), readOnly: c.Bool("read-only"), exec: !c.Bool("no-exec"), history: true,
		address: c.String("http"), cert: c.String("tls-cert"), key: c.String("tls-key")}
	if len(args) > 0 {
		j.workspace = args[0]
	}
	if _, _, past := casstore.SplitMoment(j.workspace); past {
		j.readOnly, j.history = true, false
	}
	j.exec = j.exec && !j.readOnly && j.root == ""
	if j.store, err = storeDir(c); err != nil {
		return nil, err
	}
	return j, p.parseMCPHTTP(c, j)
}

func (p *program) parseMCPHTTP(c *cli.Context, j *mcpJob) (err error) {
	file := c.String("token-file")
	switch {
	case (j.address == "") != (file == ""):
		return &usageError{c, "--http and --token-file go together"}
	case (j.cert == "") != (j.key == "") || j.address == "" && j.cert != "":
		return &usageError{c, "--http, --tls-cert and --tls-key go together"}
	case file == "":
		return nil
	case j.cert == "" && !isLoopback(j.address):
		return &usageError{c, "the token would go over the network as it is: give --tls-cert and --tls-key, or listen at localhost"}
	}
	for _, path := range []*string{&j.cert, &j.key} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	j.token, err = p.mcpToken(file)
	return err
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// mcpToken reads the token in a file, or makes one.
func (p *program) mcpToken(file string) (string, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		p.say("made a token in %s", file)
		return token, renameio.WriteFile(file, []byte(token+"\n"), 0o600)
	}
	token := strings.TrimSpace(string(b))
	if err == nil && token == "" {
		err = fmt.Errorf("the token file %s is empty: %w", file, vfs.ErrInvalid)
	}
	return token, err
}

func (p *program) mcp(c *cli.Context) error {
	j, err := p.parseMCP(c)
	if err != nil {
		return err
	}
	return p.withExecs(c.Context, j.store, "", func(x *api.Client) error {
		desk, err := p.openAgentDesk(c.Context, j, x)
		if err != nil {
			return err
		}
		server := mcp.NewServer(mcp.Config{
			Workspace: desk.workspace, Version: version(), Set: desk.Set, ReadOnly: j.readOnly, Exec: j.exec, History: j.history,
			Backends: strings.Join(execs.Backends, ", "),
		})
		if j.address != "" {
			err = p.serveMCP(c.Context, j, server)
		} else {
			err = p.talkMCP(c.Context, server)
		}
		return errors.Join(err, desk.close())
	})
}

// talkMCP serves the agent that started this program, until it has no more to say.
func (p *program) talkMCP(ctx context.Context, server *sdk.Server) error {
	err := server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(p.stdin), Writer: flushed{p.stdout}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// flushed writes through a buffer.
type flushed struct{ *bufio.Writer }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	return n, errors.Join(err, f.Flush())
}

func (f flushed) Close() error { return f.Flush() }

// serveMCP serves whoever shows the token, until ctx ends.
func (p *program) serveMCP(ctx context.Context, j *mcpJob, server *sdk.Server) error {
	l, err := net.Listen("tcp", j.address)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h := &http.Server{
		Handler: mcp.Handler(server, j.token, log), ReadHeaderTimeout: mcpHeaderPatience,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	scheme := "http"
	if j.cert == "" {
		go func() { served <- h.Serve(l) }()
	} else {
		scheme = "https"
		go func() { served <- h.ServeTLS(l, j.cert, j.key) }()
	}
	p.say("serving at %s://%s", scheme, l.Addr())
	select {
	case err = <-served:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpDrain)
	defer cancel()
	if err := h.Shutdown(drain); err != nil {
		_ = h.Close() // what is still under way is a stream that waits for news
	}
	if err = <-served; errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}
