package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// version is that of the git whose words these are.
const version = "2.39.5"

// statusFatal is the exit status of what git calls fatal.
const statusFatal = 128

// Table returns git and, by the old names with a dash, what it can do: git-add and its like.
func Table() command.Table {
	t := command.Table{"git": tool.Command(git)}
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
type verb func(g *call, args []string) error

// verbs are set by init, since some run others.
var verbs map[string]verb

func init() {
	verbs = map[string]verb{
		"add": (*call).add, "branch": (*call).branch, "checkout": (*call).checkout, "commit": (*call).commit,
		"config": (*call).configure, "diff": (*call).diff, "init": (*call).init, "log": (*call).log,
		"ls-files": (*call).listFiles, "merge": (*call).merge, "mv": (*call).mv, "reset": (*call).reset,
		"restore": (*call).restore, "rev-parse": (*call).revParse, "rm": (*call).rm, "show": (*call).show,
		"status": (*call).status, "switch": (*call).switchBranch, "tag": (*call).tag,
		"version": func(g *call, _ []string) error { return g.print("git version %s\n", version) },
	}
}

// call is one run of git.
type call struct {
	*tool.Call
	ctx       context.Context
	verb      string
	overrides []setting // of -c
	*repo               // nil before open
}

func git(ctx context.Context, c *tool.Call) error {
	g := &call{Call: c, ctx: ctx}
	args, err := g.globals(c.Args[1:])
	if err != nil {
		return err
	}
	if len(args) == 0 {
		fmt.Fprintf(c.Stderr, "usage: git [-C <path>] [-c <name>=<value>] <command> [<args>]\ncommands: %s\n",
			strings.Join(slices.Sorted(maps.Keys(verbs)), " "))
		return tool.Exit(1)
	}
	run := verbs[args[0]]
	if run == nil {
		fmt.Fprintf(c.Stderr, "git: '%s' is not a git command. See 'git --help'.\n", args[0])
		return tool.Exit(1)
	}
	g.verb = args[0]
	if g.verb != "init" && g.verb != "version" && (g.verb != "config" || !slices.Contains(args, "--global")) {
		if err := g.open(); err != nil {
			return err
		}
	}
	err = run(g, args[1:])
	var exit tool.Exit
	if err == nil || errors.As(err, &exit) || tool.Ends(ctx, err) {
		return err
	}
	return g.fatal("%s", command.Reason(err))
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
			g.overrides = append(g.overrides, setting{strings.ToLower(name), value})
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

// unknown is an option that there is not.
func (g *call) unknown(option string) error {
	name := strings.TrimLeft(option, "-")
	if strings.HasPrefix(option, "--") {
		g.tell("error: unknown option `%s'\n", name)
	} else {
		g.tell("error: unknown switch `%s'\n", name[:min(1, len(name))])
	}
	return tool.Exit(129)
}

// flags are the options of one verb, by the form that they are handled as.
type flags struct {
	given  map[string][]string // values by option; "" for one without
	args   []string
	paths  []string // behind --
	dashed bool     // there was a --
}

func (f *flags) has(name string) bool { return len(f.given[name]) > 0 }

// value is the last one given.
func (f *flags) value(name string) string {
	if v := f.given[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// flags parses arguments. spec has every option with its aliases: "m:=message" takes a value and is also --message,
// "U?" takes one that is stuck to it or none.
func (g *call) flags(args []string, spec ...string) (*flags, error) {
	names, takes := map[string]string{}, map[string]byte{}
	for _, s := range spec {
		all := strings.Split(s, "=")
		name := strings.TrimRight(all[0], ":?")
		if kind := all[0][len(name):]; kind != "" {
			takes[name] = kind[0]
		}
		for _, alias := range append(all[1:], name) {
			names[alias] = name
		}
	}
	f := &flags{given: map[string][]string{}}
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case f.dashed:
			f.paths = append(f.paths, a)
		case a == "--":
			f.dashed = true
		case strings.HasPrefix(a, "--"):
			text, value, stuck := strings.Cut(a[2:], "=")
			name, ok := names[text]
			if !ok {
				return nil, g.unknown(a)
			}
			if takes[name] == ':' && !stuck {
				if len(args) == 0 {
					return nil, g.failure("option `%s' requires a value", text)
				}
				value, args = args[0], args[1:]
			}
			f.given[name] = append(f.given[name], value)
		case len(a) > 1 && a[0] == '-':
			var err error
			if args, err = g.letters(f, a[1:], args, names, takes); err != nil {
				return nil, err
			}
		default:
			f.args = append(f.args, a)
		}
	}
	return f, nil
}

// letters parses a word of short options.
func (g *call) letters(f *flags, word string, args []string, names map[string]string, takes map[string]byte) ([]string, error) {
	if _, ok := names["<n>"]; ok && strings.Trim(word, "0123456789") == "" {
		f.given["n"] = append(f.given["n"], word)
		return args, nil
	}
	for word != "" {
		letter := word[:1]
		word = word[1:]
		name, ok := names[letter]
		if !ok {
			return nil, g.unknown("-" + letter)
		}
		value := ""
		switch takes[name] {
		case '?':
			value, word = word, ""
		case ':':
			if value, word = word, ""; value == "" {
				if len(args) == 0 {
					g.tell("error: switch `%s' requires a value\n", letter)
					return nil, tool.Exit(129)
				}
				value, args = args[0], args[1:]
			}
		}
		f.given[name] = append(f.given[name], value)
	}
	return args, nil
}
