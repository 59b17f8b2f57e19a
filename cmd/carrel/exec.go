package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/execs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
	"github.com/carrelfs/carrel/execd/container"
)

func (p *program) execCommand() *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a command on a workspace",
		ArgsUsage: "WORKSPACE[:/PATH]|DIR -- COMMAND [ARGUMENT...]",
		Description: "The command runs in the daemon's own bash when every program that it needs is built in there, with the\n" +
			"options that it is given, which takes no process; else in a container: the host's programs, read-only, the workspace\n" +
			"at /workspace, no network but loopback. --why says which it was. In the bash, git clones, fetches and pushes by the\n" +
			"URLs that the lines of the file git-allow in the store, or the mirror, begin, and no others.\n" +
			"Its output comes live, signals are passed on to it, and its exit status is that\n" +
			"of carrel: 128+n for a signal n, 124 when its time is over, 127 when there is no such program. It ends\n" +
			"when the command has ended and nobody has its output open; what is left is killed then.\n\n" +
			"DIR is a directory of a mounted workspace, written with a / or . at its beginning: the command runs in it. On one\n" +
			"that was joined it begins when all that others wrote is here, or does not when the server cannot be reached; and\n" +
			"when its end is told, the server has all that it wrote, or that is said.\n\n" +
			"With --on it runs on a machine that has joined the workspace and offers that, over the connection that it has made: in its\n" +
			"bash, or a container of its programs. What is said of a workspace that was joined holds there. When the connection\n" +
			"breaks, nothing is run again: its input and output are taken up where they were, for two minutes, and its\n" +
			"output by 'carrel attach --on WORKSPACE:MACHINE ID' later.\n\n" +
			"With --fork it runs in a fork, a workspace of its own that has all that is here and takes a moment to make, and what\n" +
			"is different afterwards is printed as 'carrel diff' does, on standard error when the output is the command's. With\n" +
			"--merge that is merged when its exit status is 0, as 'carrel merge' does. A fork that was named stays; one that was\n" +
			"not is removed when it was merged, or nothing is different in it.",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.StringFlag{Name: "backend", Usage: "run it with `BACKEND`: " + strings.Join(execs.Backends, ", "), DefaultText: execs.Backends[0]},
			&cli.BoolFlag{Name: "why", Usage: "say on standard error which backend ran it, and why"},
			&cli.StringFlag{Name: "source", Usage: "run the `TEXT` of a script or module; COMMAND is its parameters, if any"},
			&cli.StringFlag{Name: "input", Usage: "give a module `JSON`: its default export is called with it, and what that returns printed"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "run it in a terminal"},
			&cli.BoolFlag{Name: "no-stdin", Aliases: []string{"n"}, Usage: "give it no standard input"},
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "print its id and leave it to a daemon that is there"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per event"},
			&cli.StringFlag{Name: "dir", Aliases: []string{"w"}, Usage: "run it in `PATH` of the workspace"},
			&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "give it the variable `NAME[=VALUE]`"},
			spanFlag("timeout", "kill it after `TIME`", 0),
			&cli.StringFlag{Name: "memory", Usage: "let it use `SIZE` bytes of memory"},
			&cli.Float64Flag{Name: "cpus", Usage: "let it use `N` processors"},
			&cli.UintFlag{Name: "pids", Usage: "let it have `N` processes"},
			&cli.StringFlag{Name: "root", Usage: "give its container the programs of `DIR` on this machine, read-only"},
			&cli.StringFlag{Name: "image", Usage: "give its container the programs of an OCI image layout or tarball at `PATH`, read-only"},
			&cli.StringFlag{
				Name: "runtime", Usage: "have `RUNTIME` make its container, one of " + strings.Join(container.Runtimes, ", ") + ", which this machine must have",
			},
			&cli.StringFlag{Name: "net", Usage: "let it use a `NETWORK`: host is that of this machine; without the flag there is loopback alone"},
			&cli.StringFlag{Name: "on", Usage: "run it on `MACHINE`, which has joined the workspace with 'carrel join --exec-as MACHINE'"},
			&cli.GenericFlag{Name: "fork", Value: &forkFlag{}, Usage: "run it in a fork, and say what is different there; --fork=`NAME` gives it a name"},
			&cli.BoolFlag{Name: "merge", Usage: "with --fork: merge what is different when the exit status is 0"},
			&cli.StringFlag{Name: "id", Usage: "give it an `ID`; one that there is is not run again"},
		},
		Action: p.exec,
	}
}

