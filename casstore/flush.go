package casstore

import (
	"bytes"
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/writebuf"
)

// flush takes the layers of a file that belong to generations up to upTo into its base. Writers and readers go on
// meanwhile.
func (w *Workspace) flush(ctx context.Context, n *inode, f *file, upTo uint64) error {
	f.flushing.Lock()
	defer f.flushing.Unlock()
	for {
		b, run := f.oldest(upTo, w.cutGen.Load())
		if len(run) == 0 {
			return nil
		}
		next, err := w.store.mergeRun(ctx, b, run)
		if err != nil {
			return err
		}
		w.advanceBase(n, f, next, run)
	}
}

// oldest returns the file's base and the layers to take into it: the oldest, and what follows it as long as all of it is
// small, so that many small writes that were made durable one by one are cut and stored once. A commit of the generation
// cut needs the base as it was then, so layers of before and after do not go together.
func (f *file) oldest(upTo, cut uint64) (b base, run []frozenLayer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.liveGen <= upTo {
		f.freeze()
	}
	if f.discarded {
		return base{}, nil
	}
	bytes := int64(0)
	for i, l := range f.frozen {
		bytes += l.layer.Bytes()
		if l.gen > upTo || i > 0 && (bytes > combineMost || (l.gen > cut) != (f.frozen[0].gen > cut)) {
			break
		}
		run = append(run, l)
	}
	return f.base, run
}

// advanceBase puts the base that contains a run of layers in place. When they are of a later generation than the cut
// that is being committed, the commit may still need the base before them.
func (w *Workspace) advanceBase(n *inode, f *file, next base, run []frozenLayer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.discarded {
		return
	}
	last := run[len(run)-1]
	if cut := w.cutGen.Load(); last.gen > cut && f.savedGen < cut {
		f.saved, f.savedGen = f.flushed, cut
	}
	f.base = next
	f.flushed = dataPoint{base: next, size: last.size, mtime: last.mtime, layer: last.number}
	for _, l := range run {
		f.buf.Drop(l.layer)
	}
	f.frozen = slices.Delete(f.frozen, 0, len(run)) // a slice of the rest would keep what was dropped in memory
	f.count()
	w.mu.Lock()
	n.attr.Blocks = f.blocks()
	w.mu.Unlock()
}

// mergeRun returns the base that b becomes with a run of layers.
func (s *Store) mergeRun(ctx context.Context, b base, run []frozenLayer) (base, error) {
	last := run[len(run)-1]
	if len(run) == 1 {
		return s.merge(ctx, b, last.layer, last.size)
	}
	layers := make([]*writebuf.Layer, len(run))
	for i, l := range run {
		layers[i] = l.layer
	}
	all := writebuf.Combine(layers)
	runtime.KeepAlive(run) // its bytes are another's when nobody has it any more
	defer all.Release()
	return s.merge(ctx, b, all, last.size)
}

// overlay is a layer over a base: what a file becomes.
type overlay struct {
	store *Store
	ctx   context.Context
	under base
	list  []writebuf.Extent
	floor uint64 // the base shows below it only
	size  uint64
	ahead bool // what is read will be here by then
}

// merge returns the base that b becomes with the layer l, which leaves the file with a size. It stores the chunks that
// are new.
func (s *Store) merge(ctx context.Context, b base, l *writebuf.Layer, size uint64) (base, error) {
	defer runtime.KeepAlive(l) // its bytes are used here, and are another's when nobody has it any more
	o := overlay{store: s, ctx: ctx, under: b, floor: min(l.Floor(), b.size()), size: size}
	l.Extents(func(e writebuf.Extent) bool {
		if e.Off < size {
			e.Len = min(e.Len, size-e.Off)
			o.list = append(o.list, e)
		}
		return true
	})
	if size <= vfs.MaxInline {
		inline := make([]byte, size)
		if err := o.fill(inline, 0); err != nil {
			return base{}, err
		}
		return base{inline: inline}, nil
	}
	m, err := o.manifest()
	return base{manifest: m}, err
}

// manifest returns the manifest of the overlay: that of the base, with the regions that have changed split anew.
func (o *overlay) manifest() (chunk.Manifest, error) {
	m := o.under.manifest
	regions := o.regions()
	if o.floor < m.Size() {
		cut := o.floor
		if p, ok := m.Find(cut); ok && !p.Hole {
			cut = p.Start
		}
		m = m.Truncate(cut)
	}
	m = m.Truncate(o.size) // longer: a hole
	patches := make([]chunk.Patch, 0, len(regions))
	for _, r := range regions {
		entries, err := o.split(r)
		if err != nil {
			return chunk.Manifest{}, err
		}
		patches = append(patches, chunk.Patch{Start: r.start, End: r.end, Entries: entries})
		hidden := max(r.start, min(r.end, o.floor))
		o.store.space.deleted(o.under.storedIn(r.start, hidden)) // some may have come out the same
	}
	return m.SpliceAll(patches), nil
}

// region is the bytes [start, end) of a file.
type region struct{ start, end uint64 }

