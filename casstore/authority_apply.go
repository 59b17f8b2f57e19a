package casstore

import (
	"bytes"
	"context"
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// pushPlan is what a checked push changes in the live tree. Everything that it touches is in memory and kept there before
// it is carried out: until the revision is written, the store does not know of it.
type pushPlan struct {
	job   *pushJob
	nodes map[vfs.Ino]*plannedNode
	order []*plannedNode
	kvs   []kv

	replaced uint64 // bytes of files that get other ones
}

// plannedNode is an inode that changes, or whose names or attributes do.
type plannedNode struct {
	ino     vfs.Ino
	n       *inode // nil while it is not there
	record  *vfs.PushRecord
	rec     vfs.InodeRecord // of record, unless that is a tombstone
	dirents []*vfs.PushRecord
	xattrs  []*vfs.PushRecord

	base   base // of rec's body; set with loaded
	loaded bool
	bytes  bool // it is a file that gets other bytes
	locked bool // the locks of n.file are held
}

// pushGen is the generation of what a push has changed, while its revision is written: it is in no cut, and whoever
// changes it again marks it as dirty.
const pushGen = maxGen

// newPushPlan takes from a push what is not there already.
func newPushPlan(j *pushJob, view *pushView) *pushPlan {
	p := &pushPlan{job: j, nodes: make(map[vfs.Ino]*plannedNode)}
	for i := range j.push.Records {
		r := &j.push.Records[i]
		if !view.pushed[r.Key].changes {
			continue
		}
		p.kvs = append(p.kvs, kv{key: keyOfRecord(j.tree.id, r.Key), value: r.Value})
		node := p.node(r.Ino)
		switch r.Kind {
		case vfs.KeyInode:
			node.record = r
			if r.Value != nil {
				node.rec, _ = vfs.DecodeInode(bytes.Clone(r.Value)) // it has been checked
			}
		case vfs.KeyDirent:
			node.dirents = append(node.dirents, r)
		case vfs.KeyXattr:
			node.xattrs = append(node.xattrs, r)
		}
	}
	return p
}

func (p *pushPlan) node(ino vfs.Ino) *plannedNode {
	node := p.nodes[ino]
	if node == nil {
		node = &plannedNode{ino: ino}
		p.nodes[ino] = node
		p.order = append(p.order, node)
	}
	return node
}

// size is how many bytes of records the plan writes.
func (p *pushPlan) size() (n int) {
	for _, e := range p.kvs {
		n += len(e.key) + len(e.value)
	}
	return n
}

func (node *plannedNode) removed() bool { return node.record != nil && node.record.Value == nil }

// load gets everything that the plan touches into memory, and keeps it there.
func (p *pushPlan) load(r *reader) error {
	w := p.job.tree
	for _, node := range p.order {
		if p.keep(node, nil) {
			continue
		}
		n, err := w.readInode(r, node.ino)
		if errors.Is(err, vfs.ErrStale) {
			continue // a new one
		}
		if err != nil {
			return err
		}
		p.keep(node, n)
	}
	for _, node := range p.order {
		if node.n == nil || len(node.xattrs) == 0 && !node.removed() {
			continue
		}
		if err := p.loadXattrs(r, node); err != nil {
			return err
		}
	}
	return nil
}

// keep holds the inode that is in memory, or else found, which was read from the head.
func (p *pushPlan) keep(node *plannedNode, found *inode) bool {
	w := p.job.tree
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.inodes[node.ino]
	if n == nil && found != nil {
		n = found
		w.insert(n)
	}
	if n == nil {
		return false
	}
	n.refs++
	node.n = n
	return true
}

func (p *pushPlan) loadXattrs(r *reader, node *plannedNode) error {
	w := p.job.tree
	w.mu.Lock()
	known := node.n.xattrs != nil
	w.mu.Unlock()
	if known {
		return nil
	}
	values, err := r.xattrs(w.id, node.ino)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if node.n.xattrs == nil {
		node.n.xattrs = xattrsOf(node.n, values)
	}
	return nil
}

// release lets go of what load keeps.
func (p *pushPlan) release() {
	w := p.job.tree
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range p.order {
		if node.n != nil && node.n.refs > 0 {
			node.n.refs--
			w.unheld(node.n)
		}
	}
}

// carryOut makes the plan part of the live tree, all of it between two operations of others, and returns it as a cut
// that is captured already. With errMoved nothing is done.
func (p *pushPlan) carryOut(view *pushView) (c *cut, blocking []vfs.Ino, err error) {
	for {
		busy := (*plannedNode)(nil)
		if c, blocking, busy, err = p.attempt(view); busy == nil {
			return c, blocking, err
		}
		if err := p.job.tree.settleFile(busy); err != nil {
			return nil, nil, err
		}
	}
}

// attempt is carryOut, unless it returns a file that is in use just now.
func (p *pushPlan) attempt(view *pushView) (c *cut, blocking []vfs.Ino, busy *plannedNode, err error) {
	w := p.job.tree
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, nil, nil, vfs.ErrClosed
	}
	if blocking, blocked := w.standsInLocked(view); blocked {
		return nil, blocking, nil, errMoved
	}
	defer p.unlockFiles()
	for _, node := range p.order {
		if node.sees(); !node.lockFile() {
			return nil, nil, node, nil
		}
	}
	c = &cut{tree: w, gen: pushGen, kvs: p.kvs, records: uint64(len(p.kvs))}
	ctx := vfs.WithOrigin(context.Background(), p.job.origin)
	for _, node := range p.order {
		p.putInode(ctx, c, node)
	}
	for _, node := range p.order {
		p.putNames(ctx, c, node)
	}
	for _, node := range p.order {
		if node.removed() {
			p.remove(ctx, c, node)
		}
	}
	w.cutGen.Store(pushGen)
	return c, nil, nil, nil
}

