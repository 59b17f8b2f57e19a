package casstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Workspace is one live tree of a store. It implements vfs.Tree, whose contract holds for every method.
type Workspace struct {
	store *Store
	id    workspaceID
	opens int // guarded by store.mu

	watch watchers

	served  served                       // guarded by store.reading.mu
	serving chan struct{}                // holds a value while served is found out
	ended   chan struct{}                // closed when the workspace is
	pushes  map[vfs.PeerID][]appliedPush // that are known; the committer's
	replica *replicaState                // nil when the workspace is none

	// mu is the tree lock. It is held for moments only: never while waiting for a disk, a peer or another lock, but
	// for the short ones of the pool and the watchers. A file's lock is taken before it, never after.
	mu     sync.Mutex
	closed bool
	inodes map[vfs.Ino]*inode
	holds  map[vfs.Ino]uint64
	cost   int // of what is cached, in units of costUnit
	tried  int // the cost up to which evicting is not tried again
	gen    uint64
	dirty  []object // changed in this generation
	// waiting is how many wait for the next revision.
	waiting int
	cut     *cut    // the commit that is capturing, or nil
	dead    []*file // whose bytes are to be discarded once mu is free
	// orphans are the files that have no name but are held.
	orphans map[*inode]struct{}
	quota   *quota // nil when there is none

	// cutGen is the generation of the cut whose commit is under way, or zero: what flushing must keep for it.
	cutGen atomic.Uint64
}

var _ vfs.Tree = (*Workspace)(nil)

// miss says what an operation needs that is not in memory. It is an error so that the operation stops there; do reads
// it from the store and runs the operation again.
type miss struct {
	ino     vfs.Ino
	name    string // with dirent
	dirent  bool
	xattrs  bool
	list    bool // enough of a directory to tell whether it is empty
	numbers bool // for new inodes of a replica
}

func (*miss) Error() string { return "not in memory" }

// do runs op under the tree lock, as often as it takes to have everything that it needs in memory. So op must look at
// all that it needs before it changes anything. Point reads of the store count as memory: they take microseconds from
// Badger's caches, less than handing the reader of a mount over.
func (w *Workspace) do(ctx context.Context, op func() error) error {
	for {
		if ctx.Err() != nil {
			return vfs.ErrInterrupted
		}
		err, dead := w.attempt(op)
		for _, f := range dead {
			f.discard()
		}
		m, ok := err.(*miss)
		if !ok {
			return err
		}
		if err := w.fill(ctx, m); err != nil {
			return err
		}
	}
}

func (w *Workspace) attempt(op func() error) (err error, dead []*file) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return vfs.ErrClosed, nil
	}
	err = op()
	if _, again := err.(*miss); !again {
		w.fit()
	}
	if w.cutGen.Load() == 0 {
		dead, w.dead = w.dead, nil // a commit under way may need their bytes
	}
	return err, dead
}

// change is do for an operation that needs cost bytes of disk when it is committed. What only removes needs none.
func (w *Workspace) change(ctx context.Context, cost int, op func() error) error {
	if cost > 0 {
		if err := w.store.space.admitRecords(ctx, cost); err != nil {
			return err
		}
	}
	return w.do(ctx, op)
}

// opError is an error with the operation and what it was done to. It is put into words only when somebody reads it: most
// are of names that are looked up to see that they are free.
type opError struct {
	op   string
	ino  vfs.Ino
	name string
	err  error
}

func (e *opError) Error() string {
	if e.name == "" {
		return fmt.Sprintf("%s %d: %v", e.op, e.ino, e.err)
	}
	return fmt.Sprintf("%s %d/%q: %v", e.op, e.ino, e.name, e.err)
}

func (e *opError) Unwrap() error { return e.err }

// wrap adds the operation and what it was done to.
func wrap(err error, op string, ino vfs.Ino, name string) error {
	if err == nil {
		return nil
	}
	return &opError{op: op, ino: ino, name: name, err: err}
}

// inode returns an inode that is in memory. The lock is held, as in all methods below unless they say otherwise.
func (w *Workspace) inode(ino vfs.Ino) (*inode, error) {
	n, ok := w.inodes[ino]
	switch {
	case !ok:
		return nil, &miss{ino: ino}
	case n.gone && w.holds[ino] == 0:
		return nil, vfs.ErrStale
	}
	return n, nil
}

// directory returns an inode that is a directory, which may have been removed.
func (w *Workspace) directory(ino vfs.Ino) (*inode, error) {
	n, err := w.inode(ino)
	switch {
	case err != nil:
		return nil, err
	case n.dir == nil:
		return nil, vfs.ErrNotDir
	}
	return n, nil
}

// parent returns a directory that names can be put into and taken from.
func (w *Workspace) parent(ino vfs.Ino) (*inode, error) {
	n, err := w.directory(ino)
	if err == nil && n.gone {
		return nil, vfs.ErrNotExist
	}
	return n, err
}

