package casstore

import (
	"context"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// CopyRange implements vfs.Tree. Whole chunks are shared: the destination's base gets the entries of the source's. What
// is left of the range at both ends, and ranges that do not fit, are copied as bytes.
func (w *Workspace) CopyRange(
	ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64,
) (copied uint64, err error) {
	if err := vfs.CheckCopy(src, off, dst, dstOff, n); err != nil {
		return 0, wrap(err, "copy", src, "")
	}
	if n < minShare {
		copied, err = vfs.CopyBytes(ctx, w, src, off, dst, dstOff, n)
		return copied, wrap(err, "copy", src, "")
	}
	if err := w.store.space.admitRecords(ctx, recordCost); err != nil {
		return 0, wrap(err, "copy", src, "")
	}
	vfs.WillBlock(ctx)
	from, shared, err := w.share(ctx, src, off, dst, dstOff, n)
	if err != nil {
		return 0, wrap(err, "copy", src, "")
	}
	if shared == 0 {
		copied, err = vfs.CopyBytes(ctx, w, src, off, dst, dstOff, n)
		return copied, wrap(err, "copy", src, "")
	}
	// The head and the tail of the range, around what is shared.
	copied, err = vfs.CopyBytes(ctx, w, src, off, dst, dstOff, from-off)
	if err != nil || copied < from-off {
		return copied, wrap(err, "copy", src, "")
	}
	copied += shared
	k, err := vfs.CopyBytes(ctx, w, src, off+copied, dst, dstOff+copied, n-copied)
	return copied + k, wrap(err, "copy", src, "")
}

// share puts the chunks of src that lie in the range into dst. It returns where the first begins, and how many bytes
// they hold: zero when none can be shared.
func (w *Workspace) share(
	ctx context.Context, src vfs.Ino, off uint64, dst vfs.Ino, dstOff, n uint64,
) (from, shared uint64, err error) {
	// What is found here is in a base that the collector looks at only when it is in dst.
	w.store.chunks.gate.RLock()
	defer w.store.chunks.gate.RUnlock()
	entries, from, err := w.chunksOf(ctx, src, off, n)
	if err != nil || len(entries) == 0 {
		return 0, 0, err
	}
	for _, e := range entries {
		shared += e.Len
	}
	d, err := w.acquire(ctx, dst)
	if err != nil {
		return 0, 0, err
	}
	defer w.release(d)
	if err := w.flush(ctx, d, d.file, maxGen); err != nil {
		return 0, 0, err
	}
	at := dstOff + from - off
	if !w.splice(ctx, d, at, at+shared, entries) {
		return 0, 0, nil
	}
	return from, shared, nil
}

// chunksOf flushes a file and returns the chunks and holes that lie in a range, and where the first begins.
func (w *Workspace) chunksOf(ctx context.Context, src vfs.Ino, off, n uint64) (list []chunk.Entry, from uint64, err error) {
	s, err := w.acquire(ctx, src)
	if err != nil {
		return nil, 0, err
	}
	defer w.release(s)
	if err := w.flush(ctx, s, s.file, maxGen); err != nil {
		return nil, 0, err
	}
	s.file.mu.Lock()
	m := s.file.base.manifest
	s.file.mu.Unlock()
	end := off + n
	for p := range m.From(off) {
		e := p.Entry
		switch start := max(p.Start, off); {
		case p.Start >= end:
			return list, from, nil
		case p.Hole:
			e = chunk.HoleOf(min(p.End(), end) - start)
			if len(list) == 0 {
				from = start
			}
		case p.Start < off:
			continue
		case p.End() > end:
			return list, from, nil
		case len(list) == 0:
			from = p.Start
		}
		list = append(list, e)
	}
	return list, from, nil
}

// splice puts entries in the place of the bytes [start, end) of a file, if nothing of it is dirty, no chunk of it lies across start
// or end, and it is not so small then that it is kept without chunks.
func (w *Workspace) splice(ctx context.Context, n *inode, start, end uint64, entries []chunk.Entry) bool {
	f := n.file
	f.flushing.Lock()
	defer f.flushing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.clean() || f.discarded || len(f.base.inline) > 0 || max(f.size, end) <= vfs.MaxInline {
		return false // a small file has its bytes in its record
	}
	m := f.base.manifest
	if across(m, start) || across(m, end) {
		return false
	}
	if m.Size() < start {
		m = m.Truncate(start)
	}
	next := base{manifest: m.Splice(start, min(end, m.Size()), entries)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roomFor(n, end) != nil {
		return false // a copy of its bytes gets the error
	}
	w.touch(n)
	// As when a layer of this generation has been flushed: a commit under way has made its cut before.
	if cut := w.cutGen.Load(); f.savedGen < cut {
		f.saved, f.savedGen = f.flushed, cut
	}
	now := w.now()
	n.touchTimes(now)
	f.base, f.size, f.mtime, f.liveGen = next, next.size(), now, w.gen
	f.flushed = dataPoint{base: next, size: f.size, mtime: now, layer: f.layers}
	f.count()
	n.attr.Size, n.attr.Blocks = f.size, f.blocks()
	w.charge(n)
	w.notify(ctx, vfs.Change{Kind: vfs.ChangeData, Ino: n.attr.Ino})
	return true
}

// across reports whether a chunk lies on both sides of an offset.
func across(m chunk.Manifest, off uint64) bool {
	p, ok := m.Find(off)
	return ok && !p.Hole && p.Start < off
}
