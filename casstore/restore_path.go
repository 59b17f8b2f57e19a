package casstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// subtree is what is under a path on one side.
type subtree struct {
	side  *diffSide
	names map[vfs.Ino]int            // how many names in it lead to each inode
	lists map[vfs.Ino][]storedDirent // what is in each directory
	order []vfs.Ino                  // of its inodes, each behind a directory that it is in
	in    map[vfs.Ino]vfs.Ino        // the directory that each directory is in
}

// subtree reads the names below an entry of a directory.
func (d *diffSide) subtree(ctx context.Context, dir vfs.Ino, top vfs.DirentRecord) (*subtree, error) {
	t := &subtree{
		side: d, names: make(map[vfs.Ino]int), lists: make(map[vfs.Ino][]storedDirent), in: make(map[vfs.Ino]vfs.Ino),
	}
	t.add(dir, top)
	for i := 0; i < len(t.order); i++ {
		ino := t.order[i]
		if _, ok := t.in[ino]; !ok {
			continue
		}
		if ctx.Err() != nil {
			return nil, vfs.ErrInterrupted
		}
		list, _, err := d.r.dirents(d.layers[0].ws, ino, 0, restoreNames-len(t.order)+1)
		if err == nil && len(list) > restoreNames-len(t.order) {
			err = fmt.Errorf("more than %d names: %w", restoreNames, vfs.ErrTooBig)
		}
		if err != nil {
			return nil, err
		}
		t.lists[ino] = list
		for _, e := range list {
			t.add(ino, e.DirentRecord)
		}
	}
	return t, nil
}

func (t *subtree) add(dir vfs.Ino, e vfs.DirentRecord) {
	if e.Ino == 0 {
		return
	}
	if t.names[e.Ino]++; t.names[e.Ino] > 1 {
		return
	}
	t.order = append(t.order, e.Ino)
	if e.Type == vfs.TypeDir {
		t.in[e.Ino] = dir
	}
}

// outside is how many names an inode has that are not in the subtree.
func (t *subtree) outside(ino vfs.Ino, rec *vfs.InodeRecord) int {
	if rec.Type == vfs.TypeDir {
		return 1 - t.names[ino]
	}
	return int(rec.Nlink) - t.names[ino]
}

// restorer makes the records that make a workspace, or a path of it, what it was.
//
// Of a path, all that is below it becomes what it was, and nothing else changes. An inode comes back under its number, and
// a file with the names that it has elsewhere: they lead to the same file. But what was only moved away from the path
// meanwhile stays where it is as it is, and what it was is made anew.
type restorer struct {
	ctx       context.Context
	now, then *diffSide
	stamp     vfs.Time // of what changes around a path

	records []vfs.PushRecord
	size    int
	seen    map[vfs.Key]struct{} // what is decided

	is, was *subtree
	changed map[vfs.Ino]bool    // what may be different
	numbers map[vfs.Ino]vfs.Ino // that inodes of then get
	kept    map[vfs.Ino]bool    // of now, those that are in the path again
	spare   map[vfs.Ino]vfs.Ino // new numbers, kept from one try to the next
}

// want adds the record that gives a key a value, unless it has it.
func (p *restorer) want(k vfs.Key, value []byte) error {
	if _, again := p.seen[k]; again {
		return nil
	}
	p.seen[k] = struct{}{}
	is, was := vfs.Record{Key: k}, vfs.Record{Key: k, Value: value}
	var err error
	if is.Value, err = p.now.value(k); err != nil || is.Base() == was.Base() {
		return err
	}
	p.records = append(p.records, vfs.PushRecord{Record: was, Base: is.Base()})
	if p.size += len(was.Name) + len(was.Value); p.size > vfs.MaxPushBytes || len(p.records) > vfs.MaxPushRecords {
		return fmt.Errorf("too much has changed since; a fork of then can take its place: %w", vfs.ErrTooBig)
	}
	return nil
}

// all is for the whole workspace: only what has changed is looked at.
func (p *restorer) all() error {
	d := newDiffer(p.ctx, p.now, p.then)
	return d.candidates(func(k vfs.Key) error {
		if _, again := p.seen[k]; again {
			return nil
		}
		value, err := p.then.value(k)
		if err != nil {
			return err
		}
		return p.want(k, value)
	})
}