// take puts an object into a cut as it is now.
func (c *cut) take(o object) {
	s := o.stampOf()
	if s.gen != c.gen {
		s.gen, s.captured = c.gen, true
		c.objects = append(c.objects, o)
	}
}

// putInode gives an inode its record: new ones are made, and one that was removed and is still held comes back. A number that is
// another inode's now, as it is of another type, was given again in another life of a peer's store.
func (p *pushPlan) putInode(ctx context.Context, c *cut, node *plannedNode) {
	if node.record == nil || node.removed() {
		return
	}
	w := p.job.tree
	n := node.n
	switch {
	case n == nil:
		n = w.inodeOf(node.ino, node.rec)
		n.xattrs = newXattrs()
		if n.dir != nil {
			n.dir.complete = true
		}
		p.make(c, node, n)
		return
	case n.attr.Type != node.rec.Type:
		p.supersede(ctx, c, node)
		return
	case n.gone:
		w.revive(n)
	}
	c.take(n)
	n.persisted = true
	n.become(node.rec)
	defer w.charge(n)
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: node.ino})
	if node.bytes {
		p.replaced += n.attr.Blocks * 512
		w.replaceFile(node)
		w.notify(ctx, vfs.Change{Kind: vfs.ChangeData, Ino: node.ino})
	}
}

// make puts a new inode into the tree.
func (p *pushPlan) make(c *cut, node *plannedNode, n *inode) {
	n.refs++ // as load does
	node.n = n
	c.take(n)
	p.job.tree.insertNew(n)
}

// supersede makes an inode in the place of another. Who still uses that one uses what has no name any more.
func (p *pushPlan) supersede(ctx context.Context, c *cut, node *plannedNode) {
	w, old := p.job.tree, node.n
	n := w.inodeOf(node.ino, node.rec)
	if old.xattrs != nil {
		n.xattrs = newXattrs()
		for name, x := range old.xattrs.m {
			if x.present && !old.gone {
				kept := n.xattrs.add(n, name)
				n.xattrs.put(kept, x.value, true)
				kept.persisted = true
			}
		}
	}
	if old.atimeSet {
		c.kvs = append(c.kvs, kv{key: keyOfNode(keyAtime, w.id, node.ino)})
	}
	w.drop(old)
	old.gone, old.persisted, old.nxattrs = true, false, 0
	if old.regular() {
		w.orphans[old] = struct{}{}
	}
	p.make(c, node, n)
	old.refs--
	w.unheld(old)
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: node.ino})
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeData, Ino: node.ino})
}

// sees notes whether a file gets other bytes. The tree's lock is held.
func (node *plannedNode) sees() {
	if n := node.n; n != nil && n.regular() && node.record != nil && node.rec.Type == n.attr.Type {
		a, b := n.stored.body, node.rec.Body
		node.bytes = n.gone || n.attr.Size != node.rec.Size || a.Kind != b.Kind || !bytes.Equal(a.Data, b.Data)
	}
}

// become sets everything that a record says, but for the bytes of a file.
func (n *inode) become(rec vfs.InodeRecord) {
	a := &n.attr
	a.Mode, a.Nlink, a.UID, a.GID, a.Rdev, a.Parent = rec.Mode, rec.Nlink, rec.UID, rec.GID, rec.Rdev, rec.Parent
	a.Mtime, a.Ctime = rec.Mtime, rec.Ctime
	if n.btime = rec.Btime; !n.atimeSet {
		a.Atime = rec.Btime
	}
	n.nxattrs = rec.Xattrs
	switch a.Type {
	case vfs.TypeRegular:
		n.stored.mtime = rec.Mtime
	case vfs.TypeSymlink:
		a.Size, n.target = rec.Size, string(rec.Body.Data)
	}
}

