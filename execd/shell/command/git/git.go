package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// version is that of the git whose words these are.
const version = "2.39.5"

// statusFatal is the exit status of what git calls fatal.
const statusFatal = 128

// Table returns git and, by the old names with a dash, what it can do: git-add and its like. Through remotes it reaches
// repositories outside of the workspace; nil is for none.
func Table(remotes transport.Transport) command.Table {
	t := command.Table{"git": tool.Command(git(remotes))}
	for name := range verbs {
		t["git-"+name] = func(ctx context.Context, p *command.Process) int {
			whole := *p
			whole.Args = append([]string{"git", name}, p.Args[1:]...)
			return t["git"](ctx, &whole)
		}
	}
	return t
}

// verb is one of git's commands. It gets the arguments behind its name.
type verb struct {
	run     func(g *call, args []string) error
	options []string // see parseFlags
	needs   need
}

// need is what a verb cannot do without.
type need uint8

const (
	needWork       need = iota // a work tree
	needRepository             // a repository, which may be bare
	needNothing
)

// verbs are set by init, since some run others.
var verbs map[string]verb

func init() {
	verbs = map[string]verb{
		"add":         {run: (*call).add, options: addOptions},
		"branch":      {run: (*call).branch, options: branchOptions, needs: needRepository},
		"checkout":    {run: (*call).checkout, options: checkoutOptions},
		"cherry-pick": {run: (*call).cherryPick, options: pickOptions},
		"clone":       {run: (*call).clone, options: cloneOptions, needs: needNothing},
		"commit":      {run: (*call).commit, options: commitOptions},
		"config":      {run: (*call).configure, options: configOptions, needs: needNothing},
		"diff":        {run: (*call).diff, options: diffOptions},
		"fetch":       {run: (*call).fetch, options: fetchOptions, needs: needRepository},
		"init":        {run: (*call).init, options: initOptions, needs: needNothing},
		"log":         {run: (*call).log, options: logOptions, needs: needRepository},
		"ls-files":    {run: (*call).listFiles, options: listFilesOptions},
		"ls-remote":   {run: (*call).listRemote, options: listRemoteOptions, needs: needNothing},
		"merge":       {run: (*call).merge, options: mergeOptions},
		"merge-base":  {run: (*call).mergeBase, options: mergeBaseOptions, needs: needRepository},
		"mv":          {run: (*call).mv, options: mvOptions},
		"pull":        {run: (*call).pull, options: pullOptions},
		"push":        {run: (*call).push, options: pushOptions, needs: needRepository},
		"reflog":      {run: (*call).reflog, options: reflogOptions, needs: needRepository},
		"remote":      {run: (*call).remote, options: remoteOptions, needs: needRepository},
		"reset":       {run: (*call).reset, options: resetOptions},
		"restore":     {run: (*call).restore, options: restoreOptions},
		"revert":      {run: (*call).revert, options: pickOptions},
		"rev-parse":   {run: (*call).revParse, options: revParseOptions, needs: needRepository},
		"rm":          {run: (*call).rm, options: rmOptions},
		"show":        {run: (*call).show, options: listingOptions, needs: needRepository},
		"stash":       {run: (*call).stash, options: stashOptions},
		"status":      {run: (*call).status, options: statusOptions},
		"switch":      {run: (*call).switchBranch, options: switchOptions},
		"tag":         {run: (*call).tag, options: tagOptions, needs: needRepository},
		"version":     {run: func(g *call, _ []string) error { return g.print("git version %s\n", version) }, needs: needNothing},
	}
}

// call is one run of git.
type call struct {
	*tool.Call
	ctx       context.Context
	remotes   transport.Transport // what the host lends; nil for none
	verb      string
	overrides []setting // of -c
	index     *lockFile // the lock of the index, while this call has it
	*repo               // nil before open
}

// git returns git with a host's way to other repositories.
func git(remotes transport.Transport) tool.Body {
	return func(ctx context.Context, c *tool.Call) error {
		g := &call{Call: c, ctx: ctx, remotes: remotes}
		defer func() { // after a panic too
			g.index.release()
			g.closePacks()
		}()
		err := g.main()
		var exit tool.Exit
		if err == nil || errors.As(err, &exit) || tool.Ends(ctx, err) {
			return err
		}
		return g.fatal("%s", command.Reason(err))
	}
}

func (g *call) main() error {
	args, err := g.globals(g.Args[1:])
	if err != nil {
		return err
	}
	if len(args) == 0 {
		fmt.Fprintf(g.Stderr, "usage: git [-C <path>] [-c <name>=<value>] <command> [<args>]\ncommands: %s\n",
			strings.Join(slices.Sorted(maps.Keys(verbs)), " "))
		return tool.Exit(1)
	}
	v, ok := verbs[args[0]]
	if !ok {
		fmt.Fprintf(g.Stderr, "git: '%s' is not a git command. See 'git --help'.\n", args[0])
		return tool.Exit(1)
	}
	g.verb = args[0]
	if v.needs != needNothing {
		if err := g.open(); err != nil {
			return err
		}
	}
	if v.needs == needWork && g.root == "" {
		return g.fatal("this operation must be run in a work tree")
	}
	return v.run(g, args[1:])
}

// globals takes what stands before the command.
func (g *call) globals(args []string) ([]string, error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "--version":
			return []string{"version"}, nil
		case args[0] == "--no-pager" || args[0] == "-P":
		case args[0] == "-C" && len(args) > 1:
			dir, err := g.FS.RealPath(g.ctx, args[1])
			if err != nil {
				return nil, g.fatal("cannot change to '%s': %s", args[1], command.Reason(err))
			}
			p := *g.Process
			p.FS, p.Dir = g.FS.At(dir), dir
			g.Process = &p
			args = args[1:]
		case args[0] == "-c" && len(args) > 1:
			name, value, ok := strings.Cut(args[1], "=")
			if !ok {
				value = "true"
			}
			g.overrides = append(g.overrides, setting{normalName(name), value})
			args = args[1:]
		default:
			fmt.Fprintf(g.Stderr, "unknown option: %s\n", args[0])
			return nil, tool.Exit(129)
		}
		args = args[1:]
	}
	return args, nil
}

func (g *call) print(format string, args ...any) error {
	_, err := fmt.Fprintf(g.Out, format, args...)
	return err
}

// tell writes to standard error, behind what has gone to standard output.
func (g *call) tell(format string, args ...any) {
	fmt.Fprintf(g.Stderr, format, args...)
}

func (g *call) fatal(format string, args ...any) error {
	g.tell("fatal: "+format+"\n", args...)
	return tool.Exit(statusFatal)
}

func (g *call) failure(format string, args ...any) error {
	g.tell("error: "+format+"\n", args...)
	return tool.Exit(1)
}
