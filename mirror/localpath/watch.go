package localpath

import (
	"context"
	"errors"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Watch implements vfs.Tree. Changes of one tree come in their order, and of both one at a time.
func (t *Tree) Watch(skip any, f func(vfs.Change)) (stop func()) {
	var calling sync.Mutex
	tell := func(c vfs.Change, shown bool) {
		if shown {
			calling.Lock()
			defer calling.Unlock()
			f(c)
		}
	}
	stopShared := t.shared.Watch(skip, func(c vfs.Change) { tell(c, !t.covered(c)) })
	stopLocal := t.local.Watch(skip, func(c vfs.Change) { tell(t.changed(c)) })
	return func() {
		stopShared()
		stopLocal()
	}
}

// FlushWatch implements vfs.WatchFlusher.
func (t *Tree) FlushWatch(ctx context.Context) error {
	return errors.Join(vfs.FlushWatch(ctx, t.shared), vfs.FlushWatch(ctx, t.local))
}

// covered reports whether a change of the shared tree is one of a name that something local has.
func (t *Tree) covered(c vfs.Change) bool {
	if c.Kind != vfs.ChangeEntry {
		return false
	}
	box, boxed := t.box(c.Dir)
	if !boxed {
		return false
	}
	_, err := t.local.Lookup(context.Background(), box, c.Name)
	return err == nil
}

// changed is a change of the local tree as it is presented. It is not when it is one of the root, in which the boxes are.
func (t *Tree) changed(c vfs.Change) (_ vfs.Change, shown bool) {
	if c.Dir == vfs.RootIno || c.Ino == vfs.RootIno {
		return c, false
	}
	if c.Dir != 0 {
		c.Dir = t.shown(c.Dir)
	}
	if c.Ino != 0 {
		c.Ino = t.shown(c.Ino)
	}
	return c, true
}
