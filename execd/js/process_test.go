package js

import (
	"context"
	"encoding/gob"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// A worker that dies while it waits is not missed: a new one takes its module, which runs once.
func TestWaitingWorkerDies(t *testing.T) {
	b := New()
	defer b.Close()
	tree := vfstest.NewTree()
	for i := range 4 {
		b.awaitPool()
		b.pool.mu.Lock()
		for _, p := range b.pool.ready {
			if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
			if i%2 == 0 {
				for p.alive() { // else it may die in the middle
				}
			}
		}
		b.pool.mu.Unlock()
		job := execd.Job{Spec: execd.Spec{Source: "export default 1", Dir: "/"}, Tree: tree}
		p, err := b.Start(t.Context(), job, nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		if x := p.Wait(); string(x.Value) != "1" {
			t.Errorf("%+v", x)
		}
	}
}

// Who does not wait for a worker that is being started leaves nothing behind.
func TestStartInterrupted(t *testing.T) {
	b := New()
	defer b.Close()
	b.pool.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	job := execd.Job{Spec: execd.Spec{Source: "export default 1", Dir: "/"}, Tree: vfstest.NewTree()}
	if _, err := b.Start(ctx, job, nowhere{}); !errors.Is(err, vfs.ErrInterrupted) {
		t.Error(err)
	}
}

// A worker whose daemon was killed ends, also in the middle of a loop.
func TestDaemonDies(t *testing.T) {
	p, err := startProcess(t.Context(), worker.DefaultMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	if err := gob.NewEncoder(p.conn).Encode(worker.Job{Main: "/main.mjs", Source: "for (;;) {}", Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	var begun worker.Call
	if err := gob.NewDecoder(p.conn).Decode(&begun); err != nil || begun.Op != worker.OpBegun {
		t.Fatalf("%+v, %v", begun, err)
	}
	if err := p.conn.Close(); err != nil { // as the kernel does for who was killed
		t.Fatal(err)
	}
	patience := time.AfterFunc(time.Minute, p.kill)
	defer patience.Stop()
	if state, err := p.cmd.Process.Wait(); err != nil || !state.Exited() {
		t.Errorf("the worker goes on: %v, %v", state, err)
	}
}
