package casstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/writebuf"
)

// The journal is for programs that write a little, fsync, and again: databases, above all. To cut, hash and store the
// chunk around every few bytes would cost a hundred times what they are, and a second sync of the disk, for the pack. So
// a commit for an fsync writes what is new of a file beside its record, which stays behind, as records of their own; the
// next commit that has the bytes in chunks removes them. When a store is opened, what the journal has is written to the
// live tree again.
//
//	record    journal
//	[base 7] + [layer 8] [layer 9]        after two fsyncs
//	[base 9]                              after the next periodic commit
//
// The layers of a file are in the journal without a gap from the base in its record on, each layer whole and once: a
// layer never changes. Which of them a base contains is known by their numbers.

// journal says what the store's journal holds of a file. The file's lock guards it.
type journal struct {
	layers []journaled // oldest first
	next   uint64      // the number of the next record
}

// journaled is a layer in the journal: the records from first to end.
type journaled struct {
	number     uint64 // of the layer
	first, end uint64
	bytes      int64 // that the layer is charged for in memory
}

func (j *journal) bytes() (n int64) {
	for _, l := range j.layers {
		n += l.bytes
	}
	return n
}

// newest is the number of the newest layer in the journal, or zero.
func (j *journal) newest() uint64 {
	if len(j.layers) == 0 {
		return 0
	}
	return j.layers[len(j.layers)-1].number
}

// journalChange is what a cut does to a file's journal.
type journalChange struct {
	file    *file
	removed int // of the oldest layers
	added   []journaled
}

// fitsJournal reports whether dirty bytes, which are all that a file has over its base, may go to the journal.
func (f *file) fitsJournal(dirty int64) bool {
	return f.size > vfs.MaxInline && len(f.journal.layers) < journalLayers && dirty <= journalTotal && dirty-f.journal.bytes() <= journalMost
}

// wantsJournal is fitsJournal for a file as it is now.
func (f *file) wantsJournal() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	dirty := f.buf.Dirty()
	for _, l := range f.frozen {
		dirty += l.layer.Bytes()
	}
	return f.loaded && f.fitsJournal(dirty)
}

// journal puts what is new of a file into the journal, and returns the state over which the journal now has all up to the
// cut. ok is false when that is too much.
func (c *cut) journal(s *snapshot) (p dataPoint, ok bool) {
	f := s.file
	f.flushing.Lock() // a layer that is flushed is gone
	defer f.flushing.Unlock()
	layers, p, ok := f.unflushed(c.gen)
	if !ok {
		return p, false
	}
	change := journalChange{file: f, removed: c.cutJournal(s, p)}
	next := f.journal.next
	for _, l := range layers {
		if l.number <= f.journal.newest() {
			continue
		}
		j := journaled{number: l.number, first: next, bytes: l.layer.Bytes()}
		eachEntry(l, func(e journalEntry) {
			c.kvs = append(c.kvs, kv{key: keyOfJournal(c.tree.id, s.attr.Ino, next), value: e.encode()})
			next++
		})
		j.end = next
		change.added = append(change.added, j)
	}
	f.journal.next = next // also when the commit fails: it is only a number
	c.journals = append(c.journals, change)
	return p, true
}

// unflushed returns the layers of a file up to a generation, and the state below them.
func (f *file) unflushed(gen uint64) (layers []frozenLayer, p dataPoint, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.liveGen <= gen {
		f.freeze()
	}
	dirty := int64(0)
	for _, l := range f.frozen {
		if l.gen <= gen {
			layers = append(layers, l)
			dirty += l.layer.Bytes()
		}
	}
	return layers, f.flushed, len(layers) > 0 && f.fitsJournal(dirty) && !f.discarded
}

// prune removes from the journal what a file's record will contain.
func (c *cut) prune(s *snapshot, p dataPoint) {
	if n := c.cutJournal(s, p); n > 0 {
		c.journals = append(c.journals, journalChange{file: s.file, removed: n})
	}
}

