package casstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// BackupOptions say what a backup is of.
type BackupOptions struct {
	// Workspaces are the names of what is wanted. None: all but replicas, whose home is elsewhere.
	Workspaces []string
	// Since is a moment of each workspace: only what has changed since is in the stream, which can be loaded where the
	// workspace is as it was then. Workspaces that are younger come whole. Empty: all come whole, with their snapshots.
	Since string
}

// BackupReport says what is in a backup.
type BackupReport struct {
	Rev        vfs.Rev // of the store: the next backup can be since this one
	Workspaces uint64
	States     uint64
	Records    uint64
	Chunks     uint64
	Bytes      uint64 // of the stream
}

// Backup writes workspaces, all as they are at one revision, as a stream that Load reads. What was written before the call
// is in it, also by whoever has files open; nobody is stopped. Atimes and quotas are not in it, nor is history but for
// snapshots. Of workspaces that come whole their conflicts are, and what was merged between them.
//
// A fork is written as what is different from its origin, if that is in the stream. Memory is bounded, but for the names of
// what a state differs in. ErrNoWorkspace, ErrNoRevision when a workspace can no longer be read as it was at Since,
// ErrNotSupported for a replica.
func (s *Store) Backup(ctx context.Context, o BackupOptions, w io.Writer) (BackupReport, error) {
	b := &backup{store: s, ctx: ctx, since: o.Since, sent: make(map[chunk.ID]struct{}), at: make(map[origin]int)}
	err := s.call(func() error { return b.run(o.Workspaces, w) })
	if err != nil {
		return BackupReport{}, fmt.Errorf("backup: %w", err)
	}
	return b.report, nil
}

// call runs what Close is to wait for.
func (s *Store) call(op func() error) error {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.calls.Add(1)
	}
	s.mu.Unlock()
	if closed {
		return vfs.ErrClosed
	}
	defer s.calls.Done()
	return op()
}

// alive returns an error when a call need not go on.
func (s *Store) alive(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return vfs.ErrClosed
	case ctx.Err() != nil:
		return vfs.ErrInterrupted
	}
	return nil
}

// backup is a backup under way.
type backup struct {
	store  *Store
	ctx    context.Context
	since  string
	out    *streamWriter
	report BackupReport

	spaces []backedUp
	merges []storedMerge // between workspaces that come whole
	states []writtenState
	at     map[origin]int // the numbers of the states of workspaces that are whole

	sent   map[chunk.ID]struct{} // some of the chunks that the stream has
	buf    []byte
	batch  []byte // records
	needed []chunk.ID
}

// backedUp is a workspace of a backup.
type backedUp struct {
	info   Info
	held   held
	parent origin // what it was made of, or zero; held, too
	since  *View  // or nil
}

// writtenState is a state that the stream has.
type writtenState struct {
	digest vfs.Digest
	depth  int // how many origins whoever loads it will have for it
}

func (b *backup) run(names []string, w io.Writer) error {
	err := b.hold(names)
	defer b.letGo()
	if err != nil {
		return err
	}
	version, err := b.version()
	if err != nil {
		return err
	}
	if b.out, err = newStreamWriter(w, version); err != nil {
		return err
	}
	begin := binary.AppendVarint(uvarint(uint64(b.report.Rev)), int64(b.store.now()))
	if err := b.out.frame(frameBegin, begin); err != nil {
		return err
	}
	for i := range b.spaces {
		if err := b.workspace(&b.spaces[i]); err != nil {
			return fmt.Errorf("workspace %q: %w", b.spaces[i].info.Name, err)
		}
	}
	if err := b.writeMerges(); err != nil {
		return err
	}
	err = b.out.close()
	b.report.Bytes = b.out.n
	return err
}

// hold commits what the workspaces have in memory, and keeps all at one revision.
func (b *backup) hold(names []string) error {
	err := b.commit(names)
	if err == nil {
		err = b.pin(names)
	}
	if err == nil && b.since != "" {
		err = b.holdSince()
	}
	return err
}

// commit commits what the workspaces have in memory. One that is removed meanwhile is missed only if it was named.
func (b *backup) commit(names []string) error {
	list, err := b.choose(names)
	if err != nil {
		return err
	}
	for _, in := range list {
		if err := b.store.whole(b.ctx, in.Name, nil); err != nil && !(len(names) == 0 && isNoWorkspace(err)) {
			return fmt.Errorf("workspace %q: %w", in.Name, err)
		}
	}
	return nil
}

// pin holds the workspaces as one revision leaves them that has everything of all. The head would not do: what was fsynced
// since commit may be in the journal only, which is not in the stream, and what workspaces there are may have changed.
func (b *backup) pin(names []string) error {
	var spaces []backedUp
	rev, err := b.store.committer.commit(b.ctx, request{whole: true, edit: func(v *revision) error {
		list, err := b.choose(names)
		for _, in := range list {
			spaces = append(spaces, backedUp{
				info: in, held: v.hold(workspaceID(in.ID)), parent: b.store.holdParent(workspaceID(in.ID)),
			})
		}
		return err
	}})
	if err != nil {
		for _, sp := range spaces {
			b.store.letGoOfParent(sp.parent)
		}
		return err
	}
	b.report.Rev, b.spaces = rev, spaces
	return nil
}

