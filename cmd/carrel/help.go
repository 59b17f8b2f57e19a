package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// flagWidth is how long a line of what a flag does may be, in bytes.
const flagWidth = 84

func init() { cli.FlagStringer = flagHelp }

// flagHelp is what --help says of a flag: its names and what it takes, and, beside them, what it does. The library's own
// repeats what it takes for each name, says of all that is off or 0 that this is the default, and breaks no lines.
func flagHelp(flag cli.Flag) string {
	f, ok := flag.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	names := make([]string, len(flag.Names()))
	for i, name := range flag.Names() {
		names[i] = dashed(name)
	}
	parts := strings.Split(f.GetUsage(), "`")
	left := strings.Join(names, ", ")
	if len(parts) == 3 {
		left += " " + parts[1]
	}
	if s, ok := flag.(cli.DocGenerationSliceFlag); ok && s.IsSliceFlag() {
		left += "..."
	}
	right := strings.Join(parts, "")
	switch text := f.GetDefaultText(); text {
	case "", "false", "0", "0s":
	default:
		right += " (default: " + text + ")"
	}
	return left + "\t" + strings.ReplaceAll(broken(right, flagWidth), "\n", "\n\t")
}

// broken has a line break where the next word would go beyond width.
func broken(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// description is what --help says of a command, with its examples.
func description(name string, c *cli.Command) string {
	lines := examples[name]
	if len(lines) == 0 {
		return c.Description
	}
	return strings.TrimSpace(c.Description + "\n\nFor example:\n  " + strings.Join(lines, "\n  "))
}

// usageLines says how a command is called.
func usageLines(name string, c *cli.Command) string {
	var lines []string
	if len(c.Subcommands) == 0 || c.ArgsUsage != "" {
		line := name
		if len(c.Flags) > 0 {
			line += " [FLAGS]"
		}
		lines = append(lines, strings.TrimSpace(line+" "+c.ArgsUsage))
	}
	if len(c.Subcommands) > 0 {
		lines = append(lines, name+" COMMAND [FLAGS] ARGUMENTS")
	}
	return strings.Join(lines, "\n")
}

// What package flag's errors begin with, or have in the middle: it has only texts.
const (
	flagUnknown = "flag provided but not defined: -"
	flagInvalid = " for flag -"
)

// flagProblem says what is wrong with a flag, with the dashes that people write.
func flagProblem(c *cli.Context, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, flagUnknown); ok {
		return "there is no flag " + dashed(name) + nearest(name, flagNames(c), dashed)
	}
	before, after, ok := strings.Cut(text, flagInvalid)
	name, why, _ := strings.Cut(after, ": ")
	if !ok || why == "" {
		return text
	}
	return fmt.Sprintf("%s for %s: %s", before, dashed(name), why)
}

// flagNames are the names of the flags of a command, or of the program.
func flagNames(c *cli.Context) []string {
	names := []string{"help"}
	for _, f := range append(c.App.Flags, c.Command.Flags...) {
		names = append(names, f.Names()...)
	}
	return names
}

// nearest asks whether a name was meant that differs from what was written in a letter or two.
func nearest(written string, names []string, shown func(string) string) string {
	best, least := "", min(2, len(written)/2)+1
	for _, name := range names {
		if d := smetrics.WagnerFischer(written, name, 1, 1, 1); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; is it " + shown(best) + "?"
}

// unknownCommand is a command that there is not among those of the context.
func unknownCommand(c *cli.Context, name string) error {
	var names []string
	for _, sub := range c.Command.Subcommands {
		if !sub.Hidden {
			names = append(names, sub.Names()...)
		}
	}
	same := func(s string) string { return s }
	return &usageError{c, fmt.Sprintf("there is no command %q", name) + nearest(name, names, same)}
}

// span is a time on the command line, which may be in days: a cli.Generic and a flag.Getter.
type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }

// Get is asked by whoever passes a flag on.
func (s *span) Get() any { return time.Duration(*s) }

func (s *span) Set(text string) error {
	d, err := parseDays(text)
	if err != nil || d < 0 {
		return fmt.Errorf("write a time, as 90s, 12h or 30d")
	}
	*s = span(d)
	return nil
}

func spanFlag(name, usage string, value time.Duration) cli.Flag {
	s := span(value)
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &s}
}

// spanOf is the value of a flag of spanFlag.
func spanOf(c *cli.Context, name string) time.Duration {
	d, _ := c.Value(name).(time.Duration) // zero for a command without it
	return d
}