// entry returns the entry of a name, or nil.
func (w *Workspace) entry(d *inode, name string) (*dirent, error) {
	e, known := d.dir.get(name)
	if !known {
		return nil, &miss{ino: d.attr.Ino, name: name, dirent: true}
	}
	return e, nil
}

// child returns the inode that a name leads to: ErrNotExist when it leads nowhere.
func (w *Workspace) child(d *inode, name string) (*inode, error) {
	e, err := w.entry(d, name)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, vfs.ErrNotExist
	}
	return w.inode(e.ino)
}

// insert puts an inode into the cache that is as the store has it.
func (w *Workspace) insert(n *inode) {
	w.inodes[n.attr.Ino] = n
	n.weight = n.units()
	w.cost += n.weight
	n.counted = true
	if n.regular() {
		n.charged = int64(n.attr.Size)
	}
}

// insertNew is insert for one that the store does not have.
func (w *Workspace) insertNew(n *inode) {
	w.insert(n)
	n.counted, n.charged = false, 0
	w.charge(n)
}

// fit gives up some of what is clean when the cache is over its bound; when little of it is clean, it is tried again only
// when the cache has grown. It must come between operations: one that is under way changes inodes that are clean until
// then.
func (w *Workspace) fit() {
	bound := defaulted(w.store.opt.cacheCost, cacheCost)
	batch := min(cacheBatch, bound/2)
	switch {
	case w.cost <= bound:
		w.tried = 0
	case w.cost > w.tried:
		w.evict(bound-batch, 4*batch)
		w.tried = w.cost + batch/4
	}
}

// evict gives up inodes, any of them, as the map's order is as good as random, and the entries of large directories,
// until the cache is down to a cost. It looks at a number of inodes at the most, so that a cache of dirty ones costs no
// scan.
func (w *Workspace) evict(cost, looks int) {
	for looked, ino := 0, vfs.Ino(0); w.cost > cost; {
		for i, n := range w.inodes {
			ino = i
			if looked++; looked > looks {
				return
			}
			if w.idle(n) {
				w.drop(n)
			} else if n.dir != nil && n.dir.entries.Len()-n.dir.dirty > dirLoad {
				w.forget(n.dir)
			}
			if w.cost <= cost {
				return
			}
		}
		if ino == 0 {
			return
		}
	}
}

// idle reports whether nothing would be lost with n.
func (w *Workspace) idle(n *inode) bool {
	return n.gen == 0 && n.refs == 0 && !n.gone && n.attr.Ino != vfs.RootIno && (n.dir == nil || n.dir.dirty == 0) &&
		(n.xattrs == nil || n.xattrs.idle())
}

// weigh charges the cache for what an inode takes now. It is called when that has changed.
func (w *Workspace) weigh(n *inode) {
	if n.weight == 0 {
		return // it is not in the cache any more
	}
	was := n.weight
	n.weight = n.units()
	w.cost += n.weight - was
}

func (w *Workspace) drop(n *inode) {
	w.charge(n)
	delete(w.inodes, n.attr.Ino)
	w.cost -= n.weight
	n.weight = 0
	if n.dir != nil {
		w.emptyOut(n.dir)
	}
}

// emptyOut forgets all entries of a directory that is gone or dropped. Those that are still being committed find then
// that they are not charged any more.
func (w *Workspace) emptyOut(d *directory) {
	w.cost -= d.entries.Len()
	d.entries.Clear()
}

// isHeld reports whether somebody uses an inode, whether it has a name or not.
func (w *Workspace) isHeld(n *inode) bool {
	return n.refs > 0 || w.holds[n.attr.Ino] > 0 && w.inodes[n.attr.Ino] == n
}

// bury drops an inode whose removal is in the store, unless it is still held.
func (w *Workspace) bury(n *inode) {
	if !w.isHeld(n) && w.inodes[n.attr.Ino] == n {
		w.drop(n)
	}
}

// touch marks an object as changed. It must be called before the change: a commit that has made its cut but not yet
// captured the object takes the old value now.
func (w *Workspace) touch(o object) {
	s := o.stampOf()
	if s.gen == w.gen {
		return
	}
	if c := w.cut; c != nil && s.gen == c.gen && !s.captured {
		o.capture(c)
	}
	s.gen, s.captured = w.gen, false
	w.dirty = append(w.dirty, o)
	switch {
	case len(w.dirty) > 1:
	case w.waiting > 0:
		w.store.committer.hurry()
	default:
		w.store.committer.soon()
	}
}

// lostName is called when an inode has lost its last name.
func (w *Workspace) lostName(n *inode) {
	if n.xattrs != nil {
		for _, x := range n.xattrs.m {
			if x.gen != 0 {
				w.touch(x) // a commit under way takes it as it was; a later one sees that its owner is gone
			}
		}
	}
	n.gone = true
	if n.regular() {
		w.orphans[n] = struct{}{}
	}
	w.unheld(n)
}

