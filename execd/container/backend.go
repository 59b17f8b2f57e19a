package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	"github.com/carrelfs/carrel/execd/image"
)

// Config is what a backend needs.
type Config struct {
	// Mount mounts a workspace where this process may not look, and returns where. It is mounted until release.
	Mount func(ctx context.Context, workspace string) (dir string, release func() error, err error)
	// Resolve returns where a root directory or an image of the machine's is, without symlinks, and refuses one in which this
	// process may not look. Nil takes paths as they are.
	Resolve func(path string) (string, error)
	// Host lets specs ask for the machine's network, and for a root directory of its. Whoever starts execs has asked for
	// the right.
	Host bool
	// Images has what was unpacked of images: a spec may then have one in place of a root directory. It is closed after the
	// backend, by whoever has made it.
	Images *image.Cache
	// Bundles is a directory of the backend's own for what OCI runtimes are given: a spec may then name one.
	Bundles string
	Log     *slog.Logger
}

// Backend runs programs in containers. It implements execd.Backend.
type Backend struct {
	config Config
	owned  sync.WaitGroup // one for each cell, and for who makes a spare
	warn   sync.Once
	stop   chan struct{} // closed by Close

	mu     sync.Mutex
	closed bool
	cells  map[cellKey]*cell
	spare  spare
	others map[*contained]struct{} // what runtimes run
}

// cellKey tells cells apart.
type cellKey struct {
	workspace string
	limits    execd.Limits
	hostNet   bool
	root      string
}

var _ execd.Backend = (*Backend)(nil)

// New returns a backend without containers. What those of a daemon that died have left is removed.
func New(config Config) *Backend {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	removeAllLeft(cgroupRoot, "/proc/self/cgroup")
	if config.Bundles != "" {
		removeBundles(config.Bundles, config.Log)
	}
	return &Backend{
		config: config, stop: make(chan struct{}), cells: map[cellKey]*cell{}, others: map[*contained]struct{}{},
	}
}

// Start implements execd.Backend.
func (b *Backend) Start(ctx context.Context, j execd.Job, out execd.Output) (execd.Process, error) {
	key, err := b.check(&j.Spec)
	if err == nil {
		err = b.resolve(&key, &j.Spec)
	}
	if err != nil {
		return nil, err
	}
	release, err := b.unpack(ctx, &key, &j.Spec)
	if err != nil {
		return nil, err
	}
	if j.Runtime != "" {
		return b.startContained(ctx, key, j, release, out)
	}
	defer release() // the cell holds it by then
	for range startTries {
		var p *process
		if p, err = b.startIn(ctx, key, j, out); err == nil {
			return p, nil
		}
		if !errors.Is(err, errCellDead) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w, and so have those in its place; its memory of %d bytes may be too little: %w",
		err, key.limits.Memory, vfs.ErrBusy)
}

// startIn starts an exec in the cell of a key.
func (b *Backend) startIn(ctx context.Context, key cellKey, j execd.Job, out execd.Output) (*process, error) {
	c, err := b.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	p, err := c.start(ctx, j, out)
	if errors.Is(err, errCellDead) {
		b.forget(c) // this may be known before its end is
	}
	if err != nil {
		b.leave(c)
	}
	return p, err
}

// check refuses what a container cannot do, and says which cell is meant.
func (b *Backend) check(s *execd.Spec) (cellKey, error) {
	switch {
	case len(s.Args) == 0 || s.Source != "":
		return cellKey{}, fmt.Errorf("a container runs a command, not a source: %w", vfs.ErrNotSupported)
	case s.Input != nil:
		return cellKey{}, fmt.Errorf("structured input to a container: %w", vfs.ErrNotSupported)
	case s.Runtime != "" && !slices.Contains(Runtimes, s.Runtime):
		return cellKey{}, fmt.Errorf("runtime %q is none of %s: %w", s.Runtime, strings.Join(Runtimes, ", "), vfs.ErrInvalid)
	case s.Net != "" && s.Net != "host":
		return cellKey{}, fmt.Errorf("network %q: %w", s.Net, vfs.ErrInvalid)
	case s.Privileged() && !b.config.Host:
		return cellKey{}, fmt.Errorf("the network or a directory of the host: %w", vfs.ErrNotPermitted)
	}
	limits := execd.Limits{
		Memory: cmp.Or(s.Limits.Memory, defaultMemory), CPU: s.Limits.CPU, Pids: cmp.Or(s.Limits.Pids, defaultPids),
	}
	return cellKey{s.Workspace, limits, s.Net == "host", s.Root}, nil
}

// resolve looks where the root of a spec is.
func (b *Backend) resolve(key *cellKey, s *execd.Spec) (err error) {
	if s.Root == "" || b.config.Resolve == nil {
		return nil
	}
	if s.Root, err = b.config.Resolve(s.Root); err != nil {
		return fmt.Errorf("the root of a container: %w", err)
	}
	key.root = s.Root
	return nil
}

