package casstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// LoadOptions say how a backup is loaded.
type LoadOptions struct {
	// As is the name that the stream's only workspace gets, or has here when only its changes come. Empty: its own.
	As string
}

// LoadReport says what was loaded.
type LoadReport struct {
	Rev        vfs.Rev // that shows it
	Workspaces uint64
	States     uint64
	Records    uint64
	Chunks     uint64 // in the stream, known or not
	Bytes      uint64 // of the stream
}

// Load reads a backup. Nothing of it can be seen until all of it has been read and verified: each chunk by its id, each state
// by its digest and as a tree, and the whole stream by its digest. Then it is there at once, as one revision. When
// something is wrong, the store is as it was.
//
//	read     chunks go into packs, and records under the number of a workspace that has no name yet
//	verify   each state when it ends, everything at the end of the stream
//	publish  one revision gives the workspaces their names, snapshots and origins; of those of which only changes have come,
//	         it makes the changes
//
// ErrCorrupt for a stream that is not what was written. ErrExist when there is a workspace of that name, and of those of
// which only the changes are in the stream: ErrNoWorkspace, ErrNoRevision when it is not as it was then,
// ErrWorkspaceBusy while somebody has it open, ErrTooBig for more than a million changes or 256 MiB of them, ErrNoSpace.
func (s *Store) Load(ctx context.Context, o LoadOptions, r io.Reader) (LoadReport, error) {
	l := &loader{store: s, ctx: ctx, as: o.As}
	err := s.call(func() error {
		s.guests.hold() // the records that refer to a chunk may come much later
		defer func() { s.guests.letGo(s.now()) }()
		err := l.run(r)
		if err := l.dropAll(context.WithoutCancel(ctx)); err != nil {
			s.log.Warn("what a load has left is removed when the store is opened", "err", err)
		}
		return err
	})
	if err != nil {
		return LoadReport{}, fmt.Errorf("load: %w", err)
	}
	return l.report, nil
}

// loader is a load under way.
type loader struct {
	store  *Store
	ctx    context.Context
	as     string
	in     *streamReader
	report LoadReport

	spaces    []*loadedSpace
	states    []loadedState
	published bool

	merges    []loadedMerge
	conflicts []Note // of the last workspace, not written yet

	conflictBytes int

	chunks     []vfs.Chunk // read, and not stored yet
	chunkBytes int
	lastIno    vfs.Ino // the highest number so far
	staging
}

// loadedSpace is a workspace that is being loaded.
type loadedSpace struct {
	workspaceRecord
	id        workspaceID // under which its records are
	origins   []origin    // its layers, the first of which it was made of
	snapshots []loadedSnapshot
	conflicts map[uint64]struct{} // their numbers
	there     *diffSide           // of which only changes come: what they are changes of
	locked    workspaceID         // that cannot be opened for this load, or zero
}

type loadedSnapshot struct {
	streamedSnapshot
	rev vfs.Rev
}

// loadedState is a state that has been loaded and verified.
type loadedState struct {
	space  *loadedSpace
	rev    vfs.Rev // which is pinned
	digest vfs.Digest
}

func (l *loader) run(r io.Reader) (err error) {
	if l.in, err = newStreamReader(r); err != nil {
		return err
	}
	if err := l.begin(); err != nil {
		return err
	}
	for {
		kind, body, err := l.in.next()
		if err == nil {
			err = l.store.alive(l.ctx)
		}
		if err != nil {
			return err
		}
		if kind == frameEnd {
			break
		}
		if err := l.frame(kind, body); err != nil {
			return err
		}
	}
	if l.open() || len(l.spaces) > 0 && !l.stated() {
		return l.in.corrupt("it ends in the middle of a workspace")
	}
	l.report.Bytes = l.in.n
	if err := l.writeConflicts(); err != nil {
		return err
	}
	return l.publish()
}

func (l *loader) begin() error {
	kind, body, err := l.in.next()
	if err != nil {
		return err
	}
	if _, err := uvarints(body, 2); err != nil || kind != frameBegin {
		return l.in.corrupt("frame %q of %d bytes at its beginning", kind, len(body))
	}
	return nil
}

// frame takes a frame in. Errors of what is in it are ErrCorrupt, and say where it was.
func (l *loader) frame(kind byte, body []byte) (err error) {
	switch {
	case kind == frameWorkspace && !l.open():
		err = l.beginSpace(body)
	case kind == frameState && !l.open() && len(l.spaces) > 0:
		err = l.beginState(body)
	case kind == frameChunk && l.open():
		err = l.takeChunk(body)
	case kind == frameRecords && l.open():
		err = l.takeRecords(body)
	case kind == frameDigest && l.open():
		err = l.endState(body)
	case kind == frameSnapshot && !l.open() && l.stated():
		err = l.takeSnapshot(body)
	case kind == frameConflict && !l.open() && l.stated() && l.in.version >= secondBackup:
		err = l.takeConflict(body)
	case kind == frameMerge && !l.open() && l.stated() && l.in.version >= secondBackup:
		err = l.takeMerge(body)
	default:
		return l.in.corrupt("frame %q where none can be", kind)
	}
	if errors.Is(err, vfs.ErrCorrupt) {
		err = fmt.Errorf("backup at byte %d: %w", l.in.n, err)
	}
	return err
}

