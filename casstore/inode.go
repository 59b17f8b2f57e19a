package casstore

import (
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// A stamp says in which generation an object was last changed. A generation is the time between two cuts; the commit
// that makes a cut takes everything of the generations up to it.
//
//	gen == 0        clean: as the store has it
//	gen == tree.gen changed since the last cut
//	gen == cut.gen  changed before the cut that is being committed; captured says whether that commit has its value
type stamp struct {
	gen      uint64
	captured bool
}

func (s *stamp) stampOf() *stamp { return s }

// object is what a commit writes: an inode, a dirent or an attribute.
type object interface {
	stampOf() *stamp
	// capture adds the object's value to the commit.
	capture(*cut)
	// committed is told that the captured value is in the store. clean is false when the object has changed since.
	committed(t *Workspace, clean bool)
}

// inode is a node of the live tree. Its fields are guarded by the tree's lock, but for file, which has its own.
type inode struct {
	stamp
	attr  vfs.Attr // Blocks of a regular file are an estimate while it has dirty bytes
	btime vfs.Time

	gone      bool // has no name left; its record is to be removed
	persisted bool // has a record in the store, or will when the commit under way is done
	atimeSet  bool // the atime is not the btime, and has a record of its own
	dead      bool // gone, and its bytes are discarded: nobody is to use its file any more
	refs      int  // operations under way outside the tree's lock
	counted   bool // in the workspace's quota, with charged bytes, if that has one
	charged   int64
	weight    int // that the cache is charged, zero while it does not have the inode

	// stored is a regular file's data as its record in the store has it.
	stored dataState
	// urgent: the next commit must hold all of the file's bytes, because a rename has put it in another's place.
	urgent bool

	file    *file // of a regular file that is in use or dirty; nil when stored says all
	dir     *directory
	target  string
	xattrs  *xattrs // nil until they are loaded
	nxattrs uint32  // how many there are
}

// dataState is what a file held at some moment, as its record says it.
type dataState struct {
	body  vfs.Body
	size  uint64
	mtime vfs.Time
	// tree is the manifest of a body that is a tree, if it is in memory: what it shares with the next one need not be
	// stored again.
	tree chunk.Manifest
}

// snapshot is an inode as a commit captured it.
type snapshot struct {
	n        *inode
	file     *file
	attr     vfs.Attr
	btime    vfs.Time
	gone     bool
	atimeSet bool
	urgent   bool
	xattrs   uint32
	stored   dataState
}

func (n *inode) capture(c *cut) {
	if n.gone && !n.persisted {
		return
	}
	c.inodes = append(c.inodes, snapshot{
		n: n, file: n.file, attr: n.attr, btime: n.btime, gone: n.gone, atimeSet: n.atimeSet, urgent: n.urgent, stored: n.stored,
		xattrs: n.nxattrs,
	})
	if !n.gone {
		n.persisted = true
	}
	n.urgent = false
}

func (n *inode) committed(t *Workspace, clean bool) {
	if n.gone && clean {
		n.persisted = false
		t.bury(n)
	}
}

// units is what an inode takes in memory, without its entries, in units of costUnit.
func (n *inode) units() int {
	const fileCost, entryCost = 512, 64
	size := len(n.stored.body.Data) + len(n.target) + entryCost*n.stored.tree.Len()
	if n.file != nil {
		size += fileCost
	}
	return 1 + (size+costUnit/2)/costUnit
}

func (n *inode) regular() bool { return n.attr.Type == vfs.TypeRegular }

// newInode returns an inode of the live tree that no name leads to yet.
func (w *Workspace) newInode(t vfs.Type, v vfs.NewNode, dir *inode) *inode {
	now := w.now()
	n := &inode{
		attr: vfs.Attr{
			Ino: w.number(), Type: t, Mode: v.Mode & vfs.ModeMask, Nlink: 1, UID: v.UID, GID: v.GID,
			Atime: now, Mtime: now, Ctime: now,
		},
		btime:  now,
		xattrs: newXattrs(),
	}
	if dir.attr.Mode&vfs.ModeSetGID != 0 {
		n.attr.GID = dir.attr.GID
		if t == vfs.TypeDir {
			n.attr.Mode |= vfs.ModeSetGID
		}
	}
	switch t {
	case vfs.TypeRegular:
		n.stored.mtime = now
	case vfs.TypeDir:
		n.attr.Nlink = 2
		n.attr.Parent = dir.attr.Ino
		n.dir = newDirectory(n, true)
	case vfs.TypeCharDev, vfs.TypeBlockDev:
		n.attr.Rdev = v.Rdev
	}
	return n
}

// inodeOf makes an inode of its record.
func (w *Workspace) inodeOf(ino vfs.Ino, r vfs.InodeRecord) *inode {
	n := &inode{
		attr:      attrOf(ino, r),
		btime:     r.Btime,
		persisted: true,
		nxattrs:   r.Xattrs,
	}
	if r.Xattrs == 0 {
		n.xattrs = newXattrs()
	}
	switch r.Type {
	case vfs.TypeRegular:
		n.stored = dataState{body: r.Body, size: r.Size, mtime: r.Mtime}
	case vfs.TypeDir:
		n.dir = newDirectory(n, false)
	case vfs.TypeSymlink:
		n.target = string(r.Body.Data)
	}
	return n
}

// attrOf is what the record of an inode says of it. The atime may have a record of its own.
func attrOf(ino vfs.Ino, r vfs.InodeRecord) vfs.Attr {
	a := vfs.Attr{
		Ino: ino, Type: r.Type, Mode: r.Mode, Nlink: r.Nlink, UID: r.UID, GID: r.GID, Rdev: r.Rdev, Size: r.Size,
		Atime: r.Btime, Mtime: r.Mtime, Ctime: r.Ctime, Parent: r.Parent,
	}
	if r.Type == vfs.TypeRegular {
		a.Blocks = blocksOfBody(r.Body, r.Size)
	}
	return a
}

// record is the snapshot's record with the data of d, for a regular file.
func (s *snapshot) record(d dataState) vfs.InodeRecord {
	a := &s.attr
	r := vfs.InodeRecord{
		Type: a.Type, Mode: a.Mode, Nlink: a.Nlink, UID: a.UID, GID: a.GID, Rdev: a.Rdev, Parent: a.Parent,
		Xattrs: s.xattrs, Mtime: a.Mtime, Ctime: a.Ctime, Btime: s.btime,
	}
	switch a.Type {
	case vfs.TypeRegular:
		r.Size, r.Body, r.Mtime = d.size, d.body, d.mtime
	case vfs.TypeSymlink:
		r.Size, r.Body = a.Size, vfs.Body{Kind: vfs.BodyTarget, Data: []byte(s.n.target)}
	}
	return r
}

// touchTimes sets the times that a change of the inode's contents sets.
func (n *inode) touchTimes(now vfs.Time) { n.attr.Mtime, n.attr.Ctime = now, now }
