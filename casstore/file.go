package casstore

import (
	"context"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/writebuf"
)

// file is the bytes of a regular file: a base that is in chunks (or in line), and over it the layers of what was
// written since, oldest first. Flushing takes the oldest layer into the base.
//
//	live layer     what is written now; belongs to one generation
//	frozen layers  wait to be flushed; each belongs to one generation
//	base           in packs, but perhaps not yet in a record
//	inode.stored   in a record of the store
type file struct {
	// flushing is held by whoever takes layers into the base, so it may be held for long. It is taken before mu.
	flushing sync.Mutex

	// mu guards what follows. It is taken before the tree lock and never held while waiting for a disk.
	mu        sync.Mutex
	loaded    bool // base is set
	discarded bool // the file is gone: nothing is worth flushing
	buf       *writebuf.Buffer
	base      base
	flushed   dataPoint     // what base holds
	frozen    []frozenLayer // those of buf, with what goes with them
	layers    uint64        // how many have been frozen
	liveGen   uint64        // the generation that the live layer belongs to
	size      uint64        // bytes, with all layers
	held      uint64        // bytes that are not in holes
	mtime     vfs.Time      // of the last change of the bytes

	journal journal

	// saved is what base held when all layers up to the generation savedGen were in it and none after.
	saved    dataPoint
	savedGen uint64
}

// dataPoint is a state of a file's bytes that are all in chunks or in line.
type dataPoint struct {
	base  base
	size  uint64
	mtime vfs.Time
	layer uint64 // the number of the newest layer in base; zero when there has been none
}

type frozenLayer struct {
	layer  *writebuf.Layer
	number uint64 // of the file's layers, from 1 on: a generation may have several
	gen    uint64
	size   uint64 // of the file when the layer was frozen
	mtime  vfs.Time
}

func newFile(pool *writebuf.Pool) *file { return &file{buf: writebuf.New(pool)} }

// advance begins a new live layer when the one there is belongs to an earlier generation than gen.
func (f *file) advance(gen uint64) {
	if f.liveGen < gen {
		f.freeze()
		f.liveGen = gen
	}
}

func (f *file) freeze() {
	if l := f.buf.Freeze(); l != nil {
		f.layers++
		f.frozen = append(f.frozen, frozenLayer{layer: l, number: f.layers, gen: f.liveGen, size: f.size, mtime: f.mtime})
	}
}

func (f *file) clean() bool { return f.buf.Empty() && len(f.frozen) == 0 }

func (f *file) discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.discarded = true
	f.buf.Discard()
	f.frozen = nil
	f.base = base{}
}

// blocks is the number of 512-byte units that hold bytes.
func (f *file) blocks() uint64 { return min((f.held+511)/512, (f.size+4095)/4096*8) }

// count sets held to what it is, in time in proportion to the dirty extents. That is for what replaces the base; a change
// of some bytes adds and subtracts what it changes, or each of the many that punch holes into a file would look at all of it.
func (f *file) count() {
	if f.clean() {
		f.held = f.base.stored()
		return
	}
	f.held = f.heldIn(0, f.size)
}

// heldIn is how many of the bytes [off, end) are not in holes; there are none behind the end of the file.
func (f *file) heldIn(off, end uint64) uint64 {
	held := uint64(0)
	f.buf.Walk(off, min(end, f.size), func(off, n uint64, kind writebuf.Kind) bool {
		switch kind {
		case writebuf.Data:
			held += n
		case writebuf.Base:
			held += f.base.storedIn(off, off+n)
		}
		return true
	})
	return held
}

