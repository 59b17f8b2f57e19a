package shell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell/command"
	"github.com/carrelfs/carrel/execd/shell/command/toolbox"
)

var (
	corpusDir  = flag.String("corpus", os.Getenv("CARREL_SHELL_CORPUS"), "folder of oils.jsonl and recorded.jsonl, in place of testdata")
	corpusFile = flag.String("corpus.file", "", "run only cases of this file or area, and show what differs")
	corpusName = flag.String("corpus.name", "", "run only cases whose name contains this")
)

// oilsCase is a case of the Oils spec corpus.
type oilsCase struct {
	File, Name, Script string
	Stdout             []string // any of them; nil for whatever
	Status             []int
	Core               bool
}

// recordedCase is a script with what bash and GNU tools gave.
type recordedCase struct {
	Area, Command  string
	Files          map[string]string
	Stdout, Stderr string
	Status         int
}

func readCases[T any](t testing.TB, name string) (cases []T) {
	t.Helper()
	dir := *corpusDir
	if dir == "" {
		dir = "testdata"
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var c T
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

// outcome is what a script gave.
type outcome struct {
	stdout, stderr string
	status         int
	err            error
}

func newTree(t testing.TB) treepath.FS {
	t.Helper()
	fs := treepath.FS{Tree: vfstest.NewTree(), Umask: 0o022}
	for _, dir := range []string{"/case", "/tmp", "/root"} {
		if err := fs.MkdirAll(context.Background(), dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := fs.Chmod(context.Background(), "/tmp", 0o1777); err != nil {
		t.Fatal(err)
	}
	return fs
}

// writeCaseFile makes a file in the working directory of scripts.
func writeCaseFile(t testing.TB, fs treepath.FS, name, text string) {
	t.Helper()
	p := "/case/" + name
	if err := fs.MkdirAll(t.Context(), path.Dir(p), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := fs.WriteFile(t.Context(), p, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func runScript(t testing.TB, fs treepath.FS, script string, file bool) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	status, err := Run(context.Background(), Config{
		Tree: fs.Tree, Dir: "/case", File: file, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Commands: testCommands(),
		Env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root", "SH=bash", "TMP=/tmp", "LANG=C.UTF-8", "PWD=/case",
		},
		Limits: Limits{Time: 20 * time.Second, Steps: 20_000_000}, Seed: 42, Linger: 2 * time.Second,
	}, script)
	return outcome{out.String(), errs.String(), status, err}
}

// testCommands are the shell's commands and the four helpers of the corpus.
func testCommands() command.Table {
	t := command.Table{
		"argv.py": argvPy, "printenv.py": printenvPy, "stdout_stderr.py": stdoutStderrPy, "read_from_fd.py": readFromFDPy,
	}
	maps.Copy(t, corpusTable)
	return t
}

// corpusTable are the commands that scripts find beside the shell's own.
var corpusTable = toolbox.Table(nil)

func argvPy(_ context.Context, p *command.Process) int {
	var words []string
	for _, a := range p.Args[1:] {
		words = append(words, pyRepr(a))
	}
	fmt.Fprintf(p.Stdout, "[%s]\n", strings.Join(words, ", "))
	return 0
}

// pyRepr is Python 2's repr of a string of bytes.
func pyRepr(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteByte(quote)
	for i := range len(s) {
		switch c := s[i]; {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c >= 127:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(quote)
	return b.String()
}

func printenvPy(_ context.Context, p *command.Process) int {
	for _, name := range p.Args[1:] {
		v, ok := p.Getenv(name)
		if !ok {
			v = "None"
		}
		fmt.Fprintln(p.Stdout, v)
	}
	return 0
}

func stdoutStderrPy(_ context.Context, p *command.Process) int {
	args := append(p.Args[1:], "", "", "")
	out, errs := args[0], args[1]
	if out == "" {
		out = "STDOUT"
	}
	if errs == "" {
		errs = "STDERR"
	}
	fmt.Fprintln(p.Stdout, out)
	fmt.Fprintln(p.Stderr, errs)
	status := 0
	fmt.Sscan(args[2], &status)
	return status
}

func readFromFDPy(_ context.Context, p *command.Process) int {
	for _, a := range p.Args[1:] {
		n := 0
		fmt.Sscan(a, &n)
		r, ok := p.FD(n)
		if !ok {
			fmt.Fprintf(p.Stdout, "FATAL: Error reading from fd %d: [Errno 9] Bad file descriptor\n", n)
			return 1
		}
		b, err := io.ReadAll(r)
		if err != nil {
			fmt.Fprintf(p.Stdout, "FATAL: Error reading from fd %d: [Errno 9] Bad file descriptor\n", n)
			return 1
		}
		fmt.Fprintf(p.Stdout, "%d: %s", n, b)
	}
	return 0
}

// tally counts cases by file.
type tally struct {
	passed, all map[string]int
}

func (y *tally) add(file string, ok bool) {
	if y.all == nil {
		y.passed, y.all = make(map[string]int), make(map[string]int)
	}
	for _, k := range []string{file, ""} {
		y.all[k]++
		if ok {
			y.passed[k]++
		}
	}
}

// report prints the rates, the worst files first, and returns that of all in per mille.
func (y *tally) report(t *testing.T) int {
	t.Helper()
	var files []string
	for f := range y.all {
		if f != "" && y.passed[f] < y.all[f] {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b string) int { return (y.all[b] - y.passed[b]) - (y.all[a] - y.passed[a]) })
	for _, f := range files {
		t.Logf("%4d of %4d  %s", y.passed[f], y.all[f], f)
	}
	t.Logf("%d of %d pass: %.2f %%", y.passed[""], y.all[""], 100*float64(y.passed[""])/float64(max(y.all[""], 1)))
	return 1000 * y.passed[""] / max(y.all[""], 1)
}

func TestOils(t *testing.T) {
	var y tally
	for _, c := range readCases[oilsCase](t, "oils.jsonl") {
		if *corpusFile != "" && !strings.Contains(c.File, *corpusFile) || !strings.Contains(c.Name, *corpusName) {
			continue
		}
		o := runScript(t, newTree(t), c.Script, true)
		ok := c.passes(o)
		y.add(c.File, ok)
		if !ok && (*corpusFile != "" || *corpusName != "") {
			t.Logf("=== %s: %s\n%s\n--- got %d, %v\n%s--- want %v\n%s--- stderr\n%s", c.File, c.Name, c.Script, o.status, o.err, o.stdout,
				c.Status, strings.Join(c.Stdout, "\n--- or\n"), o.stderr)
		}
	}
	if rate := y.report(t); *corpusFile == "" && *corpusName == "" && rate < oilsFloor {
		t.Errorf("%d per mille of the cases pass, and %d did before", rate, oilsFloor)
	}
}

func (c *oilsCase) passes(o outcome) bool {
	if c.Stdout != nil && !slices.Contains(c.Stdout, o.stdout) &&
		!slices.Contains(c.Stdout, strings.TrimSuffix(o.stdout, "\n")) {
		return false
	}
	return c.Status == nil || slices.Contains(c.Status, o.status)
}

func TestRecorded(t *testing.T) {
	var y tally
	for _, c := range readCases[recordedCase](t, "recorded.jsonl") {
		if *corpusFile != "" && !strings.Contains(c.Area, *corpusFile) || !strings.Contains(c.Command, *corpusName) {
			continue
		}
		fs := newTree(t)
		for name, text := range c.Files {
			writeCaseFile(t, fs, name, text)
		}
		o := runScript(t, fs, c.Command, false)
		ok := o.stdout == c.Stdout && o.status == c.Status
		y.add(c.Area, ok)
		if !ok && *corpusFile != "" {
			t.Logf("=== %s\n%s\n--- got %d, %v\n%s--- want %d\n%s--- stderr\n%s", c.Area, c.Command, o.status, o.err, o.stdout, c.Status, c.Stdout, o.stderr)
		}
	}
	if rate := y.report(t); *corpusFile == "" && rate < recordedFloor {
		t.Errorf("%d per mille of the cases pass, and %d did before", rate, recordedFloor)
	}
}

// The rates in per mille below which the tests fail. They only go up.
const (
	oilsFloor     = 957
	recordedFloor = 978
)
