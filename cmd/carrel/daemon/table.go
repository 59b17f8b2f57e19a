package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/control"
	"github.com/carrelfs/carrel/casstore/lookback"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/fusefs"
)

// table is what a daemon has mounted, and what else it is there for. It implements control.Mounts.
type table struct {
	store control.Store
	dir   string // the store's
	log   *slog.Logger
	empty chan struct{} // closed when there is nothing left to be there for

	recording sync.Mutex // held while the record is written; before mu

	mu       sync.Mutex
	closed   bool // no more mounts are taken
	mounts   map[string]*mounted
	owed     []recorded     // what a daemon that died had mounted, and is not mounted again yet
	kept     int            // other reasons to be there
	was      bool           // there was a mount, or another reason
	making   sync.WaitGroup // one for each mount that is being made; none is added once closed
	watchers sync.WaitGroup // one for each mount
}

var _ control.Mounts = (*table)(nil)

// mounted is one mount, from before it is made until it is all cleaned up.
type mounted struct {
	control.Mount
	id     uint64         // of the workspace
	opened bool           // the workspace is
	server *fusefs.Server // nil while it is being made
	tree   control.Workspace
	shown  *lookback.Tree // over tree
	gone   chan struct{}  // closed when its bytes are durable and it is off the table
	err    error          // of its end; to be read when gone is closed
}

func newTable(store control.Store, dir string, log *slog.Logger) *table {
	return &table{store: store, dir: dir, log: log, empty: make(chan struct{}), mounts: map[string]*mounted{}}
}

// Mount implements control.Mounts.
func (t *table) Mount(ctx context.Context, m control.Mount) error {
	if _, _, past := casstore.SplitMoment(m.Workspace); past {
		m.ReadOnly = true
	}
	x := &mounted{Mount: m, gone: make(chan struct{})}
	if err := t.claim(x); err != nil {
		return err
	}
	defer t.making.Done()
	if err := t.mount(ctx, x); err != nil {
		t.drop(x)
		return err
	}
	t.watchers.Go(func() { t.watch(x) })
	return nil
}

// claim puts a mount on the table, so that no other is made on the same directory meanwhile.
func (t *table) claim(x *mounted) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return fmt.Errorf("mount %s: the daemon is ending: %w", x.Dir, vfs.ErrClosed)
	case t.mounts[x.Dir] != nil:
		return &fusefs.MountError{
			Op: "mount", Dir: x.Dir,
			Err:    fmt.Errorf("workspace %q is mounted there: %w", t.mounts[x.Dir].Workspace, vfs.ErrBusy),
			Advice: "'carrel umount " + x.Dir + "' first",
		}
	}
	t.mounts[x.Dir] = x
	t.making.Add(1)
	return nil
}

func (t *table) mount(ctx context.Context, x *mounted) error {
	if err := CheckPoint(t.dir, x.Dir); err != nil {
		return err
	}
	tree, err := t.openWorkspace(ctx, x)
	if err != nil {
		return err
	}
	t.mu.Lock()
	x.opened = true
	t.mu.Unlock()
	t.record() // before anybody can see the mount, and believe that it will come back after a crash
	// At the last moment: until then those who work in the mount get an error, and cannot write beneath it.
	if err := fusefs.CleanDead(x.Dir); err != nil {
		return errors.Join(err, tree.Close())
	}
	shown := lookback.Over(tree)
	server, err := fusefs.Mount(x.Dir, shown, fusefs.Options{
		Name: sourceOf(x.Workspace, t.dir), ReadOnly: x.ReadOnly, AllowOther: x.AllowOther, Doze: x.Doze,
		Logger: t.log,
	})
	if err != nil {
		return errors.Join(err, shown.Close(), tree.Close())
	}
	t.mu.Lock()
	x.server, x.tree, x.shown, t.was = server, tree, shown, true
	t.mu.Unlock()
	t.log.Info("mounted", "workspace", x.Workspace, "dir", x.Dir)
	return nil
}

// openWorkspace makes the workspace when there is none of that name, and notes its id.
func (t *table) openWorkspace(ctx context.Context, x *mounted) (control.Workspace, error) {
	tree, err := t.store.OpenWorkspace(ctx, x.Workspace)
	if errors.Is(err, vfs.ErrNoWorkspace) && !x.ReadOnly {
		if _, err = t.store.CreateWorkspace(ctx, x.Workspace); err == nil || errors.Is(err, vfs.ErrExist) {
			tree, err = t.store.OpenWorkspace(ctx, x.Workspace)
		}
	}
	if err != nil {
		return nil, err
	}
	list, err := t.store.Workspaces(ctx)
	if err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	name, _, _ := casstore.SplitMoment(x.Workspace)
	for _, in := range list {
		if in.Name == name {
			x.id = in.ID
		}
	}
	return tree, nil
}

// renamed is a workspace, or one at a moment, by the name that it has now.
func renamed(workspace, name string) string {
	if _, when, past := casstore.SplitMoment(workspace); past {
		return name + "@" + when
	}
	return name
}

