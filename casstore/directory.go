package casstore

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// directory is what is known of a directory's entries: all changed ones, and a cache of clean ones. When complete, what
// is not here is not in the directory.
type directory struct {
	node     *inode
	complete bool
	entries  *btree.BTreeG[*dirent] // by hash, then name
	dirty    int                    // entries that are not clean
}

// dirent is an entry: ino zero says that the name leads nowhere.
type dirent struct {
	stamp
	dir       *directory
	name      string
	hash      uint64
	ino       vfs.Ino
	typ       vfs.Type
	persisted bool // has a record in the store, or will when the commit under way is done
}

func newDirectory(n *inode, complete bool) *directory {
	return &directory{
		node:     n,
		complete: complete,
		entries:  btree.NewBTreeGOptions(direntLess, btree.Options{NoLocks: true, Degree: 16}),
	}
}

func direntLess(a, b *dirent) bool {
	if c := cmp.Compare(a.hash, b.hash); c != 0 {
		return c < 0
	}
	return a.name < b.name
}

func (e *dirent) capture(c *cut) {
	if e.ino == 0 && !e.persisted {
		return
	}
	key := keyOfDirent(c.tree.id, e.dir.node.attr.Ino, e.name)
	c.records++
	if e.ino == 0 {
		c.kvs = append(c.kvs, kv{key: key})
		return
	}
	e.persisted = true
	r := vfs.DirentRecord{Ino: e.ino, Type: e.typ}
	c.kvs = append(c.kvs, kv{key: key, value: r.Append(nil)})
}

func (e *dirent) committed(t *Workspace, clean bool) {
	if !clean {
		return
	}
	e.dir.dirty--
	if e.ino == 0 {
		e.persisted = false
		if _, there := e.dir.entries.Delete(e); there {
			t.cost--
		}
	}
}

// get returns the entry of name as far as it is known: nil and false when only the store can tell.
func (d *directory) get(name string) (*dirent, bool) {
	e, ok := d.entries.Get(&dirent{hash: nameHash(name), name: name})
	if !ok {
		return nil, d.complete
	}
	if e.ino == 0 {
		return nil, true
	}
	return e, true
}

// setDirent makes name lead to a node, or nowhere when ino is zero, and marks the entry as changed.
func (w *Workspace) setDirent(d *directory, name string, ino vfs.Ino, typ vfs.Type) {
	e := w.changing(d, name)
	w.touch(e)
	e.ino, e.typ = ino, typ
}

// changing returns the entry of a name, which the caller is about to change and to mark.
func (w *Workspace) changing(d *directory, name string) *dirent {
	probe := &dirent{hash: nameHash(name), name: name}
	e, ok := d.entries.Get(probe)
	if !ok {
		e = probe
		e.dir = d
		// Whether the store has an entry of this name is not known when the directory is not complete.
		e.persisted = !d.complete
		d.entries.Set(e)
		w.cost++
	}
	if e.gen == 0 {
		d.dirty++
	}
	return e
}

// learn puts what the store says of a name into the cache; what is there already is newer.
func (w *Workspace) learn(d *directory, name string, r vfs.DirentRecord) {
	e := &dirent{dir: d, hash: nameHash(name), name: name, ino: r.Ino, typ: r.Type, persisted: r.Ino != 0}
	if _, ok := d.entries.Get(e); !ok {
		d.entries.Set(e)
		w.cost++
	}
}

// forget drops the clean entries.
func (w *Workspace) forget(d *directory) {
	w.cost -= d.entries.Len() - d.dirty
	d.complete = false
	if d.dirty == 0 {
		d.entries.Clear()
		return
	}
	kept := newDirectory(d.node, false).entries
	d.entries.Scan(func(e *dirent) bool {
		if e.gen != 0 {
			kept.Set(e)
		}
		return true
	})
	d.entries = kept
}
