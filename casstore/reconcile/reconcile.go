package reconcile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Version is a key as three trees have it: the last one that both sides had, mine, and theirs (see Words). A value is
// nil where there is nothing.
type Version struct {
	Base, Mine, Theirs []byte
}

// View is what is under the keys that neither side has changed.
type View interface {
	// Value returns the value under a key, nil when there is none.
	Value(vfs.Key) ([]byte, error)
	// NameOf returns a name of each file: of those without one there is none. It may look through all names.
	NameOf(files []vfs.Ino) (map[vfs.Ino]Place, error)
}

// Place is a name in a directory.
type Place struct {
	Dir  vfs.Ino
	Name string
}

func (p Place) Key() vfs.Key { return vfs.Key{Kind: vfs.KeyDirent, Ino: p.Dir, Name: p.Name} }

// ConflictKind says what two sides have done to each other.
type ConflictKind string

// Kinds of conflict.
const (
	ConflictBytes     ConflictKind = "bytes"     // both changed the bytes of a file: mine are in the copy
	ConflictName      ConflictKind = "name"      // both gave a name to something: mine has the name of the copy
	ConflictRemoved   ConflictKind = "removed"   // one removed what the other changed: it is there
	ConflictMoved     ConflictKind = "moved"     // both moved a directory, or into each other: it is where the authority has it
	ConflictAttribute ConflictKind = "attribute" // both set an attribute: the authority's stands, mine is in the conflict
	ConflictLost      ConflictKind = "lost"      // some bytes of mine are nowhere any more: the copy has holes there
)

// Conflict is what one reconciliation could not merge. Nothing of it is lost.
type Conflict struct {
	Kind  ConflictKind
	Ino   vfs.Ino // that it is about: the one that has the name
	Place Place   // its name, as far as that is known
	Copy  Place   // the name of what had to give way, if anything had
	Other vfs.Ino // that has that name
	Name  string  // of an attribute
	Value []byte  // of an attribute, mine

	// Theirs says that the authority's has the name of the copy: mine has taken the name of what it has changed.
	Theirs bool `json:",omitempty"`
}

// Problem is what two sides have made of a tree that they had in common.
type Problem struct {
	// Versions are all keys that either side has changed.
	Versions map[vfs.Key]Version
	View     View
	Mirror   string                  // stands in the names of copies: that of the mirror, or of the fork
	NewIno   func() (vfs.Ino, error) // numbers for copies
	// MergeBytes merges the bytes of a file that both sides have changed. It is not ok when it cannot, and may be nil.
	MergeBytes func(base, mine, theirs *vfs.InodeRecord) (body vfs.Body, size uint64, ok bool, err error)
	// Lost are files of mine of which some bytes are nowhere, and what is left of each: it becomes a copy.
	Lost map[vfs.Ino][]byte
	// Renumber says that the authority may not know inodes any more which it has had: those that the mirror brings back get
	// numbers of their own.
	Renumber bool
	// Stranger says that the authority's tree is not one that came after the mirror's, so that the numbers of all inodes
	// that it does not have may be given to others.
	Stranger bool
}

// Solution is the tree that both sides are to have.
type Solution struct {
	Merged    map[vfs.Key][]byte // by key, those of the problem and others; nil for nothing
	Theirs    map[vfs.Key][]byte // what the authority has under these
	Conflicts []Conflict
}

// Reconcile merges two trees, record by record, and sees to it that the outcome is a tree. The mirror stands for mine here, and
// the authority for theirs, also where a fork is merged into another workspace:
//
//   - What one side alone has changed is as that side has it.
//   - Attributes of an inode are merged one by one; where both changed one, the authority's stands, but for times: the
//     later.
//   - Where both changed the bytes of a file, and they cannot be merged, the authority's stay and mine become a copy beside
//     it, name.conflict-MIRROR-N.
//   - Where both gave a name to something, the authority's has it, and mine gets such a name. Two new files of the same
//     bytes are one, unless they are empty.
//   - What one side removed and the other changed stays, with the names that the other had for it; so does every directory
//     that is needed for it.
//   - A directory that both moved is where the authority has it, and so is one whose move would make a loop.
//   - What is left of a file of mine some of whose bytes are nowhere becomes a copy, and the authority's stands, if it has one.
//   - Two inodes that have one number, which was given again in another life of a store, are two: mine gets another.
//
// It has no effect but for NewIno and MergeBytes, and gives the same for the same problem.
func Reconcile(p *Problem) (*Solution, error) {
	m := &merger{p: p, merged: make(map[vfs.Key][]byte), theirs: make(map[vfs.Key][]byte)}
	m.index()
	for _, step := range []func() error{m.tellApart, m.mergeNames, m.place, m.mergeXattrs, m.mergeInodes, m.settleCounts, m.renumber} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("reconcile: %w", err)
		}
	}
	return &Solution{Merged: m.merged, Theirs: m.theirs, Conflicts: m.conflicts}, nil
}