// holdSince opens the workspaces as they were.
func (b *backup) holdSince() error {
	for i := range b.spaces {
		in := b.spaces[i].info
		v, err := b.store.openView(in.Name, b.since)
		if err != nil && !errors.Is(err, errYounger) {
			return fmt.Errorf("workspace %q since %q: %w", in.Name, b.since, err)
		}
		b.spaces[i].since = v
	}
	return nil
}

func (b *backup) letGo() {
	for i := range b.spaces {
		b.store.letGoOf(b.spaces[i].held)
		b.store.letGoOfParent(b.spaces[i].parent)
		if v := b.spaces[i].since; v != nil {
			_ = v.Close() // which has nothing to say
		}
	}
}

// choose returns the workspaces that are wanted in the order of their numbers: origins before their forks.
func (b *backup) choose(names []string) ([]Info, error) {
	all, err := b.store.Workspaces(b.ctx)
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, in := range all {
		replica := b.store.noReplica(workspaceID(in.ID))
		named := slices.Contains(names, in.Name)
		switch {
		case replica != nil && named:
			return nil, fmt.Errorf("workspace %q: %w", in.Name, replica)
		case named, len(names) == 0 && replica == nil:
			list = append(list, in)
		case replica != nil && !errors.Is(replica, vfs.ErrNotSupported):
			return nil, replica
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(in Info) bool { return in.Name == name }) {
			return nil, fmt.Errorf("workspace %q: %w", name, vfs.ErrNoWorkspace)
		}
	}
	slices.SortFunc(list, func(x, y Info) int { return cmp.Compare(x.ID, y.ID) })
	return list, nil
}

// workspace writes a workspace: its states, the oldest first, and last what it is now.
func (b *backup) workspace(w *backedUp) error {
	rec := workspaceRecord{created: w.info.Created, name: w.info.Name}
	if err := b.out.frame(frameWorkspace, rec.encode()); err != nil {
		return err
	}
	b.report.Workspaces++
	now := b.store.sideOf(&View{store: b.store, held: w.held})
	defer now.r.Close()
	if w.since != nil {
		return b.changes(w, now)
	}
	snapshots, err := b.store.snapshotsOf(w.held.ws)
	if err != nil {
		return err
	}
	var before *diffSide
	defer func() {
		if before != nil {
			before.close()
		}
	}()
	for _, rev := range b.wanted(w, snapshots) {
		side, err := b.store.sideAt(w.held.ws, rev, w.held.origins)
		if errors.Is(err, vfs.ErrNoRevision) {
			continue // a snapshot that has just been removed
		}
		if err == nil {
			err = b.state(w, side, before)
		}
		if before != nil {
			before.close()
		}
		before = side
		if err == nil {
			err = b.snapshots(rev, snapshots)
		}
		if err != nil {
			return err
		}
	}
	return b.conflicts(w)
}

// wanted are the revisions at which a whole workspace is written: of its snapshots, of what forks in the stream began with, of
// what was merged last into others there, and the present one.
func (b *backup) wanted(w *backedUp, snapshots []Snapshot) []vfs.Rev {
	revs := []vfs.Rev{w.held.rev}
	for _, sn := range snapshots {
		revs = append(revs, sn.Rev)
	}
	for i := range b.spaces {
		if o := b.spaces[i].parent; o.ws == w.held.ws {
			revs = append(revs, o.rev)
		}
	}
	for _, m := range b.merges {
		if m.from == w.held.ws {
			revs = append(revs, m.rev)
		}
	}
	revs = slices.DeleteFunc(revs, func(r vfs.Rev) bool { return r > w.held.rev })
	slices.Sort(revs)
	return slices.Compact(revs)
}

// snapshots writes the snapshots of the state before.
func (b *backup) snapshots(rev vfs.Rev, list []Snapshot) error {
	for _, sn := range list {
		if sn.Rev != rev {
			continue
		}
		p := streamedSnapshot{created: sn.Created, name: sn.Name, message: sn.Message}
		if err := b.out.frame(frameSnapshot, p.encode()); err != nil {
			return err
		}
	}
	return nil
}

// state writes a state of a whole workspace: as what has changed since the one before, or since what it was forked from,
// or else all of it.
func (b *backup) state(w *backedUp, side, before *diffSide) error {
	here := side.layers[0]
	base, number := before, -1
	if before != nil {
		number = b.at[before.layers[0]]
	} else if n, ok := b.at[w.parent]; ok && b.states[n].depth < maxOrigins {
		i := slices.IndexFunc(b.spaces, func(s backedUp) bool { return s.held.ws == w.parent.ws })
		origin, err := b.store.sideAt(w.parent.ws, w.parent.rev, b.spaces[i].held.origins)
		if err != nil {
			return err
		}
		defer origin.close()
		base, number = origin, n
	}
	st := writtenState{}
	from := stateBase{kind: baseNone}
	if base != nil {
		st = b.states[number]
		from = stateBase{kind: baseState, state: uint64(number)}
		if before == nil {
			st.depth++
		}
	}
	b.at[here] = len(b.states)
	return b.write(side, base, from, st)
}

