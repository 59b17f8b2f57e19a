package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// merge makes changes of the authority part of the local tree. It comes to an end also when a program writes all the time to
// what both have changed: nobody can push meanwhile, nor see what else is new.
func (m *Mirror) merge(ctx context.Context, t taking) error {
	for try := 0; ; try++ {
		if try == mergeTries {
			m.change(func() { m.quiet = true })
			defer m.change(func() { m.quiet = false })
		}
		err := m.mergeOnce(ctx, t)
		if errors.Is(err, errStale) || errors.Is(err, vfs.ErrBusy) {
			continue
		}
		return err
	}
}

// mergeOnce is merge as of a moment. What of the changes is known already is left out. In another life of the store what is
// not pushed yet is to get other numbers, also when there is no news.
func (m *Mirror) mergeOnce(ctx context.Context, t taking) error {
	news, pending, err := m.news(t)
	if err != nil || len(news) == 0 && !t.stranger && t.nowhere == nil {
		return err
	}
	if !pending && t.nowhere == nil {
		err := m.applyAll(ctx, news, applying{mending: t.mending})
		if !errors.Is(err, vfs.ErrInvalid) {
			return err
		}
	}
	return m.reconcile(ctx, t, news)
}

// news returns those of the changes that are none to the mirror's knowledge of the authority, as edits of the local tree:
// Theirs is what the tree has. pending says that some were changed here too.
func (m *Mirror) news(t taking) (news []casstore.Edit, pending bool, err error) {
	keys := make([]vfs.Key, len(t.changes))
	for i := range t.changes {
		keys[i] = t.changes[i].Key
	}
	versions, err := m.replica.Versions(keys)
	if err != nil {
		return nil, false, err
	}
	for i, v := range versions {
		r := &t.changes[i]
		rev := r.Rev
		if t.snapshot && r.Value == nil {
			rev = t.position.Rev // at which it was not there
		}
		if reconcile.Equal(r.Value, v.Theirs) || m.ahead[r.Key] > rev && rev > 0 {
			continue
		}
		pending = pending || v.Pending
		news = append(news, casstore.Edit{Key: r.Key, Mine: r.Value, Theirs: v.Mine})
	}
	return news, pending || t.stranger, nil
}

// applying is what goes with edits that are applied.
type applying struct {
	bases   map[vfs.Key]casstore.Basis
	notes   []casstore.Note
	mending bool
}

// applyAll makes edits of the local tree, in parts when they are many.
func (m *Mirror) applyAll(ctx context.Context, edits []casstore.Edit, a applying) error {
	if err := m.fetchManifests(ctx, edits); err != nil {
		return err
	}
	ctx = vfs.WithOrigin(ctx, m)
	a.mending = a.mending || retypes(edits)
	look := func(k vfs.Key) ([]byte, error) {
		v, err := m.version(k)
		return v.Mine, err
	}
	if a.mending {
		look = nil
	}
	for {
		part, rest, err := firstPart(edits, pushRecords, pushBytes, look)
		if err != nil {
			return err
		}
		in := casstore.Incoming{Notes: a.notes, Mending: a.mending}
		for _, e := range part {
			old := vfs.Record{Key: e.Key, Value: e.Theirs}
			in.Records = append(in.Records, vfs.PushRecord{Record: vfs.Record{Key: e.Key, Value: e.Mine}, Base: old.Base()})
			if b, ok := a.bases[e.Key]; ok {
				in.Bases = append(in.Bases, b)
				delete(a.bases, e.Key)
			}
		}
		if len(rest) == 0 {
			for _, b := range a.bases {
				in.Bases = append(in.Bases, b)
			}
		}
		stale, err := m.replica.Apply(ctx, in)
		if err != nil {
			return err
		}
		if len(stale) > 0 {
			return errStale
		}
		m.stats.records.Add(uint64(len(in.Records)))
		if edits, a.notes = rest, nil; len(rest) == 0 {
			return nil
		}
	}
}

