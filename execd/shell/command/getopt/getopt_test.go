package getopt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/execd/shell/command/getopt"
)

func TestParse(t *testing.T) {
	p := getopt.New("abn:o::", "all=a", "number:=n", "opt::=o", "color::", "colour::=color", "only", "onset")
	ordered := getopt.New("+ab")
	tests := []struct {
		p    *getopt.Parser
		args string
		want string
	}{
		{p, "-ab x -n 3 y", "a b n=3 | x y"},
		{p, "-abn3 - --", "a b n=3 | -"},
		{p, "-o -oval --opt=v --opt", "o o=val o=v o |"},
		{p, "--all --num 4 --number=5 --number=", "a n=4 n=5 n= |"},
		{p, "--col --colo=x --colour", "color color=x color |"},
		{p, "-a -- -b --x", "a | -b --x"},
		{p, "-z", "invalid option -- 'z'"},
		{p, "-a:", "invalid option -- ':'"},
		{p, "-an", "option requires an argument -- 'n'"},
		{p, "--number", "option '--number' requires an argument"},
		{p, "--all=1", "option '--all' doesn't allow an argument"},
		{p, "--nope", "unrecognized option '--nope'"},
		{p, "--on", "option '--on' is ambiguous; possibilities: '--only' '--onset'"},
		{ordered, "-a x -b", "a | x -b"},
	}
	for _, tt := range tests {
		options, operands, err := tt.p.Parse(strings.Fields(tt.args))
		var b strings.Builder
		for _, o := range options {
			b.WriteString(o.Name)
			if o.Given {
				b.WriteString("=" + o.Value)
			}
			b.WriteString(" ")
		}
		got := b.String() + "| " + strings.Join(operands, " ")
		if err != nil {
			got = fmt.Sprint(err)
		}
		if strings.TrimSpace(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.args, got, tt.want)
		}
	}
}

// Every command knows --help and --version, unless it has options of these names, and lists what it knows.
func TestHelp(t *testing.T) {
	p := getopt.New("ac:n::", "all=a", "every=a", "count:=c", "color::", "plain")
	for _, tt := range []struct {
		args []string
		want error
	}{{[]string{"--help"}, getopt.ErrHelp}, {[]string{"-a", "--version"}, getopt.ErrVersion}, {[]string{"--", "--help"}, nil}} {
		if _, _, err := p.Parse(tt.args); !errors.Is(err, tt.want) {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
	if o, _, err := getopt.New("h", "help=h").Parse([]string{"--help"}); err != nil || len(o) != 1 {
		t.Errorf("%v, %v", o, err)
	}
	const want = "  -a, --all, --every\n  -c, --count=VALUE\n  -n[VALUE]\n      --color[=VALUE]\n      --plain\n"
	if got := p.Summary(); got != want {
		t.Errorf("%s", got)
	}
}
