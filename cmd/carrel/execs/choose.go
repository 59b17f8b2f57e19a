package execs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/shell"
)

// choose picks the shell for what it can do all of, and a container for the rest.
func (x *scripts) choose(s *execd.Spec) (why string) {
	if why = cmp.Or(machineNeed(s), shell.Missing(x.commands, x.grammar, s.Source, s.Args)); why == "" {
		s.Backend = Shell
		return "every command that it needs is built in"
	}
	s.Backend = Container
	if s.Source != "" {
		s.Args, s.Source = append([]string{"bash", "-c", s.Source, "bash"}, s.Args...), ""
	}
	return why
}

// machineNeed says what a spec asks for, beside its commands, that only a container has.
func machineNeed(s *execd.Spec) string {
	switch {
	case s.TTY != nil:
		return "it needs a terminal"
	case s.Privileged():
		return "it needs the machine's network or programs"
	case s.Runtime != "":
		return "it needs a container of " + s.Runtime
	case s.Limits.CPU != 0:
		return "its processors are limited"
	case slices.ContainsFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }):
		return "it sets PATH"
	}
	return ""
}
