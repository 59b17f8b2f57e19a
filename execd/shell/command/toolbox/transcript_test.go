package toolbox_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd/shell"
	"github.com/carrelfs/carrel/execd/shell/command/toolbox"
)

// record makes the transcripts anew with bash and the tools on PATH. They are GNU's on Debian 12, gawk as awk, ripgrep,
// tree, dc.
var record = flag.Bool("record", false, "run the real tools and write what they do to testdata")

// made is the time of every file that a transcript starts with.
var made = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// A transcript is an archive of the files that every case starts with, in a directory of its own, and the cases:
//
//	$ first line of a script
//	> and more of it
//	  standard output
//	! standard error
//	= exit status, when it is not 0
//
// A backslash says that what precedes it, standard output ("\ ") or error ("\!"), ends without a newline.
type transcript struct {
	archive *txtar.Archive
	cases   []scriptCase
}

type scriptCase struct {
	source         string
	stdout, stderr string
	status         int
}

func readTranscript(t *testing.T, path string) *transcript {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tr := &transcript{archive: a}
	last := &a.Files[len(a.Files)-1]
	if last.Name != "cases" {
		t.Fatalf("%s: the last file is not the cases", path)
	}
	for _, line := range strings.SplitAfter(string(last.Data), "\n") {
		tr.add(t, line)
	}
	return tr
}

func (tr *transcript) add(t *testing.T, line string) {
	t.Helper()
	if source, ok := strings.CutPrefix(line, "$ "); ok {
		tr.cases = append(tr.cases, scriptCase{source: source})
		return
	}
	if len(tr.cases) == 0 {
		return
	}
	c := &tr.cases[len(tr.cases)-1]
	switch {
	case strings.HasPrefix(line, "> "):
		c.source += line[2:]
	case line == ">\n":
		c.source += "\n"
	case strings.HasPrefix(line, "  "):
		c.stdout += line[2:]
	case strings.HasPrefix(line, "! "):
		c.stderr += line[2:]
	case strings.HasPrefix(line, "= "):
		fmt.Sscan(line[2:], &c.status)
	case line == "\\ \n":
		c.stdout = strings.TrimSuffix(c.stdout, "\n")
	case line == "\\!\n":
		c.stderr = strings.TrimSuffix(c.stderr, "\n")
	case strings.TrimSpace(line) != "":
		t.Fatalf("a line that is none of a case's: %q", line)
	}
}

func (c scriptCase) String() string {
	var b strings.Builder
	for i, line := range strings.SplitAfter(strings.TrimSuffix(c.source, "\n"), "\n") {
		b.WriteString(map[bool]string{true: "$ ", false: "> "}[i == 0] + line)
	}
	b.WriteString("\n")
	block := func(prefix, text string) {
		for _, line := range strings.SplitAfter(text, "\n") {
			if line != "" {
				b.WriteString(prefix + line)
			}
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteString("\n\\" + prefix[:1] + "\n")
		}
	}
	block("  ", c.stdout)
	block("! ", c.stderr)
	if c.status != 0 {
		fmt.Fprintf(&b, "= %d\n", c.status)
	}
	return b.String()
}

// Every command does what the real one did.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(err, paths)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			tr := readTranscript(t, path)
			if *record {
				tr.record(t, path)
				return
			}
			for _, c := range tr.cases {
				t.Run("", func(t *testing.T) { tr.check(t, c) })
			}
		})
	}
}

func (tr *transcript) check(t *testing.T, c scriptCase) {
	t.Helper()
	f := treepath.FS{Tree: vfstest.NewTree(), Dir: "/work", Umask: 0o022}
	if err := f.MkdirAll(t.Context(), "/work", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, file := range tr.archive.Files[:len(tr.archive.Files)-1] {
		place(t, f, file)
	}
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := scriptCase{source: c.source}
	status, err := shell.Run(ctx, shell.Config{
		Tree: f.Tree, Dir: f.Dir, Stdout: &stdout, Stderr: &stderr, Commands: table,
		Env: []string{"HOME=/", "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "TZ=UTC"},
	}, c.source)
	if err != nil {
		t.Errorf("%s: %v", c.source, err)
	}
	got.status, got.stdout, got.stderr = status, stdout.String(), plain.Replace(stderr.String())
	if got != c {
		t.Errorf("\n%swant\n%s", got, c)
	}
}

var table = toolbox.Table(nil)

// plain takes out what differs between locales, and the place in the script, which every shell names in its own way.
var plain = strings.NewReplacer("‘", "'", "’", "'", "bash: line 1: ", "")

func place(t *testing.T, f treepath.FS, file txtar.File) {
	t.Helper()
	ctx := t.Context()
	then := vfs.TimeOf(made)
	err := errors.Join(f.MkdirAll(ctx, filepath.Join(f.Dir, filepath.Dir(file.Name)), 0o777),
		f.WriteFile(ctx, file.Name, file.Data, 0o666), f.Chtimes(ctx, file.Name, &then, &then, true))
	if err != nil {
		t.Fatal(err)
	}
}

// record replaces what is written down by what the real tools do.
func (tr *transcript) record(t *testing.T, path string) {
	t.Helper()
	var out strings.Builder
	for i, c := range tr.cases {
		dir := t.TempDir()
		for _, file := range tr.archive.Files[:len(tr.archive.Files)-1] {
			name := filepath.Join(dir, file.Name)
			err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, file.Data, 0o666),
				os.Chtimes(name, made, made))
			if err != nil {
				t.Fatal(err)
			}
		}
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(runReal(t, dir, c.source).String())
	}
	tr.archive.Files[len(tr.archive.Files)-1].Data = []byte(out.String())
	if err := os.WriteFile(path, txtar.Format(tr.archive), 0o666); err != nil {
		t.Fatal(err)
	}
}

func runReal(t *testing.T, dir, source string) scriptCase {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("bash", "-c", source)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = []string{"HOME=/", "LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return scriptCase{source, stdout.String(), plain.Replace(stderr.String()), cmd.ProcessState.ExitCode()}
}
