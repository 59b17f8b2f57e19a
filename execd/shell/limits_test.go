package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bombs are scripts that would never end or would take all there is, with the limit that is to end each.
var bombs = []struct {
	name, script string
	want         error
}{
	{"loop", "while :; do :; done", command.ErrSteps},
	{"until", "until false; do true; done", command.ErrSteps},
	{"for", "for ((;;)); do x=1; done", command.ErrSteps},
	{"arithmetic loop", "while ((1)); do ((i++)); done", command.ErrSteps},
	{"recursion", "f() { f; }; f", ErrRecursion},
	{"mutual recursion", "f() { g; }; g() { f; }; f", ErrRecursion},
	{"recursive substitution", "f() { x=$(f); }; f", ErrRecursion},
	{"recursive subshell", "f() { (f); }; f", ErrProcesses},
	{"recursive eval", `x='eval "$x"'; eval "$x"`, ErrRecursion},
	{"recursive source", "echo '. ./s' > s; . ./s", ErrRecursion},
	{"recursive trap", "trap 'false; (exit 1)' ERR; set -E; f() { false; f; }; f", ErrRecursion},
	{"pipe bomb", "f() { f | f; }; f", ErrProcesses},
	{"fork bomb", "f() { f | f & }; f; while :; do :; done", nil},
	{"doubling", "x=aaaaaaaa; while :; do x=$x$x; done", command.ErrMemory},
	{"appending", "while :; do x+=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; x+=$x; done", command.ErrMemory},
	{"array", "while :; do a+=(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa); done", command.ErrMemory},
	{"associative array", "declare -A m; for ((i = 0; ; i++)); do m[$i]=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", command.ErrMemory},
	{"replacement", "x=aaaaaaaaaaaaaaaa; while :; do x=${x//a/aa}; done", command.ErrMemory},
	{"substitution", "f() { while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done; }; x=$(f)", command.ErrMemory},
	{"here-document", "x=a; while :; do x=$(cat <<< $x$x$x$x); done", nil},
	{"output", "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", command.ErrOutput},
	{"errors", "while :; do nonexistent-command-with-a-long-name-so-that-it-takes-little-time; done", command.ErrOutput},
	{"printf width", "printf '%1000000000d' 1", command.ErrOutput},
	{"printf precision", "printf '%.1000000000d' 1", command.ErrOutput},
	{"printf reuse", "while :; do printf '%s\\n' {1..1000}; done > /dev/null", command.ErrSteps},
	{"jobs", "while :; do sleep 100 & done", ErrProcesses},
	{"zero", "x=$(</dev/zero)", command.ErrMemory},
	{"sleep", "sleep 100", ErrTime},
	{"read", "read x < <(sleep 100)", ErrTime},
	{"wait", "sleep 100 & wait", ErrTime},
	{"fifo", "mkfifo p; read x < p", ErrTime},
	{"trap in a loop", "trap 'kill -TERM $$' TERM; kill -TERM $$; while :; do :; done", nil},
}

func TestBombs(t *testing.T) {
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			limit := time.Minute // the machine may be slow, and only some are to run into it
			if b.want == ErrTime {
				limit = 50 * time.Millisecond
			}
			cfg := Config{
				Tree: vfstest.NewTree(), Stdout: &out, Stderr: &errs, Commands: bombCommands, Linger: time.Millisecond,
				Limits: Limits{Time: limit, Steps: 20_000, Output: 1 << 16, Memory: 1 << 18, Recursion: 100, Processes: 50},
			}
			status, err := Run(t.Context(), cfg, b.script)
			if b.want != nil && !errors.Is(err, b.want) {
				t.Fatalf("status %d, error %v, want %v\n%.300s", status, err, b.want, errs.String())
			}
			if err == nil {
				t.Fatalf("it ended by itself: status %d\n%.300s", status, errs.String())
			}
			if status != limitStatus(err) || status < 119 || status > 124 {
				t.Errorf("status %d of %v", status, err)
			}
			if !errors.Is(err, command.ErrOutput) && !strings.Contains(errs.String(), err.Error()) {
				t.Errorf("nothing said of %v: %.300s", err, errs.String())
			}
		})
	}
}

