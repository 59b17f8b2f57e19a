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
	mu     sync.Mutex
	closed bool
	spare  *process       // ready for a job of the usual limits, or nil
	making bool           // one is being made
	owned  sync.WaitGroup // who makes one
}

var _ execd.Backend = (*Backend)(nil)

// New returns a backend. It must be closed.
func New() *Backend {
	b := &Backend{}
	b.refill()
	return b
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
	p, err := b.take(memory)
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context, j execd.Job, stdin io.Reader, out execd.Output) execd.Exit {
		s := &session{process: p, fs: fs, stdin: stdin, out: out, memory: memory}
		return s.run(ctx, job)
	}
	started, err := execd.Func(run).Start(ctx, j, out)
	if err != nil {
		p.kill()
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

// take gives a process for one run, the one that is ready when its limits are the same.
func (b *Backend) take(memory uint64) (*process, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, fmt.Errorf("run a module: %w", vfs.ErrClosed)
	}
	p := b.spare
	if memory == worker.DefaultMemory {
		b.spare = nil
	} else {
		p = nil
	}
	b.mu.Unlock()
	b.refill()
	if p != nil && p.alive() {
		return p, nil
	}
	if p != nil {
		p.kill()
	}
	return startProcess(memory)
}

// refill has one made in the background, unless there is one.
func (b *Backend) refill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.making || b.spare != nil {
		return
	}
	b.making = true
	b.owned.Go(func() {
		p, err := startProcess(worker.DefaultMemory)
		b.mu.Lock()
		b.making = false
		if err == nil && !b.closed {
			b.spare, p = p, nil
		}
		b.mu.Unlock()
		if err == nil && p != nil {
			p.kill()
		}
		// An error is told to the next who needs one.
	})
}

// Close implements execd.Backend. The registry has ended the runs.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	p := b.spare
	b.spare = nil
	b.mu.Unlock()
	b.owned.Wait()
	if p != nil {
		p.kill()
	}
	return nil
}
