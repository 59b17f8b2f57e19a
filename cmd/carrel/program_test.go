package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/fusefs"
)

// runIn runs a command line in this process on the store in dir.
func runIn(
	ctx context.Context, dir, stdin string, patience time.Duration, args ...string,
) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	p := newProgram(strings.NewReader(stdin), &out, &errs)
	p.patience = patience
	status = p.run(ctx, append([]string{"carrel", "--store", dir}, args...))
	return status, out.String(), errs.String()
}

// Every error that a store or a tree can give is explained with its own text, and those a person can do something
// about say what.
func TestExplain(t *testing.T) {
	for _, err := range append(vfs.Errors(), control.ErrVersion) {
		wrapped := fmt.Errorf("open store /s: %w", err)
		text := explain(wrapped)
		if !strings.HasPrefix(text, wrapped.Error()) {
			t.Errorf("%v is explained as %q", err, text)
		}
	}
	for _, a := range advices {
		indented := "\n  " + strings.ReplaceAll(a.advice, "\n", "\n  ")
		if text := explain(fmt.Errorf("open: %w", a.err)); !strings.Contains(text, indented) {
			t.Errorf("%v is explained as %q", a.err, text)
		}
	}
	said := &fusefs.MountError{Op: "mount", Dir: "/mnt", Err: unix.EPERM, Advice: "run it as root"}
	if got := explain(said); got != "mount /mnt: operation not permitted (run it as root)" {
		t.Errorf("an error that has its advice: %q", got)
	}
	if got := explain(told(vfs.ErrCorrupt, "First.\nSecond %d.", 2)); got != "corrupt data\n  First.\n  Second 2." {
		t.Errorf("told: %q", got)
	}
}

// The README and the help say the same of the exit statuses of a join; join-crash.txtar has each come about.
func TestJoinExits(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	status, help, stderr := runIn(t.Context(), t.TempDir(), "", time.Second, "join", "--help")
	if status != exitDone {
		t.Fatal(stderr)
	}
	for i, x := range joinExits {
		if row := fmt.Sprintf("\n| `%d` | %s |\n", x.status, x.meaning); x.status != i || !strings.Contains(string(readme), row) {
			t.Errorf("the README does not have %q", row)
		}
		if line := fmt.Sprintf("%d  %s\n", x.status, x.meaning); !strings.Contains(help, line) {
			t.Errorf("the help does not say %q:\n%s", line, help)
		}
	}
}

// A store whose owner does not serve it is in use; the command gives up after a while and says so.
func TestStoreInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if status, _, stderr := runIn(t.Context(), dir, "", ownerPatience, "ws", "create", "demo"); status != 0 {
		t.Fatal(stderr)
	}
	lock, err := os.Open(filepath.Join(dir, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := runIn(t.Context(), dir, "", time.Millisecond, "ls", "demo")
	if status != exitFailed || !strings.Contains(stderr, "in use by another process") {
		t.Errorf("status %d: %s", status, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, _, stderr = runIn(ctx, dir, "", time.Hour, "ls", "demo")
	if status != exitFailed || !strings.Contains(stderr, "interrupted") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// Commands work through an owner that is another process, and see what it does.
func TestThroughTheOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := casstore.Open(dir, casstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := control.NewServer(control.Own(s), nil, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	for _, step := range []struct {
		stdin string
		args  []string
		want  string
	}{
		{"", []string{"ws", "create", "demo"}, ""},
		{"text\n", []string{"put", "-", "demo:/f"}, ""},
		{"", []string{"cat", "demo:/f"}, "text\n"},
		{"", []string{"ls", "demo"}, "f\n"},
		{"", []string{"grep", "ex", "demo"}, "/f:text\n"},
		{"", []string{"check", "--bytes"}, ""},
		{"", []string{"rm", "demo:/f"}, ""},
		{"", []string{"find", "demo"}, "/\n"},
	} {
		status, stdout, stderr := runIn(t.Context(), dir, step.stdin, ownerPatience, step.args...)
		if status != exitDone || stdout != step.want {
			t.Errorf("%q: status %d, %q, want %q; %s", step.args, status, stdout, step.want, stderr)
		}
	}
	status, _, stderr := runIn(t.Context(), dir, "", ownerPatience, "cat", "demo:/f")
	if status != exitFailed || !strings.Contains(stderr, "no such file") {
		t.Errorf("cat of what was removed: status %d: %s", status, stderr)
	}
	if err := errors.Join(server.Close(), <-served, s.Close()); err != nil {
		t.Error(err)
	}
}

func TestLongLinesAndBinaryFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	run := func(stdin string, args ...string) (int, string) {
		t.Helper()
		status, stdout, stderr := runIn(t.Context(), dir, stdin, ownerPatience, args...)
		if stderr != "" {
			t.Fatal(stderr)
		}
		return status, stdout
	}
	run("", "ws", "create", "demo")
	run(strings.Repeat("x", 3*maxLine)+"\nneedle\nlast", "put", "-", "demo:/long")
	run("a\x00needle\n", "put", "-", "demo:/binary")
	run("bad \xff needle", "put", "-", "demo:/latin\xff")
	if _, got := run("", "grep", "-n", "needle|last", "demo:/long"); got != "/long:2:needle\n/long:3:last\n" {
		t.Errorf("grep in long lines: %q", got)
	}
	if _, got := run("", "grep", "needle", "demo:/binary"); got != "/binary: binary file matches\n" {
		t.Errorf("grep in a binary file: %q", got)
	}
	if _, got := run("", "grep", "--json", "needle", "demo:/latin\xff"); got !=
		`{"path":"/latin�","path_base64":"L2xhdGlu/w==","line":1,"text":"bad � needle","text_base64":"YmFkIP8gbmVlZGxl"}`+"\n" {
		t.Errorf("grep of bytes: %q", got)
	}
	_, got := run("", "find", "--json", "--name", "latin*", "demo")
	if !strings.Contains(got, `"path_base64":"L2xhdGlu/w=="`) {
		t.Errorf("find of bytes: %q", got)
	}
	if status, _ := run("", "grep", "nothing", "demo"); status != exitFailed {
		t.Errorf("grep that finds nothing: status %d", status)
	}
}

func TestModeString(t *testing.T) {
	for want, a := range map[string]vfs.Attr{
		"-rw-r--r--": {Type: vfs.TypeRegular, Mode: 0o644},
		"drwxrwxrwt": {Type: vfs.TypeDir, Mode: 0o1777},
		"-rwsr-sr-x": {Type: vfs.TypeRegular, Mode: 0o6755},
		"-rwSr-Sr-T": {Type: vfs.TypeRegular, Mode: 0o7644},
		"lrwxrwxrwx": {Type: vfs.TypeSymlink, Mode: 0o777},
		"p---------": {Type: vfs.TypeFIFO},
		"crw-rw-rw-": {Type: vfs.TypeCharDev, Mode: 0o666},
	} {
		if got := modeString(a); got != want {
			t.Errorf("modeString(%+v) = %q, want %q", a, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	p := &program{screen: true}
	for name, want := range map[string]string{"plain é": "plain é", "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`,
		"\xff": `"\xff"`} {
		if got := p.shown(name); got != want {
			t.Errorf("shown(%q) = %s, want %s", name, got, want)
		}
		if got := (&program{}).shown(name); got != name {
			t.Errorf("off the terminal, shown(%q) = %q", name, got)
		}
	}
}