var bombCommands = command.Table{
	"sleep": func(ctx context.Context, _ *command.Process) int {
		<-ctx.Done()
		return command.StatusInterrupted
	},
	"cat": func(ctx context.Context, p *command.Process) int {
		if _, err := io.Copy(p.Stdout, p.Stdin); err != nil {
			return p.Fail(ctx, err)
		}
		return 0
	},
	"mkfifo": func(ctx context.Context, p *command.Process) int {
		if err := p.FS.Mkfifo(ctx, p.Args[1], 0o666); err != nil {
			return 1
		}
		return 0
	},
	"panic": func(context.Context, *command.Process) int { panic("a mistake of ours") },
}

// What is of one operation alone gives up the line, and the script goes on.
func TestBounds(t *testing.T) {
	for _, tt := range []struct{ script, said string }{
		{"echo {1..100000000}\necho on", "too many words"},
		{"echo {1..2000}{1..2000}\necho on", "too many words"},
		{"x=x; ((x))\necho on", "recursion level exceeded"},
		{"echo $((" + strings.Repeat("(", 250) + "1" + strings.Repeat(")", 250) + "))\necho on", "recursion level exceeded"},
		{"exec 5000> f\necho on", "Bad file descriptor"},
		{"panic\necho on", "internal error"},
		{"panic | panic\necho on", "internal error"},
	} {
		var out, errs bytes.Buffer
		cfg := Config{Tree: vfstest.NewTree(), Stdout: &out, Stderr: &errs, Commands: bombCommands}
		if _, err := Run(t.Context(), cfg, tt.script); err != nil || out.String() != "on\n" || !strings.Contains(errs.String(), tt.said) {
			t.Errorf("%.60s: %v, %q, %q", tt.script, err, out.String(), errs.String())
		}
	}
}

// A million words are within the bounds, as they are counted once.
func TestManyWords(t *testing.T) {
	var out, errs bytes.Buffer
	cfg := Config{Tree: vfstest.NewTree(), Stdout: &out, Stderr: &errs}
	_, err := Run(t.Context(), cfg, "set -- {1..1000000}; echo $# ${@: -1}; set -- {1..1000}{1..1000}; echo $#")
	if err != nil || out.String() != "1000000 1000000\n1000000\n" {
		t.Errorf("%v, %q, %q", err, out.String(), errs.String())
	}
}

// A cancelled context ends a script at once, wherever it is.
func TestCancel(t *testing.T) {
	for _, script := range []string{
		"while :; do :; done", "sleep 100", "sleep 100 | cat", "x=$(sleep 100)", "(sleep 100)", "cat <(sleep 100)",
		"sleep 100 & wait", "read x", "mapfile a", "cat", "f() { f2; }; f2() { sleep 100; }; f", "mkfifo p; echo x > p",
		"trap 'while :; do :; done' EXIT", "x=" + strings.Repeat("a", 20000) + "; while :; do y=${x//*b}; done",
		"x=" + strings.Repeat("a", 20000) + "; while :; do [[ $x =~ (a*)*b ]]; done",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		started := make(chan struct{})
		in, feed := io.Pipe()
		stop := context.AfterFunc(ctx, func() { feed.Close() }) // what Config.Stdin asks of its owner
		ended := make(chan error)
		go func() {
			_, err := Run(ctx, Config{
				Tree: vfstest.NewTree(), Stdin: in, Stdout: signalWriter{started}, Commands: bombCommands,
			}, "echo started\n"+script)
			ended <- err
		}()
		<-started
		for range 1000 { // let it get somewhere
			_ = fmt.Sprint()
		}
		at := time.Now()
		cancel()
		err := <-ended
		if d := time.Since(at); d > 20*time.Second { // 50 ms on a machine that has time for it
			t.Errorf("%.50s: ended after %v", script, d)
		}
		if err != nil && !errors.Is(err, context.Canceled) { // nil: its input ended first
			t.Errorf("%.50s: error %v", script, err)
		}
		stop()
		feed.Close()
	}
}

// signalWriter closes a channel at the first write.
type signalWriter struct{ c chan struct{} }

func (w signalWriter) Write(b []byte) (int, error) {
	select {
	case <-w.c:
	default:
		close(w.c)
	}
	return len(b), nil
}
