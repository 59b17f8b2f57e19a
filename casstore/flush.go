package casstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"

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
		b, l, ok := f.oldest(upTo)
		if !ok {
			return nil
		}
		next, err := w.store.merge(ctx, b, l)
		if err != nil {
			return err
		}
		w.advanceBase(n, f, next, l)
	}
}

// oldest returns the file's base and the layer to take into it.
func (f *file) oldest(upTo uint64) (base, frozenLayer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.liveGen <= upTo {
		f.freeze()
	}
	if f.discarded || len(f.frozen) == 0 || f.frozen[0].gen > upTo {
		return base{}, frozenLayer{}, false
	}
	return f.base, f.frozen[0], true
}

// advanceBase puts the base that contains l in place. When l is of a later generation than the cut that is being
// committed, the commit may still need the base before it.
func (w *Workspace) advanceBase(n *inode, f *file, next base, l frozenLayer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.discarded {
		return
	}
	if cut := w.cutGen.Load(); l.gen > cut && f.savedGen < cut {
		f.saved, f.savedGen = f.flushed, cut
	}
	f.base = next
	f.flushed = dataPoint{base: next, size: l.size, mtime: l.mtime}
	f.buf.Drop(l.layer)
	f.frozen = f.frozen[1:]
	f.count()
	w.mu.Lock()
	n.attr.Blocks = f.blocks()
	w.mu.Unlock()
}

// overlay is a layer over a base: what a file becomes.
type overlay struct {
	store *Store
	ctx   context.Context
	under base
	list  []writebuf.Extent
	floor uint64 // the base shows below it only
	size  uint64
}

// merge returns the base that b becomes with the layer l. It stores the chunks that are new.
func (s *Store) merge(ctx context.Context, b base, l frozenLayer) (base, error) {
	o := overlay{store: s, ctx: ctx, under: b, floor: min(l.layer.Floor(), b.size()), size: l.size}
	l.layer.Extents(func(e writebuf.Extent) bool {
		if e.Off < l.size {
			e.Len = min(e.Len, l.size-e.Off)
			o.list = append(o.list, e)
		}
		return true
	})
	if l.size <= vfs.MaxInline {
		inline := make([]byte, l.size)
		if _, err := io.ReadFull(o.reader(0, l.size), inline); err != nil {
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
	for _, r := range regions {
		entries, err := o.split(r)
		if err != nil {
			return chunk.Manifest{}, err
		}
		m = m.Splice(r.start, r.end, entries)
		hidden := max(r.start, min(r.end, o.floor))
		o.store.space.deleted(o.under.storedIn(r.start, hidden)) // some may have come out the same
	}
	return m, nil
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

// widen extends a region to the bounds of the base's chunks, and over a neighbour that is short: so an append splits the
// tail anew, and a file that is written in small pieces does not stay in small chunks.
func (o *overlay) widen(r region) region {
	m := o.under.manifest
	if p, ok := o.chunkAt(m, r.start); ok {
		r.start = min(r.start, p.Start)
	}
	if r.start > 0 {
		if p, ok := o.chunkAt(m, r.start-1); ok && p.Len < chunk.AvgSize {
			r.start = p.Start
		}
	}
	if p, ok := o.chunkAt(m, r.end-1); ok {
		r.end = max(r.end, p.End())
	}
	if p, ok := o.chunkAt(m, r.end); ok && p.Len < chunk.MinSize {
		r.end = p.End()
	}
	r.end = min(r.end, o.size)
	return r
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
	sp := chunk.NewSplitter(o.reader(run.start, run.end))
	defer sp.Close()
	for {
		piece, err := sp.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case allZero(piece):
			out.add(chunk.HoleOf(uint64(len(piece))))
			continue
		}
		e := out.add(chunk.Entry{Len: uint64(len(piece))})
		plain := bytes.Clone(piece) // the splitter uses its buffer again
		group.Go(func() error {
			id, err := o.store.chunks.put(plain)
			e.ID = id
			return err
		})
	}
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

// reader reads the bytes [start, end).
func (o *overlay) reader(start, end uint64) io.Reader {
	return &overlayReader{o: o, at: start, end: end}
}

type overlayReader struct {
	o       *overlay
	at, end uint64
}

// Read implements io.Reader.
func (r *overlayReader) Read(p []byte) (int, error) {
	if r.at >= r.end {
		return 0, io.EOF
	}
	kind, n := r.o.at(r.at, r.end)
	p = p[:min(n, uint64(len(p)), math.MaxInt32)]
	switch kind {
	case pieceHole:
		clear(p)
	case pieceLayer:
		e := r.o.list[r.o.extentAt(r.at)]
		copy(p, e.Data[r.at-e.Off:])
	case pieceBase:
		if err := r.o.store.readBase(r.o.ctx, r.o.under, p, r.at); err != nil {
			return 0, err
		}
	}
	r.at += uint64(len(p))
	return len(p), nil
}
