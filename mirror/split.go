package mirror

import (
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// firstPart returns as many of some edits as fit into one push, such that they make a tree by themselves, and the rest as
// they are after that. ErrTooBig when what belongs together is too much.
//
// What belongs together is an inode with its names and attributes, whatever else had or gets one of these names, and all
// existing directories that get another parent, so that no order of moves need be found in which none makes a loop. Directories come before
// what is put into them, and go after what was taken out. The record of a directory comes with it; where a part changes
// how many directories are in one whose record is of another part, or of none, it is made to say so; look returns records
// that no edit is of. Without look the edits mend what may be no tree (vfs.CheckMending), and no counts are adjusted.
func firstPart(
	edits []casstore.Edit, maxRecords, maxBytes int, look func(vfs.Key) ([]byte, error),
) (part, rest []casstore.Edit, err error) {
	size := 0
	for _, e := range edits {
		size += editSize(e)
	}
	if len(edits) <= maxRecords && size <= maxBytes {
		return edits, nil, nil
	}
	if look != nil {
		if edits, err = withDirectories(edits, look); err != nil {
			return nil, nil, err
		}
	}
	s := newSplitter(edits)
	s.mending = look == nil
	order := s.order()
	records, bytes, n := 0, 0, 0
	for _, group := range order {
		r, b := s.weight(group)
		if n > 0 && (records+r > maxRecords || bytes+b > maxBytes) {
			break
		}
		records, bytes, n = records+r, bytes+b, n+1
	}
	if records > maxRecords || bytes > maxBytes {
		return nil, nil, fmt.Errorf("%d records of %d bytes belong together: %w", records, bytes, vfs.ErrTooBig)
	}
	return s.cut(order[:n])
}

// withDirectories adds, as edits that change nothing, the records of directories in which directories come or go.
func withDirectories(edits []casstore.Edit, look func(vfs.Key) ([]byte, error)) ([]casstore.Edit, error) {
	known := make(map[vfs.Ino]bool)
	for _, e := range edits {
		known[e.Key.Ino] = known[e.Key.Ino] || e.Key.Kind == vfs.KeyInode
	}
	for _, e := range edits {
		if e.Key.Kind != vfs.KeyDirent || known[e.Key.Ino] || !reconcile.IsDir(e.Mine) && !reconcile.IsDir(e.Theirs) {
			continue
		}
		known[e.Key.Ino] = true
		value, err := look(reconcile.InodeKey(e.Key.Ino))
		if err != nil {
			return nil, err
		}
		edits = append(edits, casstore.Edit{Key: reconcile.InodeKey(e.Key.Ino), Mine: value, Theirs: value})
	}
	return edits, nil
}

func editSize(e casstore.Edit) int { return len(e.Key.Name) + len(e.Mine) }

// splitter finds groups of edits that belong together. A group is known by one of its inodes.
type splitter struct {
	edits  []casstore.Edit
	inodes map[vfs.Ino]int         // to their edits
	up     map[vfs.Ino]vfs.Ino     // union of groups
	groups map[vfs.Ino][]int       // edits of each
	parent map[vfs.Ino]parentNodes // of groups: which must come first

	mending bool // counts are as the edits say
}

type parentNodes map[vfs.Ino]bool

func newSplitter(edits []casstore.Edit) *splitter {
	s := &splitter{edits: edits, inodes: make(map[vfs.Ino]int), up: make(map[vfs.Ino]vfs.Ino)}
	moved := vfs.Ino(0)
	for i, e := range edits {
		switch e.Key.Kind {
		case vfs.KeyInode:
			s.inodes[e.Key.Ino] = i
			if !movesDir(e) {
				continue
			}
			if moved == 0 {
				moved = e.Key.Ino
			}
			s.join(moved, e.Key.Ino)
		case vfs.KeyDirent:
			if a, b := reconcile.Target(e.Mine), reconcile.Target(e.Theirs); a != 0 && b != 0 {
				s.join(a, b)
			}
		}
	}
	return s
}

// movesDir reports whether an existing directory gets another parent.
func movesDir(e casstore.Edit) bool {
	mine, err := reconcile.InodeOf(e.Mine)
	if err != nil || mine == nil || mine.Type != vfs.TypeDir {
		return false
	}
	theirs, err := reconcile.InodeOf(e.Theirs)
	return err == nil && theirs != nil && theirs.Parent != mine.Parent
}

func (s *splitter) find(ino vfs.Ino) vfs.Ino {
	for {
		up, ok := s.up[ino]
		if !ok {
			return ino
		}
		if upper, ok := s.up[up]; ok {
			s.up[ino] = upper
		}
		ino = up
	}
}

func (s *splitter) join(a, b vfs.Ino) {
	if a, b = s.find(a), s.find(b); a != b {
		s.up[max(a, b)] = min(a, b)
	}
}

// groupOf is the group of an edit: of a name, that of what it leads or has led to.
func (s *splitter) groupOf(e casstore.Edit) vfs.Ino {
	if e.Key.Kind != vfs.KeyDirent {
		return s.find(e.Key.Ino)
	}
	if ino := reconcile.Target(e.Mine); ino != 0 {
		return s.find(ino)
	}
	return s.find(reconcile.Target(e.Theirs))
}

// order returns the groups such that each comes after those that it needs. Groups that need each other are made one.
func (s *splitter) order() []vfs.Ino {
	for {
		s.collect()
		order := s.sorted()
		if len(order) == len(s.groups) {
			return order
		}
		done := make(map[vfs.Ino]bool, len(order))
		for _, g := range order {
			done[g] = true
		}
		first := vfs.Ino(0)
		for g := range s.groups {
			if !done[g] {
				if first == 0 {
					first = g
				}
				s.join(first, g)
			}
		}
	}
}

// collect finds the edits of each group, and which groups must come before it.
func (s *splitter) collect() {
	s.groups, s.parent = make(map[vfs.Ino][]int), make(map[vfs.Ino]parentNodes)
	needs := func(g, before vfs.Ino) {
		if g == before {
			return
		}
		if s.parent[g] == nil {
			s.parent[g] = make(parentNodes)
		}
		s.parent[g][before] = true
	}
	for i, e := range s.edits {
		if !s.mending && onlyCounts(e) {
			continue // it comes with what it counts
		}
		g := s.groupOf(e)
		s.groups[g] = append(s.groups[g], i)
		dir, ok := s.inodes[e.Key.Ino]
		if e.Key.Kind != vfs.KeyDirent || !ok {
			continue
		}
		if d := s.edits[dir]; !reconcile.IsDir(d.Theirs) {
			needs(g, s.find(e.Key.Ino))
		} else if !reconcile.IsDir(d.Mine) {
			needs(s.find(e.Key.Ino), g)
		}
	}
}

// onlyCounts reports whether an edit changes nothing but how many directories are in one.
func onlyCounts(e casstore.Edit) bool {
	if reconcile.Equal(e.Mine, e.Theirs) {
		return true
	}
	if e.Key.Kind != vfs.KeyInode || e.Mine == nil || e.Theirs == nil {
		return false
	}
	mine, err := reconcile.InodeOf(e.Mine)
	if err != nil || mine.Type != vfs.TypeDir {
		return false
	}
	theirs, err := reconcile.InodeOf(e.Theirs)
	if err != nil {
		return false
	}
	mine.Nlink = theirs.Nlink
	return reconcile.Equal(mine.Append(nil), e.Theirs)
}

// sorted returns the groups in an order in which they can come, as far as there is one.
func (s *splitter) sorted() (order []vfs.Ino) {
	next := make(map[vfs.Ino][]vfs.Ino)
	waits := make(map[vfs.Ino]int)
	var ready []vfs.Ino
	for g := range s.groups {
		for before := range s.parent[g] {
			if s.groups[before] != nil {
				next[before] = append(next[before], g)
				waits[g]++
			}
		}
		if waits[g] == 0 {
			ready = append(ready, g)
		}
	}
	slices.Sort(ready)
	for ; len(ready) > 0; ready = ready[1:] {
		order = append(order, ready[0])
		for _, g := range next[ready[0]] {
			if waits[g]--; waits[g] == 0 {
				ready = append(ready, g)
			}
		}
	}
	return order
}

// weight is how many records and bytes a group takes at the most, with the records of directories that it changes.
func (s *splitter) weight(g vfs.Ino) (records, bytes int) {
	const directory = 256 // bytes of a directory's record
	for _, i := range s.groups[g] {
		e := s.edits[i]
		records, bytes = records+1, bytes+editSize(e)
		if e.Key.Kind == vfs.KeyDirent && (reconcile.IsDir(e.Mine) || reconcile.IsDir(e.Theirs)) {
			records, bytes = records+1, bytes+directory
		}
	}
	return records, bytes
}

// cut returns the edits of some groups, and what is left of all others after them.
func (s *splitter) cut(groups []vfs.Ino) (part, rest []casstore.Edit, err error) {
	taken := make(map[int]bool)
	subdirs := make(map[vfs.Ino]int)
	for _, g := range groups {
		for _, i := range s.groups[g] {
			taken[i] = true
			if e := s.edits[i]; e.Key.Kind == vfs.KeyDirent {
				if reconcile.IsDir(e.Mine) {
					subdirs[e.Key.Ino]++
				}
				if reconcile.IsDir(e.Theirs) {
					subdirs[e.Key.Ino]--
				}
			}
		}
	}
	for i, e := range s.edits {
		if e.Key.Kind == vfs.KeyInode && !s.mending {
			var now []byte
			if now, err = s.counted(e, taken[i], subdirs[e.Key.Ino]); err != nil {
				return nil, nil, err
			}
			if !reconcile.Equal(now, e.Theirs) {
				part = append(part, casstore.Edit{Key: e.Key, Mine: now, Theirs: e.Theirs})
			}
			if !reconcile.Equal(now, e.Mine) {
				rest = append(rest, casstore.Edit{Key: e.Key, Mine: e.Mine, Theirs: now})
			}
			continue
		}
		if taken[i] {
			part = append(part, e)
		} else {
			rest = append(rest, e)
		}
	}
	return part, rest, nil
}

// counted is the record of an inode in a part: what it becomes, if it is taken, or else what it was, with the number of
// directories in it as the part leaves it.
func (s *splitter) counted(e casstore.Edit, taken bool, subdirs int) ([]byte, error) {
	value := e.Theirs
	if taken {
		value = e.Mine
	}
	rec, err := reconcile.InodeOf(value)
	if err != nil || rec == nil || rec.Type != vfs.TypeDir {
		return value, err
	}
	before, err := reconcile.InodeOf(e.Theirs)
	if err != nil {
		return nil, err
	}
	links := uint32(2)
	if before != nil {
		links = before.Nlink
	}
	rec.Nlink = uint32(int(links) + subdirs)
	return rec.Append(nil), nil
}