// retypes reports whether some number becomes that of an inode of another type: it was given again in another life of a store.
func retypes(edits []casstore.Edit) bool {
	return slices.ContainsFunc(edits, func(e casstore.Edit) bool {
		return e.Key.Kind == vfs.KeyInode && reconcile.Retyped(e.Mine, e.Theirs)
	})
}

// fetchManifests fetches the manifests of large files, which the local store needs at once where a file is in use.
func (m *Mirror) fetchManifests(ctx context.Context, edits []casstore.Edit) error {
	for _, e := range edits {
		if e.Key.Kind == vfs.KeyInode && e.Mine != nil {
			if err := m.replica.LoadManifest(ctx, e.Mine); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconcile merges what changed at the authority with what changed here.
func (m *Mirror) reconcile(ctx context.Context, t taking, news []casstore.Edit) error {
	p, err := m.problem(ctx, t, news)
	if err != nil {
		return err
	}
	s, err := reconcile.Reconcile(p)
	if err != nil {
		return err
	}
	var edits []casstore.Edit
	bases := make(map[vfs.Key]casstore.Basis)
	for k, value := range s.Merged {
		mine, theirs := s.Theirs[k], s.Theirs[k]
		if v, ok := p.Versions[k]; ok {
			mine, theirs = v.Mine, v.Theirs
		}
		if !reconcile.Equal(value, mine) {
			edits = append(edits, casstore.Edit{Key: k, Mine: value, Theirs: mine})
		}
		bases[k] = casstore.Basis{Key: k, Value: theirs, Same: reconcile.Equal(value, theirs)}
	}
	notes, err := m.noteConflicts(s.Conflicts)
	if err != nil {
		return err
	}
	return m.applyAll(ctx, edits, applying{bases: bases, notes: notes, mending: t.mending})
}

// problem is what the authority and the mirror have made of what they had in common.
func (m *Mirror) problem(ctx context.Context, t taking, news []casstore.Edit) (*reconcile.Problem, error) {
	p := &reconcile.Problem{
		Versions: make(map[vfs.Key]reconcile.Version), View: view{m}, Mirror: m.config.Name, Renumber: t.snapshot, Stranger: t.stranger,
		NewIno: func() (vfs.Ino, error) { return m.newIno(ctx) },
	}
	edits, _, err := m.edits()
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		p.Versions[e.Key] = reconcile.Version{Base: e.Theirs, Mine: e.Mine, Theirs: e.Theirs}
	}
	for _, e := range news {
		v, edited := p.Versions[e.Key]
		if !edited {
			v.Base, v.Mine = e.Theirs, e.Theirs
		}
		v.Theirs = e.Mine
		p.Versions[e.Key] = v
	}
	if t.nowhere != nil {
		return p, m.giveUp(ctx, p, t.nowhere)
	}
	if !t.stranger {
		return p, nil
	}
	lost, err := m.lost(ctx, p.Versions, edits)
	if err != nil {
		return nil, err
	}
	for k, v := range p.Versions {
		ino := k.Ino
		if k.Kind == vfs.KeyDirent {
			ino = reconcile.Target(v.Mine)
		}
		if reconcile.Equal(v.Base, v.Theirs) || lost[ino] || t.partial && !t.isOwn(k, v.Mine) {
			continue // what is there as it was is what was changed here
		}
		v.Base = nil
		p.Versions[k] = v
	}
	return p, nil
}

// giveUp has the edits of files end of which some chunks are nowhere.
func (m *Mirror) giveUp(ctx context.Context, p *reconcile.Problem, nowhere map[chunk.ID]struct{}) error {
	p.Lost = make(map[vfs.Ino][]byte)
	for k, v := range p.Versions {
		if k.Kind != vfs.KeyInode || v.Mine == nil {
			continue
		}
		left, lost, err := m.replica.WithHoles(ctx, v.Mine, nowhere)
		if err != nil {
			return err
		}
		if lost {
			m.log.Error("bytes of an edited file are nowhere any more", "inode", uint64(k.Ino))
			p.Lost[k.Ino] = left
		}
	}
	if len(p.Lost) == 0 {
		return fmt.Errorf("of no file that was edited: %w", vfs.ErrCorrupt)
	}
	return nil
}

// lost returns the files that are not as the authority has them, were not changed here, and of which some bytes are neither here nor
// there: nobody can bring those back, and a push that tried to would be refused for ever, and all others after it.
func (m *Mirror) lost(
	ctx context.Context, versions map[vfs.Key]reconcile.Version, edits []casstore.Edit,
) (map[vfs.Ino]bool, error) {
	edited := make(map[vfs.Key]bool, len(edits))
	for _, e := range edits {
		edited[e.Key] = true
	}
	lost := make(map[vfs.Ino]bool)
	for k, v := range versions {
		if k.Kind != vfs.KeyInode || v.Mine == nil || edited[k] || reconcile.Equal(v.Mine, v.Theirs) {
			continue
		}
		nowhere, err := m.nowhere(ctx, v)
		if err != nil {
			return nil, err
		}
		if lost[k.Ino] = nowhere; nowhere {
			m.log.Error("bytes are gone with the authority's store of before", "inode", uint64(k.Ino))
		}
	}
	return lost, nil
}

// nowhere reports whether bytes of a file are neither here nor at the authority.
func (m *Mirror) nowhere(ctx context.Context, v reconcile.Version) (bool, error) {
	ids, err := m.replica.ChunksOf(ctx, v.Mine, v.Theirs)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	for some := range slices.Chunk(ids, vfs.MaxChunkIDs) {
		absent, err := m.ws.Authority().MissingChunks(ctx, some)
		if err == nil && len(absent) > 0 {
			absent, err = m.config.Peer.MissingChunks(ctx, absent)
		}
		if err != nil || len(absent) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// isOwn reports whether a record is of an inode that was made by this mirror, or leads to one. Of a snapshot that has come in part
// nothing else is worth to be brought back to a store that does not have it: it is no tree, and its bytes are not here.
func (t *taking) isOwn(k vfs.Key, value []byte) bool {
	return t.given(k.Ino) || k.Kind == vfs.KeyDirent && t.given(reconcile.Target(value))
}

// newIno takes a number for an inode that a reconciliation makes. The numbers of another life are gone: then some are
// leased first.
func (m *Mirror) newIno(ctx context.Context) (vfs.Ino, error) { return m.replica.TakeNumber(ctx) }

// view is the local tree, for what neither side has changed.
type view struct{ m *Mirror }

// Value implements View. What has been changed here since the edits were read is errStale: it is not what the authority has.
func (v view) Value(k vfs.Key) ([]byte, error) {
	got, err := v.m.version(k)
	if err == nil && got.Pending {
		err = errStale
	}
	return got.Mine, err
}

// version returns what is known of a key.
func (m *Mirror) version(k vfs.Key) (casstore.Version, error) {
	got, err := m.replica.Versions([]vfs.Key{k})
	if err != nil {
		return casstore.Version{}, err
	}
	return got[0], nil
}

// NameOf implements View.
func (v view) NameOf(files []vfs.Ino) (map[vfs.Ino]reconcile.Place, error) {
	out := make(map[vfs.Ino]reconcile.Place)
	if len(files) == 0 {
		return out, nil
	}
	wanted := make(map[vfs.Ino]bool)
	for _, ino := range files {
		wanted[ino] = true
	}
	err := v.m.replica.ReadTheirs(v.m.ctx, vfs.AllInos, func(r vfs.Record) error {
		if r.Kind != vfs.KeyDirent {
			return nil
		}
		if ino := reconcile.Target(r.Value); wanted[ino] {
			if _, known := out[ino]; !known {
				out[ino] = reconcile.Place{Dir: r.Ino, Name: r.Name}
			}
		}
		return nil
	})
	return out, err
}
