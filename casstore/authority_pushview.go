package casstore

import (
	"bytes"
	"errors"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// pushView is the head as vfs.CheckPush reads it. It remembers what the check depends on.
type pushView struct {
	r    *reader
	ws   workspaceID
	peer vfs.PeerID

	pushed map[vfs.Key]*pushedRecord
	nodes  map[vfs.Ino]nodeFacts // inodes that the check has read
	lease  lease                 // the last one found: the new inodes of a push are of one
	buf    []byte

	anyIno bool // it may make inodes of any number
}

// pushedRecord is a record of the push. changes is set when the head has another value.
type pushedRecord struct {
	*vfs.PushRecord
	changes bool
}

// nodeFacts are what a check of other inodes may depend on: the rest of an inode's record may change.
type nodeFacts struct {
	there   bool
	parent  vfs.Ino
	links   uint32
	nxattrs uint32
}

func newPushView(j *pushJob, r *reader) *pushView {
	v := &pushView{
		r: r, ws: j.tree.id, peer: j.peer, lease: lease{InoRange: vfs.InoRange{First: 1}},
		pushed: make(map[vfs.Key]*pushedRecord, len(j.push.Records)), nodes: make(map[vfs.Ino]nodeFacts),
	}
	v.anyIno = j.incoming != nil
	for i := range j.push.Records {
		p := &j.push.Records[i]
		v.pushed[p.Key] = &pushedRecord{PushRecord: p}
	}
	return v
}

// Value implements vfs.PushView. The value is valid until the next call.
func (v *pushView) Value(k vfs.Key) ([]byte, error) {
	var value []byte
	err := v.r.get(keyOfRecord(v.ws, k), func(b []byte) error {
		v.buf = append(v.buf[:0], b...)
		value = present(v.buf)
		return nil
	})
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return nil, err
	}
	if p := v.pushed[k]; p != nil {
		p.changes = (p.Value == nil) != (value == nil) || !bytes.Equal(p.Value, value)
	}
	if k.Kind == vfs.KeyInode {
		v.see(k.Ino, value)
	}
	return value, nil
}

func (v *pushView) see(ino vfs.Ino, value []byte) {
	var facts nodeFacts
	if rec, err := vfs.DecodeInode(value); value != nil && err == nil {
		facts = nodeFacts{there: true, parent: rec.Parent, links: rec.Nlink, nxattrs: rec.Xattrs}
	}
	v.nodes[ino] = facts
}

// Names implements vfs.PushView.
func (v *pushView) Names(kind vfs.KeyKind, ino vfs.Ino, yield func(string) bool) error {
	prefix := keyOfNode(keyDirent, v.ws, ino)
	if kind == vfs.KeyXattr {
		prefix = keyOfNode(keyXattr, v.ws, ino)
	}
	return v.r.scan(prefix, nil, false, func(key, _ []byte) (bool, error) {
		k, _, err := recordOfKey(key)
		return err == nil && yield(k.Name), err
	})
}

// MayMake implements vfs.PushView. That an inode was there is known as long as the window holds its tombstone.
func (v *pushView) MayMake(ino vfs.Ino) (ok bool, err error) {
	if v.anyIno {
		return true, nil
	}
	if !v.lease.Contains(ino) {
		if v.lease, err = v.r.lease(v.ws, ino); err != nil {
			return false, err
		}
	}
	if v.lease.Contains(ino) && v.lease.peer == v.peer {
		return true, nil
	}
	was, err := v.r.record(v.ws, vfs.Key{Kind: vfs.KeyInode, Ino: ino})
	return was.Rev > 0, err
}

// standsIn reports whether the live tree is not what a check has seen, and which inodes have changed.
func (w *Workspace) standsIn(v *pushView) (blocking []vfs.Ino, blocked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.standsInLocked(v)
}

func (w *Workspace) standsInLocked(v *pushView) (blocking []vfs.Ino, blocked bool) {
	for _, o := range w.dirty {
		switch o := o.(type) {
		case *inode:
			if v.dependsOn(o) {
				blocked = true
				blocking = append(blocking, o.attr.Ino)
			}
		case *dirent:
			blocked = blocked || v.pushed[vfs.Key{Kind: vfs.KeyDirent, Ino: o.dir.node.attr.Ino, Name: o.name}] != nil
		case *xattr:
			blocked = blocked || v.pushed[vfs.Key{Kind: vfs.KeyXattr, Ino: o.owner.attr.Ino, Name: o.name}] != nil
		}
	}
	return blocking, blocked
}

// dependsOn reports whether the check would go another way with an inode as it is now.
func (v *pushView) dependsOn(n *inode) bool {
	if v.pushed[vfs.Key{Kind: vfs.KeyInode, Ino: n.attr.Ino}] != nil {
		return true
	}
	seen, ok := v.nodes[n.attr.Ino]
	now := nodeFacts{there: !n.gone, parent: n.attr.Parent, links: n.attr.Nlink, nxattrs: n.nxattrs}
	return ok && seen != now && (seen.there || now.there)
}
