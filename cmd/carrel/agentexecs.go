package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/cmd/carrel/execs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/api"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// agentExecs is tools.Execs by a daemon.
type agentExecs struct {
	client *api.Client
	*mcpJob
}

func (*agentExecs) Backends() []string { return execs.Backends }

func (x *agentExecs) Start(ctx context.Context, spec execd.Spec) (string, error) {
	spec.ID, spec.Workspace = strings.ToLower(rand.Text()[:12]), x.workspace
	events, err := x.client.Start(ctx, spec)
	if err != nil {
		return "", err
	}
	defer events.Close() // it goes on
	if _, err := events.Next(); err != nil {
		return "", err
	}
	return spec.ID, nil
}

// Follow takes an exec up again with the daemon that follows one that died.
func (x *agentExecs) Follow(ctx context.Context, id string, after uint64, f func(execd.Event)) error {
	if err := x.mine(ctx, id); err != nil {
		return err
	}
	for deadline := time.Now().Add(ownerPatience); ; {
		err := x.attach(ctx, id, &after, f)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("exec %s: %w", id, vfs.ErrInterrupted)
		case !errors.Is(err, vfs.ErrClosed) || time.Now().After(deadline):
			return err
		}
		if err := waitFor(ctx, ownerRetry); err != nil {
			return fmt.Errorf("exec %s: %w", id, vfs.ErrInterrupted)
		}
	}
}

// mine refuses execs of other workspaces: an agent has tools for this one.
func (x *agentExecs) mine(ctx context.Context, id string) error {
	list, err := x.client.List(ctx, x.workspace)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.GetSpec().GetId() == id {
			return nil
		}
	}
	return fmt.Errorf("exec %q: %w", id, vfs.ErrNotExist)
}

func (x *agentExecs) attach(ctx context.Context, id string, after *uint64, f func(execd.Event)) error {
	events, err := x.client.Attach(ctx, id, *after, false)
	if err != nil {
		return err
	}
	defer events.Close()
	for {
		m, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, err := eventOf(m)
		if err != nil {
			return err
		}
		if e.Seq > 0 {
			*after = e.Seq
			f(e)
		}
	}
}

// eventOf translates an event back.
func eventOf(m *carrelv1.Event) (execd.Event, error) {
	e := execd.Event{Seq: m.GetSeq()}
	var err error
	switch x := m.GetEvent().(type) {
	case *carrelv1.Event_Stdout:
		e.Stream, e.Data = execd.Stdout, x.Stdout
	case *carrelv1.Event_Stderr:
		e.Stream, e.Data = execd.Stderr, x.Stderr
	case *carrelv1.Event_Gap:
		e.Stream, e.First, e.Lost = execd.Gap, x.Gap.GetFirstSeq(), x.Gap.GetLostBytes()
	case *carrelv1.Event_Exit:
		e.Stream = execd.Exited
		e.Data, err = json.Marshal(api.Result(x.Exit))
	}
	return e, err
}

func (x *agentExecs) Kill(ctx context.Context, id string) error {
	if err := x.mine(ctx, id); err != nil {
		return err
	}
	return x.client.Signal(ctx, id, "KILL")
}
