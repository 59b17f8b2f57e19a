package reconcile

import (
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// breakLoops puts directories back where the authority has them until each hangs from the root. It follows parents up to one of
// which it is known that it hangs from the root, so it takes about as many steps as there are names: what is put back was in a
// loop, and nothing that hangs from the root hangs from that.
func (m *merger) breakLoops() (changed bool, err error) {
	places := m.places()
	rooted := map[vfs.Ino]bool{vfs.RootIno: true, 0: true}
	for _, k := range m.keys {
		if k.Kind != vfs.KeyInode || len(places[k.Ino]) == 0 {
			continue
		}
		moved, err := m.hang(k.Ino, places, rooted)
		changed = changed || moved
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// hang sees to it that something hangs from the root, if that can be, and adds what it comes by to what does.
func (m *merger) hang(ino vfs.Ino, places map[vfs.Ino][]Place, rooted map[vfs.Ino]bool) (changed bool, err error) {
	var path []vfs.Ino
	at := make(map[vfs.Ino]int)
	for !rooted[ino] {
		m.steps++
		if i, again := at[ino]; again {
			n, err := m.openLoop(path[i:], places)
			if err != nil || n == 0 {
				return changed, err
			}
			changed = true
			for _, left := range path[i+n:] {
				delete(at, left)
			}
			path = path[:i+n] // the last of which is elsewhere now
			ino = path[len(path)-1]
		} else {
			at[ino] = len(path)
			path = append(path, ino)
		}
		if ino, err = m.parent(ino, places); err != nil {
			return changed, err
		}
	}
	for _, ino := range path {
		rooted[ino] = true
	}
	return changed, nil
}

// openLoop puts the first directory of a loop back that can be. It returns how many of the loop that are, with those before it;
// zero when there is none.
func (m *merger) openLoop(loop []vfs.Ino, places map[vfs.Ino][]Place) (n int, err error) {
	for i, d := range loop {
		if moved, err := m.putBack(d, places); err != nil || moved {
			return i + 1, err
		}
	}
	return 0, nil
}

// parent returns the directory that a directory is to be in, zero for what is none.
func (m *merger) parent(d vfs.Ino, places map[vfs.Ino][]Place) (vfs.Ino, error) {
	if ps := places[d]; len(ps) > 0 {
		return ps[0].Dir, nil
	}
	v, err := m.version(InodeKey(d))
	if err != nil {
		return 0, err
	}
	value := v.Theirs
	if value == nil {
		value = v.Mine
	}
	rec, err := InodeOf(value)
	if err != nil || rec == nil {
		return 0, err
	}
	return rec.Parent, nil
}

// putBack takes back my move of a directory. It reports whether there was one.
func (m *merger) putBack(d vfs.Ino, places map[vfs.Ino][]Place) (bool, error) {
	at, home := places[d], Place{}
	for _, k := range m.itsNames[d] {
		home = Place{k.Ino, k.Name}
	}
	if len(at) != 1 || home == (Place{}) || at[0] == home {
		return false, nil
	}
	from := at[0]
	v, err := m.version(from.Key())
	if err != nil {
		return false, err
	}
	m.lead(from, v.Theirs, places)
	if other := m.merged[home.Key()]; other != nil && Target(other) != d {
		if err := m.giveWayTo(d, home, other, places); err != nil {
			return false, err
		}
	}
	m.conflicts = append(m.conflicts, Conflict{Kind: ConflictMoved, Ino: d, Place: home, Copy: from})
	m.lead(home, m.p.Versions[home.Key()].Theirs, places)
	return true, nil
}

// giveWayTo gives what has a name another one, because a directory must be there.
func (m *merger) giveWayTo(d vfs.Ino, p Place, other []byte, places map[vfs.Ino][]Place) error {
	copied, err := m.conflictName(p)
	if err != nil {
		return err
	}
	m.conflicts = append(m.conflicts, Conflict{Kind: ConflictName, Ino: d, Place: p, Copy: copied, Other: Target(other)})
	if _, err := m.version(copied.Key()); err != nil {
		return err
	}
	m.lead(copied, other, places)
	return nil
}

// lead decides what a name leads to, and has places know, which are in the order of keys.
func (m *merger) lead(p Place, value []byte, places map[vfs.Ino][]Place) {
	k := p.Key()
	if was := Target(m.merged[k]); was != 0 {
		places[was] = slices.DeleteFunc(places[was], func(q Place) bool { return q == p })
	}
	m.merged[k] = value
	if is := Target(value); is != 0 {
		i, _ := slices.BinarySearchFunc(places[is], k, func(q Place, k vfs.Key) int { return q.Key().Compare(k) })
		places[is] = slices.Insert(places[is], i, p)
	}
}