// unheld discards the bytes of an inode that has no name, once nothing holds it. Its record goes with the next commit.
func (w *Workspace) unheld(n *inode) {
	if !n.gone || w.isHeld(n) {
		return
	}
	if n.regular() {
		w.store.space.deleted(n.attr.Blocks * 512)
		delete(w.orphans, n)
	}
	w.charge(n)
	if n.file != nil {
		w.dead = append(w.dead, n.file)
		n.dead = true
	}
	if n.gen == 0 {
		w.bury(n)
	}
}

// Hold implements vfs.Tree.
func (w *Workspace) Hold(ino vfs.Ino) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.inodes[ino]; n != nil && n.gone && w.holds[ino] == 0 {
		return
	}
	w.holds[ino]++
}

// Release implements vfs.Tree.
func (w *Workspace) Release(ino vfs.Ino, count uint64) {
	_ = w.do(context.Background(), func() error {
		switch held := w.holds[ino]; {
		case held > count:
			w.holds[ino] = held - count
		case held > 0:
			delete(w.holds, ino)
			if n := w.inodes[ino]; n != nil {
				w.unheld(n)
			}
		}
		return nil
	})
}

// fill reads what an operation missed. Between the read and the lock the store may have moved on, and what was read
// may be old: then it is not used, and the operation finds again what it misses.
func (w *Workspace) fill(ctx context.Context, m *miss) error {
	if err := w.ensure(ctx, m); err != nil || m.numbers {
		return err
	}
	if m.list {
		return w.explore(m.ino)
	}
	s := w.store
	r := s.reader()
	defer r.Close()
	apply, err := w.read(r, m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.head() == r.rev {
		apply()
	}
	return nil
}

// read reads what m says, and returns what puts it into the cache under the lock.
func (w *Workspace) read(r *reader, m *miss) (apply func(), err error) {
	switch {
	case m.dirent:
		rec, err := r.dirent(w.id, m.ino, m.name)
		return func() {
			if n := w.inodes[m.ino]; n != nil && n.dir != nil && !n.dir.complete {
				w.learn(n.dir, m.name, rec)
			}
		}, err
	case m.xattrs:
		values, err := r.xattrs(w.id, m.ino)
		return func() {
			if n := w.inodes[m.ino]; n != nil && n.xattrs == nil {
				n.xattrs = xattrsOf(n, values)
			}
		}, err
	}
	n, err := w.readInode(r, m.ino)
	return func() {
		if w.inodes[m.ino] == nil {
			w.insert(n)
		}
	}, err
}

// readInode makes an inode of what the store has of it: ErrStale when that is nothing.
func (w *Workspace) readInode(r *reader, ino vfs.Ino) (*inode, error) {
	rec, err := r.inode(w.id, ino)
	if errors.Is(err, vfs.ErrNotExist) {
		err = vfs.ErrStale
	}
	if err != nil {
		return nil, err
	}
	n := w.inodeOf(ino, rec)
	atime, set, err := r.atime(w.id, ino)
	if set {
		n.attr.Atime, n.atimeSet = atime, true
	}
	return n, err
}

func (w *Workspace) now() vfs.Time { return w.store.now() }

// Watch implements vfs.Tree.
func (w *Workspace) Watch(skip any, f func(vfs.Change)) (stop func()) { return w.watch.add(skip, f) }

// FlushWatch implements vfs.WatchFlusher.
func (w *Workspace) FlushWatch(ctx context.Context) error { return w.watch.flush(ctx) }

// notify records a change for the watchers. The lock is held, so changes are in the order in which they became visible.
func (w *Workspace) notify(ctx context.Context, c vfs.Change) {
	if w.watch.none() {
		return
	}
	c.Origin = vfs.OriginOf(ctx)
	if w.watch.wanted(c.Origin) {
		w.watch.send(c)
	}
}

// Fsync implements vfs.Tree.
func (w *Workspace) Fsync(ctx context.Context, ino vfs.Ino) error {
	err := w.do(ctx, func() error {
		_, err := w.inode(ino)
		return err
	})
	if err == nil {
		_, err = w.store.committer.commit(ctx, request{tree: w, ino: ino})
	}
	return wrap(err, "fsync", ino, "")
}

// Sync implements vfs.Tree.
func (w *Workspace) Sync(ctx context.Context) error {
	_, err := w.Commit(ctx)
	return err
}

// Commit implements vfs.Tree.
func (w *Workspace) Commit(ctx context.Context) (vfs.Rev, error) {
	rev, err := w.store.committer.commit(ctx, request{tree: w, whole: true})
	if err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return rev, nil
}

// StatFS implements vfs.Tree.
func (w *Workspace) StatFS(ctx context.Context) (vfs.StatFS, error) {
	if ctx.Err() != nil {
		return vfs.StatFS{}, vfs.ErrInterrupted
	}
	st, err := w.store.space.statFS()
	if err == nil {
		w.limitStatFS(&st)
	}
	return st, err
}
