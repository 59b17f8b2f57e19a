package casstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// mergeProblem finds what is different in three trees.
//
// Two sides may have different inodes for what people take for one thing: an editor saves into a new file and renames it
// over the old one; both make a directory of the same name; and what a merge has found to be one on both sides keeps its
// number on each. Such inodes are joined: on all sides they get the number that theirs has.
type mergeProblem struct {
	ctx                context.Context
	base, mine, theirs *diffSide

	versions map[vfs.Key]reconcile.Version
	moved    bool                // mine has changed since base
	names    []vfs.Key           // to be looked at
	inBase   map[vfs.Ino]vfs.Ino // what inodes that were joined have as numbers
	inMine   map[vfs.Ino]vfs.Ino
}

// gather fills versions.
func (p *mergeProblem) gather() error {
	p.versions = make(map[vfs.Key]reconcile.Version)
	p.inBase, p.inMine = make(map[vfs.Ino]vfs.Ino), make(map[vfs.Ino]vfs.Ino)
	seen := make(map[vfs.Key]struct{})
	for _, side := range []*diffSide{p.mine, p.theirs} {
		d := newDiffer(p.ctx, p.base, side)
		d.kin = true
		err := d.candidates(func(k vfs.Key) error {
			if _, again := seen[k]; again {
				return nil
			}
			seen[k] = struct{}{}
			return p.look(k)
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(p.names, vfs.Key.Compare)
	for len(p.names) > 0 {
		k := p.names[0]
		p.names = p.names[1:]
		if err := p.joinAt(k); err != nil {
			return err
		}
	}
	return p.parents()
}

func (p *mergeProblem) look(k vfs.Key) error {
	v, err := p.version(k, k.Ino, k.Ino)
	if err != nil {
		return err
	}
	p.moved = p.moved || !reconcile.Equal(v.Base, v.Mine)
	return p.put(k, v)
}

// version is a key as the three trees have it, where its inode may have other numbers in the base and in mine: zero for
// none.
func (p *mergeProblem) version(k vfs.Key, base, mine vfs.Ino) (v reconcile.Version, err error) {
	for _, s := range []struct {
		side *diffSide
		ino  vfs.Ino
		to   *[]byte
	}{{p.base, base, &v.Base}, {p.mine, mine, &v.Mine}, {p.theirs, k.Ino, &v.Theirs}} {
		if s.ino == 0 || err != nil {
			continue
		}
		k.Ino = s.ino
		*s.to, err = s.side.value(k)
	}
	return v, err
}

// put notes what a key has, unless it is the same everywhere.
func (p *mergeProblem) put(k vfs.Key, v reconcile.Version) error {
	if reconcile.Equal(v.Base, v.Mine) && reconcile.Equal(v.Base, v.Theirs) {
		delete(p.versions, k)
		return nil
	}
	p.versions[k] = v
	if k.Kind == vfs.KeyDirent {
		p.names = append(p.names, k)
	}
	if len(p.versions) > mergeKeys {
		return fmt.Errorf("more than %d records are different: %w", mergeKeys, vfs.ErrTooBig)
	}
	return nil
}

// joinAt joins the inodes that a name leads to, if they are one thing.
func (p *mergeProblem) joinAt(k vfs.Key) error {
	v, ok := p.versions[k]
	if !ok {
		return nil
	}
	var e [3]vfs.DirentRecord
	for i, value := range [...][]byte{v.Base, v.Mine, v.Theirs} {
		d, err := direntOf(value)
		if err != nil {
			return err
		}
		e[i] = d
	}
	base, mine, theirs := e[0], e[1], e[2]
	switch {
	case mine.Ino == 0, theirs.Ino == 0, mine.Ino == theirs.Ino, mine.Type != theirs.Type:
		return nil
	case base.Ino != 0 && base.Type != theirs.Type, base.Ino == 0 && theirs.Type != vfs.TypeDir:
		return nil
	case theirs.Type != vfs.TypeDir && theirs.Type != vfs.TypeRegular:
		return nil
	}
	one, err := p.isOne(base.Ino, mine.Ino, theirs.Ino)
	if err != nil || !one {
		return err
	}
	return p.join(k, base.Ino, theirs, mine.Ino)
}

// isOne reports whether inodes are each only where the name leads to them.
func (p *mergeProblem) isOne(base, mine, theirs vfs.Ino) (bool, error) {
	for _, c := range []struct {
		side *diffSide
		own  vfs.Ino
	}{{p.base, base}, {p.mine, mine}, {p.theirs, theirs}} {
		for _, ino := range []vfs.Ino{base, mine, theirs} {
			if ino == 0 {
				continue
			}
			rec, there, err := c.side.node(ino)
			if err != nil || there != (ino == c.own) || there && rec.Type != vfs.TypeDir && rec.Nlink != 1 {
				return false, err
			}
		}
	}
	return true, nil
}

// join makes the inodes that a name leads to one, and looks at the names in it.
func (p *mergeProblem) join(at vfs.Key, base vfs.Ino, theirs vfs.DirentRecord, mine vfs.Ino) error {
	keys := map[vfs.Key]struct{}{inodeKey(theirs.Ino): {}}
	for _, s := range []struct {
		side *diffSide
		ino  vfs.Ino
	}{{p.base, base}, {p.mine, mine}, {p.theirs, theirs.Ino}} {
		if s.ino == 0 {
			continue
		}
		delete(p.versions, inodeKey(s.ino))
		names, err := s.side.namesOf(s.ino)
		if err != nil {
			return err
		}
		for _, k := range names {
			delete(p.versions, k)
			k.Ino = theirs.Ino
			keys[k] = struct{}{}
		}
	}
	p.inMine[mine] = theirs.Ino
	if base != 0 {
		p.inBase[base] = theirs.Ino
	}
	for k := range keys {
		v, err := p.version(k, base, mine)
		if err == nil {
			err = p.put(k, v)
		}
		if err != nil {
			return err
		}
	}
	v := p.versions[at]
	v.Mine = v.Theirs
	if base != 0 {
		v.Base = v.Theirs
	}
	return p.put(at, v)
}

// namesOf are the keys of the attributes of an inode and of the names in it.
func (d *diffSide) namesOf(ino vfs.Ino) (keys []vfs.Key, err error) {
	for _, kind := range []byte{keyXattr, keyDirent} {
		err = d.r.scan(keyOfNode(kind, d.layers[0].ws, ino), nil, false, func(key, _ []byte) (bool, error) {
			k, _, err := recordOfKey(key)
			keys = append(keys, k)
			return err == nil, err
		})
		if err != nil {
			break
		}
	}
	return keys, err
}

// parents gives the directories in what was joined the numbers of that.
func (p *mergeProblem) parents() error {
	for k, v := range p.versions {
		if k.Kind != vfs.KeyInode {
			continue
		}
		var err error
		if v.Base, err = withParent(v.Base, p.inBase); err == nil {
			v.Mine, err = withParent(v.Mine, p.inMine)
		}
		if err != nil {
			return err
		}
		p.versions[k] = v
	}
	return nil
}

func withParent(value []byte, to map[vfs.Ino]vfs.Ino) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	rec, err := vfs.DecodeInode(bytes.Clone(value))
	if err != nil {
		return nil, err
	}
	if ino, ok := to[rec.Parent]; ok {
		rec.Parent = ino
		return rec.Append(nil), nil
	}
	return value, nil
}

func inodeKey(ino vfs.Ino) vfs.Key { return vfs.Key{Kind: vfs.KeyInode, Ino: ino} }
