package memtree

import (
	"context"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// node is an inode with what hangs on it. Tree.mu guards it.
type node struct {
	attr    vfs.Attr // Size and Blocks of a regular file follow bytes
	holds   uint64
	bytes   pages             // of a regular file
	target  string            // of a symlink
	entries *directory        // of a directory
	xattrs  map[string][]byte // nil when there are none
}

// contentLocked returns a node when it has bytes to read and write.
func (t *Tree) contentLocked(ino vfs.Ino) (*node, error) {
	n, err := t.nodeLocked(ino)
	switch {
	case err != nil:
		return nil, err
	case n.attr.Type == vfs.TypeDir:
		return nil, vfs.ErrIsDir
	case n.attr.Type != vfs.TypeRegular:
		return nil, vfs.ErrInvalid
	}
	return n, nil
}

// killPriv removes the set-ID bits as write(2) does: the set-group-ID bit means something else without group execution.
func (n *node) killPriv() {
	n.attr.Mode &^= vfs.ModeSetUID
	if n.attr.Mode&0o010 != 0 {
		n.attr.Mode &^= vfs.ModeSetGID
	}
}

// dropIfDeadLocked forgets n when neither a name nor a hold is left.
func (t *Tree) dropIfDeadLocked(n *node) {
	if n.attr.Nlink > 0 || n.holds > 0 {
		return
	}
	t.pages -= n.bytes.count()
	delete(t.nodes, n.attr.Ino)
}

// Stat implements [vfs.Tree].
func (t *Tree) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	var a vfs.Attr
	err := t.view(ctx, func() error {
		n, err := t.nodeLocked(ino)
		if err == nil {
			a = n.attr
		}
		return err
	})
	return a, inoError("stat", ino, err)
}

// Readlink implements [vfs.Tree].
func (t *Tree) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	var target string
	err := t.view(ctx, func() error {
		n, err := t.nodeLocked(ino)
		if err != nil {
			return err
		}
		if n.attr.Type != vfs.TypeSymlink {
			return vfs.ErrInvalid
		}
		target = n.target
		return nil
	})
	return target, inoError("readlink", ino, err)
}

// SetAttr implements [vfs.Tree].
func (t *Tree) SetAttr(ctx context.Context, ino vfs.Ino, set vfs.AttrSet) (vfs.Attr, error) {
	var a vfs.Attr
	err := t.change(ctx, func(e *edit) error {
		n, err := t.nodeLocked(ino)
		if err != nil {
			return err
		}
		if set.Mask&vfs.SetSize != 0 {
			if _, err := t.contentLocked(ino); err != nil {
				return err
			}
			if set.Size > vfs.MaxFileSize {
				return vfs.ErrTooBig
			}
		}
		if set.Mask&^vfs.SetKillPriv != 0 {
			e.setAttr(n, set)
		}
		a = n.attr
		return nil
	})
	return a, inoError("setattr", ino, err)
}

// setAttr applies a set that has been checked.
func (e *edit) setAttr(n *node, set vfs.AttrSet) {
	kind := vfs.ChangeAttr
	if set.Mask&vfs.SetSize != 0 {
		kind = vfs.ChangeData
		e.resize(n, func(p *pages) { p.truncate(set.Size) })
		n.attr.Mtime = e.now
	}
	if set.Mask&vfs.SetKillPriv != 0 && set.Mask&(vfs.SetSize|vfs.SetUID|vfs.SetGID) != 0 && n.attr.Type != vfs.TypeDir {
		n.killPriv()
	}
	if set.Mask&vfs.SetMode != 0 {
		n.attr.Mode = set.Mode & vfs.ModeMask
	}
	if set.Mask&vfs.SetUID != 0 {
		n.attr.UID = set.UID
	}
	if set.Mask&vfs.SetGID != 0 {
		n.attr.GID = set.GID
	}
	setTime(&n.attr.Atime, set.Mask, vfs.SetAtime, set.Atime, vfs.SetAtimeNow, e.now)
	setTime(&n.attr.Mtime, set.Mask, vfs.SetMtime, set.Mtime, vfs.SetMtimeNow, e.now)
	n.attr.Ctime = e.now
	e.emit(vfs.Change{Kind: kind, Ino: n.attr.Ino})
}

func setTime(t *vfs.Time, mask, given vfs.SetMask, v vfs.Time, clock vfs.SetMask, now vfs.Time) {
	switch {
	case mask&clock != 0:
		*t = now
	case mask&given != 0:
		*t = v
	}
}

// Hold implements [vfs.Tree].
func (t *Tree) Hold(ino vfs.Ino) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.nodes[ino]; ok {
		n.holds++
	}
}

// Release implements [vfs.Tree]. It takes back no more than there are: an inode may have been gone when it was held.
func (t *Tree) Release(ino vfs.Ino, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held, ok := t.nodes[ino]; ok {
		held.holds -= min(n, held.holds)
		t.dropIfDeadLocked(held)
	}
}
