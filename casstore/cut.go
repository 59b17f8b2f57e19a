package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// kv is a key to be written, or removed when the value is nil.
type kv struct {
	key, value []byte
	hide       bool // removed, and what an origin has under the key is hidden
}

// cut is one workspace's part of a commit: everything that changed up to a moment, as it was at that moment.
//
// Making the cut takes no time: it begins a new generation, and keeps the list of what changed in those before. The
// values are captured afterwards, a slice at a time, by the commit, or before that by whoever is about to change them.
type cut struct {
	tree    *Workspace
	gen     uint64
	objects []object
	// Captured so far:
	inodes  []snapshot
	kvs     []kv
	records uint64

	results  map[*inode]dataState // what the records say of the files' bytes
	lagging  []*inode             // have bytes from before the cut that are not in their records
	journals []journalChange
}

// makeCut begins a cut, or returns nil when nothing has changed.
func (w *Workspace) makeCut() *cut {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.dirty) == 0 {
		return nil
	}
	c := &cut{tree: w, gen: w.gen, objects: w.dirty, results: make(map[*inode]dataState)}
	w.dirty = nil
	w.gen++
	w.cut = c
	w.cutGen.Store(c.gen)
	return c
}

// capture takes the values of all objects of the cut that nobody has taken yet.
func (c *cut) capture() {
	for rest := c.objects; len(rest) > 0; {
		slice := rest[:min(captureSlice, len(rest))]
		rest = rest[len(slice):]
		c.captureSlice(slice)
	}
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	c.tree.cut = nil // everything is captured: touching need not look any more
}

func (c *cut) captureSlice(slice []object) {
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	for _, o := range slice {
		if s := o.stampOf(); s.gen == c.gen && !s.captured {
			o.capture(c)
			s.captured = true
		}
	}
}

// settleData finds out, for every file of the cut, which state of its bytes the commit holds. needs says what it waits
// for.
func (c *cut) settleData(ctx context.Context, needs func(*snapshot) need) error {
	for i := range c.inodes {
		s := &c.inodes[i]
		if s.gone || !s.n.regular() {
			continue
		}
		d, exact, err := c.dataOf(ctx, s, needs(s))
		if errors.Is(err, vfs.ErrCorrupt) || errors.Is(err, vfs.ErrInterrupted) && !s.urgent {
			// Damage under one file's new bytes, or bytes there that a peer has and does not give us now, must not keep
			// everything else from being committed. Who asked for this file has the error: see flushAhead.
			c.tree.store.log.Error("bytes cannot be stored", "inode", s.attr.Ino, "err", err)
			d, exact, err = c.dataOf(ctx, s, need{bytes: -1})
		}
		if err != nil {
			return fmt.Errorf("inode %d: %w", s.attr.Ino, err)
		}
		c.results[s.n] = d
		if !exact {
			c.lagging = append(c.lagging, s.n)
		}
	}
	return nil
}

// need is what a commit needs of a file: so many dirty bytes of it are waited for; of a file with more, what was flushed
// last is taken.
type need struct {
	bytes   int64
	journal bool // it will do if they are in the journal
}

// dataOf returns the state of a file's bytes that its record is to hold. exact says that it is the state at the cut.
func (c *cut) dataOf(ctx context.Context, s *snapshot, need need) (d dataState, exact bool, err error) {
	f := s.file
	loaded, wait := f.pending(c.gen)
	if !loaded {
		d := s.stored
		d.mtime = s.attr.Mtime
		return d, true, nil
	}
	exact = wait <= need.bytes
	var p dataPoint
	inJournal := false
	if exact && need.journal {
		p, inJournal = c.journal(s)
		exact = !inJournal
	}
	if exact {
		if err := c.tree.flush(ctx, s.n, f, c.gen); err != nil {
			return dataState{}, false, err
		}
	}
	if !inJournal {
		p = f.pointAt(c.gen)
		c.prune(s, p)
	}
	body, err := c.tree.store.encodeBody(p.base, s.stored.tree)
	if err != nil {
		return dataState{}, false, err
	}
	d = dataState{body: body, size: p.size, mtime: p.mtime}
	if body.Kind == vfs.BodyTree {
		d.tree = p.base.manifest
	}
	if exact {
		d.mtime = s.attr.Mtime
		if d.size != s.attr.Size {
			return dataState{}, false, fmt.Errorf("size %d, bytes for %d: %w", s.attr.Size, d.size, errInconsistent)
		}
	}
	return d, exact, nil
}

