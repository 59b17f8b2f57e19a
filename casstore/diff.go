package casstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// DiffKind says what has happened to a path.
type DiffKind uint8

// The kinds of difference.
const (
	DiffAdded DiffKind = 1 + iota
	DiffRemoved
	DiffModified
	DiffRenamed // and perhaps modified
)

var diffKinds = [...]string{"", "added", "removed", "modified", "renamed"}

// String is the kind in a word.
func (k DiffKind) String() string { return diffKinds[min(int(k), len(diffKinds)-1)] }

// DiffFields say what of an inode is different.
type DiffFields uint8

// The fields of an inode that are compared. Times of directories are not: they change with every name.
const (
	DiffBytes DiffFields = 1 << iota // the bytes of a file, the target of a symlink, the number of a device
	DiffMode
	DiffOwner
	DiffTimes
	DiffXattrs
)

// Names are the fields in words.
func (f DiffFields) Names() (names []string) {
	for i, name := range [...]string{"bytes", "mode", "owner", "times", "xattrs"} {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// DiffEntry is a path that is different in two trees.
type DiffEntry struct {
	Kind   DiffKind
	Path   string     // from "/"; of what was removed, as it was
	From   string     // of what was renamed, what it was
	Fields DiffFields // of what was modified or renamed
	Old    vfs.Attr   // zero when it was added
	New    vfs.Attr   // zero when it was removed
}

// Diff calls yield for what is different in one tree from another, by path: each is WORKSPACE, as it is now with all that
// was written to it, or WORKSPACE@WHEN. They must be related: of one workspace, or forks of one. Renames are known, because
// the inode is the same. The cost follows what is different and not the size of the trees, but for files that were
// changed in place: their names are looked for in the directories that were made at about the same time first.
// ErrInvalid when the two are not related; errors of yield come back as they are.
func (s *Store) Diff(ctx context.Context, from, to string, yield func(DiffEntry) error) error {
	a, err := s.diffSide(ctx, from)
	if err != nil {
		return fmt.Errorf("diff %s and %s: %w", from, to, err)
	}
	defer a.close()
	b, err := s.diffSide(ctx, to)
	if err != nil {
		return fmt.Errorf("diff %s and %s: %w", from, to, err)
	}
	defer b.close()
	d := newDiffer(ctx, a, b)
	d.kin = s.areKin(a.layers[0].ws, b.layers[0].ws)
	entries, err := d.run(d.candidates)
	if err != nil {
		return fmt.Errorf("diff %s and %s: %w", from, to, err)
	}
	for i := range entries {
		if err := yield(entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// diffSide is one of two trees that are compared.
type diffSide struct {
	view   *View
	r      *reader
	layers []origin // where its records are, the nearest first
	paths  pathFinder
	over   map[vfs.Key][]byte // what is to be written over it; nil for nothing
}

func (s *Store) diffSide(ctx context.Context, name string) (*diffSide, error) {
	var view *View
	var err error
	if workspace, when, past := SplitMoment(name); past {
		view, err = s.openView(workspace, when)
	} else {
		view, err = s.viewNow(ctx, workspace)
	}
	if err != nil {
		return nil, err
	}
	return s.sideOf(view), nil
}

// viewNow opens a view of a workspace with all that was written to it.
func (s *Store) viewNow(ctx context.Context, workspace string) (*View, error) {
	view := &View{store: s}
	err := s.whole(ctx, workspace, func(v *revision, ws workspaceID) error {
		err := s.noReplica(ws)
		if err == nil {
			view.held = v.hold(ws)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.addView(view); err != nil {
		s.letGoOf(view.held)
		return nil, err
	}
	return view, nil
}

// sideOf is a side that shows what a view does, which closes with it.
func (s *Store) sideOf(view *View) *diffSide {
	h := view.held
	side := &diffSide{view: view, r: s.readerAt(h.rev).as(h.ws, h.origins)}
	side.layers = append([]origin{{ws: h.ws, rev: h.rev}}, h.origins...)
	side.paths = pathFinder{r: side.r, ws: h.ws, known: make(map[vfs.Ino]dirName)}
	return side
}

// sideAt is a side of a workspace with its origins at a revision that is kept: else ErrNoRevision. Whoever calls it holds
// the origins: the store no longer knows them when the workspace has been removed meanwhile.
func (s *Store) sideAt(ws workspaceID, rev vfs.Rev, origins []origin) (*diffSide, error) {
	h := held{pin: pin{ws: ws, rev: rev, n: 1}, origins: origins}
	if err := s.hold(&h); err != nil {
		return nil, err
	}
	return s.sideOf(&View{store: s, held: h}), nil
}

func (d *diffSide) close() {
	d.r.Close()
	_ = d.view.Close() // which has nothing to say
}

// value is what a side has under a key, or nil.
func (d *diffSide) value(k vfs.Key) (value []byte, err error) {
	if value, ok := d.over[k]; ok {
		return value, nil
	}
	err = d.r.get(keyOfRecord(d.layers[0].ws, k), func(b []byte) error {
		value = present(bytes.Clone(b))
		return nil
	})
	if errors.Is(err, vfs.ErrNotExist) {
		err = nil
	}
	return value, err
}

// node is an inode of a side. ok is false when it is not there.
func (d *diffSide) node(ino vfs.Ino) (rec vfs.InodeRecord, ok bool, err error) {
	if value, ok := d.over[inodeKey(ino)]; ok {
		if value == nil {
			return rec, false, nil
		}
		rec, err = vfs.DecodeInode(bytes.Clone(value))
		return rec, err == nil, err
	}
	rec, err = d.r.inode(d.layers[0].ws, ino)
	if errors.Is(err, vfs.ErrNotExist) {
		return rec, false, nil
	}
	return rec, err == nil, err
}

// related finds the nearest workspace that both have records in: from there on they have the same, but for what has
// changed in it between two revisions.
func related(a, b *diffSide) (i, j int, ok bool) {
	for i, x := range a.layers {
		if j := slices.IndexFunc(b.layers, func(y origin) bool { return x.ws == y.ws }); j >= 0 {
			return i, j, true
		}
	}
	return 0, 0, false
}

var errUnrelated = fmt.Errorf("neither is a fork of the other, nor are they forks of one workspace: %w", vfs.ErrInvalid)

// candidates calls fn for every key that may be different, some of them more than once.
func (d *differ) candidates(fn func(vfs.Key) error) error {
	i, j, ok := related(d.a, d.b)
	switch {
	case !ok && d.kin:
		return d.all(fn)
	case !ok:
		return errUnrelated
	}
	for _, above := range [...][]origin{d.a.layers[:i], d.b.layers[:j]} {
		for _, o := range above {
			if err := d.changed(o.ws, 1, o.rev, fn); err != nil {
				return err
			}
		}
	}
	x, y := d.a.layers[i].rev, d.b.layers[j].rev
	if x == y {
		return nil
	}
	return d.changed(d.a.layers[i].ws, min(x, y), max(x, y), fn)
}

// all calls fn for the keys that are different, when what the two have in common is in different layers of each: those that all
// of the tree went into, since more was changed than that has. It goes through both trees.
func (d *differ) all(fn func(vfs.Key) error) error {
	for _, kind := range [...]byte{keyInode, keyDirent, keyXattr} {
		a, b := d.a.stream(kind), d.b.stream(kind)
		err := d.unequal(a, b, fn)
		a.Close()
		b.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// stream is an iterator over what a side has of a kind of keys.
func (d *diffSide) stream(kind byte) recordIterator {
	opt := badger.DefaultIteratorOptions
	opt.Prefix = keyOfNode(kind, d.layers[0].ws, 0)[:9]
	opt.PrefetchValues = false
	it := d.r.iterator(opt)
	it.Seek(opt.Prefix)
	return it
}

// unequal calls fn for the keys that two iterators do not both have, or with different values.
func (d *differ) unequal(a, b recordIterator, fn func(vfs.Key) error) error {
	for a.Valid() || b.Valid() {
		if d.ctx.Err() != nil {
			return vfs.ErrInterrupted
		}
		d.a.r.store.maps.read()
		first, order := a, -1 // the one with the lower key, and how they compare
		switch {
		case !a.Valid():
			first, order = b, 1
		case b.Valid():
			if order = bytes.Compare(a.Item().Key()[9:], b.Item().Key()[9:]); order > 0 {
				first = b
			}
		}
		k, _, err := recordOfKey(first.Item().Key())
		same := false
		if err == nil && order == 0 {
			same, err = equalItems(a.Item(), b.Item())
		}
		if err == nil && !same {
			err = fn(k)
		}
		if err != nil {
			return err
		}
		if order <= 0 {
			a.Next()
		}
		if order >= 0 {
			b.Next()
		}
	}
	return nil
}

func equalItems(a, b *badger.Item) (same bool, err error) {
	err = a.Value(func(x []byte) error {
		return b.Value(func(y []byte) error {
			same = bytes.Equal(x, y)
			return nil
		})
	})
	return same, badgerError(err, a.Key())
}

// changed calls fn for the keys that a workspace itself has changed between two revisions.
func (d *differ) changed(ws workspaceID, since, upTo vfs.Rev, fn func(vfs.Key) error) error {
	r := d.a.r.store.readerAt(upTo)
	defer r.Close()
	return r.records(ws, vfs.AllInos, since, func(rec vfs.Record) error {
		if d.ctx.Err() != nil {
			return vfs.ErrInterrupted
		}
		return fn(rec.Key)
	})
}

// differ compares two sides.
type differ struct {
	ctx  context.Context
	a, b *diffSide
	kin  bool // they have something in common

	seen    map[vfs.Key]struct{}
	inodes  map[vfs.Ino]*diffInode
	entries []DiffEntry

	removed, added map[dirName]int // the entries of names that lead to an inode on one side only
}

// diffInode is what is different of an inode.
type diffInode struct {
	removed, added []dirName // that lead to it
	xattrs         bool
}

func newDiffer(ctx context.Context, a, b *diffSide) *differ {
	return &differ{
		ctx: ctx, a: a, b: b, seen: make(map[vfs.Key]struct{}), inodes: make(map[vfs.Ino]*diffInode),
		removed: make(map[dirName]int), added: make(map[dirName]int),
	}
}

// run finds what is different, of the keys that candidates comes with.
func (d *differ) run(candidates func(func(vfs.Key) error) error) ([]DiffEntry, error) {
	if err := candidates(d.compare); err != nil {
		return nil, err
	}
	for ino, n := range d.inodes {
		n.sort()
		for _, name := range n.added {
			d.b.paths.known[ino] = name
		}
		for _, name := range n.removed {
			d.a.paths.known[ino] = name
		}
	}
	for ino, n := range d.inodes {
		if err := d.node(ino, n); err != nil {
			return nil, err
		}
	}
	d.replaced()
	slices.SortFunc(d.entries, func(x, y DiffEntry) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(y.Kind, x.Kind))
	})
	return d.entries, nil
}

func (d *differ) inode(ino vfs.Ino) *diffInode {
	n := d.inodes[ino]
	if n == nil {
		n = &diffInode{}
		d.inodes[ino] = n
	}
	return n
}

// compare looks at what the two sides have under a key.
func (d *differ) compare(k vfs.Key) error {
	if _, again := d.seen[k]; again {
		return nil
	}
	d.seen[k] = struct{}{}
	x, err := d.a.value(k)
	if err != nil {
		return err
	}
	y, err := d.b.value(k)
	if err != nil || bytes.Equal(x, y) && (x == nil) == (y == nil) {
		return err
	}
	switch k.Kind {
	case vfs.KeyXattr:
		d.inode(k.Ino).xattrs = true
	case vfs.KeyInode:
		d.inode(k.Ino)
	case vfs.KeyDirent:
		return d.names(k, x, y)
	}
	return nil
}

// names notes that a name leads elsewhere.
func (d *differ) names(k vfs.Key, x, y []byte) error {
	was, err := direntOf(x)
	if err != nil {
		return err
	}
	is, err := direntOf(y)
	if err != nil || was.Ino == is.Ino {
		return err
	}
	if was.Ino != 0 {
		n := d.inode(was.Ino)
		n.removed = append(n.removed, dirName{k.Ino, k.Name})
	}
	if is.Ino != 0 {
		n := d.inode(is.Ino)
		n.added = append(n.added, dirName{k.Ino, k.Name})
	}
	return nil
}

func direntOf(b []byte) (vfs.DirentRecord, error) {
	if b == nil {
		return vfs.DirentRecord{}, nil
	}
	return vfs.DecodeDirent(b)
}

func (n *diffInode) sort() {
	for _, list := range [...][]dirName{n.removed, n.added} {
		slices.SortFunc(list, func(x, y dirName) int { return cmp.Or(cmp.Compare(x.dir, y.dir), cmp.Compare(x.name, y.name)) })
	}
}
