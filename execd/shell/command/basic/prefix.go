package basic

import (
	"context"
	"fmt"

	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/getopt"
	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// prefixes are commands that run another one in some way that makes no difference here: there are no priorities, no hangups,
// no sessions, and buffers are what they are.
var prefixes = map[string]prefix{
	"nice":   {getopt.New("+n:0123456789", "adjustment:=n"), "0\n", "nice: '%s': %s"},
	"nohup":  {getopt.New("+"), "", "nohup: failed to run command '%s': %s"},
	"setsid": {getopt.New("+cfw", "ctty=c", "fork=f", "wait=w"), "", "setsid: failed to execute %s: %s"},
	"stdbuf": {getopt.New("+i:o:e:", "input:=i", "output:=o", "error:=e"), "", "stdbuf: failed to run command '%s': %s"},
	"ionice": {getopt.New("+c:n:p:tP:u:", "class:=c", "classdata:=n", "ignore=t"), "none: prio 0\n",
		"ionice: failed to execute %s: %s"},
}

// prefix is the options of one, what it prints without a command, and what it says of one that cannot be started.
type prefix struct {
	options *getopt.Parser
	alone   string
	refused string
}

func (p prefix) body(ctx context.Context, c *tool.Call) error {
	_, args, err := c.Options(p.options, 125)
	switch {
	case err != nil:
		return err
	case len(args) == 0 && p.alone != "":
		_, err := c.Out.WriteString(p.alone)
		return err
	case len(args) == 0:
		return c.Usage(125, "missing operand")
	}
	run := *c.Process
	run.Args, run.Refused = args, p.refused
	c.Status = c.Run(ctx, &run)
	if c.Status == command.StatusNotFound {
		return tool.Exit(command.StatusNotFound) // which has been said
	}
	return nil
}

// groups names the groups of who runs the script.
func groups(ctx context.Context, c *tool.Call) error {
	if _, _, err := c.Options(getopt.New(""), 1); err != nil {
		return err
	}
	names := c.Accounts(ctx)
	group, _ := names.Group(c.FS.Cred.GID)
	fmt.Fprint(c.Out, group)
	for _, id := range c.FS.Cred.Groups {
		if id != c.FS.Cred.GID {
			name, _ := names.Group(id)
			fmt.Fprint(c.Out, " ", name)
		}
	}
	fmt.Fprintln(c.Out)
	return nil
}

// arch prints the machine's kind, as uname -m does.
func arch(ctx context.Context, c *tool.Call) error {
	c.Args = []string{c.Args[0], "-m"}
	return uname(ctx, c)
}

// tty says that there is no terminal.
func tty(_ context.Context, c *tool.Call) error {
	options, _, err := c.Options(getopt.New("s", "silent=s", "quiet=s"), 2)
	if err != nil {
		return err
	}
	if len(options) == 0 {
		fmt.Fprintln(c.Out, "not a tty")
	}
	return tool.Exit(1)
}
