package container

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// What a command is given, and nothing else: no variable and no descriptor of the daemon.
func TestWhatCommandsGet(t *testing.T) {
	t.Setenv("CARREL_SECRET", "not for children")
	leak, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // without O_CLOEXEC, as whoever starts the daemon may have
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	d := newDesk(t, nil)
	if err := os.MkdirAll(filepath.Join(d.dir, "ws", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := `cat; pwd; id -u; echo $$; hostname; ls /proc/self/fd | tr '\n' ' '; echo; env | cut -d= -f1 | sort | tr '\n' ' '
		echo; echo "$A"; echo out > made; exit 3`
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", script}, Stdin: []byte("in\n"), Dir: "/sub", Env: []string{"A=b"}})
	if x := p.Wait(); x.Code != 3 || x.Signal != 0 {
		t.Errorf("%+v", x)
	}
	got := strings.Split(strings.TrimSpace(out.text(execd.Stdout)), "\n")
	want := []string{"in", "/workspace/sub", "0", got[3], "carrel", "0 1 2 3 ", "A HOME LANG LOGNAME PATH PWD SHELL TMPDIR USER ", "b"}
	if !slices.Equal(got, want) || got[3] == "1" {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if b, err := os.ReadFile(filepath.Join(d.dir, "ws", "sub", "made")); err != nil || string(b) != "out\n" {
		t.Errorf("what it wrote: %q, %v", b, err)
	}
}

// Output that comes after the command's own end is collected, for as long as somebody can write.
func TestOutputAfterExit(t *testing.T) {
	d := newDesk(t, nil)
	// The shell is gone when it has been waited for.
	x, out := d.sh(t, "(while kill -0 $$; do sleep 0.01; done 2> /dev/null; echo late; (sleep 0.1; echo later >&2) &) & echo early; exit 5")
	if x.Code != 5 || out != "early\nlate\nlater\n" {
		t.Errorf("%+v, %q", x, out)
	}
}

// What does not write any more does not keep an exec from ending, and dies with it.
func TestBackgroundEndsWithExec(t *testing.T) {
	d := newDesk(t, nil)
	start := time.Now()
	x, _ := d.sh(t, "sleep 11111 > /dev/null 2>&1 & setsid nohup sleep 11111 < /dev/null > /dev/null 2>&1 & exit 0")
	if x.Code != 0 || time.Since(start) > patience {
		t.Errorf("%+v after %v", x, time.Since(start))
	}
	if n := processes(t, "sleep\x0011111\x00"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// processes counts those of this machine that have a command line.
func processes(t *testing.T, line string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && string(b) == line {
			n++
		}
	}
	return n
}

// Kill ends everything, however it has tried to get away, and however much it is stopped.
func TestKillGrandchildren(t *testing.T) {
	d := newDesk(t, nil)
	for name, script := range map[string]string{
		"child":       "sleep 22222",
		"setsid":      "setsid sleep 22222",
		"nohup":       "nohup sleep 22222",
		"double fork": "(setsid sh -c 'nohup sleep 22222 & sleep 22222 &' &) ; sleep 22222",
		"trap":        "trap '' HUP INT TERM QUIT; sleep 22222; sleep 22222",
		"stopped":     "sleep 22222 & kill -STOP $!; kill -STOP $$",
		"forking":     "f() { sleep 22222 & }; for i in 1 2 3 4 5 6 7 8 9; do f; done; wait",
	} {
		p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", "echo up; " + script}})
		out.expect(t, "up")
		if err := p.Signal(int(unix.SIGKILL)); err != nil {
			t.Fatal(err)
		}
		if x := p.Wait(); x.Code != 137 || x.Signal != 9 || x.OOM {
			t.Errorf("%s: %+v", name, x)
		}
		if n := processes(t, "sleep\x0022222\x00"); n != 0 {
			t.Errorf("%s: %d are left", name, n)
		}
	}
}

// Every signal reaches the command and its group, and ends as 128+n.
func TestEverySignal(t *testing.T) {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGUSR2) // as by nohup, which is nothing to the command
	defer signal.Reset(unix.SIGHUP, unix.SIGINT, unix.SIGUSR2)
	d := newDesk(t, nil)
	for n := 1; n <= 64; n++ {
		switch unix.Signal(n) {
		case unix.SIGCHLD, unix.SIGURG, unix.SIGWINCH, unix.SIGCONT, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, 32, 33:
			continue // they end nothing (signal(7)); the C library keeps 32 and 33
		}
		p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", "echo up; exec sleep 33333"}})
		out.expect(t, "up")
		if err := p.Signal(n); err != nil {
			t.Fatal(err)
		}
		if x := p.Wait(); x.Code != 128+n || x.Signal != n {
			t.Errorf("signal %d: %+v", n, x)
		}
	}
	x, out := d.sh(t, `trap 'echo got; exit 9' USR1; kill -USR1 $$; sleep 1`)
	if x.Code != 9 || out != "got\n" {
		t.Errorf("a signal that is caught: %+v %q", x, out)
	}
}

// Commands that cannot be started are errors, and cost nothing.
func TestStartErrors(t *testing.T) {
	d := newDesk(t, nil)
	if err := os.MkdirAll(filepath.Join(d.dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain": "echo", "dead": "#!/no/such/interpreter\n", "noise": "\x7fnoise", "bin/only-here": "x",
	} {
		path := filepath.Join(d.dir, "ws", name)
		mode := os.FileMode(0o755)
		if name == "plain" || name == "bin/only-here" {
			mode = 0o644
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		spec execd.Spec
		want error
	}{
		{"no such program, in the first exec", execd.Spec{Args: []string{"no-such-program"}}, execd.ErrNoProgram},
		{"no such program", execd.Spec{Args: []string{"no-such-program"}}, execd.ErrNoProgram},
		{"as an error of files", execd.Spec{Args: []string{"no-such-program"}}, vfs.ErrNotExist},
		{"no name", execd.Spec{Args: []string{""}}, execd.ErrNoProgram},
		{"no such path", execd.Spec{Args: []string{"/no/such"}}, execd.ErrNoProgram},
		{"no such interpreter", execd.Spec{Args: []string{"./dead"}}, execd.ErrNoProgram},
		{"nothing in PATH", execd.Spec{Args: []string{"sh"}, Env: []string{"PATH="}}, execd.ErrNoProgram},
		{"not executable", execd.Spec{Args: []string{"./plain"}}, execd.ErrNotRunnable},
		{"not executable, by PATH", execd.Spec{Args: []string{"only-here"}, Env: []string{"PATH=/none:bin:/usr/bin"}}, execd.ErrNotRunnable},
		{"a directory", execd.Spec{Args: []string{"./bin"}}, execd.ErrNotRunnable},
		{"a directory, by PATH", execd.Spec{Args: []string{"bin"}, Env: []string{"PATH=:/"}}, execd.ErrNoProgram},
		{"below a file", execd.Spec{Args: []string{"./plain/x"}}, execd.ErrNotRunnable},
		{"of no format", execd.Spec{Args: []string{"./noise"}}, execd.ErrNotRunnable},
		{"no such directory", execd.Spec{Args: []string{"true"}, Dir: "/none"}, vfs.ErrNotExist},
		{"a file as directory", execd.Spec{Args: []string{"true"}, Dir: "/plain"}, vfs.ErrNotDir},
		{"a source", execd.Spec{Source: "x"}, vfs.ErrNotSupported},
		{"structured input", execd.Spec{Args: []string{"true"}, Input: []byte("{}")}, vfs.ErrNotSupported},
		{"the host's network", execd.Spec{Args: []string{"true"}, Net: "host"}, vfs.ErrNotPermitted},
		{"another network", execd.Spec{Args: []string{"true"}, Net: "x"}, vfs.ErrInvalid},
	} {
		tt.spec.Workspace = "ws"
		if _, err := d.Start(t.Context(), execd.Job{Spec: tt.spec}, newLog()); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// A terminal is made inside, has the size that was asked for, and ends input by its own character.
func TestTerminal(t *testing.T) {
	d := newDesk(t, nil)
	script := `tty; stty size; trap 'stty size; exit 4' WINCH; echo ready; while read x; do echo "got $x"; done; echo end; read y < /dev/tty; sleep 60 & wait`
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", script}, TTY: &execd.Size{Rows: 33, Cols: 77}, Open: true})
	out.expect(t, "ready")
	if _, err := p.Input(t.Context(), []byte("line\n")); err != nil {
		t.Fatal(err)
	}
	out.expect(t, "got line")
	if err := p.CloseInput(); err != nil {
		t.Fatal(err)
	}
	out.expect(t, "end")
	if _, err := p.Input(t.Context(), []byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(execd.Size{Rows: 44, Cols: 88}); err != nil {
		t.Fatal(err)
	}
	if x := p.Wait(); x.Code != 4 {
		t.Errorf("%+v", x)
	}
	text := strings.ReplaceAll(out.text(execd.Stdout), "\r", "")
	if !strings.HasPrefix(text, "/dev/pts/0\n33 77\n") || !strings.HasSuffix(text, "44 88\n") {
		t.Errorf("%q", text)
	}
}

// The interrupt character of a terminal reaches what runs in its foreground. No shell: one that is about to start a command
// takes the signal for itself, and waits for the command.
func TestTerminalInterrupt(t *testing.T) {
	d := newDesk(t, nil)
	p, _ := d.start(t, execd.Spec{Args: []string{"sleep", "44444"}, TTY: &execd.Size{Rows: 1, Cols: 1}, Open: true})
	if _, err := p.Input(t.Context(), []byte{3}); err != nil {
		t.Fatal(err)
	}
	if x := p.Wait(); x.Code != 130 {
		t.Errorf("%+v", x)
	}
}

// Input is waited for as a pipe does, and given up when its context ends.
func TestInput(t *testing.T) {
	d := newDesk(t, nil)
	p, out := d.start(t, execd.Spec{Args: []string{"cat"}, Stdin: []byte("a"), Open: true})
	if _, err := p.Input(t.Context(), []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := p.CloseInput(); err != nil {
		t.Fatal(err)
	}
	if x := p.Wait(); x.Code != 0 || out.text(execd.Stdout) != "ab" {
		t.Errorf("%+v, %q", x, out.text(execd.Stdout))
	}
	if _, err := p.Input(t.Context(), []byte("x")); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	p, _ = d.start(t, execd.Spec{Args: []string{"sleep", "55555"}, Open: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Input(ctx, make([]byte, 1<<20)); !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("input that nobody reads: %v", err)
	}
	if err := p.Signal(9); err != nil {
		t.Fatal(err)
	}
	p.Wait()
}

// Execs of a workspace share a container and what is in its /tmp, and not their processes; other workspaces share nothing.
func TestCells(t *testing.T) {
	d := newDesk(t, nil)
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", "echo x > /tmp/shared; echo up; read x"}, Open: true})
	out.expect(t, "up")
	if x, got := d.sh(t, "cat /tmp/shared; cat /proc/[0-9]*/cmdline | grep -c 'echo[ ]up'"); x.Code != 1 || got != "x\n0\n" {
		t.Errorf("of the same workspace: %+v %q", x, got)
	}
	other, otherOut := d.start(t, execd.Spec{Workspace: "other", Args: []string{"sh", "-c", "cat /tmp/shared; ls /workspace"}})
	if x := other.Wait(); x.Code != 0 || otherOut.text(execd.Stdout) != "" {
		t.Errorf("of another workspace: %+v %q", x, otherOut.text(execd.Stdout))
	}
	if n := len(d.cells); n != 2 {
		t.Errorf("%d containers, want 2", n)
	}
	if err := p.CloseInput(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
}

// A container whose first process dies takes its execs with it, and the next exec has another.
func TestCellDies(t *testing.T) {
	d := newDesk(t, nil)
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", "echo up; sleep 66666"}})
	out.expect(t, "up")
	c, _ := d.only(t)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if x := p.Wait(); x.Code != 137 {
		t.Errorf("%+v", x)
	}
	if x, got := d.sh(t, "echo again"); x.Code != 0 || got != "again\n" {
		t.Errorf("%+v %q", x, got)
	}
}
