package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func TestGetenv(t *testing.T) {
	p := &Process{Env: []string{"A=1", "AB=", "B=x=y"}}
	for name, want := range map[string]string{"A": "1", "AB": "", "B": "x=y", "C": "-", "": "-"} {
		got, ok := p.Getenv(name)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
}

func TestFail(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx    context.Context
		err    error
		status int
		said   string
	}{
		{t.Context(), fmt.Errorf("open: %w", vfs.ErrNotExist), 1, "cat: No such file or directory\n"},
		{t.Context(), fmt.Errorf("write: %w", ErrPipe), 141, ""},
		{ended, vfs.ErrInterrupted, 130, ""},
		{t.Context(), errors.New("odd"), 1, "cat: odd\n"},
	} {
		var said strings.Builder
		p := &Process{Args: []string{"cat"}, Stderr: &said}
		if got := p.Fail(tt.ctx, tt.err); got != tt.status || said.String() != tt.said {
			t.Errorf("%v: %d, %q", tt.err, got, said.String())
		}
	}
}

func TestMeter(t *testing.T) {
	var over []error
	m := NewMeter(10, 100, 0, func(err error) { over = append(over, err) })
	for _, err := range []error{m.Step(10), m.Memory(90), m.Memory(-50), m.Memory(60), m.Output(1 << 40), m.Step(0),
		(*Meter)(nil).Step(1)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := m.Step(1); err != ErrSteps {
		t.Error(err)
	}
	if err := m.Memory(1); err != ErrMemory {
		t.Error(err)
	}
	if len(over) != 2 || over[0] != ErrSteps || over[1] != ErrMemory {
		t.Error(over)
	}
}

// Every error that a tree can give to a command has words.
func TestReasons(t *testing.T) {
	inside := []error{ // of a store or of replication: no command meets them
		vfs.ErrXattrTooBig, vfs.ErrNoData, vfs.ErrInUse, vfs.ErrNewerFormat, vfs.ErrNotStore, vfs.ErrNoWorkspace,
		vfs.ErrWorkspaceBusy, vfs.ErrNoRevision, vfs.ErrVoidCursor, vfs.ErrPushReused, vfs.ErrKey,
	}
	for _, err := range vfs.Errors() {
		known := Reason(fmt.Errorf("wrapped: %w", err)) != "wrapped: "+err.Error()
		for _, in := range inside {
			known = known || err == in
		}
		if !known {
			t.Errorf("no words for %v", err)
		}
	}
}