// unpack puts the root of an image in its place, and the image's environment before that of the spec. The image is there
// until release.
func (b *Backend) unpack(ctx context.Context, key *cellKey, s *execd.Spec) (release func(), err error) {
	if b.config.Images == nil || s.Root == "" || !image.Is(s.Root) {
		return func() {}, nil
	}
	im, err := b.config.Images.Unpack(ctx, s.Root)
	if err != nil {
		return nil, err
	}
	key.root = im.Root
	s.Env = append(im.Env[:len(im.Env):len(im.Env)], s.Env...)
	return im.Release, nil
}

// enter returns a cell in which nobody but the caller's exec may be yet, and which stays until leave.
func (b *Backend) enter(ctx context.Context, key cellKey) (*cell, error) {
	c, mine, err := b.claim(key)
	if err != nil {
		return nil, err
	}
	if mine {
		c.open(ctx)
		c.givenUp = c.err != nil && ctx.Err() != nil
		close(c.ready)
		b.spareLater(key)
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		b.leave(c)
		return nil, fmt.Errorf("start a container: %w", vfs.ErrInterrupted)
	}
	switch {
	case c.givenUp && !mine:
		err = errCellDead
	case c.err != nil:
		err = c.err
	case b.isClosed(): // while it was made: Close kills those only that are ready
		err = fmt.Errorf("start a container: %w", vfs.ErrClosed)
	default:
		return c, nil
	}
	b.forget(c)
	b.leave(c)
	return nil, err
}

func (b *Backend) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// claim returns the cell of a key, making it when there is none: then it is the caller's to open.
func (b *Backend) claim(key cellKey) (c *cell, mine bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, false, fmt.Errorf("start a container: %w", vfs.ErrClosed)
	}
	if c = b.cells[key]; c == nil {
		if len(b.cells) >= MaxCells {
			return nil, false, fmt.Errorf("start a container: there are %d, which is the limit: %w", MaxCells, vfs.ErrBusy)
		}
		if c = b.takeSpareLocked(key); c == nil {
			c = newCell(b, key)
			b.owned.Add(1)
		}
		b.cells[key] = c
		mine = true
	}
	c.uses++
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	return c, mine, nil
}

// leave ends the use of a cell. One that nobody uses is closed: at once when it is no good, else after a while.
func (b *Backend) leave(c *cell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.uses--
	switch {
	case c.uses > 0:
	case b.cells[c.key] != c:
		go b.end(c)
	default:
		c.idle = time.AfterFunc(idleFor, func() { b.expire(c) })
	}
}

// forget keeps anyone from entering a cell, and ends it when nobody is in it.
func (b *Backend) forget(c *cell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.spare.cell == c:
		b.spare.cell = nil
		go b.end(c)
	case b.cells[c.key] == c:
		delete(b.cells, c.key)
		if c.uses == 0 {
			c.idle.Stop() // in vain it may be: expire finds the cell forgotten
			go b.end(c)
		}
	}
}

// expire ends a cell that has been idle.
func (b *Backend) expire(c *cell) {
	b.mu.Lock()
	over := c.uses == 0 && b.cells[c.key] == c
	if over {
		delete(b.cells, c.key)
	}
	b.mu.Unlock()
	if over {
		b.end(c)
	}
}

// Release ends the containers of a workspace in which nothing runs, and returns when they let the workspace go.
func (b *Backend) Release(workspace string) {
	b.mu.Lock()
	var idle []*cell
	for key, c := range b.cells {
		if key.workspace == workspace && c.uses == 0 {
			delete(b.cells, key)
			c.idle.Stop() // in vain it may be: expire finds the cell gone
			idle = append(idle, c)
		}
	}
	b.mu.Unlock()
	for _, c := range idle {
		b.end(c)
	}
}

// end closes a cell that nobody can enter any more.
func (b *Backend) end(c *cell) {
	defer b.owned.Done()
	if err := c.close(); err != nil {
		b.config.Log.Error("end a container", "workspace", c.key.workspace, "err", err)
	}
}

// Close implements execd.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	if !b.closed {
		close(b.stop)
	}
	b.closed = true
	var idle []*cell
	if b.spare.cell != nil {
		idle = append(idle, b.spare.cell)
		b.spare.cell = nil
	}
	for key, c := range b.cells {
		delete(b.cells, key)
		if c.uses > 0 {
			c.kill() // and whoever uses it leaves it
		} else {
			idle = append(idle, c)
		}
		if c.idle != nil {
			c.idle.Stop()
		}
	}
	others := slices.Collect(maps.Keys(b.others))
	b.mu.Unlock()
	for _, p := range others {
		_ = p.Signal(int(unix.SIGKILL)) // which has no error
	}
	for _, c := range idle {
		b.end(c)
	}
	b.owned.Wait()
	return nil
}

// degraded says once what this machine cannot limit.
func (b *Backend) degraded(err error) {
	b.warn.Do(func() {
		b.config.Log.Warn("containers here are limited by process only, where they can be; cgroups that the daemon may "+
			"write would limit them as a whole", "err", err)
	})
}
