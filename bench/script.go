package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/carrelfs/carrel/bench/step"
)

// shell runs scripts, one at a time. Each is a process group of its own, so that a cancelled one ends as a whole.
//
// The script goes to its directory by itself: a process that was started there by os/exec would have this process wait
// in the directory's filesystem, where a mount that hangs could not be left any more.
type shell struct {
	env    []string
	stdout *os.File // files, not pipes: what a program leaves in the background cannot hold them open
	stderr *os.File
}

// newShell returns one that keeps its output in dir.
func newShell(dir string, env []string) (*shell, error) {
	stdout, err := os.CreateTemp(dir, "stdout")
	if err != nil {
		return nil, err
	}
	stderr, err := os.CreateTemp(dir, "stderr")
	if err != nil {
		return nil, errors.Join(err, stdout.Close())
	}
	return &shell{env: env, stdout: stdout, stderr: stderr}, nil
}

func (s *shell) close() error { return errors.Join(s.stdout.Close(), s.stderr.Close()) }

// preamble makes the function that runs this package's steps.
const preamble = `step() { "$CARREL_BENCH_PROGRAM" ` + step.Command + ` "$@"; }` + "\n"

// outcome is what a script did.
type outcome struct {
	wall   time.Duration // from before the process was started until it had been waited for
	stdout []byte
}

// run runs text in dir. A context that ends kills the script and all it has started.
func (s *shell) run(ctx context.Context, dir, text string) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	for _, f := range []*os.File{s.stdout, s.stderr} {
		if err := rewind(f); err != nil {
			return outcome{}, err
		}
	}
	text = "cd -- \"$1\"\n" + preamble + text
	cmd := exec.Command("bash", "--norc", "--noprofile", "-euo", "pipefail", "-c", text, "bench", dir)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = s.env, "/", s.stdout, s.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	err := waitGroup(ctx, cmd)
	o := outcome{wall: time.Since(start)}
	if err != nil {
		return o, s.complaint(err)
	}
	o.stdout, err = readStart(s.stdout, maxOutput)
	return o, err
}

func rewind(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return errors.Join(err, f.Truncate(0))
}

// waitGroup waits for a process that leads a group. When ctx ends first, the group is killed, and the process waited
// for as long as one may take to die.
func waitGroup(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left in the background, if anything
		return err
	case <-ctx.Done():
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended just now
	select {
	case <-done:
		return ctx.Err()
	case <-time.After(killPatience):
		return fmt.Errorf("process %d cannot be killed: %w", cmd.Process.Pid, ctx.Err())
	}
}

func readStart(f *os.File, max int64) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, max))
}

// complaint adds what the script said to the error.
func (s *shell) complaint(err error) error {
	said, readErr := readStart(s.stderr, maxComplaint)
	text := strings.TrimSpace(string(said))
	if text == "" || readErr != nil {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}
