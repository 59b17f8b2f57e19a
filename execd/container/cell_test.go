package container

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
)

// until waits for what another goroutine or process does.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// only returns the one container there is, and how many execs are in it.
func (d *desk) only(t *testing.T) (c *cell, uses int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.cells) != 1 {
		t.Fatalf("%d containers, want 1", len(d.cells))
	}
	for _, c = range d.cells {
		uses = c.uses
	}
	return c, uses
}

// A container whose first process dies while nobody is in it is taken away then, and does not keep the backend open.
func TestIdleCellDies(t *testing.T) {
	released := make(chan struct{})
	d := newDesk(t, func(c *Config) {
		mount := c.Mount
		c.Mount = func(ctx context.Context, name string) (string, func() error, error) {
			dir, _, err := mount(ctx, name)
			return dir, func() error { close(released); return nil }, err
		}
	})
	d.sh(t, "true")
	until(t, "leave", func() bool { _, uses := d.only(t); return uses == 0 })
	c, _ := d.only(t)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-released:
	case <-time.After(patience):
		t.Fatal("the workspace stays mounted")
	}
}

// gate lets a test hold mounts back.
func gate(entered chan<- struct{}, wait func(context.Context) error) func(*Config) {
	return func(c *Config) {
		mount := c.Mount
		c.Mount = func(ctx context.Context, name string) (string, func() error, error) {
			entered <- struct{}{}
			if err := wait(ctx); err != nil {
				return "", nil, err
			}
			return mount(ctx, name)
		}
	}
}

// A container that is being made when the backend is closed runs nothing.
func TestCloseWhileOpening(t *testing.T) {
	entered, open := make(chan struct{}), make(chan struct{})
	d := newDesk(t, gate(entered, func(context.Context) error { <-open; return nil }))
	started := make(chan error)
	go func() {
		_, err := d.Start(context.Background(), execd.Job{Spec: execd.Spec{Workspace: "ws", Args: []string{"sleep", "12121"}}}, newLog())
		started <- err
	}()
	<-entered
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	until(t, "close", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.closed })
	close(open)
	if err := <-started; !errors.Is(err, vfs.ErrClosed) {
		t.Error(err)
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it is not closed")
	}
}

// Who gives up making a container fails no other exec that waits for it.
func TestOpeningGivenUp(t *testing.T) {
	entered := make(chan struct{}, 2)
	var n atomic.Int32
	d := newDesk(t, gate(entered, func(ctx context.Context) error {
		if n.Add(1) > 1 {
			return nil
		}
		<-ctx.Done()
		return fmt.Errorf("mount: %w", vfs.ErrInterrupted)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	job := execd.Job{Spec: execd.Spec{Workspace: "ws", Args: []string{"true"}}}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := d.Start(ctx, job, newLog())
		first <- err
	}()
	<-entered
	go func() {
		p, err := d.Start(context.Background(), job, newLog())
		if err == nil {
			p.Wait()
		}
		second <- err
	}()
	until(t, "the second", func() bool { _, uses := d.only(t); return uses == 2 })
	cancel()
	if err := <-first; !errors.Is(err, vfs.ErrInterrupted) {
		t.Errorf("who gave up: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("who did not: %v", err)
	}
}

// A container in which not even its first processes have room is an error, not an endless wait or attempt.
func TestNoRoom(t *testing.T) {
	d := newDesk(t, nil)
	for _, memory := range []uint64{1 << 20, 4 << 20, 8 << 20, 16 << 20} {
		spec := execd.Spec{Workspace: "ws", Args: []string{"true"}, Limits: execd.Limits{Memory: memory}}
		if p, err := d.Start(t.Context(), execd.Job{Spec: spec}, newLog()); err == nil {
			p.Wait()
		}
	}
}

// Input that is given up leaves the next alone.
func TestInputGivenUp(t *testing.T) {
	d := newDesk(t, nil)
	p, _ := d.start(t, execd.Spec{Args: []string{"sh", "-c", "cat > /dev/null"}, Open: true})
	for range 3000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := p.Input(ctx, []byte("x")); err != nil && !errors.Is(err, vfs.ErrInterrupted) {
			t.Fatal(err)
		}
		if _, err := p.Input(t.Context(), []byte("y")); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.CloseInput(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
}

// A workspace in whose container nothing runs is let go when somebody wants to have it, and one in which something runs is not.
func TestRelease(t *testing.T) {
	var mounted atomic.Int64
	d := newDesk(t, func(c *Config) {
		mount := c.Mount
		c.Mount = func(ctx context.Context, name string) (string, func() error, error) {
			dir, release, err := mount(ctx, name)
			mounted.Add(1)
			return dir, func() error {
				mounted.Add(-1)
				return release()
			}, err
		}
	})
	p, out := d.start(t, execd.Spec{Args: []string{"sh", "-c", "echo ready; cat"}, Open: true})
	out.expect(t, "ready")
	d.Release("ws")
	d.Release("other")
	if n := mounted.Load(); n != 1 {
		t.Errorf("%d mounts while something runs", n)
	}
	if err := p.CloseInput(); err != nil {
		t.Error(err)
	}
	if x := p.Wait(); x.Code != 0 {
		t.Errorf("%+v", x)
	}
	until(t, "the workspace is let go", func() bool {
		d.Release("ws")
		return mounted.Load() == 0
	})
}