// acquire returns a regular file's inode with its base loaded, and keeps it in memory until release.
func (w *Workspace) acquire(ctx context.Context, ino vfs.Ino) (n *inode, err error) {
	err = w.do(ctx, func() error {
		n, err = w.inode(ino)
		switch {
		case err != nil:
			return err
		case n.dir != nil:
			return vfs.ErrIsDir
		case !n.regular():
			return vfs.ErrInvalid
		case n.dead:
			return vfs.ErrStale
		}
		n.refs++
		if n.file == nil {
			n.file = newFile(w.store.pool)
			w.weigh(n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := w.load(ctx, n); err != nil {
		w.release(n)
		return nil, err
	}
	return n, nil
}

// keep is acquire for an inode that is in memory for certain.
func (w *Workspace) keep(n *inode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.refs++
}

// release takes back an acquire or a keep. The file's lock may be held: bytes that nobody wants are discarded later.
func (w *Workspace) release(n *inode) {
	_ = w.do(context.Background(), func() error {
		n.refs--
		w.unheld(n)
		return nil
	})
}

// load sets a file's base. The manifests of large files are read from packs, with the file's lock held: nobody can do
// anything with the file before that.
func (w *Workspace) load(ctx context.Context, n *inode) error {
	f := n.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loaded {
		return nil
	}
	w.mu.Lock()
	stored := n.stored
	w.mu.Unlock()
	if stored.body.Kind == vfs.BodyTree {
		vfs.WillBlock(ctx)
	}
	b, err := w.store.decodeBody(stored.body)
	if err != nil {
		return err
	}
	f.base, f.loaded, f.held = b, true, b.stored()
	f.size, f.mtime = stored.size, stored.mtime
	f.flushed = dataPoint{base: b, size: stored.size, mtime: stored.mtime}
	if stored.body.Kind == vfs.BodyTree {
		w.mu.Lock()
		n.stored.tree = b.manifest
		w.weigh(n)
		w.mu.Unlock()
	}
	return nil
}

// ReadAt implements vfs.Tree.
func (w *Workspace) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	n, err := w.acquire(ctx, ino)
	if err != nil {
		return 0, wrap(err, "read", ino, "")
	}
	defer w.release(n)
	f := n.file
	f.mu.Lock()
	if off >= f.size {
		f.mu.Unlock()
		return 0, nil
	}
	p = p[:min(uint64(len(p)), f.size-off)]
	var room [4]writebuf.Gap
	gaps := f.buf.Read(room[:0], p, off)
	b := f.base
	f.mu.Unlock()
	for _, g := range gaps {
		if err := w.store.readBase(ctx, b, p[g.Off-off:][:g.Len], g.Off); err != nil {
			return 0, wrap(err, "read", ino, "")
		}
	}
	return len(p), nil
}

// WriteAt implements vfs.Tree.
func (w *Workspace) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	err := w.write(ctx, ino, p, off, killPriv)
	return wrap(err, "write", ino, "")
}

func (w *Workspace) write(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	if len(p) == 0 {
		n, err := w.acquire(ctx, ino)
		if err == nil {
			w.release(n)
		}
		return err
	}
	if off > vfs.MaxFileSize || uint64(len(p)) > vfs.MaxFileSize-off {
		return vfs.ErrTooBig
	}
	if err := w.store.space.admit(ctx, len(p)); err != nil {
		return err
	}
	w.store.collector.pacer.wait(ctx, len(p))
	if err := w.store.pool.Admit(ctx, len(p)); err != nil {
		return err
	}
	return w.edit(ctx, ino, off+uint64(len(p)), func(n *inode, f *file) {
		if killPriv {
			dropPriv(&n.attr)
		}
		end := off + uint64(len(p))
		f.held += uint64(len(p)) - f.heldIn(off, end)
		f.size = max(f.size, end)
	}, func(f *file) { f.buf.Write(p, off) })
}

// dropPriv removes what a write by an ordinary user removes: the set-user-ID bit, and the set-group-ID bit where it
// means that and not mandatory locking.
func dropPriv(a *vfs.Attr) {
	a.Mode &^= vfs.ModeSetUID
	if a.Mode&0o010 != 0 {
		a.Mode &^= vfs.ModeSetGID
	}
}

// edit changes the bytes of a file, which then has a size at least, if that is within the quota. change runs with both locks held, after the file has a live layer of this
// generation, and sets the file's size; copy, if not nil, then runs with the file's lock alone. Whoever takes the layer needs
// that lock, so a cut comes before all of it or after all of it.
func (w *Workspace) edit(
	ctx context.Context, ino vfs.Ino, size uint64, change func(*inode, *file), copy func(*file),
) error {
	n, err := w.acquire(ctx, ino)
	if err != nil {
		return err
	}
	defer w.release(n)
	f := n.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := w.editLocked(ctx, n, size, change); err != nil {
		return err
	}
	if copy != nil {
		copy(f)
	}
	if f.buf.Dirty() > flushAhead {
		w.store.flusher.push(w, n)
	}
	return nil
}

// editLocked does the part of edit that needs the file's lock.
func (w *Workspace) editLocked(ctx context.Context, n *inode, size uint64, change func(*inode, *file)) error {
	f := n.file
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return vfs.ErrClosed
	}
	if err := w.roomFor(n, size); err != nil {
		return err
	}
	f.advance(w.gen)
	w.touch(n)
	now := w.now()
	n.touchTimes(now)
	f.mtime = now
	change(n, f)
	n.attr.Size, n.attr.Blocks = f.size, f.blocks()
	w.charge(n)
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeData, Ino: n.attr.Ino})
	return nil
}

// resize sets a file's size: what is beyond it is gone, what is new is a hole.
func (f *file) resize(size uint64) {
	switch {
	case size < f.size:
		f.held -= f.heldIn(size, f.size)
		f.buf.Truncate(size)
	case size > f.size:
		f.buf.Zero(f.size, size-f.size)
	}
	f.size = size
}