// execJob is a command that is to be run.
type execJob struct {
	at     place
	fork   *execFork // nil for none
	spec   execd.Spec
	json   bool
	why    bool
	detach bool
}

func parseExecJob(c *cli.Context) (*execJob, error) {
	args := c.Args().Slice()
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 && (len(args) == 0 || !c.IsSet("source")) {
		return nil, &usageError{c, "too few arguments: " + c.Command.HelpName + " " + c.Command.ArgsUsage}
	}
	at, err := parsePlace(c, args[0])
	if err != nil {
		return nil, err
	}
	if on := c.String("on"); on != "" {
		if err := checkMachine(c, on); err != nil {
			return nil, err
		}
		if at.joined != "" {
			return nil, told(fmt.Errorf("--on %s, of a workspace that was joined: %w", on, vfs.ErrNotSupported),
				"Other machines are known where its store is.")
		}
		at.machine = on
	}
	j := &execJob{at: at, json: c.Bool("json"), why: c.Bool("why"), detach: c.Bool("detach")}
	j.spec = execd.Spec{
		ID: c.String("id"), Workspace: at.workspace, Backend: c.String("backend"), Args: args[1:], Timeout: spanOf(c, "timeout"),
		Source: c.String("source"), Net: c.String("net"), Runtime: c.String("runtime"),
		Open:   !c.Bool("no-stdin") && !j.detach,
		Limits: execd.Limits{CPU: uint32(c.Float64("cpus") * 1000), Pids: uint32(c.Uint("pids"))},
	}
	if input := c.String("input"); input != "" {
		j.spec.Input = json.RawMessage(input)
		j.spec.Backend = cmp.Or(j.spec.Backend, execs.JS) // which alone takes any
	}
	if j.spec.ID == "" {
		j.spec.ID = strings.ToLower(rand.Text()[:12]) // ours, so that a start whose answer was lost is not made twice
	}
	if j.fork, err = parseFork(c, at, j.spec.ID); err != nil {
		return nil, err
	}
	if dir := c.String("dir"); strings.HasPrefix(dir, "/") {
		j.spec.Dir = dir
	} else {
		j.spec.Dir = path.Join(at.path, dir)
	}
	if c.IsSet("root") && c.IsSet("image") {
		return nil, &usageError{c, "--root and --image: a container has one root"}
	}
	if root := c.String("root") + c.String("image"); root != "" {
		if j.spec.Root, err = realPath(root); err != nil {
			return nil, err
		}
	}
	if size := c.String("memory"); size != "" {
		if j.spec.Limits.Memory, err = humanize.ParseBytes(size); err != nil {
			return nil, &usageError{c, fmt.Sprintf("--memory %q: write a size, such as 512MiB", size)}
		}
	}
	for _, e := range c.StringSlice("env") {
		if !strings.Contains(e, "=") {
			e += "=" + os.Getenv(e)
		}
		j.spec.Env = append(j.spec.Env, e)
	}
	return j, nil
}

func (p *program) exec(c *cli.Context) error {
	j, err := parseExecJob(c)
	if err != nil {
		return err
	}
	if c.Bool("tty") {
		size := p.terminalSize()
		j.spec.TTY = &size
		if t := os.Getenv("TERM"); t != "" {
			j.spec.Env = append(j.spec.Env, "TERM="+t)
		}
	}
	return p.withExecsAt(c.Context, j.at, func(x *api.Client) error {
		if j.fork != nil {
			return p.execForked(c.Context, j, x)
		}
		_, err := p.execThrough(c.Context, j, x)
		return err
	})
}

// withExecs works with the daemon of a store, at the API that begins at a path, or has one started meanwhile.
func (p *program) withExecs(ctx context.Context, store, path string, f func(x *api.Client) error) error {
	ask := func(*control.Client) error { // the connection keeps the daemon there
		x := api.NewClientAt(func(ctx context.Context) (net.Conn, error) { return control.DialSocket(ctx, store) }, path)
		defer x.Close()
		return f(x)
	}
	return p.throughDaemon(ctx, store, ask, func() error { return p.daemonHere(ctx, store, ask, "--quiet") })
}