// cutJournal adds the removal of the layers that are in p to the commit, and returns how many they are.
func (c *cut) cutJournal(s *snapshot, p dataPoint) (n int) {
	if s.file == nil {
		return 0
	}
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	for _, j := range s.file.journal.layers {
		if j.number > p.layer {
			break
		}
		c.removeJournal(s.attr.Ino, j)
		n++
	}
	return n
}

func (c *cut) removeJournal(ino vfs.Ino, j journaled) {
	for number := j.first; number < j.end; number++ {
		c.kvs = append(c.kvs, kv{key: keyOfJournal(c.tree.id, ino, number)})
	}
}

// apply is called when the commit is made.
func (ch journalChange) apply() {
	ch.file.mu.Lock()
	defer ch.file.mu.Unlock()
	j := &ch.file.journal
	j.layers = append(j.layers[ch.removed:len(j.layers):len(j.layers)], ch.added...)
}

// journalEntry is a record of the journal. A layer is one of the kind entryLayer, then its extents.
type journalEntry struct {
	kind entryKind
	// of the layer
	cut   uint64 // nothing from here on shows through from below; math.MaxUint64 when everything does
	size  uint64 // of the file
	mtime vfs.Time
	// of an extent
	off, n uint64
	data   []byte
}

type entryKind uint8

const (
	entryLayer entryKind = 1 + iota
	entryData
	entryZeros
)

// eachEntry yields the records of a layer.
func eachEntry(l frozenLayer, yield func(journalEntry)) {
	yield(journalEntry{kind: entryLayer, cut: l.layer.Floor(), size: l.size, mtime: l.mtime})
	l.layer.Extents(func(e writebuf.Extent) bool {
		if e.Data == nil {
			yield(journalEntry{kind: entryZeros, off: e.Off, n: e.Len})
		}
		for data, off := e.Data, e.Off; len(data) > 0; {
			n := min(len(data), journalPiece)
			yield(journalEntry{kind: entryData, off: off, data: data[:n]})
			data, off = data[n:], off+uint64(n)
		}
		return true
	})
}

func (e journalEntry) encode() []byte {
	b := []byte{byte(e.kind)}
	switch e.kind {
	case entryLayer:
		b = binary.AppendUvarint(b, e.cut+1) // 0 for none
		b = binary.AppendUvarint(b, e.size)
		return binary.AppendVarint(b, int64(e.mtime))
	case entryZeros:
		return binary.AppendUvarint(binary.AppendUvarint(b, e.off), e.n)
	}
	return append(binary.AppendUvarint(b, e.off), e.data...)
}

// decodeEntry is the inverse of encode. The data is a part of b.
func decodeEntry(b []byte) (e journalEntry, err error) {
	if len(b) == 0 {
		return e, fmt.Errorf("journal entry of no bytes: %w", vfs.ErrCorrupt)
	}
	e.kind = entryKind(b[0])
	var v []uint64
	switch e.kind {
	case entryLayer:
		if v, err = uvarints(b[1:], 3); err == nil {
			e.cut, e.size, e.mtime = v[0]-1, v[1], unzigzag(v[2])
		}
	case entryZeros:
		if v, err = uvarints(b[1:], 2); err == nil {
			e.off, e.n = v[0], v[1]
		}
	case entryData:
		e.off, e.data, err = cutUvarint(b[1:])
		e.n = uint64(len(e.data))
	default:
		err = vfs.ErrCorrupt
	}
	beyond := e.size > vfs.MaxFileSize || e.off > vfs.MaxFileSize || e.n > vfs.MaxFileSize-e.off
	if err == nil && (beyond || e.kind != entryLayer && e.n == 0) {
		err = vfs.ErrCorrupt
	}
	if err != nil {
		return e, fmt.Errorf("journal entry of %d bytes, kind %d: %w", len(b), e.kind, err)
	}
	return e, nil
}

