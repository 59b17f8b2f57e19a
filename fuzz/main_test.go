package fuzz

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/fusefs"
)

// Environment variables that tell a child of a test what it is.
const (
	roleEnv = "CARREL_FUZZ_ROLE" // the name of a worker, or one of those below
	dirEnv  = "CARREL_FUZZ_DIR"  // where a worker works
)

const (
	roleDaemon    = "daemon"
	roleAuthority = "authority"
	roleMirror    = "mirror"
	roleProgram   = "program"
)

// begunFd is a pipe that a worker or a program closes when it is in its directory.
const begunFd = 3

func TestMain(m *testing.M) {
	fusefs.HelperMain()
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every child sleeps for a second before it exits
	remove, err := buildChildren()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/golang/glog.(*fileSink).flushDaemon"),
		goleak.Cleanup(func(code int) {
			remove()
			os.Exit(code)
		}))
}

// play is the main function of a child.
func play(role string) int {
	syscall.Umask(0o022)
	var err error
	switch job := workers[role]; {
	case role == roleDaemon:
		err = runDaemon(os.Args[1], os.Args[2])
	case role == roleAuthority:
		err = runAuthority(os.Args[1], os.Args[3])
	case role == roleMirror:
		err = runMirror(os.Args[1], os.Args[2], os.Args[3])
	case role == roleProgram:
		err = become(os.Args[1:])
	case job == nil:
		err = fmt.Errorf("no worker %q", role)
	default:
		if err = errors.Join(os.Chdir(os.Getenv(dirEnv)), syscall.Close(begunFd)); err == nil {
			err = job(os.Args[1:])
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		return 1
	}
	return 0
}

// become replaces this process by a program that runs in the directory of the worker.
func become(argv []string) error {
	dir := os.Getenv(dirEnv)
	if err := os.Chdir(dir); err != nil {
		return err
	}
	syscall.CloseOnExec(begunFd)
	os.Unsetenv(roleEnv)
	os.Unsetenv(dirEnv)
	os.Setenv("PWD", dir)
	return fmt.Errorf("%s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

// number returns the number that an environment variable gives, or else usual.
func number(t testing.TB, variable string, usual int) int {
	t.Helper()
	text, ok := os.LookupEnv(variable)
	if !ok {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is no number", variable, text)
	}
	return n
}

// tempDir is t.TempDir with a short name and search permission for all.
func tempDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
