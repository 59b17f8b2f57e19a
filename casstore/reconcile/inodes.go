package reconcile

import (
	"bytes"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// sortedMerged returns the keys of a kind that something is decided for, in order.
func (m *merger) sortedMerged(kind vfs.KeyKind) []vfs.Key {
	var keys []vfs.Key
	for k := range m.merged {
		if k.Kind == kind {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, vfs.Key.Compare)
	return keys
}

func sameBytes(a, b *vfs.InodeRecord) bool {
	return a.Size == b.Size && a.Body.Kind == b.Body.Kind && bytes.Equal(a.Body.Data, b.Body.Data)
}

// edited reports whether the side that still has an inode has changed more of it than how many names it has.
func edited(v Version) (bool, error) {
	value := v.Theirs
	if value == nil {
		value = v.Mine
	}
	if v.Base == nil {
		return true, nil
	}
	now, err := InodeOf(value)
	if err != nil {
		return false, err
	}
	base, err := InodeOf(v.Base)
	if err != nil {
		return false, err
	}
	same := now.Mode == base.Mode && now.UID == base.UID && now.GID == base.GID && now.Xattrs == base.Xattrs &&
		now.Parent == base.Parent && sameBytes(now, base) && (now.Type == vfs.TypeDir || now.Mtime == base.Mtime)
	return !same, nil
}

// editedXattrs reports whether the side that still has an inode has changed an attribute of it.
func (m *merger) editedXattrs(ino vfs.Ino, v Version) bool {
	return slices.ContainsFunc(m.xattrs[ino], func(k vfs.Key) bool {
		x := m.p.Versions[k]
		if v.Theirs == nil {
			return !Equal(x.Mine, x.Base)
		}
		return !Equal(x.Theirs, x.Base)
	})
}

// mergeXattrs merges attributes, but for those of inodes that only one side has: these have all of that side's.
func (m *merger) mergeXattrs() error {
	for _, k := range m.keys {
		if k.Kind != vfs.KeyXattr {
			continue
		}
		v := m.p.Versions[k]
		owner, err := m.version(InodeKey(k.Ino))
		if err != nil {
			return err
		}
		value, both := three(v)
		switch {
		case owner.Mine == nil:
			value, both = v.Theirs, false
		case owner.Theirs == nil:
			value, both = v.Mine, false
		}
		if both && v.Mine != nil {
			m.conflicts = append(m.conflicts, Conflict{Kind: ConflictAttribute, Ino: k.Ino, Name: k.Name, Value: v.Mine})
		}
		m.merged[k] = value
	}
	return nil
}

// mergeInodes decides which inodes are there, and what their records say but for counts.
func (m *merger) mergeInodes() error {
	names, err := m.countNames()
	if err != nil {
		return err
	}
	var torn []vfs.Ino // files whose bytes both have changed
	for _, k := range m.keys {
		if k.Kind != vfs.KeyInode {
			continue
		}
		v := m.p.Versions[k]
		if k.Ino != vfs.RootIno && names[k.Ino] == 0 {
			m.merged[k] = nil
			m.dropXattrs(k.Ino)
			continue
		}
		both, err := m.mergeInode(k, v)
		if err != nil {
			return err
		}
		if both {
			torn = append(torn, k.Ino)
		}
	}
	return m.copyTorn(torn)
}

func (m *merger) dropXattrs(ino vfs.Ino) {
	for _, k := range m.xattrs[ino] {
		m.merged[k] = nil
	}
}

// countNames returns how many names the inodes of the problem are to have.
func (m *merger) countNames() (map[vfs.Ino]int, error) {
	names := make(map[vfs.Ino]int)
	for _, k := range m.keys {
		if k.Kind != vfs.KeyInode {
			continue
		}
		rec, err := InodeOf(m.p.Versions[k].Theirs)
		switch {
		case err != nil:
			return nil, err
		case rec == nil:
			names[k.Ino] = 0
		case rec.Type == vfs.TypeDir:
			names[k.Ino] = 1
		default:
			names[k.Ino] = int(rec.Nlink)
		}
	}
	for _, k := range m.sortedMerged(vfs.KeyDirent) {
		v, err := m.version(k)
		if err != nil {
			return nil, err
		}
		names[Target(m.merged[k])]++
		names[Target(v.Theirs)]--
	}
	return names, nil
}

// mergeInode merges the fields of a record. both says that the bytes of both sides must be kept.
func (m *merger) mergeInode(k vfs.Key, v Version) (both bool, err error) {
	mine, err := InodeOf(v.Mine)
	if err != nil {
		return false, err
	}
	theirs, err := InodeOf(v.Theirs)
	if err != nil {
		return false, err
	}
	switch {
	case theirs == nil:
		m.merged[k] = v.Mine
		return false, nil
	case mine == nil:
		m.merged[k] = v.Theirs
		return false, nil
	}
	base, err := InodeOf(v.Base)
	if err != nil {
		return false, err
	}
	if base == nil || base.Type != theirs.Type {
		base = &vfs.InodeRecord{Mode: ^uint32(0), UID: ^uint32(0), GID: ^uint32(0), Size: ^uint64(0)}
	}
	out := *theirs
	pick(&out.Mode, base.Mode, mine.Mode)
	pick(&out.UID, base.UID, mine.UID)
	pick(&out.GID, base.GID, mine.GID)
	out.Mtime = latest(base.Mtime, mine.Mtime, theirs.Mtime)
	out.Ctime = latest(base.Ctime, mine.Ctime, theirs.Ctime)
	switch {
	case sameBytes(mine, theirs) || sameBytes(mine, base):
	case sameBytes(theirs, base):
		out.Size, out.Body = mine.Size, mine.Body
	case mine.Type == vfs.TypeRegular:
		if both, err = m.mergeBytes(&out, v, mine, theirs); err != nil {
			return false, err
		}
	default:
		both, out.Mtime = mine.Type != vfs.TypeDir, theirs.Mtime
	}
	m.merged[k] = out.Append(nil)
	return both, nil
}

// mergeBytes sets the bytes of a file that both sides have changed to what they make together. both is set when they make
// nothing, and the authority's stay.
func (m *merger) mergeBytes(out *vfs.InodeRecord, v Version, mine, theirs *vfs.InodeRecord) (both bool, err error) {
	base, err := InodeOf(v.Base)
	if err != nil {
		return false, err
	}
	if m.p.MergeBytes != nil && base != nil && base.Type == vfs.TypeRegular {
		body, size, ok, err := m.p.MergeBytes(base, mine, theirs)
		if ok || err != nil {
			out.Body, out.Size = body, size
			return false, err
		}
	}
	out.Mtime = theirs.Mtime
	return true, nil
}

// pick sets what only the mirror has changed.
func pick(out *uint32, base, mine uint32) {
	if *out == base {
		*out = mine
	}
}

// latest is the time that only one side has changed, or the later one.
func latest(base, mine, theirs vfs.Time) vfs.Time {
	switch {
	case mine == base:
		return theirs
	case theirs == base:
		return mine
	}
	return max(mine, theirs)
}

// copyTorn makes copies of my side of files whose bytes both sides have changed.
func (m *merger) copyTorn(torn []vfs.Ino) error {
	if len(torn) == 0 {
		return nil
	}
	places := m.places()
	var unplaced []vfs.Ino
	for _, ino := range torn {
		if len(places[ino]) == 0 {
			unplaced = append(unplaced, ino)
		}
	}
	found, err := m.p.View.NameOf(unplaced)
	if err != nil {
		return err
	}
	for _, ino := range torn {
		at, ok := found[ino]
		if ps := places[ino]; len(ps) > 0 {
			at, ok = ps[0], true
		}
		if !ok {
			at = Place{vfs.RootIno, "lost"}
		}
		if err := m.copyMine(ino, at); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) copyMine(ino vfs.Ino, at Place) error {
	copied, err := m.conflictName(at)
	if err != nil {
		return err
	}
	other, err := m.otherIno()
	if err != nil {
		return err
	}
	rec, err := InodeOf(m.p.Versions[InodeKey(ino)].Mine)
	if err != nil {
		return err
	}
	rec.Nlink, rec.Xattrs = 1, 0
	d := vfs.DirentRecord{Ino: other, Type: rec.Type}
	m.theirs[InodeKey(other)] = nil
	m.merged[InodeKey(other)] = rec.Append(nil)
	m.conflicts = append(m.conflicts, Conflict{Kind: ConflictBytes, Ino: ino, Place: at, Copy: copied, Other: other})
	return m.set(copied.Key(), d.Append(nil))
}

// settleCounts sets what follows from names and attributes: link counts, parents, and how many attributes there are. It
// counts from what the authority has.
func (m *merger) settleCounts() error {
	c := counts{names: make(map[vfs.Ino]int), dirs: make(map[vfs.Ino]int), xattrs: make(map[vfs.Ino]int)}
	for k := range m.merged {
		v, err := m.version(k)
		if err != nil {
			return err
		}
		switch k.Kind {
		case vfs.KeyDirent:
			c.entry(k.Ino, v.Theirs, -1)
			c.entry(k.Ino, m.merged[k], 1)
		case vfs.KeyXattr:
			c.xattrs[k.Ino] += presence(m.merged[k]) - presence(v.Theirs)
		}
	}
	places := m.places()
	inos := make(map[vfs.Ino]bool)
	for _, set := range []map[vfs.Ino]int{c.names, c.dirs, c.xattrs} {
		for ino := range set {
			inos[ino] = true
		}
	}
	for k := range m.merged {
		if k.Kind == vfs.KeyInode {
			inos[k.Ino] = true
		}
	}
	for ino := range inos {
		if err := m.settleCount(ino, &c, places); err != nil {
			return err
		}
	}
	return nil
}

// counts are by how much numbers are to differ from what the authority has.
type counts struct{ names, dirs, xattrs map[vfs.Ino]int }

func (c *counts) entry(dir vfs.Ino, value []byte, sign int) {
	if ino := Target(value); ino != 0 {
		c.names[ino] += sign
	}
	if IsDir(value) {
		c.dirs[dir] += sign
	}
}

func presence(value []byte) int {
	if value == nil {
		return 0
	}
	return 1
}

func (m *merger) settleCount(ino vfs.Ino, c *counts, places map[vfs.Ino][]Place) error {
	k := InodeKey(ino)
	v, err := m.version(k)
	if err != nil {
		return err
	}
	value, err := m.value(k)
	if err != nil || value == nil {
		return err
	}
	rec, err := InodeOf(value)
	if err != nil {
		return err
	}
	before, err := InodeOf(v.Theirs)
	if err != nil {
		return err
	}
	if before == nil {
		before = new(vfs.InodeRecord)
		if rec.Type == vfs.TypeDir {
			before.Nlink = 2
		}
	}
	rec.Xattrs = uint32(int(before.Xattrs) + c.xattrs[ino])
	if rec.Type == vfs.TypeDir {
		rec.Nlink = uint32(int(before.Nlink) + c.dirs[ino])
		if ps := places[ino]; len(ps) > 0 {
			rec.Parent = ps[0].Dir
		}
	} else {
		rec.Nlink = uint32(int(before.Nlink) + c.names[ino])
	}
	return m.set(k, rec.Append(nil))
}