// execThrough runs a command and passes on what comes of it. The result is nil when the end is not known.
func (p *program) execThrough(ctx context.Context, j *execJob, x *api.Client) (*carrelv1.Result, error) {
	// Signals are passed on. They do not end what tells of the end.
	stream := context.WithoutCancel(ctx)
	events, id, err := begin(stream, x, j.spec, j.at.patience())
	if err != nil {
		return nil, startFailed(err)
	}
	if j.detach {
		defer events.Close()
		fmt.Fprintln(p.stdout, id)
		return nil, nil
	}
	f := &follower{program: p, execs: x, id: id, json: j.json, why: j.why, patience: j.at.patience()}
	session, err := p.beginSession(f, &j.spec)
	if err != nil {
		events.Close()
		return nil, err
	}
	err = f.follow(stream, events)
	return f.result, errors.Join(err, session.end())
}

// begin starts an exec and returns its id and what follows. A start whose answer was lost is made again: an id is run once.
func begin(ctx context.Context, x *api.Client, s execd.Spec, patience time.Duration) (*api.Events, string, error) {
	lost := false
	for deadline := time.Now().Add(patience); ; {
		events, err := x.Start(ctx, s)
		if err == nil {
			var first *carrelv1.Event
			if first, err = events.Next(); err == nil {
				return events, first.GetStarted(), nil
			}
			events.Close()
		}
		if !isAway(err, lost) || time.Now().After(deadline) {
			return nil, "", err
		}
		lost = true
		if err := waitFor(ctx, ownerRetry); err != nil {
			return nil, "", err
		}
	}
}

// startFailed gives what could not be started the exit status that a shell would give it.
func startFailed(err error) error {
	switch {
	case errors.Is(err, api.ErrNoMachine):
		return told(err, "'carrel join --exec-as NAME' offers one, while 'carrel serve' runs here.")
	case errors.Is(err, vfs.ErrNotExist):
		return &statusError{err, execd.CodeNoProgram}
	case errors.Is(err, execd.ErrNotRunnable), errors.Is(err, vfs.ErrNotPermitted):
		return &statusError{err, execd.CodeNotRun}
	}
	return err
}

// terminalSize is that of our own terminal, or the usual one.
func (p *program) terminalSize() execd.Size {
	for _, f := range []any{p.stdin, p.stderr} {
		if f, ok := f.(*os.File); ok {
			if cols, rows, err := term.GetSize(int(f.Fd())); err == nil {
				return execd.Size{Rows: uint16(rows), Cols: uint16(cols)}
			}
		}
	}
	return execd.Size{Rows: 24, Cols: 80}
}

// inputChunk is how much standard input is given at once.
const inputChunk = 64 << 10

// feed gives an exec our standard input, as long as the session lasts.
func (f *follower) feed(ctx context.Context) {
	buf := make([]byte, inputChunk)
	feed, given := strings.ToLower(rand.Text()[:12]), uint64(0)
	for {
		n, err := f.program.stdin.Read(buf)
		last := err != nil
		err = f.give(ctx, feed, given, buf[:n], last)
		given += uint64(n)
		switch {
		case errors.Is(err, api.ErrBroken), errors.Is(err, api.ErrNoMachine):
			f.program.say("standard input: not all of it was given, since the connection does not come back: %v", err)
		case err != nil && ctx.Err() == nil && !errors.Is(err, vfs.ErrClosed):
			f.program.say("standard input: %v", err)
		}
		if err != nil || last {
			return
		}
	}
}

// give gives an exec what a feed has from an offset on, again and again while the connection is broken, as following is taken up again.
func (f *follower) give(ctx context.Context, feed string, offset uint64, p []byte, last bool) error {
	var lost time.Time
	for {
		err := f.execs.Feed(ctx, f.id, feed, offset, p, last)
		if !errors.Is(err, api.ErrBroken) && !errors.Is(err, api.ErrNoMachine) || ctx.Err() != nil {
			return err
		}
		if lost.IsZero() {
			lost = time.Now()
		}
		if time.Since(lost) > f.patience {
			return err
		}
		if waitFor(ctx, ownerRetry) != nil {
			return nil // the session is over
		}
	}
}