// errInconsistent is our own mistake: it must not be written to disk.
var errInconsistent = errors.New("inconsistent commit")

// pending is how many dirty bytes the file has from generations up to gen. loaded is false when nobody has used it, and
// the inode's stored state says all.
func (f *file) pending(gen uint64) (loaded bool, n int64) {
	if f == nil {
		return false, 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.frozen {
		if l.gen <= gen {
			n += l.layer.Bytes()
		}
	}
	if f.liveGen <= gen {
		n += f.buf.Dirty()
	}
	return f.loaded, n
}

// pointAt returns the last state of a file that was flushed and is not after the cut of a generation: after a flush up
// to it, the state at the cut.
func (f *file) pointAt(gen uint64) dataPoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.savedGen == gen {
		return f.saved
	}
	return f.flushed
}

// encode turns what was captured into keys and values.
func (c *cut) encode(r *reader) error {
	for i := range c.inodes {
		s := &c.inodes[i]
		key := keyOfNode(keyInode, c.tree.id, s.attr.Ino)
		c.records++
		if s.gone {
			c.kvs = append(c.kvs, kv{key: key})
			c.prune(s, dataPoint{layer: math.MaxUint64})
			if err := c.removeExtras(r, s); err != nil {
				return err
			}
			continue
		}
		rec := s.record(c.results[s.n])
		c.kvs = append(c.kvs, kv{key: key, value: rec.Append(nil)})
		if s.atimeSet {
			c.kvs = append(c.kvs, kv{
				key:   keyOfNode(keyAtime, c.tree.id, s.attr.Ino),
				value: binary.AppendVarint(nil, int64(s.attr.Atime)),
			})
		}
	}
	return nil
}

// removeExtras removes the atime and the attributes of an inode that is gone.
func (c *cut) removeExtras(r *reader, s *snapshot) error {
	if s.atimeSet {
		c.kvs = append(c.kvs, kv{key: keyOfNode(keyAtime, c.tree.id, s.attr.Ino)})
	}
	if s.xattrs == 0 {
		return nil
	}
	return r.scan(keyOfNode(keyXattr, c.tree.id, s.attr.Ino), nil, false, func(key, _ []byte) (bool, error) {
		c.kvs = append(c.kvs, kv{key: append([]byte(nil), key...)})
		return true, nil
	})
}

// finish marks what the cut has committed as clean. The store's head is the cut's revision already.
func (c *cut) finish() {
	for _, ch := range c.journals {
		ch.apply()
	}
	w := c.tree
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, d := range c.results {
		n.stored = d
	}
	for _, o := range c.objects {
		s := o.stampOf()
		clean := s.gen == c.gen
		if clean {
			s.gen, s.captured = 0, false
		}
		o.committed(w, clean)
	}
	for _, n := range c.lagging {
		if !n.gone {
			w.touch(n)
		}
	}
	for n, d := range c.results {
		if n.gen == 0 && n.refs == 0 && d.body.Kind != vfs.BodyTree {
			n.file = nil // quickly made again of what is stored; a tree's manifest is not
		}
		w.weigh(n)
	}
	w.cutGen.Store(0)
	w.tried = 0 // there is more that is clean
	w.fit()
}

// undo makes everything of a cut that could not be committed dirty again.
func (c *cut) undo() {
	w := c.tree
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = nil
	w.cutGen.Store(0)
	for _, s := range c.inodes {
		s.n.urgent = s.n.urgent || s.urgent
	}
	for _, o := range c.objects {
		if s := o.stampOf(); s.gen == c.gen {
			s.gen, s.captured = 0, false
			w.touch(o)
		}
	}
}

// reap discards the bytes of files that went away during a commit.
func (w *Workspace) reap() { _ = w.do(context.Background(), func() error { return nil }) }