// at is for a path.
func (p *restorer) at(path string) error {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if len(parts) == 0 {
		return p.all()
	}
	p.changed = make(map[vfs.Ino]bool)
	d := newDiffer(p.ctx, p.now, p.then)
	if err := d.candidates(func(k vfs.Key) error { p.changed[k.Ino] = true; return nil }); err != nil {
		return err
	}
	in, was, err := p.then.walk(parts)
	if err != nil {
		return fmt.Errorf("as it was then: %w", err)
	}
	if p.was, err = p.then.subtree(p.ctx, in, was); err != nil {
		return err
	}
	dir, err := p.seeNow(parts)
	if err == nil {
		err = p.number()
	}
	if err == nil {
		err = p.top(dir, parts[len(parts)-1], was)
	}
	if err != nil {
		return err
	}
	for _, ino := range p.was.order {
		if err := p.inode(ino, dir); err != nil {
			return err
		}
	}
	for _, ino := range p.is.order {
		if err := p.drop(ino); err != nil {
			return err
		}
	}
	return nil
}

// walk follows a path: ErrNotExist when it leads nowhere.
func (d *diffSide) walk(parts []string) (dir vfs.Ino, e vfs.DirentRecord, err error) {
	e = vfs.DirentRecord{Ino: vfs.RootIno, Type: vfs.TypeDir}
	for _, name := range parts {
		if e.Type != vfs.TypeDir {
			return 0, e, vfs.ErrNotDir
		}
		dir = e.Ino
		if e, err = d.entry(dir, name); err != nil {
			return 0, e, err
		}
		if e.Ino == 0 {
			return 0, e, vfs.ErrNotExist
		}
	}
	return dir, e, nil
}

// entry is what a name leads to, with no inode when it leads nowhere.
func (d *diffSide) entry(dir vfs.Ino, name string) (vfs.DirentRecord, error) {
	if err := vfs.CheckName(name); err != nil {
		return vfs.DirentRecord{}, err
	}
	value, err := d.value(vfs.Key{Kind: vfs.KeyDirent, Ino: dir, Name: name})
	if err != nil {
		return vfs.DirentRecord{}, err
	}
	return direntOf(value)
}

// seeNow reads what is under the path now, which may be nothing, and returns the directory that it is in.
func (p *restorer) seeNow(parts []string) (dir vfs.Ino, err error) {
	above, name := parts[:len(parts)-1], parts[len(parts)-1]
	_, in, err := p.now.walk(above)
	if err == nil && in.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	if err != nil {
		return 0, fmt.Errorf("there is no directory /%s any more, which can be restored: %w", strings.Join(above, "/"), err)
	}
	is, err := p.now.entry(in.Ino, name)
	if err == nil {
		p.is, err = p.now.subtree(p.ctx, in.Ino, is)
	}
	return in.Ino, err
}

// number finds a number for each inode: its own, unless that has been moved away from the path.
func (p *restorer) number() error {
	p.numbers, p.kept = make(map[vfs.Ino]vfs.Ino), make(map[vfs.Ino]bool)
	for _, ino := range p.was.order {
		if p.is.names[ino] == 0 {
			away, err := p.movedAway(ino)
			if err != nil {
				return err
			}
			if away {
				if p.spare[ino] == 0 {
					p.spare[ino] = p.now.view.store.nextIno()
				}
				p.numbers[ino] = p.spare[ino]
				continue
			}
		}
		p.numbers[ino] = ino
		p.kept[ino] = true
	}
	return nil
}

// movedAway reports whether an inode that has no name in the path is elsewhere, and was not there then as well.
func (p *restorer) movedAway(ino vfs.Ino) (bool, error) {
	_, there, err := p.now.node(ino)
	if err != nil || !there {
		return false, err
	}
	rec, _, err := p.then.node(ino)
	return p.was.outside(ino, &rec) == 0, err
}

