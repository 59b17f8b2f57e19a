package reconcile

import (
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// mergeNames decides for each name by itself what it leads to.
func (m *merger) mergeNames() error {
	for _, k := range m.keys {
		if k.Kind != vfs.KeyDirent {
			continue
		}
		v := m.p.Versions[k]
		value, both := three(v)
		switch {
		case !both:
		case v.Mine == nil: // they put something else there
		case v.Theirs == nil:
			value = v.Mine
		default:
			m.displaced = append(m.displaced, displaced{Place{k.Ino, k.Name}, v.Mine, ConflictName})
		}
		m.merged[k] = value
	}
	return nil
}

// maxRounds bounds how often what was decided on one name makes another be decided anew. Each round brings a directory
// back or puts one in its place for good, so it is only reached by a mistake of ours.
const maxRounds = 1 << 16

// place sees to it that what is to be there has a name, in a directory that is there, and that no directory has two or
// hangs from itself.
func (m *merger) place() error {
	for _, d := range m.displaced {
		if err := m.giveWay(d); err != nil {
			return err
		}
	}
	m.displaced = nil
	for range maxRounds {
		again := false
		for _, step := range []func() (bool, error){m.oneNameEach, m.bringBack, m.keepParents, m.breakLoops} {
			changed, err := step()
			if err != nil {
				return err
			}
			again = again || changed
		}
		if !again {
			return nil
		}
	}
	return fmt.Errorf("names do not settle: %w", vfs.ErrInvalid)
}

// giveWay finds another name for an inode of mine, unless it is the same as what has taken its place.
func (m *merger) giveWay(d displaced) error {
	there, err := m.value(d.Key())
	if err != nil {
		return err
	}
	mine, winner := Target(d.value), Target(there)
	if same, err := m.twins(mine, winner); err != nil || same {
		return err
	}
	copied, err := m.conflictName(d.Place)
	if err != nil {
		return err
	}
	m.conflicts = append(m.conflicts, Conflict{Kind: d.kind, Ino: winner, Place: d.Place, Copy: copied, Other: mine})
	return m.set(copied.Key(), d.value)
}

// twins reports whether two new files or symlinks have the same contents, so that nobody misses one. Empty files are none: who
// has just made one (a database, a log) has it open and goes on to write to it, which would go to an inode without a name.
func (m *merger) twins(mine, theirs vfs.Ino) (bool, error) {
	a, err := m.version(InodeKey(mine))
	if err != nil {
		return false, err
	}
	b, err := m.version(InodeKey(theirs))
	if err != nil || a.Base != nil || a.Theirs != nil || a.Mine == nil || b.Theirs == nil {
		return false, err
	}
	x, err := InodeOf(a.Mine)
	if err != nil {
		return false, err
	}
	y, err := InodeOf(b.Theirs)
	empty := x.Type == vfs.TypeRegular && x.Size == 0
	return err == nil && x.Type != vfs.TypeDir && !empty && x.Nlink == 1 && x.Type == y.Type && sameBytes(x, y), err
}

// places returns, for the inodes that touched names lead to, which of these there are.
func (m *merger) places() map[vfs.Ino][]Place {
	out := make(map[vfs.Ino][]Place)
	for _, k := range m.sortedMerged(vfs.KeyDirent) {
		if ino := Target(m.merged[k]); ino != 0 {
			out[ino] = append(out[ino], Place{k.Ino, k.Name})
		}
	}
	return out
}

// oneNameEach takes from a directory with two names, and from a file that both sides have renamed, the one that I gave.
func (m *merger) oneNameEach() (changed bool, err error) {
	places := m.places()
	for _, k := range m.keys {
		if k.Kind != vfs.KeyInode || len(places[k.Ino]) < 2 {
			continue
		}
		v := m.p.Versions[k]
		once, err := m.hasOneName(v)
		if err != nil {
			return changed, err
		}
		if !once {
			continue
		}
		for _, p := range places[k.Ino] {
			value, err := m.version(p.Key())
			if err != nil {
				return changed, err
			}
			if Target(value.Theirs) == k.Ino {
				continue
			}
			m.conflicts = append(m.conflicts, Conflict{Kind: ConflictMoved, Ino: k.Ino, Place: p})
			m.merged[p.Key()] = value.Theirs
			changed = true
		}
	}
	return changed, nil
}

// hasOneName reports whether an inode that the authority has can have one name only: a directory, or a file that has one
// on each side.
func (m *merger) hasOneName(v Version) (bool, error) {
	theirs, err := InodeOf(v.Theirs)
	if err != nil || theirs == nil {
		return false, err
	}
	if theirs.Type == vfs.TypeDir {
		return true, nil
	}
	base, err := InodeOf(v.Base)
	if err != nil || base == nil {
		return false, err
	}
	mine, err := InodeOf(v.Mine)
	return err == nil && mine != nil && base.Nlink == 1 && mine.Nlink == 1 && theirs.Nlink == 1, err
}

// bringBack gives names to inodes that one side has removed and the other has changed, or of which each has removed the
// name that the other kept.
func (m *merger) bringBack() (changed bool, err error) {
	places := m.places()
	for _, k := range m.keys {
		v := m.p.Versions[k]
		if k.Kind != vfs.KeyInode || k.Ino == vfs.RootIno || v.Mine == nil && v.Theirs == nil || len(places[k.Ino]) > 0 {
			continue
		}
		left, err := m.untouchedNames(k.Ino, v)
		if err != nil {
			return changed, err
		}
		if left > 0 {
			continue
		}
		worth := v.Mine != nil && v.Theirs != nil
		if !worth {
			if worth, err = edited(v); err != nil {
				return changed, err
			}
			worth = worth || m.editedXattrs(k.Ino, v) // the record says only how many there are
		}
		if worth && (v.Base != nil || v.Theirs != nil) {
			if err := m.restore(k.Ino, v); err != nil {
				return changed, err
			}
			changed = true
		}
	}
	return changed, nil
}

// untouchedNames is how many names an inode has, on the side that has it, under keys that nobody has changed.
func (m *merger) untouchedNames(ino vfs.Ino, v Version) (int, error) {
	value := v.Theirs
	if value == nil {
		value = v.Mine
	}
	rec, err := InodeOf(value)
	if err != nil || rec == nil {
		return 0, err
	}
	n := int(rec.Nlink)
	if rec.Type == vfs.TypeDir {
		n = 1
	}
	return n - len(m.namesOf(ino, v)), nil
}

// restore gives an inode the names that the side had which kept it.
func (m *merger) restore(ino vfs.Ino, v Version) error {
	for _, k := range m.namesOf(ino, v) {
		side := m.p.Versions[k].Theirs
		if v.Theirs == nil {
			side = m.p.Versions[k].Mine
		}
		if Equal(m.merged[k], side) {
			continue
		}
		p := Place{k.Ino, k.Name}
		c := Conflict{Kind: ConflictRemoved, Ino: ino, Place: p}
		if other := Target(m.merged[k]); other != 0 {
			copied, err := m.conflictName(p)
			if err != nil {
				return err
			}
			c = Conflict{Kind: ConflictName, Ino: other, Place: p, Copy: copied, Other: ino, Theirs: v.Theirs != nil}
			p = copied
		}
		m.conflicts = append(m.conflicts, c)
		if err := m.set(p.Key(), side); err != nil {
			return err
		}
	}
	return nil
}

// keepParents brings directories back that one side has removed and in which there is something.
func (m *merger) keepParents() (changed bool, err error) {
	places, back := m.places(), make(map[vfs.Ino]bool)
	for _, k := range m.sortedMerged(vfs.KeyDirent) {
		v, ok := m.p.Versions[InodeKey(k.Ino)]
		if m.merged[k] == nil || !ok || k.Ino == vfs.RootIno || (v.Mine == nil) == (v.Theirs == nil) || len(places[k.Ino]) > 0 ||
			back[k.Ino] {
			continue
		}
		left, err := m.untouchedNames(k.Ino, v)
		if err != nil {
			return changed, err
		}
		if left > 0 {
			continue
		}
		if err := m.restore(k.Ino, v); err != nil {
			return changed, err
		}
		changed, back[k.Ino] = true, true // no other loses a name by that
	}
	return changed, nil
}

// conflictName returns a free name beside another.
func (m *merger) conflictName(p Place) (Place, error) {
	for n := 1; ; n++ {
		suffix := fmt.Sprintf(".conflict-%s-%d", m.p.Mirror, n)
		stem := p.Name
		if over := len(stem) + len(suffix) - vfs.MaxNameLen; over > 0 {
			stem = stem[:len(stem)-over]
		}
		free := Place{p.Dir, stem + suffix}
		value, err := m.value(free.Key())
		if err != nil {
			return Place{}, err
		}
		if v := m.p.Versions[free.Key()]; value == nil && v.Mine == nil && v.Theirs == nil {
			return free, nil
		}
	}
}