// changes writes what has changed in a workspace.
func (b *backup) changes(w *backedUp, now *diffSide) error {
	then := b.store.sideOf(w.since)
	defer then.r.Close()
	d, err := then.r.digest(w.held.ws, vfs.AllInos, func() error { return b.store.alive(b.ctx) })
	if err != nil {
		return err
	}
	return b.write(now, then, stateBase{kind: baseThere, digest: d.Bytes()}, writtenState{digest: d})
}

// write writes a state, of which st is what its base is.
func (b *backup) write(side, base *diffSide, from stateBase, st writtenState) error {
	if err := b.out.frame(frameState, from.encode()); err != nil {
		return err
	}
	emit := func(r vfs.Record, was []byte) error {
		st.digest.Remove(&vfs.Record{Key: r.Key, Value: was})
		st.digest.Add(&r)
		return b.record(r, was)
	}
	var err error
	if base == nil {
		err = side.r.records(side.layers[0].ws, vfs.AllInos, 0, func(r vfs.Record) error { return emit(r, nil) })
	} else {
		err = b.differences(base, side, emit)
	}
	if err == nil {
		err = b.flush()
	}
	if err != nil {
		return err
	}
	b.states = append(b.states, st)
	b.report.States++
	digest := st.digest.Bytes()
	return b.out.frame(frameDigest, digest[:])
}

// differences calls emit for the records that are different in two states.
func (b *backup) differences(base, side *diffSide, emit func(r vfs.Record, was []byte) error) error {
	d := newDiffer(b.ctx, base, side)
	d.kin = true
	return d.candidates(func(k vfs.Key) error {
		if _, again := d.seen[k]; again {
			return nil
		}
		d.seen[k] = struct{}{}
		was, err := base.value(k)
		if err != nil {
			return err
		}
		is, err := side.value(k)
		if err != nil || bytes.Equal(was, is) && (was == nil) == (is == nil) {
			return err
		}
		return emit(vfs.Record{Key: k, Value: is}, was)
	})
}

// record adds a record to the batch, and what it refers to and its base did not to what is needed.
func (b *backup) record(r vfs.Record, was []byte) error {
	if r.Kind == vfs.KeyInode && r.Value != nil {
		if err := b.need(r.Value, was); err != nil {
			return fmt.Errorf("inode %d: %w", r.Ino, err)
		}
	}
	b.batch = appendRecord(b.batch, &r)
	b.report.Records++
	if len(b.batch) < streamBatch && len(b.needed) < streamChunks {
		return nil
	}
	return b.flush()
}

func (b *backup) need(value, was []byte) error {
	old := make(map[chunk.ID]struct{})
	if was != nil {
		err := b.store.refs(b.ctx, was, func(e chunk.Entry) bool { old[e.ID] = struct{}{}; return true })
		if err != nil {
			return err
		}
	}
	return b.store.refs(b.ctx, value, func(e chunk.Entry) bool {
		if _, known := old[e.ID]; known {
			return false
		}
		b.needed = append(b.needed, e.ID)
		return true
	})
}

// refs calls visit for the chunks that a file's record refers to, in the order of the file, and for each node, without a length,
// before what is below it; nothing is when visit returns false.
func (s *Store) refs(ctx context.Context, record []byte, visit func(chunk.Entry) bool) error {
	rec, err := vfs.DecodeInode(record)
	if err != nil {
		return err
	}
	refs, err := rec.ChunkRefs()
	if err != nil {
		return err
	}
	for _, e := range refs.Entries {
		if !e.Hole {
			visit(e)
		}
	}
	if refs.Tree == nil {
		return nil
	}
	get := func(id chunk.ID) ([]byte, error) { return s.chunks.getHere(ctx, id) }
	return mapError(chunk.WalkTree(*refs.Tree, get, func(e chunk.Entry, node bool) error {
		if !visit(e) && node {
			return chunk.SkipNode
		}
		return nil
	}))
}

// flush writes what has been gathered, chunks first.
func (b *backup) flush() error {
	for _, id := range b.needed {
		if err := b.chunk(id); err != nil {
			return err
		}
	}
	b.needed = b.needed[:0]
	if len(b.batch) == 0 {
		return nil
	}
	err := b.out.frame(frameRecords, b.batch)
	b.batch = b.batch[:0]
	return err
}

func (b *backup) chunk(id chunk.ID) error {
	if _, sent := b.sent[id]; sent {
		return nil
	}
	if err := b.store.alive(b.ctx); err != nil {
		return err
	}
	c, err := b.store.storedChunk(id, &b.buf)
	if err == nil && c.Stored == nil {
		err = fmt.Errorf("chunk %v is damaged or not there: %w", id, vfs.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	if len(b.sent) >= streamRemembered {
		clear(b.sent) // some may come again then
	}
	b.sent[id] = struct{}{}
	b.report.Chunks++
	return b.out.frame(frameChunk, chunkHead(&c), c.Stored)
}