// stated reports whether the last workspace has a state.
func (l *loader) stated() bool {
	return len(l.states) > 0 && l.states[len(l.states)-1].space == l.spaces[len(l.spaces)-1]
}

// beginSpace begins a workspace, under a number that is marked as being loaded: whoever opens the store after a crash removes
// what is there.
func (l *loader) beginSpace(body []byte) error {
	if len(l.spaces) > 0 && (!l.stated() || l.as != "") {
		if l.as != "" {
			return fmt.Errorf("load as %q: the backup is of several workspaces: %w", l.as, vfs.ErrInvalid)
		}
		return fmt.Errorf("a workspace without a state: %w", vfs.ErrCorrupt)
	}
	rec, err := decodeWorkspace(body)
	if err != nil {
		return err
	}
	if l.as != "" {
		if err := checkWorkspaceName(l.as); err != nil {
			return fmt.Errorf("load as %q: %w", l.as, err)
		}
		rec.name = l.as
	}
	for _, other := range l.spaces {
		if other.name == rec.name {
			return fmt.Errorf("workspace %q is there twice: %w", rec.name, vfs.ErrCorrupt)
		}
	}
	if err := l.writeConflicts(); err != nil {
		return err
	}
	sp := &loadedSpace{workspaceRecord: rec}
	l.report.Workspaces++
	return l.store.edit(l.ctx, func(v *revision) error {
		sp.id = workspaceID(l.store.nextWS.Add(1) - 1)
		v.kvs = append(v.kvs, kv{key: keyOfLoad(sp.id), value: []byte{}})
		l.spaces = append(l.spaces, sp)
		return nil
	})
}

// beginState begins a state of the last workspace.
func (l *loader) beginState(body []byte) error {
	from, err := decodeStateBase(body)
	if err != nil {
		return err
	}
	sp := l.spaces[len(l.spaces)-1]
	first := !l.stated()
	if sp.there != nil && !first {
		return fmt.Errorf("two states of changes: %w", vfs.ErrCorrupt)
	}
	switch from.kind {
	case baseNone:
		if !first {
			return fmt.Errorf("two whole states of a workspace: %w", vfs.ErrCorrupt)
		}
		l.staging.begin(sp, nil, vfs.Digest{})
		return l.free(sp.name)
	case baseThere:
		if !first {
			return fmt.Errorf("a state that is whole, and changes: %w", vfs.ErrCorrupt)
		}
		return l.beginChanges(sp, from.digest)
	}
	return l.beginOn(sp, from.state, first)
}

// beginOn begins a state as the difference to another: the workspace's state before, or one of the workspace it is a fork of.
func (l *loader) beginOn(sp *loadedSpace, number uint64, first bool) error {
	if number >= uint64(len(l.states)) {
		return fmt.Errorf("a state on number %d of %d: %w", number, len(l.states), vfs.ErrCorrupt)
	}
	base := l.states[number]
	switch own := base.space == sp; {
	case own && number+1 != uint64(len(l.states)), !own && !first, base.space.there != nil,
		!own && len(base.space.origins) >= maxOrigins:
		return fmt.Errorf("a state on number %d, which none can be on: %w", number, vfs.ErrCorrupt)
	case !own:
		sp.origins = append([]origin{{ws: base.space.id, rev: base.rev}}, base.space.origins...)
	}
	l.staging.begin(sp, l.store.readerAt(base.rev).as(base.space.id, base.space.origins), base.digest)
	return l.free(sp.name)
}

// free is for those whom it saves reading the rest; it is looked at again in the end.
func (l *loader) free(name string) error {
	if err := l.store.nameFree(name); err != nil {
		return fmt.Errorf("workspace %q: %w", name, err)
	}
	return nil
}

