package execs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/fusefs"
)

// cells are the mounts of workspaces that containers see: one for each workspace, for as long as a container uses it.
type cells struct {
	open openTree
	dir  string
	log  *slog.Logger

	mu     sync.Mutex
	last   uint64
	mounts map[string]*cell // by workspace
}

// cell is one mount.
type cell struct {
	dir    string
	close  func() error // of the workspace
	server *fusefs.Server
	uses   int
}

// openTree opens a workspace, which is used until it is closed.
type openTree func(ctx context.Context, workspace string) (tree vfs.Tree, close func() error, err error)

// newCells takes away what a daemon before this one has left mounted.
func newCells(open openTree, dir string, log *slog.Logger) (*cells, error) {
	c := &cells{open: open, dir: dir, log: log, mounts: map[string]*cell{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		point := filepath.Join(dir, e.Name())
		if err := errors.Join(fusefs.CleanDead(point), os.Remove(point)); err != nil {
			log.Warn("a mount of a daemon before this one stays", "dir", point, "err", err)
		}
	}
	return c, nil
}

// mount is container.Config.Mount.
func (c *cells) mount(ctx context.Context, workspace string) (dir string, release func() error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mounts[workspace]
	if m == nil {
		if m, err = c.makeLocked(ctx, workspace); err != nil {
			return "", nil, fmt.Errorf("mount workspace %q for containers: %w", workspace, err)
		}
		c.mounts[workspace] = m
	}
	m.uses++
	return m.dir, sync.OnceValue(func() error { return c.release(workspace, m) }), nil
}

func (c *cells) makeLocked(ctx context.Context, workspace string) (*cell, error) {
	tree, closeTree, err := c.open(ctx, workspace)
	if err != nil {
		return nil, err
	}
	m := &cell{close: closeTree}
	// Never a name twice: what is still mounted, by a container that is just ending, is not mounted over.
	for ; ; c.last++ {
		m.dir = filepath.Join(c.dir, strconv.FormatUint(c.last, 10))
		if err = os.Mkdir(m.dir, 0o700); !errors.Is(err, os.ErrExist) {
			break
		}
	}
	c.last++
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.server, err = fusefs.Mount(m.dir, tree, fusefs.Options{
		Name: "carrel", AllowOther: os.Geteuid() == 0, Logger: c.log,
	})
	if err != nil {
		return nil, errors.Join(err, os.Remove(m.dir), m.close())
	}
	return m, nil
}

// release unmounts a workspace when no container uses it any more.
func (c *cells) release(workspace string, m *cell) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.uses--; m.uses > 0 {
		return nil
	}
	if c.mounts[workspace] == m {
		delete(c.mounts, workspace)
	}
	return errors.Join(m.server.Unmount(context.Background()), m.server.Wait(), m.close(), os.Remove(m.dir))
}

// flush returns when the kernel has forgotten what is stale in the mount of a workspace.
func (c *cells) flush(ctx context.Context, workspace string) error {
	c.mu.Lock()
	m := c.mounts[workspace]
	c.mu.Unlock()
	if m == nil {
		return nil
	}
	return m.server.Flush(ctx)
}