// regions returns what must be split anew, ascending and apart: every extent, widened to whole chunks of the base.
func (o *overlay) regions() []region {
	var all []region
	add := func(start, end uint64) {
		if start < end {
			all = append(all, o.widen(region{start, end}))
		}
	}
	for _, e := range o.list {
		add(e.Off, e.Off+e.Len)
	}
	// What is left of the chunk that a truncation has cut, and bytes that were in line.
	if p, ok := o.under.manifest.Find(o.floor); ok && !p.Hole {
		add(p.Start, min(o.floor, o.size))
	}
	add(0, min(uint64(len(o.under.inline)), o.floor, o.size))
	slices.SortFunc(all, func(a, b region) int { return cmp.Compare(a.start, b.start) })
	merged := all[:0]
	for _, r := range all {
		if n := len(merged); n > 0 && r.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, r.end)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// widen extends a region to the bounds of the base's chunks, and over a neighbour that is short, so a file that is written
// in small pieces does not stay in small chunks. When much is appended it extends it over the last chunk, which nothing but
// the end of the file has cut: so where a large file is cut depends on what is in it, and not on when parts of it were
// flushed, and the same bytes a little further on are the same chunks. When little is, that would store a chunk again for a
// few bytes. A neighbour that is not here, because it was shared with another file of a replica, stays as it is.
func (o *overlay) widen(r region) region {
	m := o.under.manifest
	if p, ok := o.chunkAt(m, r.start); ok {
		r.start = min(r.start, p.Start)
	}
	if r.start > 0 {
		p, ok := o.chunkAt(m, r.start-1)
		more := p.End() == m.Size() && r.end-r.start >= chunk.AvgSize
		if ok && (p.Len < chunk.AvgSize || more) && o.isHere(p) {
			r.start = p.Start
		}
	}
	if p, ok := o.chunkAt(m, r.end-1); ok {
		r.end = max(r.end, p.End())
	}
	if p, ok := o.chunkAt(m, r.end); ok && p.Len < chunk.MinSize && o.isHere(p) {
		r.end = p.End()
	}
	r.end = min(r.end, o.size)
	return r
}

// isHere reports whether the bytes of a chunk are to be had without waiting for a peer, or will be.
func (o *overlay) isHere(p chunk.Position) bool {
	if o.ahead || !o.store.replicas.any.Load() {
		return true
	}
	there, err := o.store.hasSound(p.ID)
	return err == nil && there
}

// chunkAt returns the chunk of the base that holds the byte at off and is not hidden whole.
func (o *overlay) chunkAt(m chunk.Manifest, off uint64) (chunk.Position, bool) {
	p, ok := m.Find(off)
	return p, ok && !p.Hole && p.Start < o.floor
}

// split returns the entries of a region.
func (o *overlay) split(r region) ([]chunk.Entry, error) {
	var out entryList
	group, ctx := errgroup.WithContext(o.ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	err := o.runs(r, func(run region, hole bool) error {
		if hole {
			out.add(chunk.HoleOf(run.end - run.start))
			return nil
		}
		return o.splitRun(ctx, run, &out, group)
	})
	if werr := group.Wait(); werr != nil {
		err = werr
	}
	return out.entries(), err
}

// entryList collects entries whose ids come later, in any order.
type entryList struct{ list []*chunk.Entry }

func (l *entryList) add(e chunk.Entry) *chunk.Entry {
	p := &e
	l.list = append(l.list, p)
	return p
}

func (l *entryList) entries() []chunk.Entry {
	out := make([]chunk.Entry, len(l.list))
	for i, e := range l.list {
		out[i] = *e
	}
	return out
}

// splitRun cuts a run of data into chunks, and stores them by group.
func (o *overlay) splitRun(ctx context.Context, run region, out *entryList, group *errgroup.Group) error {
	var batch []cutting
	put := func() {
		if full := batch; len(full) > 0 {
			batch = nil
			group.Go(func() error { return o.put(full) })
		}
	}
	defer put()
	for at := run.start; at < run.end; {
		c, err := o.cutOff(at, run.end)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			c.free()
			return err
		}
		at += uint64(len(c.plain))
		if allZero(c.plain) {
			out.add(chunk.HoleOf(uint64(len(c.plain))))
			c.free()
			continue
		}
		batch = append(batch, cutting{c, out.add(chunk.Entry{Len: uint64(len(c.plain))})})
		if len(batch) == putAtOnce {
			put()
		}
	}
	return nil
}

// cutting is a chunk that is to be stored, and the entry that is to have its id.
type cutting struct {
	cutOff
	entry *chunk.Entry
}

// putAtOnce is how many chunks are hashed together: two take as long as one, and more would keep others from the processor.
const putAtOnce = 2

func (o *overlay) put(batch []cutting) error {
	var ids [putAtOnce]chunk.ID
	var plains [putAtOnce][]byte
	for i, c := range batch {
		defer c.free()
		plains[i] = c.plain
	}
	chunk.Sums(ids[:len(batch)], plains[:len(batch)])
	for i, c := range batch {
		runtime.Gosched() // for who serves a mount
		if err := o.store.chunks.put(ids[i], c.plain); err != nil {
			return err
		}
		c.entry.ID = ids[i]
	}
	return nil
}

// cutOff is the bytes of a chunk: in the slab of a layer when they lie in one, else gathered in a buffer.
type cutOff struct {
	plain  []byte
	buffer *[chunk.MaxSize]byte // nil: none
}

// cutBuffers are used again. A flush has one for each chunk that is being stored or waits for others of its batch, and one.
var cutBuffers = sync.Pool{New: func() any { return new([chunk.MaxSize]byte) }}

// room returns the n bytes behind the end of what has been gathered, or fewer: up to the largest chunk.
func (c *cutOff) room(n uint64) []byte {
	if c.buffer == nil {
		c.buffer = cutBuffers.Get().(*[chunk.MaxSize]byte)
		c.plain = c.buffer[:0]
	}
	rest := c.buffer[len(c.plain):]
	return rest[:min(n, uint64(len(rest)))]
}

func (c *cutOff) free() {
	if c.buffer != nil {
		cutBuffers.Put(c.buffer)
	}
}

// cutOff cuts off the chunk that begins at an offset, in a run of data that goes to end. It is to be freed, also after an
// error.
func (o *overlay) cutOff(at, end uint64) (c cutOff, err error) {
	var cutter chunk.Cutter
	for ends, k := false, 0; !ends && at < end; at += uint64(k) {
		kind, n := o.at(at, end)
		if kind == pieceLayer {
			slab := o.slab(at, n)
			if k, ends = cutter.Cut(slab); c.buffer == nil && (ends || at+n == end) {
				return cutOff{plain: slab[:k]}, nil
			}
			copy(c.room(n), slab[:k])
		} else {
			part := c.room(n)
			if err := o.fill(part, at); err != nil {
				return c, err
			}
			k, ends = cutter.Cut(part)
		}
		c.plain = c.buffer[:len(c.plain)+k]
	}
	return c, nil
}

// allZero reports whether p is nothing but zeros. It compares p with itself shifted by one, which runs at memory speed.
func allZero(p []byte) bool { return p[0] == 0 && bytes.Equal(p[1:], p[:len(p)-1]) }

// runs calls fn for the runs of data and the holes that a region consists of. Neighbours of a kind come as one.
func (o *overlay) runs(r region, fn func(run region, hole bool) error) error {
	cur, curHole := region{r.start, r.start}, false
	for at := r.start; at < r.end; {
		piece, n := o.at(at, r.end)
		hole := piece == pieceHole && (n >= minHole || curHole)
		if hole != curHole && cur.start < cur.end {
			if err := fn(cur, curHole); err != nil {
				return err
			}
			cur.start = at
		}
		at += n
		cur.end, curHole = at, hole
	}
	if cur.start == cur.end {
		return nil
	}
	return fn(cur, curHole)
}

type pieceKind uint8

const (
	pieceHole pieceKind = iota
	pieceLayer
	pieceBase
)

// at says where the bytes from off on come from, and how many do, up to end.
func (o *overlay) at(off, end uint64) (pieceKind, uint64) {
	i := o.extentAt(off)
	if i < len(o.list) && o.list[i].Off <= off {
		n := min(end, o.list[i].Off+o.list[i].Len) - off
		if o.list[i].Data == nil {
			return pieceHole, n
		}
		return pieceLayer, n
	}
	if i < len(o.list) {
		end = min(end, o.list[i].Off)
	}
	if off >= o.floor {
		return pieceHole, end - off
	}
	end = min(end, o.floor)
	if off < uint64(len(o.under.inline)) {
		return pieceBase, end - off
	}
	p, _ := o.under.manifest.Find(off)
	n := min(end, p.End()) - off
	if p.Hole {
		return pieceHole, n
	}
	return pieceBase, n
}

// extentAt returns the number of the first extent that ends after off.
func (o *overlay) extentAt(off uint64) int {
	i, found := slices.BinarySearchFunc(o.list, off, func(e writebuf.Extent, off uint64) int {
		return cmp.Compare(e.Off+e.Len, off)
	})
	if found {
		i++
	}
	return i
}

// slab returns the n bytes from off on, which a layer holds in one extent.
func (o *overlay) slab(off, n uint64) []byte {
	e := o.list[o.extentAt(off)]
	return e.Data[off-e.Off:][:n]
}

// fill fills p with the bytes from off on.
func (o *overlay) fill(p []byte, off uint64) error {
	for len(p) > 0 {
		kind, n := o.at(off, off+uint64(len(p)))
		switch kind {
		case pieceHole:
			clear(p[:n])
		case pieceLayer:
			copy(p, o.slab(off, n))
		case pieceBase:
			if err := o.store.readBase(o.ctx, o.under, p[:n], off); err != nil {
				return err
			}
		}
		p, off = p[n:], off+n
	}
	return nil
}
