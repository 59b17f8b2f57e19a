package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arguments returns the arguments when there are at least min and at most max of them; max < 0 is no limit.
func arguments(c *cli.Context, min, max int) ([]string, error) {
	args := c.Args().Slice()
	for i, a := range args {
		if i > 0 && looksLikeFlag(c, a) {
			return nil, &usageError{c, fmt.Sprintf("flags go before the arguments: %q is after %q", a, args[0])}
		}
	}
	switch {
	case len(args) < min:
		return nil, &usageError{c, "too few arguments: " + c.Command.HelpName + " " + c.Command.ArgsUsage}
	case max >= 0 && len(args) > max:
		return nil, &usageError{c, fmt.Sprintf("one argument too many: %q", args[max])}
	}
	return args, nil
}

// looksLikeFlag is about an argument after the first: nothing has a name that begins with two dashes, but -l may be a file
// where it is no flag of the command.
func looksLikeFlag(c *cli.Context, arg string) bool {
	name, ok := strings.CutPrefix(arg, "-")
	return ok && (len(name) > 1 && name[0] == '-' || slices.Contains(flagNames(c), name))
}

// address is a place in a workspace.
type address struct {
	workspace string
	path      string // in the workspace; empty for its root
}

// String is the address as people write it.
func (a address) String() string { return a.workspace + ":/" + strings.TrimLeft(a.path, "/") }

// parseAddress reads WORKSPACE or WORKSPACE:PATH. No workspace has a colon in its name.
func parseAddress(c *cli.Context, s string) (address, error) {
	workspace, path, _ := strings.Cut(s, ":")
	if workspace == "" || strings.Contains(workspace, "/") {
		return address{}, &usageError{c, fmt.Sprintf("%q is no place in a workspace: write WORKSPACE:/PATH", s)}
	}
	return address{workspace, path}, nil
}
