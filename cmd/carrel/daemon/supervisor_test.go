package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// fakeEnv makes this test program a daemon that does what the variable says: words, one per line.
const fakeEnv = "CARREL_TEST_DAEMON"

func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv(fakeEnv); ok {
		os.Exit(fakeDaemon(script))
	}
	goleak.VerifyTestMain(m)
}

func fakeDaemon(script string) int {
	ctx, status, err := Inherit(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	for word := range strings.FieldsSeq(script) {
		switch word {
		case "ready":
			WriteStatus(status, Status{Ready: true})
		case "corrupt":
			WriteStatus(status, StatusOf(vfs.ErrCorrupt, "it is corrupt"))
		case "busy":
			WriteStatus(status, StatusOf(vfs.ErrBusy, "it is busy"))
		case "left":
			WriteStatus(status, Status{Error: "some is left", Fatal: true, Exit: 3})
		case "wait":
			<-ctx.Done()
		case "fail":
			return 1
		case "die":
			p, _ := os.FindProcess(os.Getpid())
			_ = p.Kill()
			select {}
		}
	}
	return 0
}

// supervise runs a supervisor whose daemons follow one script each, and returns how often one was ready to resume.
func supervise(ctx context.Context, t *testing.T, ready func(), scripts ...string) (started []bool, err error) {
	t.Helper()
	var mu sync.Mutex
	store := t.TempDir()
	s := Supervisor{
		Clean: func() error { return CleanMounts(store) }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Ready: ready,
		Command: func(resume bool) *exec.Cmd {
			mu.Lock()
			defer mu.Unlock()
			script := "fail"
			if len(started) < len(scripts) {
				script = scripts[len(started)]
			}
			started = append(started, resume)
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), fakeEnv+"="+script)
			cmd.Stderr = os.Stderr
			return cmd
		},
	}
	err = s.Run(ctx)
	return started, err
}

func TestSupervisor(t *testing.T) {
	tests := map[string]struct {
		scripts []string
		started int
		want    string // in the error; empty for none
	}{
		"ends in order":              {[]string{"ready"}, 1, ""},
		"cannot mount":               {[]string{"busy fail"}, 1, "it is busy"},
		"dies before it mounts":      {[]string{"die"}, 1, "killed"},
		"dies and comes back":        {[]string{"ready die", "ready die", "ready"}, 3, ""},
		"is busy when it comes back": {[]string{"ready die", "busy fail", "ready"}, 3, ""},
		"finds damage coming back":   {[]string{"ready die", "corrupt fail"}, 2, "it is corrupt"},
		"fails after it was ready":   {[]string{"ready fail", "ready"}, 2, ""},
		"ends with something to say": {[]string{"ready left fail", "ready"}, 1, "some is left"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			readies := 0
			started, err := supervise(t.Context(), t, func() { readies++ }, tt.scripts...)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Run = %v, want %q", err, tt.want)
			}
			if len(started) != tt.started {
				t.Fatalf("%d daemons were started, want %d", len(started), tt.started)
			}
			for i, resume := range started {
				if resume != (i > 0) {
					t.Errorf("daemon %d: resume is %t", i, resume)
				}
			}
			if strings.Contains(tt.scripts[0], "ready") && readies != 1 {
				t.Errorf("Ready was called %d times", readies)
			}
		})
	}
}

func TestSupervisorIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started, err := supervise(ctx, t, cancel, "ready wait")
	if err != nil || len(started) != 1 {
		t.Errorf("%d daemons, %v", len(started), err)
	}
}

func TestSupervisorIsToldAndTheDaemonDies(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started, err := supervise(ctx, t, cancel, "ready wait die")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || len(started) != 1 {
		t.Errorf("%d daemons, %v", len(started), err)
	}
}

// What is on the status pipe is JSON, a line for each.
func TestStatusFormat(t *testing.T) {
	b, err := json.Marshal(Status{Error: "e", InUse: true})
	if err != nil || string(b) != `{"error":"e","in_use":true}` {
		t.Errorf("%s, %v", b, err)
	}
}
