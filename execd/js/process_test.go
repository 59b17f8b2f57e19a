package js

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"github.com/carrelfs/carrel/execd"
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