// watch waits for the end of a mount, whoever ends it, and cleans up.
func (t *table) watch(x *mounted) {
	err := errors.Join(x.server.Wait(), x.shown.Close(), x.tree.Close())
	if err != nil {
		t.log.Error("a mount has ended", "workspace", x.Workspace, "dir", x.Dir, "err", err)
	} else {
		t.log.Info("unmounted", "workspace", x.Workspace, "dir", x.Dir)
	}
	x.err = err
	t.drop(x)
}

// drop takes a mount off the table, and says so when that is recorded: what somebody has been told is unmounted must not
// come back after a crash.
func (t *table) drop(x *mounted) {
	t.mu.Lock()
	delete(t.mounts, x.Dir)
	t.mu.Unlock()
	t.record()
	t.mu.Lock()
	t.endLocked()
	t.mu.Unlock()
	close(x.gone)
}

// endLocked ends the daemon when nothing needs it any more.
func (t *table) endLocked() {
	if len(t.mounts) == 0 && t.kept == 0 && t.was {
		t.closed, t.was = true, false
		close(t.empty)
	}
}

// keep keeps the daemon there, without any mount too, until release is called.
func (t *table) keep() (release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("the daemon is ending: %w", vfs.ErrClosed)
	}
	t.kept++
	t.was = true
	return func() {
		t.mu.Lock()
		t.kept--
		t.endLocked()
		t.mu.Unlock()
		t.record()
	}, nil
}

// record writes down what is mounted now, or about to be. Without it a mount still works; it would not come back after a crash.
func (t *table) record() {
	t.recording.Lock()
	defer t.recording.Unlock()
	t.mu.Lock()
	var list []recorded
	if t.kept > 0 {
		list = []recorded{} // this daemon may outlive its mounts, and they must not come back with the next
	}
	for _, x := range t.mounts {
		if x.opened {
			list = append(list, recorded{x.id, []byte(x.Workspace), []byte(x.Dir), x.ReadOnly, x.AllowOther, x.Doze})
		}
	}
	for _, r := range t.owed {
		if t.mounts[string(r.Dir)] == nil {
			list = append(list, r)
		}
	}
	t.mu.Unlock()
	if err := writeRecord(t.dir, list); err != nil {
		t.log.Warn("record the mounts", "err", err)
	}
}

// owe notes what is still to be mounted again.
func (t *table) owe(list []recorded) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed = list
}

func (t *table) find(dir string) *mounted {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.mounts[dir]; x != nil && x.server != nil {
		return x
	}
	return nil
}

// Unmount implements control.Mounts.
func (t *table) Unmount(ctx context.Context, dir string, force bool) (last bool, err error) {
	x := t.find(dir)
	if x == nil {
		return false, fmt.Errorf("unmount %s: no workspace is mounted there: %w", dir, vfs.ErrInvalid)
	}
	if force {
		err = x.server.Unmount(ctx)
	} else {
		err = fusefs.Unmount(dir)
	}
	if err != nil {
		return false, err
	}
	select {
	case <-x.gone:
	case <-ctx.Done():
		return false, fmt.Errorf("unmount %s: %w", dir, vfs.ErrInterrupted)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mounts) == 0 && t.kept == 0, x.err
}

// WaitUnmount implements control.Mounts.
func (t *table) WaitUnmount(ctx context.Context, dir string) error {
	x := t.find(dir)
	if x == nil {
		return nil
	}
	select {
	case <-x.gone:
		return x.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the unmount of %s: %w", dir, vfs.ErrInterrupted)
	}
}

// Mounts implements control.Mounts. Workspaces that were renamed since have their new names.
func (t *table) Mounts(ctx context.Context) ([]control.Mount, error) {
	infos, err := t.store.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []control.Mount
	for _, x := range t.mounts {
		if x.server == nil {
			continue
		}
		m := x.Mount
		m.Requests = x.server.Requests()
		for _, in := range infos {
			if in.ID == x.id {
				m.Workspace = renamed(m.Workspace, in.Name)
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b control.Mount) int { return cmp.Compare(a.Dir, b.Dir) })
	return list, nil
}

// flush is execs.Config.Flush. A mount that still has the name which the workspace had before is passed over.
func (t *table) flush(ctx context.Context, workspace string) error {
	t.mu.Lock()
	var servers []*fusefs.Server
	for _, x := range t.mounts {
		if x.server != nil && x.Workspace == workspace {
			servers = append(servers, x.server)
		}
	}
	t.mu.Unlock()
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Flush(ctx))
	}
	return errors.Join(errs...)
}

// close unmounts everything, busy or not, and returns when all is durable.
func (t *table) close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.making.Wait()
	t.mu.Lock()
	var all []*mounted
	for _, x := range t.mounts {
		if x.server != nil {
			all = append(all, x)
		}
	}
	t.mu.Unlock()
	var errs []error
	for _, x := range all {
		errs = append(errs, x.server.Unmount(context.Background()))
	}
	t.watchers.Wait()
	for _, x := range all {
		errs = append(errs, x.err)
	}
	return errors.Join(errs...)
}
