package mirror

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// loader knows which records have arrived, while the first snapshot does.
//
//	1 ......... through ....................... the last inode
//	   here          only what was looked up (fetched), what is the mirror's own, and what is being fetched (coming)
//
// What was fetched by itself may be newer than the snapshot and than the changes that come after it: they are left out as
// long as their revision is not above the one at which it was fetched.
//
// A snapshot that was cut off is void when the changes since it began cannot be told any more, or when the authority's store is
// in another life. Then there is nothing that would say what has been removed since, and the next snapshot is not loaded
// over what is here, but compared with it: inode by inode, what is here gives changes, and what is not is written as
// it comes. All that has come until such a snapshot is cut off in turn is compared with the one after it.
type loader struct {
	m     *Mirror
	begun chan struct{} // closed when it is known where the snapshot begins

	turn turn // held while records are written that are loaded

	mu      sync.Mutex
	whole   bool
	void    bool    // the snapshot is to be compared with what is here
	through vfs.Ino // all below have arrived
	start   vfs.Cursor
	epoch   vfs.Epoch           // of the revisions of fetched and bare
	fetched map[vfs.Ino]vfs.Rev // with all their records
	bare    map[vfs.Ino]vfs.Rev // their own records alone
	newest  vfs.Rev             // of fetched and bare
	coming  map[vfs.Ino]chan struct{}
	leased  []vfs.InoRange
	adding  vfs.InoRange // the last of leased, until its numbers can be given
}

func newLoader(m *Mirror) *loader {
	return &loader{
		m: m, turn: newTurn(), begun: make(chan struct{}), through: 1, fetched: make(map[vfs.Ino]vfs.Rev), bare: make(map[vfs.Ino]vfs.Rev),
		coming: make(map[vfs.Ino]chan struct{}),
	}
}

// recall takes in what the process before has noted.
func (l *loader) recall(n casstore.Note) error {
	kind, number, _ := strings.Cut(n.Name, "/")
	first, err := strconv.ParseUint(number, 10, 64)
	value, size := binary.Uvarint(n.Value)
	if err != nil || size <= 0 {
		return fmt.Errorf("note %s: %w", n.Name, vfs.ErrCorrupt)
	}
	switch kind + "/" {
	case noteLease:
		l.leased = append(l.leased, vfs.InoRange{First: vfs.Ino(first), Last: vfs.Ino(value)})
	case noteBare:
		l.cameLocked(l.bare, vfs.Ino(first), vfs.Rev(value))
	default:
		l.cameLocked(l.fetched, vfs.Ino(first), vfs.Rev(value))
	}
	return nil
}

// cameLocked notes that an inode was fetched by itself.
func (l *loader) cameLocked(how map[vfs.Ino]vfs.Rev, ino vfs.Ino, rev vfs.Rev) {
	how[ino] = rev
	l.newest = max(l.newest, rev)
}

// isPast reports whether something here was fetched after a revision, so that what is here is not as it was then.
func (l *loader) isPast(rev vfs.Rev) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest > rev
}

// resume goes on from a state.
func (l *loader) resume(s state) {
	l.whole, l.void = s.Whole, s.Void
	if s.From > 0 || s.Whole {
		l.goOn(vfs.Cursor{Epoch: s.Epoch, Rev: s.Rev}, s.From)
	}
}

// goOn says at which cursor the snapshot began, and up to where it has come.
func (l *loader) goOn(start vfs.Cursor, through vfs.Ino) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.epoch, l.through = start, start.Epoch, max(through, 1)
	select {
	case <-l.begun:
	default:
		close(l.begun)
	}
}

// begin says at which cursor the snapshot begins. It is noted before anything is fetched by itself: a process after this one
// that began at a later cursor would miss what has changed in that between the two.
func (l *loader) begin(ctx context.Context, start vfs.Cursor) error {
	if err := l.m.replica.Note(ctx, state{Epoch: start.Epoch, Rev: start.Rev, From: 1}.note()); err != nil {
		return err
	}
	l.goOn(start, 1)
	return nil
}