// replay writes what the journal of an earlier process has to the live trees, where it is dirty as it was before.
func (s *Store) replay(ctx context.Context) error {
	r := s.reader()
	defer r.Close()
	var p player
	err := r.scan([]byte{keyJournal}, nil, true, func(key, value []byte) (bool, error) {
		ws, ino, number, err := journalKey(key)
		if err != nil {
			return false, err
		}
		e, err := decodeEntry(value)
		if err != nil {
			return false, fmt.Errorf("workspace %d, inode %d: %w", ws, ino, err)
		}
		if err := p.turn(ctx, s, ws, ino); err != nil {
			return false, err
		}
		p.play(number, e)
		return true, nil
	})
	p.leave()
	if err != nil {
		return fmt.Errorf("replay the journal: %w", err)
	}
	return nil
}

// player replays the journal of one file after the other.
type player struct {
	tree *Workspace
	node *inode // nil when the workspace or the file is not there
	ws   workspaceID
	ino  vfs.Ino
	old  bool // what the journal has of the file is older than its record
}

// turn goes to a file.
func (p *player) turn(ctx context.Context, s *Store, ws workspaceID, ino vfs.Ino) (err error) {
	if p.ws == ws && p.ino == ino {
		return nil
	}
	p.leave()
	p.ws, p.ino, p.old = ws, ino, false
	if p.tree, err = s.openNumber(ws); p.tree == nil || err != nil {
		return err // a workspace that is being removed
	}
	p.node, err = p.tree.acquire(ctx, ino)
	return err
}

func (p *player) leave() {
	if p.node != nil {
		p.node.file.endReplay()
		p.tree.release(p.node)
	}
	if p.tree != nil {
		p.tree.leave() // it stays open until what is dirty has been committed
	}
	p.node, p.tree = nil, nil
}

// endReplay makes what was replayed a layer of its own, the one that the journal has.
func (f *file) endReplay() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freeze()
	if len(f.frozen) == 0 {
		return // it changed nothing
	}
	last := f.frozen[len(f.frozen)-1]
	f.journal.layers[0].number, f.journal.layers[0].bytes = last.number, last.layer.Bytes()
}

// play does what an entry says. The layers of the journal become one. One that leaves less of a file than there is, without having
// cut it, is of before its record: until December 2026 a copy into the file left it behind. It is passed over.
func (p *player) play(number uint64, e journalEntry) {
	if p.node == nil {
		return
	}
	w, n, f := p.tree, p.node, p.node.file
	f.mu.Lock()
	defer f.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	f.advance(w.gen)
	w.touch(n)
	if e.kind == entryLayer && e.size < min(e.cut, f.size) && !p.old {
		p.old = true
		w.store.log.Warn("the journal has older bytes of a file than its record: they are passed over", "inode", p.ino)
	}
	switch {
	case p.old:
	case e.kind == entryLayer:
		if e.cut != math.MaxUint64 {
			f.buf.Truncate(e.cut)
		}
		f.size, f.mtime = e.size, e.mtime
	case e.kind == entryData:
		f.buf.Write(e.data, e.off)
	case e.kind == entryZeros:
		f.buf.Zero(e.off, e.n)
	}
	f.count()
	n.attr.Size, n.attr.Blocks, n.attr.Mtime = f.size, f.blocks(), f.mtime
	w.charge(n)
	j := &f.journal
	if len(j.layers) == 0 {
		j.layers = []journaled{{first: number}}
	}
	j.layers[0].end, j.next = number+1, number+1
}

// checkJournal verifies the journal of a workspace.
func (c *checker) checkJournal(of workspaceID) error {
	return c.scanPrefix(keyOfNode(keyJournal, of, 0)[:9], func(key, value []byte) {
		ws, ino, number, err := journalKey(key)
		where := fmt.Sprintf("workspace %d, inode %d, journal entry %d", ws, ino, number)
		if err == nil {
			_, err = decodeEntry(value)
		}
		if err != nil {
			c.problem(where, "%v", err)
			return
		}
		if rec, err := c.r.inode(ws, ino); err != nil || rec.Type != vfs.TypeRegular {
			c.problem(where, "is of no regular file")
		}
	})
}