// Allocate implements vfs.Tree. Space is not set aside: chunks are stored when they are flushed, and a write is refused
// with ErrNoSpace before that.
func (w *Workspace) Allocate(ctx context.Context, ino vfs.Ino, mode vfs.AllocMode, off, n uint64) error {
	const known = vfs.AllocKeepSize | vfs.AllocPunchHole | vfs.AllocZeroRange
	var err error
	switch {
	case mode&^known != 0 || mode&vfs.AllocPunchHole != 0 && mode&vfs.AllocZeroRange != 0:
		err = vfs.ErrNotSupported
	case n == 0:
		err = vfs.ErrInvalid
	case off > vfs.MaxFileSize || n > vfs.MaxFileSize-off:
		err = vfs.ErrTooBig
	case mode&(vfs.AllocPunchHole|vfs.AllocZeroRange) == 0:
		err = w.store.space.admit(ctx, int(min(n, 1<<40)))
	}
	if err == nil {
		size := uint64(0)
		if mode&(vfs.AllocPunchHole|vfs.AllocKeepSize) == 0 {
			size = off + n
		}
		err = w.edit(ctx, ino, size, func(_ *inode, f *file) { f.allocate(mode, off, off+n) }, nil)
	}
	return wrap(err, "allocate", ino, "")
}

func (f *file) allocate(mode vfs.AllocMode, off, end uint64) {
	if mode&(vfs.AllocPunchHole|vfs.AllocZeroRange) != 0 && off < f.size {
		f.held -= f.heldIn(off, end)
		f.buf.Zero(off, min(end, f.size)-off)
	}
	if mode&(vfs.AllocPunchHole|vfs.AllocKeepSize) == 0 && end > f.size {
		f.resize(end)
	}
}

// Seek implements vfs.Tree.
func (w *Workspace) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	if whence > vfs.SeekHole {
		return 0, wrap(vfs.ErrInvalid, "seek", ino, "")
	}
	n, err := w.acquire(ctx, ino)
	if err != nil {
		return 0, wrap(err, "seek", ino, "")
	}
	defer w.release(n)
	f := n.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if off >= f.size {
		return 0, wrap(vfs.ErrNoData, "seek", ino, "")
	}
	at := f.seek(off, whence == vfs.SeekHole)
	if at >= f.size {
		if whence == vfs.SeekHole {
			return f.size, nil
		}
		return 0, wrap(vfs.ErrNoData, "seek", ino, "")
	}
	return at, nil
}

// seek returns the first offset from off on that is in a hole, or that is not; the size when there is none.
func (f *file) seek(off uint64, hole bool) uint64 {
	found := f.size
	f.buf.Walk(off, f.size, func(at, n uint64, kind writebuf.Kind) bool {
		switch kind {
		case writebuf.Zero, writebuf.Data:
			if hole == (kind == writebuf.Zero) {
				found = at
				return false
			}
		case writebuf.Base:
			if pos := f.base.seek(at, at+n, hole); pos < at+n {
				found = pos
				return false
			}
		}
		return true
	})
	return found
}

// SetAttr implements vfs.Tree.
func (w *Workspace) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (attr vfs.Attr, err error) {
	if set.Mask&vfs.SetSize != 0 {
		attr, err = w.setSize(ctx, ino, set)
	} else {
		err = w.change(ctx, recordCost, func() error {
			n, err := w.inode(ino)
			if err != nil {
				return err
			}
			w.touch(n)
			w.setAttr(ctx, n, set)
			attr = n.attr
			return nil
		})
	}
	return attr, wrap(err, "setattr", ino, "")
}

func (w *Workspace) setSize(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (attr vfs.Attr, err error) {
	if set.Size > vfs.MaxFileSize {
		return vfs.Attr{}, vfs.ErrTooBig
	}
	err = w.edit(ctx, ino, set.Size, func(n *inode, f *file) {
		if old := f.size; set.Size < old {
			w.store.space.deleted(min(old-set.Size, n.attr.Blocks*512))
		}
		f.resize(set.Size)
		w.setAttr(ctx, n, set)
		attr = n.attr
		attr.Size, attr.Blocks = f.size, f.blocks()
	}, nil)
	return attr, err
}

// setAttr sets everything but the size.
func (w *Workspace) setAttr(ctx context.Context, n *inode, set vfs.AttrSet) {
	a, now := &n.attr, w.now()
	has := func(m vfs.SetMask) bool { return set.Mask&m != 0 }
	if has(vfs.SetMode) {
		a.Mode = set.Mode & vfs.ModeMask
	}
	if has(vfs.SetUID) {
		a.UID = set.UID
	}
	if has(vfs.SetGID) {
		a.GID = set.GID
	}
	if has(vfs.SetKillPriv) && n.dir == nil {
		dropPriv(a)
	}
	switch {
	case has(vfs.SetAtimeNow):
		a.Atime = now
	case has(vfs.SetAtime):
		a.Atime = set.Atime
	}
	n.atimeSet = n.atimeSet || has(vfs.SetAtime|vfs.SetAtimeNow)
	switch {
	case has(vfs.SetMtimeNow):
		a.Mtime = now
	case has(vfs.SetMtime):
		a.Mtime = set.Mtime
	}
	if set.Mask != 0 {
		a.Ctime = now
	}
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeAttr, Ino: a.Ino})
}

// Stat implements vfs.Tree.
func (w *Workspace) Stat(ctx context.Context, ino vfs.Ino) (attr vfs.Attr, err error) {
	err = w.do(ctx, func() error {
		n, err := w.inode(ino)
		if err == nil {
			attr = n.attr
		}
		return err
	})
	return attr, wrap(err, "stat", ino, "")
}
