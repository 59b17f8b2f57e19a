package casstore

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// place is a position in a directory's order: after skip entries of a hash.
type place struct {
	hash uint64
	skip int
}

func placeAfter(o vfs.Offset) place {
	if o < vfs.FirstOffset {
		return place{}
	}
	return place{hash: uint64(o) >> 8, skip: int(o&0xff) + 1}
}

// lister numbers entries that come in the order of a directory, and leaves out those before its place.
type lister struct {
	at   place
	hash uint64 // of the entry before
	nth  int    // how many of that hash have come
	out  []vfs.Dirent
}

func (l *lister) add(hash uint64, name string, ino vfs.Ino, typ vfs.Type) {
	if hash != l.hash {
		l.hash, l.nth = hash, 0
	}
	nth := l.nth
	l.nth++
	if hash < l.at.hash || (hash == l.at.hash && nth < l.at.skip) {
		return
	}
	l.out = append(l.out, vfs.Dirent{
		Name: name, Ino: ino, Type: typ, Offset: vfs.Offset(hash<<8 | uint64(min(nth, 0xff))),
	})
}

// ReadDir implements vfs.Tree.
func (w *Workspace) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	for {
		batch, last, err := w.list(ctx, dir, after)
		if err != nil {
			return wrap(err, "readdir", dir, "")
		}
		for _, e := range batch {
			if !yield(e) {
				return nil
			}
		}
		if last {
			return nil
		}
		after = batch[len(batch)-1].Offset
	}
}

// list returns the next entries after an offset, at least one unless it returns the last of them.
func (w *Workspace) list(ctx context.Context, dir vfs.Ino, after vfs.Offset) (batch []vfs.Dirent, last bool, err error) {
	at := placeAfter(after)
	var kept *inode // so that it stays in memory while the store is read
	err = w.do(ctx, func() error {
		d, err := w.directory(dir)
		switch {
		case err != nil:
			return err
		case d.gone:
			last = true
		case d.dir.complete:
			batch, last = d.dir.list(at)
		default:
			kept = d
			d.refs++
		}
		return nil
	})
	if err != nil || kept == nil {
		return batch, last, err
	}
	defer w.release(kept)
	vfs.WillBlock(ctx)
	if err := w.ensure(ctx, &miss{ino: dir, list: true}); err != nil {
		return nil, false, err
	}
	limit := dirBatch
	if after < vfs.FirstOffset {
		limit = dirLoad
	}
	for {
		batch, last, ok, err := w.listStored(kept, at, limit)
		if err != nil || ctx.Err() != nil {
			return nil, false, firstOf(err, ctx)
		}
		if ok && (last || len(batch) > 0) {
			return batch, last, nil
		}
		// The store moved on, or all that it had here has been removed since: then more is needed to find one.
		if ok {
			limit *= 2
		}
	}
}

func firstOf(err error, ctx context.Context) error {
	if err == nil && ctx.Err() != nil {
		return vfs.ErrInterrupted
	}
	return err
}

// list returns the next entries of a complete directory.
func (d *directory) list(at place) (batch []vfs.Dirent, last bool) {
	l, last := lister{at: at}, true
	d.entries.Ascend(&dirent{hash: at.hash}, func(e *dirent) bool {
		if len(l.out) == dirBatch {
			last = false
			return false
		}
		if e.ino != 0 {
			l.add(e.hash, e.name, e.ino, e.typ)
		}
		return true
	})
	return l.out, last
}

// listStored returns the next entries of a directory of which not all is in memory, from up to limit entries of the
// store with those in memory laid over them. ok is false when a commit came between. A listing that begins at the start
// and reaches the end leaves the directory complete.
func (w *Workspace) listStored(n *inode, at place, limit int) (batch []vfs.Dirent, last, ok bool, err error) {
	r := w.store.reader()
	defer r.Close()
	stored, last, err := r.dirents(w.id, n.attr.Ino, at.hash, limit)
	if err != nil {
		return nil, false, false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store.head() != r.rev {
		return nil, false, false, nil
	}
	l := lister{at: at}
	n.dir.merge(at.hash, stored, last, &l)
	if last && at == (place{}) {
		for _, s := range stored {
			w.learn(n.dir, s.name, s.DirentRecord)
		}
		n.dir.complete = true
	}
	return l.out, last, true, nil
}

// merge gives l the entries from a hash on, up to the last of stored, or all when stored reaches the end.
func (d *directory) merge(from uint64, stored []storedDirent, last bool, l *lister) {
	i := 0
	take := func(upTo *dirent) (overlaid bool) {
		for i < len(stored) {
			s := &dirent{hash: stored[i].hash, name: stored[i].name}
			if upTo != nil && !direntLess(s, upTo) {
				if !direntLess(upTo, s) {
					i++
				}
				return true
			}
			l.add(s.hash, s.name, stored[i].Ino, stored[i].Type)
			i++
		}
		return last
	}
	d.entries.Ascend(&dirent{hash: from}, func(e *dirent) bool {
		if !take(e) {
			return false
		}
		if e.ino != 0 {
			l.add(e.hash, e.name, e.ino, e.typ)
		}
		return true
	})
	take(nil)
}

// empty returns nil when a directory has no entries, else ErrNotEmpty.
func (w *Workspace) empty(n *inode) error {
	found := false
	n.dir.entries.Scan(func(e *dirent) bool {
		found = e.ino != 0
		return !found
	})
	switch {
	case found:
		return vfs.ErrNotEmpty
	case !n.dir.complete:
		return &miss{ino: n.attr.Ino, list: true}
	}
	return nil
}

// explore reads a directory's entries until it has found one that is there, or all of them are known.
func (w *Workspace) explore(dir vfs.Ino) error {
	for at := (place{}); ; {
		r := w.store.reader()
		stored, last, err := r.dirents(w.id, dir, at.hash, dirLoad)
		r.Close()
		if err != nil {
			return err
		}
		if w.explored(dir, r.rev, stored, last) {
			return nil
		}
		at.hash = stored[len(stored)-1].hash
	}
}

// explored looks at what explore has read, and reports whether it need go no further.
func (w *Workspace) explored(dir vfs.Ino, head vfs.Rev, stored []storedDirent, last bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.inodes[dir]
	if w.store.head() != head || n == nil || n.dir == nil {
		return true // the operation finds out anew what it misses
	}
	for _, s := range stored {
		if _, ok := n.dir.entries.Get(&dirent{hash: s.hash, name: s.name}); !ok {
			w.learn(n.dir, s.name, s.DirentRecord)
			return true
		}
	}
	n.dir.complete = n.dir.complete || last
	return last
}