// top gives the path its name, and the directory around it what follows from that.
func (p *restorer) top(dir vfs.Ino, name string, was vfs.DirentRecord) error {
	is, err := p.now.entry(dir, name)
	if err != nil {
		return err
	}
	e := vfs.DirentRecord{Ino: p.numbers[was.Ino], Type: was.Type}
	if is == e {
		return nil
	}
	if err := p.want(vfs.Key{Kind: vfs.KeyDirent, Ino: dir, Name: name}, e.Append(nil)); err != nil {
		return err
	}
	rec, _, err := p.now.node(dir)
	if err != nil {
		return err
	}
	if is.Type == vfs.TypeDir {
		rec.Nlink--
	}
	if e.Type == vfs.TypeDir {
		rec.Nlink++
	}
	rec.Mtime, rec.Ctime = p.stamp, p.stamp
	return p.want(inodeKey(dir), rec.Append(nil))
}

// inode makes an inode what it was. dir is the directory that the path is in.
func (p *restorer) inode(ino, dir vfs.Ino) error {
	as := p.numbers[ino]
	if as == ino && !p.changed[ino] && p.is.names[ino] == p.was.names[ino] {
		return nil
	}
	rec, _, err := p.then.node(ino)
	if err != nil {
		return err
	}
	switch in, isDir := p.was.in[ino]; {
	case isDir && ino == p.was.order[0]:
		rec.Parent = dir
	case isDir:
		rec.Parent = p.numbers[in]
	default:
		elsewhere, err := p.elsewhere(as)
		if err != nil {
			return err
		}
		rec.Nlink = uint32(p.was.names[ino] + elsewhere)
	}
	if err := p.want(inodeKey(as), rec.Append(nil)); err != nil {
		return err
	}
	if err := p.xattrs(ino, as); err != nil {
		return err
	}
	for _, e := range p.was.lists[ino] {
		d := vfs.DirentRecord{Ino: p.numbers[e.Ino], Type: e.Type}
		if err := p.want(vfs.Key{Kind: vfs.KeyDirent, Ino: as, Name: e.name}, d.Append(nil)); err != nil {
			return err
		}
	}
	return p.dropNames(as)
}

// elsewhere is how many names a file has now that are not in the path.
func (p *restorer) elsewhere(ino vfs.Ino) (int, error) {
	rec, there, err := p.now.node(ino)
	if err != nil || !there {
		return 0, err
	}
	return p.is.outside(ino, &rec), nil
}

// xattrs gives an inode the attributes that one had then, and no others.
func (p *restorer) xattrs(ino, as vfs.Ino) error {
	values, err := p.then.r.xattrs(p.then.layers[0].ws, ino)
	if err != nil {
		return err
	}
	for name, value := range values {
		if err := p.want(vfs.Key{Kind: vfs.KeyXattr, Ino: as, Name: name}, value); err != nil {
			return err
		}
	}
	return p.dropXattrs(as)
}

// dropXattrs removes the attributes that nothing was wanted of.
func (p *restorer) dropXattrs(ino vfs.Ino) error {
	values, err := p.now.r.xattrs(p.now.layers[0].ws, ino)
	for name := range values {
		if err == nil {
			err = p.want(vfs.Key{Kind: vfs.KeyXattr, Ino: ino, Name: name}, nil)
		}
	}
	return err
}

// dropNames removes the names that nothing was wanted of.
func (p *restorer) dropNames(dir vfs.Ino) error {
	for _, e := range p.is.lists[dir] {
		if err := p.want(vfs.Key{Kind: vfs.KeyDirent, Ino: dir, Name: e.name}, nil); err != nil {
			return err
		}
	}
	return nil
}

// drop takes an inode that is not in the path any more out of it: it goes, unless it has names elsewhere.
func (p *restorer) drop(ino vfs.Ino) error {
	if p.kept[ino] {
		return nil
	}
	rec, _, err := p.now.node(ino)
	if err != nil {
		return err
	}
	key := inodeKey(ino)
	if left := p.is.outside(ino, &rec); left > 0 {
		rec.Nlink, rec.Ctime = uint32(left), p.stamp
		return p.want(key, rec.Append(nil))
	}
	if err := p.want(key, nil); err != nil {
		return err
	}
	if err := p.dropXattrs(ino); err != nil {
		return err
	}
	return p.dropNames(ino)
}
