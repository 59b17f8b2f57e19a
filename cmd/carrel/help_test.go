package main

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// everyCommand calls visit for each command that people see, with its name.
func everyCommand(t *testing.T, visit func(name string, c *cli.Command)) {
	var walk func(parent string, list []*cli.Command)
	walk = func(parent string, list []*cli.Command) {
		for _, c := range list {
			if c.Hidden {
				continue
			}
			name := parent + " " + c.Name
			visit(name, c)
			walk(name, c.Subcommands)
		}
	}
	walk("carrel", newProgram(strings.NewReader(""), t.Output(), t.Output()).app().Commands)
}

// Every command that does something has an example, and its flags are ones that there are.
func TestExamples(t *testing.T) {
	left := make(map[string]bool)
	for name := range examples {
		left[name] = true
	}
	everyCommand(t, func(name string, c *cli.Command) {
		delete(left, name)
		if len(examples[name]) == 0 && (len(c.Subcommands) == 0 || c.ArgsUsage != "") {
			t.Errorf("%s has no example", name)
		}
		for _, line := range examples[name] {
			if len(line) > 110 {
				t.Errorf("too long: %s", line)
			}
			at := strings.Index(line, "carrel ")
			if at < 0 {
				t.Errorf("%s: %s", name, line)
				continue
			}
			args := strings.Fields(strings.TrimRight(line[at:], ")"))
			if ran := commandRun(t, args); ran != name && !strings.HasPrefix(line, "carrel ls ") {
				t.Errorf("%q runs %q, want %q", args, ran, name)
			}
		}
	})
	for name := range left {
		t.Errorf("there are examples of %s, which is no command", name)
	}
}

// commandRun is the command that a command line means.
func commandRun(t *testing.T, args []string) string {
	ran := ""
	app := newProgram(strings.NewReader(""), t.Output(), t.Output()).app()
	var replace func(parent string, list []*cli.Command)
	replace = func(parent string, list []*cli.Command) {
		for _, c := range list {
			name := parent + " " + c.Name
			c.Before = nil // it would read a key file
			c.Action = func(*cli.Context) error { ran = name; return nil }
			replace(name, c.Subcommands)
		}
	}
	replace(app.Name, app.Commands)
	if err := app.RunContext(t.Context(), args); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	return ran
}

// Help fits a terminal, and says of each flag what it takes.
func TestHelpLines(t *testing.T) {
	everyCommand(t, func(name string, c *cli.Command) {
		status, help, stderr := runIn(t.Context(), t.TempDir(), "", time.Second, append(strings.Fields(name)[1:], "--help")...)
		if status != exitDone {
			t.Errorf("%s --help: %d, %s", name, status, stderr)
		}
		for line := range strings.Lines(help) {
			if utf8.RuneCountInString(line) > 131 {
				t.Errorf("%s --help: %s", name, line)
			}
		}
		for _, f := range c.Flags {
			if d := f.(cli.DocGenerationFlag); d.TakesValue() != (strings.Count(d.GetUsage(), "`") == 2) {
				t.Errorf("%s --%s: %s", name, f.Names()[0], d.GetUsage())
			}
		}
	})
}

func TestFlagHelp(t *testing.T) {
	day := spanFlag("keep", "keep it for `TIME`", 24*time.Hour)
	for _, c := range []struct {
		flag cli.Flag
		want string
	}{
		{&cli.BoolFlag{Name: "json", Usage: "print JSON"}, "--json\tprint JSON"},
		{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "all", DefaultText: "true as root"}, "--all, -a\tall (default: true as root)"},
		{&cli.IntFlag{Name: "pids", Usage: "at most `N`"}, "--pids N\tat most N"},
		{&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "set `NAME`"}, "--env, -e NAME...\tset NAME"},
		{spanFlag("keep", "keep it for `TIME`", 0), "--keep TIME\tkeep it for TIME"},
		{day, "--keep TIME\tkeep it for TIME (default: 24h0m0s)"},
		{&cli.BoolFlag{Name: "x", Usage: strings.Repeat("word ", 30)}, "-x\t" + strings.TrimSpace(strings.Repeat("word ", 17)) +
			"\n\t" + strings.TrimSpace(strings.Repeat("word ", 13))},
	} {
		if got := flagHelp(c.flag); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What is wrong with a command line is said with the dashes that people write, and what was meant, when that is near.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"moutn demo /mnt/demo", `there is no command "moutn"; is it mount?`},
		{"ws rmm demo", `there is no command "rmm"; is it rm?`},
		{"frobnicate", `there is no command "frobnicate"` + "\n"},
		{"help frobnicate", `there is no command "frobnicate"` + "\n"},
		{"mount --dettach demo /mnt/demo", "there is no flag --dettach; is it --detach?"},
		{"ls --no-such-flag demo", "there is no flag --no-such-flag\n"},
		{"ls -x demo", "there is no flag -x\n"},
		{"ls demo -l", `flags go before the arguments: "-l" is after "demo"`},
		{"history --keep soon", `invalid value "soon" for --keep: write a time, as 90s, 12h or 30d`},
		{"history --keep -1h", `invalid value "-1h" for --keep: write a time, as 90s, 12h or 30d`},
		{"log -n x demo", `invalid value "x" for -n: `},
	} {
		status, _, stderr := runIn(t.Context(), t.TempDir(), "", time.Second, strings.Fields(c.args)...)
		if status != exitUsage || !strings.HasPrefix(stderr, "carrel: "+c.want) {
			t.Errorf("%s: status %d: %s", c.args, status, stderr)
		}
	}
}

// help is no command, but what people try first.
func TestHelp(t *testing.T) {
	for _, c := range [][2][]string{{{"help"}, {"--help"}}, {{"help", "mount"}, {"mount", "--help"}}, {{"help", "ws", "rm"}, {"ws", "rm", "--help"}}} {
		var outs []string
		for _, args := range c {
			status, stdout, stderr := runIn(t.Context(), t.TempDir(), "", time.Second, args...)
			if status != exitDone || !strings.Contains(stdout, "USAGE:") {
				t.Errorf("%q: status %d: %s%s", args, status, stdout, stderr)
			}
			outs = append(outs, stdout)
		}
		if len(slices.Compact(outs)) != 1 {
			t.Errorf("%q:\n%s\n%q:\n%s", c[0], outs[0], c[1], outs[1])
		}
	}
}
