package reconcile

import (
	"github.com/carrelfs/carrel/casstore/vfs"
)

// renumber gives new numbers to inodes that the authority does not have and would not let in under theirs.
func (m *merger) renumber() error {
	if !m.p.Renumber && !m.p.Stranger {
		return nil
	}
	to := make(map[vfs.Ino]vfs.Ino)
	for _, k := range m.keys {
		v := m.p.Versions[k]
		if k.Kind != vfs.KeyInode || v.Theirs != nil || m.merged[k] == nil || v.Base == nil && !m.p.Stranger {
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
