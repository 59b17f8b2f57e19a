package js

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/js/worker"
)

// mainModule is the name of a module that is given as source, in the directory that it runs in.
const mainModule = "[source].mjs"

// Backend implements execd.Backend.
type Backend struct {
	pool *pool[*process] // of the usual limits

	mu     sync.Mutex
	closed bool
}

var _ execd.Backend = (*Backend)(nil)

// New returns a backend. It must be closed.
func New() *Backend {
	return &Backend{pool: newPool(func(ctx context.Context) (*process, error) { return startProcess(ctx, worker.DefaultMemory) })}
}

// Start implements execd.Backend.
func (b *Backend) Start(ctx context.Context, j execd.Job, out execd.Output) (execd.Process, error) {
	job, memory, err := jobOf(j)
	if err != nil {
		return nil, err
	}
	fs := treepath.FS{Tree: j.Tree}
	if j.Source == "" {
		if a, err := fs.Stat(ctx, job.Main); err != nil || a.Type != vfs.TypeRegular {
			return nil, errors.Join(err, fmt.Errorf("module %s: %w", job.Main, vfs.ErrNotExist))
		}
	}
	p, err := b.take(ctx, memory)
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	b.pool.refill(over)
	started, err := execd.Func(func(ctx context.Context, _ execd.Job, stdin io.Reader, out execd.Output) execd.Exit {
		defer close(over)
		s := session{own: b.pool.own, fs: fs, stdin: stdin, out: out, memory: memory, open: openFiles{}}
		return s.runIn(ctx, p, job)
	}).Start(ctx, j, out)
	if err != nil {
		p.kill()
		close(over)
	}
	return started, err
}

// jobOf translates a spec.
func jobOf(j execd.Job) (job worker.Job, memory uint64, err error) {
	memory = cmp.Or(j.Limits.Memory, worker.DefaultMemory)
	switch {
	case j.Limits.CPU != 0 || j.Limits.Pids != 0:
		return job, 0, fmt.Errorf("a limit of processors or processes for a module: %w", vfs.ErrNotSupported)
	case memory < worker.MinMemory || memory > worker.MaxMemory:
		return job, 0, fmt.Errorf("%d bytes of memory for a module, of %d to %d: %w", memory, worker.MinMemory, uint64(worker.MaxMemory),
			vfs.ErrInvalid)
	}
	job = worker.Job{Source: j.Source, Args: j.Args, Env: j.Env, Dir: j.Dir, Input: string(j.Input)}
	job.Main = path.Join(j.Dir, mainModule)
	if j.Source == "" {
		job.Main, job.Args = j.Args[0], j.Args[1:]
		if !path.IsAbs(job.Main) {
			job.Main = path.Join(j.Dir, job.Main)
		}
	}
	return job, memory, nil
}

// take gives a process for one run: one that waits, when its limits are the same.
func (b *Backend) take(ctx context.Context, memory uint64) (*process, error) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("run a module: %w", vfs.ErrClosed)
	}
	if memory == worker.DefaultMemory {
		if p, ok := b.pool.take(ctx); ok {
			return p, nil
		}
	}
	return startProcess(ctx, memory)
}

// Close implements execd.Backend. The registry has ended the runs.
func (b *Backend) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if !closed {
		b.pool.close()
	}
	return nil
}
