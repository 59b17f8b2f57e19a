package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// carrelWorkspace is the workspace that is mounted.
const carrelWorkspace = "bench"

// carrel is a workspace of a fresh store, mounted as users mount it, by the program itself.
type carrel struct {
	program    string
	store, dir string
	holder     *holder
	client     *control.Client
	tree       control.Workspace
	start      Usage
}

// Carrel returns a Carrel mount as a target. program is the file of this program; it is run with the arguments of
// 'carrel mount'.
func Carrel(program string) Target { return &carrel{program: program} }

func (c *carrel) Name() string { return "carrel" }

func (c *carrel) Open(ctx context.Context, base string) (dir string, err error) {
	c.store, c.dir = filepath.Join(base, "store"), filepath.Join(base, "mount")
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command(c.program)
	cmd.Args = []string{"carrel", "mount", "--store=" + c.store, "--", carrelWorkspace, c.dir}
	if c.holder, err = hold(cmd); err == nil {
		err = c.holder.until(ctx, false, func() (bool, error) { return c.connect(ctx) })
	}
	if err != nil {
		return "", fmt.Errorf("carrel mount: %w", err)
	}
	if c.tree, err = c.client.OpenWorkspace(ctx, carrelWorkspace); err != nil {
		return "", err
	}
	c.start, _, err = c.Usage(ctx)
	return c.dir, err
}

// connect reports whether the daemon has mounted, and keeps the connection to it.
func (c *carrel) connect(ctx context.Context) (bool, error) {
	client, err := control.Dial(ctx, c.store)
	if errors.Is(err, control.ErrNoOwner) || errors.Is(err, vfs.ErrClosed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mounts, err := client.Mounts(ctx)
	if err == nil && len(mounts) == 1 {
		c.client = client
		return true, nil
	}
	if errors.Is(err, vfs.ErrNotSupported) {
		err = nil // it is the command that makes the store, not yet the daemon
	}
	return false, errors.Join(err, client.Close())
}

func (c *carrel) Usage(ctx context.Context) (u Usage, ok bool, err error) {
	mounts, err := c.client.Mounts(ctx)
	if err != nil {
		return u, false, err
	}
	for _, m := range mounts {
		u.Requests += m.Requests
	}
	pid := c.client.Owner().PID
	if u.CPU, err = cpuOf(pid); err != nil {
		return u, false, err
	}
	if u.PeakRSS, err = peakOf(pid); err != nil {
		return u, false, err
	}
	u.CPU -= c.start.CPU
	u.Requests -= c.start.Requests
	return u, true, nil
}

func (c *carrel) Stored(ctx context.Context) (int64, bool, error) {
	s, err := c.client.Stats(ctx)
	return int64(s.ChunkBytes + s.BadgerBytes), true, err
}

func (c *carrel) Settle(ctx context.Context) (bool, error) { return true, c.tree.Sync(ctx) }

func (c *carrel) Close() error {
	var errs []error
	if c.client != nil {
		if c.tree != nil {
			_ = c.tree.Close() // the daemon's end closes it too
		}
		errs = append(errs, c.client.Close())
	}
	if c.holder != nil {
		errs = append(errs, c.holder.stop(), cleanMount(c.dir))
	}
	*c = carrel{program: c.program}
	return errors.Join(errs...)
}

func (c *carrel) Describe() TargetInfo {
	return TargetInfo{Name: "carrel", Kind: "carrel", Filesystem: filesystemOf(c.dir)}
}
