package basic

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

var envOptions = getopt.New("+0C:iS:u:v", "null=0", "chdir:=C", "ignore-environment=i", "split-string:=S", "unset:=u",
	"debug=v")

// env prints the environment, or runs a command in a changed one.
func env(ctx context.Context, c *tool.Call) error {
	if len(c.Args) > 1 && c.Args[1] == "-" {
		c.Args = append([]string{c.Args[0], "-i"}, c.Args[2:]...)
	}
	options, args, err := c.Options(envOptions, 125)
	if err != nil {
		return err
	}
	variables, end, dir := slices.Clone(c.Env), "\n", ""
	for _, o := range options {
		switch o.Name {
		case "0":
			end = "\x00"
		case "C":
			dir = o.Value
		case "i":
			variables = nil
		case "S":
			args = append(strings.Fields(o.Value), args...)
		case "u":
			if o.Value == "" || strings.Contains(o.Value, "=") {
				return c.Die(125, "cannot unset '%s': Invalid argument", o.Value)
			}
			variables = slices.DeleteFunc(variables, func(e string) bool { return strings.HasPrefix(e, o.Value+"=") })
		}
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		variables = setVariable(variables, args[0])
		args = args[1:]
	}
	if len(args) == 0 {
		for _, e := range variables {
			_, _ = c.Out.WriteString(e + end)
		}
		return nil
	}
	p := *c.Process
	slices.Sort(variables)
	p.Args, p.Env, p.Refused = args, variables, "env: '%s': %s"
	if dir != "" {
		if err := changeDir(ctx, c, &p, dir); err != nil {
			return err
		}
	}
	c.Status = c.Run(ctx, &p)
	return nil
}

func changeDir(ctx context.Context, c *tool.Call, p *command.Process, dir string) error {
	real, err := c.FS.RealPath(ctx, dir)
	if err != nil {
		return c.Die(125, "cannot change directory to '%s': %s", dir, command.Reason(err))
	}
	p.FS, p.Dir = c.FS.At(real), real
	return nil
}

func setVariable(variables []string, entry string) []string {
	name, _, _ := strings.Cut(entry, "=")
	for i, e := range variables {
		if strings.HasPrefix(e, name+"=") {
			variables[i] = entry
			return variables
		}
	}
	return append(variables, entry)
}

func printenv(_ context.Context, c *tool.Call) error {
	names := c.Args[1:]
	end := "\n"
	if len(names) > 0 && (names[0] == "-0" || names[0] == "--null") {
		names, end = names[1:], "\x00"
	}
	if len(names) == 0 {
		for _, e := range c.Env {
			_, _ = c.Out.WriteString(e + end)
		}
	}
	for _, name := range names {
		value, ok := c.Getenv(name)
		if !ok {
			c.Status = 1
			continue
		}
		_, _ = c.Out.WriteString(value + end)
	}
	return nil
}

var timeoutOptions = getopt.New("+k:s:v", "kill-after:=k", "signal:=s", "foreground", "preserve-status", "verbose=v")

// timeout runs a command whose context ends when the time is up.
// signals are the names that timeout knows, without SIG.
var signals = strings.Fields("EXIT HUP INT QUIT ILL TRAP ABRT IOT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CLD CONT " +
	"STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO POLL PWR SYS RTMIN RTMAX")

// isSignal reports whether a text is the name or the number of a signal.
func isSignal(text string) bool {
	if n, err := strconv.Atoi(text); err == nil {
		return n >= 0 && n <= 64
	}
	return slices.Contains(signals, strings.TrimPrefix(strings.ToUpper(text), "SIG"))
}

func timeout(ctx context.Context, c *tool.Call) error {
	options, args, err := c.Options(timeoutOptions, 125)
	if err != nil {
		return err
	}
	kill, preserve := false, false
	for _, o := range options {
		switch o.Name {
		case "s":
			if !isSignal(o.Value) {
				return c.Usage(125, "'%s': invalid signal", o.Value)
			}
			kill = strings.TrimPrefix(strings.ToUpper(o.Value), "SIG") == "KILL" || o.Value == "9"
		case "preserve-status":
			preserve = true
		}
	}
	if len(args) < 2 {
		fmt.Fprintf(c.Stderr, "Try 'timeout --help' for more information.\n")
		return tool.Exit(125)
	}
	d, ok := duration(args[0])
	if !ok {
		return c.Usage(125, "invalid time interval '%s'", args[0])
	}
	start := time.Now() // before the deadline is reckoned, so that what ends at it has taken all of d
	limited, cancel := ctx, func() {}
	if d > 0 {
		limited, cancel = context.WithTimeout(ctx, d)
	}
	defer cancel()
	p := *c.Process
	p.Args, p.Refused = args[1:], "timeout: failed to run command '%s': %s"
	c.Status = c.Run(limited, &p)
	if d > 0 && limited.Err() != nil && ctx.Err() == nil && time.Since(start) >= d {
		switch {
		case kill:
			c.Status = command.StatusKilled
		case preserve:
			c.Status = command.StatusTerminated
		default:
			c.Status = 124
		}
	}
	return nil
}

// which says where a command would be found: all of ours are in /usr/bin.
func which(lookup func(string) bool) tool.Body {
	options := getopt.New("a")
	return func(ctx context.Context, c *tool.Call) error {
		_, names, err := c.Options(options, 2)
		if err != nil {
			return err
		}
		for _, name := range names {
			if path := findCommand(ctx, c, name, lookup); path != "" {
				_, _ = c.Out.WriteString(path + "\n")
			} else {
				c.Status = 1
			}
		}
		if len(names) == 0 {
			return tool.Exit(1)
		}
		return nil
	}
}

func findCommand(ctx context.Context, c *tool.Call, name string, lookup func(string) bool) string {
	if strings.Contains(name, "/") {
		if c.FS.Access(ctx, name, 1) == nil {
			return name
		}
		return ""
	}
	path, _ := c.Getenv("PATH")
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "."
		}
		file := strings.TrimSuffix(dir, "/") + "/" + name
		if a, err := c.FS.Stat(ctx, file); err == nil && a.Mode&0o111 != 0 && a.Nlink > 0 && c.FS.Access(ctx, file, 1) == nil {
			return file
		}
	}
	if lookup(name) {
		return "/usr/bin/" + name
	}
	return ""
}