type merger struct {
	p         *Problem
	keys      []vfs.Key             // of the problem, in order
	myNames   map[vfs.Ino][]vfs.Key // of dirents of the problem that lead to an inode
	itsNames  map[vfs.Ino][]vfs.Key // the same, as the authority has them
	xattrs    map[vfs.Ino][]vfs.Key // of attributes of the problem
	merged    map[vfs.Key][]byte
	theirs    map[vfs.Key][]byte // of keys that are not of the problem
	displaced []displaced
	conflicts []Conflict
	apart     map[vfs.Ino]bool // numbers that tellApart has given
	steps     int              // from a directory to its parent, of all loops that were looked for
}

// index finds the way through the keys of the problem.
func (m *merger) index() {
	m.keys = nil
	m.myNames, m.itsNames = make(map[vfs.Ino][]vfs.Key), make(map[vfs.Ino][]vfs.Key)
	m.xattrs = make(map[vfs.Ino][]vfs.Key)
	for k := range m.p.Versions {
		m.keys = append(m.keys, k)
	}
	slices.SortFunc(m.keys, vfs.Key.Compare)
	for _, k := range m.keys {
		switch v := m.p.Versions[k]; k.Kind {
		case vfs.KeyXattr:
			m.xattrs[k.Ino] = append(m.xattrs[k.Ino], k)
		case vfs.KeyDirent:
			if ino := Target(v.Mine); ino != 0 {
				m.myNames[ino] = append(m.myNames[ino], k)
			}
			if ino := Target(v.Theirs); ino != 0 {
				m.itsNames[ino] = append(m.itsNames[ino], k)
			}
		}
	}
}

// namesOf are the keys of the names of an inode on the side that has it: the authority's, if both do.
func (m *merger) namesOf(ino vfs.Ino, v Version) []vfs.Key {
	if v.Theirs == nil {
		return m.myNames[ino]
	}
	return m.itsNames[ino]
}

// displaced is an inode of mine whose name the authority has given to something else.
type displaced struct {
	Place
	value []byte // of the dirent
	kind  ConflictKind
}

func InodeKey(ino vfs.Ino) vfs.Key { return vfs.Key{Kind: vfs.KeyInode, Ino: ino} }

func Equal(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// three picks of three values the one that only one side has changed.
func three(v Version) (value []byte, both bool) {
	switch {
	case Equal(v.Mine, v.Base), Equal(v.Mine, v.Theirs):
		return v.Theirs, false
	case Equal(v.Theirs, v.Base):
		return v.Mine, false
	}
	return v.Theirs, true
}

// version returns a key as the three trees have it, whether it is of the problem or not.
func (m *merger) version(k vfs.Key) (Version, error) {
	if v, ok := m.p.Versions[k]; ok {
		return v, nil
	}
	if _, ok := m.theirs[k]; !ok {
		value, err := m.p.View.Value(k)
		if err != nil {
			return Version{}, err
		}
		m.theirs[k] = value
	}
	v := m.theirs[k]
	return Version{v, v, v}, nil
}

// value returns what a key is to have, as far as that is decided.
func (m *merger) value(k vfs.Key) ([]byte, error) {
	if v, ok := m.merged[k]; ok {
		return v, nil
	}
	v, err := m.version(k)
	return v.Theirs, err
}

// set decides what a key is to have.
func (m *merger) set(k vfs.Key, value []byte) error {
	if _, err := m.version(k); err != nil {
		return err
	}
	m.merged[k] = value
	return nil
}

func InodeOf(value []byte) (*vfs.InodeRecord, error) {
	if value == nil {
		return nil, nil
	}
	r, err := vfs.DecodeInode(bytes.Clone(value))
	return &r, err
}

// target returns the inode that a dirent leads to, zero for none.
func Target(value []byte) vfs.Ino {
	if value == nil {
		return 0
	}
	d, err := vfs.DecodeDirent(value)
	if err != nil {
		return 0
	}
	return d.Ino
}

// Retyped reports whether two records are of inodes of different types. Both kinds of record begin with that.
func Retyped(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && a[0] != b[0] }

// IsDir reports whether a record is of a directory, or of a name that leads to one.
func IsDir(value []byte) bool { return len(value) > 0 && vfs.Type(value[0]) == vfs.TypeDir }