// startOver has the next snapshot, of a session that began at a cursor, compared with what is here. Of another life of the
// store the revisions at which something was fetched say nothing.
func (l *loader) startOver(ctx context.Context, at vfs.Cursor) error {
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.giveBack()
	l.mu.Lock()
	l.void = true
	if l.epoch != at.Epoch {
		for _, set := range []map[vfs.Ino]vfs.Rev{l.fetched, l.bare} {
			for ino := range set {
				set[ino] = 0
			}
		}
		l.epoch, l.newest = at.Epoch, 0
	}
	s := l.noteLocked(l.through)
	l.mu.Unlock()
	return l.m.replica.Note(ctx, s)
}

// noteLocked is the note that all below an inode have arrived. Its cursor is that of what came first: it says in which life.
func (l *loader) noteLocked(through vfs.Ino) casstore.Note {
	return state{Epoch: l.start.Epoch, Rev: l.start.Rev, From: through, Void: l.void}.note()
}

// known is what the oldest of what is here is of: zero for nothing.
func (l *loader) known() vfs.Cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start
}

// arrive writes what is not here of the records that a snapshot has up to an inode, when it is to be compared. Whoever calls it
// has the loader's turn.
func (l *loader) arrive(ctx context.Context, theirs []vfs.Record, last vfs.Ino) error {
	var in casstore.Incoming
	l.mu.Lock()
	through := max(l.through, last)
	if last < math.MaxUint64 {
		through = max(l.through, last+1)
	}
	for _, r := range theirs {
		if !l.hereLocked(r.Ino, r.Kind != vfs.KeyInode) {
			in.Raw = append(in.Raw, r)
		}
	}
	in.Notes = []casstore.Note{l.noteLocked(through)}
	l.mu.Unlock()
	if len(in.Raw) > 0 {
		if err := l.write(ctx, in); err != nil {
			return err
		}
		l.m.stats.records.Add(uint64(len(in.Raw)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.through = through
	return nil
}

// isNewer reports whether what is here under a key was fetched by itself after a revision.
func (l *loader) isNewer(k vfs.Key, rev vfs.Rev) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fetched[k.Ino] > rev || k.Kind == vfs.KeyInode && l.bare[k.Ino] > rev
}

// given returns what reports whether a number was leased by this mirror and has been given to an inode. Others may be leased in another
// life of the store, and have been somebody else's before.
func (l *loader) given() func(vfs.Ino) bool {
	l.mu.Lock()
	leased, unused := slices.Clone(l.leased), []vfs.InoRange{l.adding}
	l.mu.Unlock()
	unused = append(unused, l.m.replica.Left()...) // after: what was being added is there by now, or was seen to be added
	among := func(list []vfs.InoRange, ino vfs.Ino) bool {
		return slices.ContainsFunc(list, func(in vfs.InoRange) bool { return in.Contains(ino) })
	}
	return func(ino vfs.Ino) bool { return ino != 0 && among(leased, ino) && !among(unused, ino) }
}

// own notes numbers that only this mirror gives to inodes: these never arrive.
func (l *loader) own(ctx context.Context, in vfs.InoRange) error {
	name := inoNote(noteLease, uint64(in.First))
	if err := l.m.replica.Note(ctx, casstore.Note{Name: name, Value: binary.AppendUvarint(nil, uint64(in.Last))}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leased, l.adding = append(l.leased, in), in
	return nil
}

// added says that numbers which were noted as own can be given to inodes.
func (l *loader) added() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adding = vfs.InoRange{}
}

func (l *loader) ownsLocked(ino vfs.Ino) bool {
	return slices.ContainsFunc(l.leased, func(in vfs.InoRange) bool { return in.Contains(ino) })
}

// hereLocked reports whether an inode's record has arrived; with all, its names and attributes too.
func (l *loader) hereLocked(ino vfs.Ino, all bool) bool {
	_, fetched := l.fetched[ino]
	if _, bare := l.bare[ino]; bare && !all {
		return true
	}
	return l.whole || ino < l.through || fetched || l.ownsLocked(ino)
}

// want returns when an inode's record has arrived; with all, its names and attributes too.
func (l *loader) want(ctx context.Context, ino vfs.Ino, all bool) error {
	for {
		l.mu.Lock()
		if l.hereLocked(ino, all) {
			l.mu.Unlock()
			return nil
		}
		coming := l.coming[ino]
		if coming == nil {
			coming = make(chan struct{})
			l.coming[ino] = coming
			l.mu.Unlock()
			vfs.WillBlock(ctx)
			err := l.fetch(ctx, ino)
			l.came(ino)
			if err != nil {
				return err
			}
			continue
		}
		l.mu.Unlock()
		vfs.WillBlock(ctx)
		select {
		case <-coming:
		case <-ctx.Done():
			return interrupted(ctx)
		}
	}
}

// came ends the wait for inodes, whether they came or not.
func (l *loader) came(inos ...vfs.Ino) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ino := range inos {
		close(l.coming[ino])
		delete(l.coming, ino)
	}
}

// fetch fetches all records of one inode, and has those of what is in it follow.
func (l *loader) fetch(ctx context.Context, ino vfs.Ino) error {
	select {
	case <-l.begun:
	case <-ctx.Done():
		return interrupted(ctx)
	case <-l.m.ctx.Done():
		return vfs.ErrClosed
	}
	life := l.life()
	var got []vfs.Record
	p, err := l.m.config.Peer.Read(ctx, vfs.Query{Range: vfs.InoRange{First: ino, Last: ino}}, func(r vfs.Record) error {
		r.Value = bytes.Clone(r.Value)
		got = append(got, r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("load inode %d: %w", ino, err)
	}
	if err := l.keep(ctx, life, ino, got, p.Rev); err != nil {
		return err
	}
	l.prefetch(got)
	return nil
}

// life is the life of the store that revisions are of.
func (l *loader) life() vfs.Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// keep writes all records of an inode that was fetched, unless they have arrived by the snapshot meanwhile, or the life of the
// store has ended that they were asked of.
func (l *loader) keep(ctx context.Context, life vfs.Epoch, ino vfs.Ino, got []vfs.Record, rev vfs.Rev) error {
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.giveBack()
	l.mu.Lock()
	here := l.hereLocked(ino, true) || l.epoch != life
	got = l.unknownLocked(got)
	l.mu.Unlock()
	if here {
		return nil
	}
	name := inoNote(noteLoaded, uint64(ino))
	note := casstore.Note{Name: name, Value: binary.AppendUvarint(nil, uint64(rev))}
	if err := l.write(ctx, casstore.Incoming{Raw: got, Notes: []casstore.Note{note}}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cameLocked(l.fetched, ino, rev)
	return nil
}

// unknownLocked leaves out records of inodes that are here by themselves: they are newer, or changed here.
func (l *loader) unknownLocked(got []vfs.Record) []vfs.Record {
	return slices.DeleteFunc(got, func(r vfs.Record) bool {
		_, bare := l.bare[r.Ino]
		return bare && r.Kind == vfs.KeyInode
	})
}

// write writes records that are loaded, and notes.
func (l *loader) write(ctx context.Context, in casstore.Incoming) error {
	if len(in.Raw) == 0 {
		return l.m.replica.Note(ctx, in.Notes...)
	}
	_, err := l.m.replica.Apply(ctx, in)
	return err
}

// prefetch fetches the inodes that the names of a directory lead to: whoever lists it looks at them next.
func (l *loader) prefetch(dir []vfs.Record) {
	var inos []vfs.Ino
	l.mu.Lock()
	for _, r := range dir {
		ino := reconcile.Target(r.Value)
		if r.Kind != vfs.KeyDirent || l.hereLocked(ino, false) || l.coming[ino] != nil || len(inos) == siblings {
			continue
		}
		l.coming[ino] = make(chan struct{})
		inos = append(inos, ino)
	}
	l.mu.Unlock()
	for batch := range slices.Chunk(inos, vfs.MaxGetKeys) {
		l.m.group.Go(func() {
			defer l.came(batch...)
			if err := l.fetchBare(l.m.ctx, batch); err != nil {
				l.m.log.Debug("prefetch", "err", err)
			}
		})
	}
}

// fetchBare fetches the records of inodes alone.
func (l *loader) fetchBare(ctx context.Context, inos []vfs.Ino) error {
	keys := make([]vfs.Key, len(inos))
	for i, ino := range inos {
		keys[i] = reconcile.InodeKey(ino)
	}
	life := l.life()
	got, rev, err := l.m.config.Peer.Get(ctx, keys)
	if err != nil {
		return err
	}
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.giveBack()
	var in casstore.Incoming
	l.mu.Lock()
	for _, r := range got {
		if r.Value == nil || l.hereLocked(r.Ino, false) || l.epoch != life {
			continue
		}
		in.Raw = append(in.Raw, r)
		in.Notes = append(in.Notes, casstore.Note{
			Name: inoNote(noteBare, uint64(r.Ino)), Value: binary.AppendUvarint(nil, uint64(rev)),
		})
	}
	l.mu.Unlock()
	if len(in.Raw) == 0 {
		return nil
	}
	if err := l.write(ctx, in); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range in.Raw {
		l.cameLocked(l.bare, r.Ino, rev)
	}
	return nil
}

// snapshot writes records of the snapshot, which come in the order of inode numbers, but for those of inodes that are here.
func (l *loader) snapshot(ctx context.Context, got []vfs.Record) error {
	if len(got) == 0 {
		return nil
	}
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.giveBack()
	last := got[len(got)-1].Ino
	var in casstore.Incoming
	l.mu.Lock()
	for _, r := range got {
		if _, fetched := l.fetched[r.Ino]; fetched || r.Ino < l.through || l.ownsLocked(r.Ino) {
			continue
		}
		r.Value = bytes.Clone(r.Value)
		in.Raw = append(in.Raw, r)
	}
	in.Raw = l.unknownLocked(in.Raw)
	in.Notes = []casstore.Note{l.noteLocked(last)}
	l.mu.Unlock()
	if err := l.write(ctx, in); err != nil {
		return err
	}
	l.m.stats.records.Add(uint64(len(in.Raw)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.through = max(l.through, last)
	return nil
}

// finish says that the whole snapshot has arrived.
func (l *loader) finish(ctx context.Context) error {
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.giveBack()
	if l.isWhole() {
		return nil
	}
	start := l.known()
	s := state{Epoch: start.Epoch, Rev: start.Rev, Whole: true}
	if err := l.m.replica.Note(ctx, s.note()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole, l.void = true, false
	return nil
}

// isWhole reports whether all metadata is here.
func (l *loader) isWhole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// since returns from where the snapshot is to go on: the cursor at which it was begun, and which inode came last of it. Zero
// when it is to begin anew.
func (l *loader) since() (start vfs.Cursor, from vfs.Ino) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.void {
		return vfs.Cursor{}, 0
	}
	return l.start, l.through
}

// knows reports whether a record was there already, or is newer, when its inode was fetched.
func (l *loader) knows(r *vfs.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	rev, fetched := l.fetched[r.Ino]
	if at, bare := l.bare[r.Ino]; bare && r.Kind == vfs.KeyInode {
		rev, fetched = at, true // the record that came with the rest was left out
	}
	return fetched && r.Rev <= rev
}

// forget forgets what was fetched by itself, up to a revision that the mirror has reached, and returns the notes that do so.
// With all, after a comparison of all that was here, it forgets everything: revisions of another life of the store say nothing.
func (l *loader) forget(rev vfs.Rev, all bool) (notes []casstore.Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.whole {
		return nil
	}
	for prefix, set := range map[string]map[vfs.Ino]vfs.Rev{noteLoaded: l.fetched, noteBare: l.bare} {
		for ino, at := range set {
			if all || at <= rev && len(notes) < forgetBatch {
				delete(set, ino)
				notes = append(notes, casstore.Note{Name: inoNote(prefix, uint64(ino))})
			}
		}
	}
	if len(l.fetched)+len(l.bare) == 0 {
		l.newest = 0
	}
	return notes
}

// forgetBatch is how many notes one revision removes.
const forgetBatch = 4096