// revive makes an inode that has no name, but is held, one that has never had anything. What its holders have written
// since it lost its name is gone: the peer that brings it back could not know.
func (w *Workspace) revive(n *inode) {
	if n.dead {
		n.dead, n.file = false, nil
	}
	n.gone, n.atimeSet = false, false
	n.xattrs = newXattrs()
	if n.dir != nil {
		w.emptyOut(n.dir)
		n.dir = newDirectory(n, true)
	}
	delete(w.orphans, n)
}

// putNames sets the names and attributes of an inode.
func (p *pushPlan) putNames(ctx context.Context, c *cut, node *plannedNode) {
	w := p.job.tree
	for _, r := range node.dirents {
		var d vfs.DirentRecord
		if r.Value != nil {
			d, _ = vfs.DecodeDirent(r.Value) // it has been checked
		}
		if node.n.dir != nil { // else it has been superseded, and its names are removed
			e := w.changing(node.n.dir, r.Name)
			c.take(e)
			e.ino, e.typ, e.persisted = d.Ino, d.Type, true
		}
		w.notify(ctx, vfs.Change{Kind: vfs.ChangeEntry, Ino: d.Ino, Dir: node.ino, Name: r.Name})
	}
	for _, r := range node.xattrs {
		x := node.n.xattrs.add(node.n, r.Name)
		c.take(x)
		node.n.xattrs.put(x, bytes.Clone(r.Value), r.Value != nil)
		x.persisted = true
	}
	if len(node.xattrs) > 0 && node.record == nil {
		w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: node.ino})
	}
}

// remove takes away an inode, whose names are gone.
func (p *pushPlan) remove(ctx context.Context, c *cut, node *plannedNode) {
	w, n := p.job.tree, node.n
	c.take(n)
	n.attr.Nlink, n.attr.Ctime = 0, w.now()
	n.gone, n.nxattrs = true, 0
	if n.regular() {
		w.orphans[n] = struct{}{}
	}
	if n.atimeSet {
		c.kvs = append(c.kvs, kv{key: keyOfNode(keyAtime, w.id, node.ino)})
	}
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: node.ino})
	w.unheld(n)
}

// lockFile takes the locks of a file that somebody else uses, unless they are taken or its new bytes are not known. The
// tree's lock is held, before which they belong, so it does not wait for them.
func (node *plannedNode) lockFile() bool {
	if !node.bytes || node.n.file == nil || node.n.refs == 1 || node.n.dead {
		return true
	}
	if !node.loaded {
		return false
	}
	f := node.n.file
	if !f.flushing.TryLock() {
		return false
	}
	if !f.mu.TryLock() {
		f.flushing.Unlock()
		return false
	}
	node.locked = true
	return true
}

func (p *pushPlan) unlockFiles() {
	for _, node := range p.order {
		if node.locked {
			node.locked = false
			node.n.file.mu.Unlock()
			node.n.file.flushing.Unlock()
		}
	}
}

// settleFile waits until a file that was in use is not, and gets its new bytes ready.
func (w *Workspace) settleFile(node *plannedNode) error {
	if !node.loaded {
		b, err := w.store.decodeBody(node.rec.Body)
		if err != nil {
			return err
		}
		node.base, node.loaded = b, true
	}
	w.mu.Lock()
	f := node.n.file
	w.mu.Unlock()
	if f == nil {
		return nil
	}
	f.flushing.Lock()
	defer f.flushing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return nil
}

// replaceFile gives a file its new bytes. Whoever is about to read or write it goes on with them.
func (w *Workspace) replaceFile(node *plannedNode) {
	n, f, rec := node.n, node.n.file, node.rec
	n.attr.Size, n.attr.Blocks = rec.Size, blocksOfBody(rec.Body, rec.Size)
	n.stored = dataState{body: rec.Body, size: rec.Size, mtime: rec.Mtime}
	switch {
	case f == nil:
	case !node.locked:
		w.dead = append(w.dead, f)
		n.file = nil
	default:
		n.stored.tree = node.base.manifest
		f.reset(node.base, n.stored)
	}
	w.weigh(n)
}

// reset makes a file one that has just been loaded. Its lock is held.
func (f *file) reset(b base, stored dataState) {
	f.buf.Discard()
	f.frozen, f.saved, f.savedGen = nil, dataPoint{}, 0
	f.base, f.loaded, f.held = b, true, b.stored()
	f.size, f.mtime = stored.size, stored.mtime
	f.flushed = dataPoint{base: b, size: stored.size, mtime: stored.mtime, layer: f.layers}
}