// beginChanges begins a state of changes of a workspace that is here.
func (l *loader) beginChanges(sp *loadedSpace, digest [32]byte) error {
	s := l.store
	there, err := s.diffSide(l.ctx, sp.name)
	if err != nil {
		return err
	}
	sp.there = there
	if s.isOpen(there.layers[0].ws) { // for those whom it saves reading the rest
		return fmt.Errorf("workspace %q: %w", sp.name, vfs.ErrWorkspaceBusy)
	}
	d, err := there.r.digest(there.layers[0].ws, vfs.AllInos, func() error { return s.alive(l.ctx) })
	if err != nil {
		return err
	}
	if d.Bytes() != digest {
		return fmt.Errorf("workspace %q is not as it was when the changes of this backup began; load the backups before it first, "+
			"or all of it under another name: %w", sp.name, vfs.ErrNoRevision)
	}
	sp.origins = there.layers
	h := there.view.held
	l.staging.begin(sp, s.readerAt(h.rev).as(h.ws, h.origins), d)
	return nil
}

func (l *loader) takeChunk(body []byte) error {
	c, err := decodeChunk(body)
	if err != nil {
		return err
	}
	l.report.Chunks++
	l.chunks = append(l.chunks, c)
	if l.chunkBytes += len(c.Stored); l.chunkBytes < loadChunkBytes && len(l.chunks) < vfs.MaxChunkIDs {
		return nil
	}
	return l.storeChunks()
}

// storeChunks stores the chunks that have been read, each of which hashes to its id.
func (l *loader) storeChunks() error {
	s := l.store
	alive := func() error { return s.alive(l.ctx) }
	for len(l.chunks) > 0 {
		part := l.chunks[:min(len(l.chunks), vfs.MaxChunkIDs)]
		l.chunks = l.chunks[len(part):]
		size, err := verifyChunks(part, alive)
		if err == nil {
			err = s.space.admit(l.ctx, size)
		}
		if err == nil {
			err = s.accept(part)
		}
		if err == nil {
			err = s.indexMany(l.ctx)
		}
		if err != nil {
			return err
		}
		l.unreferred += len(part)
		for _, c := range part {
			l.loose = append(l.loose, chunk.Entry{ID: c.ID, Len: uint64(c.PlainLen)})
		}
		if err := l.standIn(); err != nil {
			return err
		}
	}
	l.chunks, l.chunkBytes = nil, 0
	return nil
}

func (l *loader) takeRecords(body []byte) error {
	if err := l.storeChunks(); err != nil {
		return err
	}
	for len(body) > 0 {
		rec, rest, err := cutRecord(body)
		if err == nil {
			err = l.add(rec)
		}
		if err != nil {
			return err
		}
		body = rest
		l.report.Records++
		l.lastIno = max(l.lastIno, rec.Ino)
	}
	if l.staging.size < loadBatch && l.unreferred < loadUnreferred {
		return nil
	}
	_, err := l.flush(l.ctx, l.store, false)
	return err
}

// endState ends a state, which has the digest that the stream says and is a valid tree.
func (l *loader) endState(body []byte) error {
	if err := l.storeChunks(); err != nil {
		return err
	}
	if l.standIns > 0 {
		if _, err := l.flush(l.ctx, l.store, false); err != nil {
			return err
		}
		if err := l.dropStandIns(); err != nil {
			return err
		}
	}
	rev, err := l.flush(l.ctx, l.store, true)
	if err != nil {
		return err
	}
	sp := l.staging.space
	l.states = append(l.states, loadedState{space: sp, rev: rev, digest: l.staging.digest})
	if d := l.staging.digest.Bytes(); string(d[:]) != string(body) {
		return fmt.Errorf("the records of workspace %q are not those that were written: %w", sp.name, vfs.ErrCorrupt)
	}
	l.report.States++
	l.staging.end()
	return l.verify(sp, rev)
}

// verify checks the tree of a state.
func (l *loader) verify(sp *loadedSpace, rev vfs.Rev) error {
	c := &checker{store: l.store, ctx: l.ctx, r: l.store.readerAt(rev).as(sp.id, sp.origins)}
	defer c.r.Close()
	if err := c.checkTree(checkedTree{ws: sp.id, name: sp.name, bodies: true, loading: true}); err != nil {
		return err
	}
	if n := len(c.report.Problems); n > 0 {
		return fmt.Errorf("%s %s, and %d more: %w", c.report.Problems[0].Where, c.report.Problems[0].What, n-1, vfs.ErrCorrupt)
	}
	return l.store.alive(l.ctx)
}

func (l *loader) takeSnapshot(body []byte) error {
	p, err := decodeStreamedSnapshot(body)
	sp := l.spaces[len(l.spaces)-1]
	if err == nil && (checkSnapshotName(p.name) != nil || sp.there != nil) {
		err = vfs.ErrCorrupt
	}
	for _, other := range sp.snapshots {
		if err == nil && other.name == p.name {
			err = vfs.ErrCorrupt
		}
	}
	if err != nil {
		return fmt.Errorf("snapshot %q: %w", p.name, err)
	}
	sp.snapshots = append(sp.snapshots, loadedSnapshot{p, l.states[len(l.states)-1].rev})
	return nil
}
