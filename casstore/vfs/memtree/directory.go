package memtree

import (
	"cmp"
	"context"
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// directory holds the entries of one directory, by name and in the order of their offsets. An offset is given once.
type directory struct {
	byName  map[string]*vfs.Dirent
	ordered []*vfs.Dirent
	next    vfs.Offset
}

func newDirectory() *directory {
	return &directory{byName: make(map[string]*vfs.Dirent), next: vfs.FirstOffset}
}

func (d *directory) find(name string) (*vfs.Dirent, bool) {
	e, ok := d.byName[name]
	return e, ok
}

// set makes name lead to n. An entry that is there keeps its offset, so that a reader sees its name once.
func (d *directory) set(name string, n *node) {
	if e, ok := d.byName[name]; ok {
		e.Ino, e.Type = n.attr.Ino, n.attr.Type
		return
	}
	e := &vfs.Dirent{Name: name, Ino: n.attr.Ino, Type: n.attr.Type, Offset: d.next}
	d.next++
	d.byName[name] = e
	d.ordered = append(d.ordered, e)
}

func (d *directory) remove(name string) {
	e := d.byName[name]
	delete(d.byName, name)
	i := d.after(e.Offset) - 1
	d.ordered = slices.Delete(d.ordered, i, i+1)
}

// after returns the index in ordered of the first entry past an offset.
func (d *directory) after(off vfs.Offset) int {
	i, found := slices.BinarySearchFunc(d.ordered, off, func(e *vfs.Dirent, off vfs.Offset) int {
		return cmp.Compare(e.Offset, off)
	})
	if found {
		i++
	}
	return i
}

// ReadDir implements [vfs.Tree].
func (t *Tree) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	for {
		batch, err := t.readBatch(ctx, dir, after)
		if err != nil || len(batch) == 0 {
			return inoError("readdir", dir, err)
		}
		for _, e := range batch {
			if !yield(e) {
				return nil
			}
		}
		after = batch[len(batch)-1].Offset
	}
}

func (t *Tree) readBatch(ctx context.Context, dir vfs.Ino, after vfs.Offset) ([]vfs.Dirent, error) {
	var batch []vfs.Dirent
	err := t.view(ctx, func() error {
		d, err := t.dirLocked(dir)
		if err != nil {
			return err
		}
		rest := d.entries.ordered[d.entries.after(after):]
		for _, e := range rest[:min(len(rest), readDirBatch)] {
			batch = append(batch, *e)
		}
		return nil
	})
	return batch, err
}
