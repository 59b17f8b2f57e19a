package reconcile

import (
	"github.com/carrelfs/carrel/casstore/vfs"
)

// tellApart gives another number to an inode of mine whose number the authority has given to another. Where both have given
// it the same names as well, it is to get one beside them. So is what is left of a file that is lost, for which the authority's
// stands, if it has one.
func (m *merger) tellApart() error {
	m.apart = make(map[vfs.Ino]bool)
	to := make(map[vfs.Ino]vfs.Ino)
	var unplaced []vfs.Ino
	for _, k := range m.keys {
		v := m.p.Versions[k]
		if k.Kind != vfs.KeyInode || k.Ino == vfs.RootIno {
			continue
		}
		two, err := m.areTwo(v.Mine, v.Theirs)
		if err != nil {
			return err
		}
		_, lost := m.p.Lost[k.Ino]
		if !two && !lost {
			continue
		}
		if lost || len(m.myNames[k.Ino]) == 0 && !Equal(v.Mine, v.Base) {
			unplaced = append(unplaced, k.Ino)
		}
		ino, err := m.otherIno()
		if err != nil {
			return err
		}
		to[k.Ino], m.apart[ino] = ino, true
	}
	if len(to) == 0 {
		return nil
	}
	if err := m.placeBeside(unplaced, to); err != nil {
		return err
	}
	p := *m.p
	p.Versions = make(map[vfs.Key]Version, len(m.p.Versions))
	for k, v := range m.p.Versions {
		its := v.Theirs
		if left, lost := m.p.Lost[k.Ino]; lost && k.Kind == vfs.KeyInode {
			v.Base, v.Mine = nil, left
		}
		if _, lost := m.p.Lost[Target(v.Mine)]; lost && k.Kind == vfs.KeyDirent {
			v.Mine, v.Base = its, its // it gets one beside it
		}
		for _, value := range []*[]byte{&v.Base, &v.Mine} {
			var err error
			if *value, err = renumbered(k, *value, to); err != nil {
				return err
			}
		}
		if ino, other := to[k.Ino]; other {
			p.Versions[k] = Version{Theirs: its}
			k.Ino, v.Theirs = ino, nil
		}
		p.Versions[k] = v
	}
	m.p = &p
	m.index()
	return nil
}

// placeBeside has inodes of mine, under their other numbers, give way to those that have their names.
func (m *merger) placeBeside(files []vfs.Ino, to map[vfs.Ino]vfs.Ino) error {
	var unnamed []vfs.Ino
	for _, ino := range files {
		if len(m.myNames[ino]) == 0 {
			unnamed = append(unnamed, ino)
		}
	}
	found, err := m.p.View.NameOf(unnamed)
	if err != nil {
		return err
	}
	for _, ino := range files {
		rec, err := InodeOf(m.p.Versions[InodeKey(ino)].Mine)
		if err != nil {
			return err
		}
		at, ok := found[ino]
		kind := ConflictName
		if names := m.myNames[ino]; len(names) > 0 {
			at, ok = Place{names[0].Ino, names[0].Name}, true
		}
		if _, lost := m.p.Lost[ino]; lost {
			kind = ConflictLost
		}
		if !ok {
			at = Place{vfs.RootIno, "lost"}
		}
		if dir, other := to[at.Dir]; other {
			at.Dir = dir
		}
		d := vfs.DirentRecord{Ino: to[ino], Type: rec.Type}
		m.displaced = append(m.displaced, displaced{at, d.Append(nil), kind})
	}
	return nil
}

// areTwo reports whether two records under a number are of two inodes: the type of one stays, and, unless the problem has joined
// two to one, when it was made.
func (m *merger) areTwo(a, b []byte) (bool, error) {
	x, err := InodeOf(a)
	if err != nil || x == nil || b == nil {
		return false, err
	}
	y, err := InodeOf(b)
	again := m.p.Renumber || m.p.Stranger
	return err == nil && (x.Type != y.Type || again && x.Btime != y.Btime), err
}

// renumber gives new numbers to inodes that the authority does not have and would not let in under theirs.
func (m *merger) renumber() error {
	if !m.p.Renumber && !m.p.Stranger {
		return nil
	}
	to := make(map[vfs.Ino]vfs.Ino)
	for _, k := range m.keys {
		v := m.p.Versions[k]
		if k.Kind != vfs.KeyInode || v.Theirs != nil || m.merged[k] == nil || v.Base == nil && !m.p.Stranger || m.apart[k.Ino] {
			continue
		}
		ino, err := m.otherIno()
		if err != nil {
			return err
		}
		to[k.Ino] = ino
	}
	if len(to) == 0 {
		return nil
	}
	old := m.merged
	m.merged = make(map[vfs.Key][]byte, len(old))
	for k, value := range old {
		moved, err := renumbered(k, value, to)
		if err != nil {
			return err
		}
		ino, other := to[k.Ino]
		if !other {
			m.merged[k] = moved
			continue
		}
		m.merged[k] = nil // which it has of the mirror alone
		k.Ino = ino
		m.theirs[k] = nil
		m.merged[k] = moved
	}
	for i := range m.conflicts {
		m.conflicts[i].renumber(to)
	}
	return nil
}

// otherIno returns a number that no inode of the problem has. A store that was put back gives numbers again that it has given
// before: then one inode would get the number of another that is renumbered too, or had that of one which is removed.
func (m *merger) otherIno() (vfs.Ino, error) {
	for {
		ino, err := m.p.NewIno()
		if err != nil {
			return 0, err
		}
		if _, used := m.p.Versions[InodeKey(ino)]; !used {
			return ino, nil
		}
	}
}

// renumbered is the value of a key with other numbers in it.
func renumbered(k vfs.Key, value []byte, to map[vfs.Ino]vfs.Ino) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	switch k.Kind {
	case vfs.KeyDirent:
		d, err := vfs.DecodeDirent(value)
		if ino, ok := to[d.Ino]; ok && err == nil {
			d.Ino = ino
			return d.Append(nil), nil
		}
		return value, err
	case vfs.KeyInode:
		rec, err := InodeOf(value)
		if err != nil {
			return nil, err
		}
		if ino, ok := to[rec.Parent]; ok {
			rec.Parent = ino
			return rec.Append(nil), nil
		}
	}
	return value, nil
}

func (c *Conflict) renumber(to map[vfs.Ino]vfs.Ino) {
	for _, ino := range []*vfs.Ino{&c.Ino, &c.Other, &c.Place.Dir, &c.Copy.Dir} {
		if other, ok := to[*ino]; ok {
			*ino = other
		}
	}
}
