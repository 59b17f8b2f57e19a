package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

// program is one run of the command line.
type program struct {
	stdin  io.Reader
	stdout *bufio.Writer // flushed at the end, and when a command streams
	stderr io.Writer
	screen bool // stdout is a terminal
	talk   bool // stderr is a terminal: progress bars are welcome

	patience time.Duration // ownerPatience
	keyFile  string        // of the store, or of none
}

func newProgram(stdin io.Reader, stdout, stderr io.Writer) *program {
	return &program{
		stdin: stdin, stdout: bufio.NewWriterSize(stdout, 64<<10), stderr: stderr,
		screen: isTerminal(stdout), talk: isTerminal(stderr), patience: ownerPatience,
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// run runs one command line and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	err := p.app().RunContext(ctx, args)
	err = errors.Join(err, p.stdout.Flush())
	return p.report(ctx, err)
}

// say writes a line to stderr.
func (p *program) say(format string, args ...any) {
	fmt.Fprintf(p.stderr, "carrel: "+format+"\n", args...)
}

// warn is say for what a transfer could not keep.
func (p *program) warn(text string) { p.say("warning: %s", text) }

func (p *program) app() *cli.App {
	app := &cli.App{
		Name:  "carrel",
		Usage: "workspaces that you can mount and trust",
		UsageText: "carrel COMMAND [FLAGS] ARGUMENTS\n\nFirst steps:\n" +
			"  carrel mount demo /mnt/demo     make a workspace and mount it\n" +
			"  carrel ws ls                    list workspaces\n" +
			"  carrel doctor                   say what this machine lacks",
		Description: "The store is --store DIR, else $CARREL_STORE, else $XDG_DATA_HOME/carrel, else\n" +
			"~/.local/share/carrel. Flags go before the arguments. A place in a workspace is written\n" +
			"WORKSPACE:/PATH. WORKSPACE@WHEN is the workspace as it was, read-only: at a revision (demo@1234), at a\n" +
			"snapshot (demo@NAME), or so long ago (demo@2h, demo@3d). A store that is encrypted needs its key: --key-file FILE,\n" +
			"else $CARREL_KEY_FILE.",
		Version:              version(),
		HideHelpCommand:      true,
		EnableBashCompletion: true,
		Writer:               p.stdout,
		ErrWriter:            p.stderr,
		Reader:               p.stdin,

		DisableSliceFlagSeparator: true,                         // workspaces may have commas in their names, and commands have
		ExitErrHandler:            func(*cli.Context, error) {}, // the exit status is decided in one place, report
		OnUsageError:              onUsageError,
		Flags:                     []cli.Flag{storeFlag(), keyFileFlag()},
		Action:                    p.noCommand,
		Commands: []*cli.Command{
			p.initCommand(), p.mountCommand(), p.joinCommand(), p.umountCommand(), p.workspaceCommand(),
			p.forkCommand(), p.diffCommand(), p.mergeCommand(), p.conflictsCommand(), p.restoreCommand(), p.logCommand(),
			p.snapshotCommand(), p.historyCommand(),
			p.backupCommand(), p.loadCommand(),
			p.lsCommand(), p.catCommand(), p.putCommand(), p.getCommand(), p.rmCommand(), p.findCommand(), p.grepCommand(),
			p.watchCommand(),
			p.importCommand(), p.exportCommand(),
			p.execCommand(), p.mcpCommand(), p.psCommand(), p.attachCommand(), p.logsCommand(), p.killCommand(), p.imagesCommand(),
			p.serveCommand(), p.tokenCommand(), p.syncCommand(),
			p.checkCommand(), p.gcCommand(), p.statsCommand(), p.doctorCommand(), p.completionCommand(),
			p.benchCommand(),
			p.daemonCommand(), p.superviseCommand(), p.joinDaemonCommand(), p.joinSuperviseCommand(), p.benchStepCommand(),
		},
	}
	for _, c := range app.Commands {
		p.prepare(app.Name, c)
	}
	return app
}

// prepare gives a command what all have. The library would take an argument "help" for a command of that name.
func (p *program) prepare(parent string, c *cli.Command) {
	name := parent + " " + c.Name
	c.OnUsageError = onUsageError
	c.HideHelpCommand = true
	p.withKeyFile(c)
	c.UsageText = usageLines(name, c)
	c.Description = description(name, c)
	for _, sub := range c.Subcommands {
		p.prepare(name, sub)
	}
}

// noCommand is reached without a command, with help, which is none, or with one that there is not.
func (p *program) noCommand(c *cli.Context) error {
	switch name := c.Args().First(); name {
	case "":
		return cli.ShowAppHelp(c)
	case "help":
		return p.app().RunContext(c.Context, slices.Concat([]string{"carrel"}, c.Args().Tail(), []string{"--help"}))
	default:
		return unknownCommand(c, name)
	}
}

// version is the module's, when the program was built from one, else the commit's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
