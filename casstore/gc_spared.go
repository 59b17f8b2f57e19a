package casstore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"syscall"

	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// A large file's manifest is a tree of nodes, which are chunks. When one cannot be read, nobody knows which chunks are below it,
// and any that seems dead may be one of them: the disk may give the node back, or a copy of it be put in its place, and the file
// is whole again, unless a collection has taken its chunks. To do nothing until then would be safe, and fill the disk.
//
// But all chunks below a node were stored before the node was found to be unreadable, in packs that there were then. So those
// stay, dead chunks and all, and what has been written since is collected as ever:
//
//	1 … 17 │ 18 …       a node was found to be unreadable when 17 was the last pack
//	spared │ collected
//
// That need not outlive the process: no pack of its time that was spared has been emptied into a later one, so the next process may
// begin with what packs it finds.

// state is a file as a revision has it, or, when that is zero, as it is open.
type state struct {
	ws   workspaceID
	ino  vfs.Ino
	rev  vfs.Rev
	body []byte // that it has, or the record if that does not decode
}

// bodyID names a body: many revisions of a file may have one, and so may forks.
type bodyID [sha256.Size]byte

func (f state) String() string {
	if f.rev == 0 {
		return fmt.Sprintf("workspace %d, inode %d", f.ws, f.ino)
	}
	return fmt.Sprintf("workspace %d, inode %d at revision %d", f.ws, f.ino, f.rev)
}

// note takes down that not all chunks of a file are marked, if err says so. Other errors it returns, and when there are so many
// that they would fill the memory.
func (m *marked) note(f state, err error) error {
	if !isUnreadable(err) || len(m.unreadable) >= maxDamaged {
		return err
	}
	m.unreadable[sha256.Sum256(f.body)] = fmt.Errorf("%v: %w", f, err)
	return nil
}

// isUnreadable reports whether an error is of bytes that are damaged, or that the disk does not give out.
func isUnreadable(err error) bool {
	return errors.Is(err, vfs.ErrCorrupt) || errors.Is(err, syscall.EIO)
}

// spared are the packs that stay because manifests cannot be read.
type spared struct {
	bodies map[bodyID]error
	last   uint32 // they are those up to this one
	bytes  uint64
}

// spare finds out which packs stay, and returns the others of these.
func (c *collector) spare(m *marked, old []pack.Info) []pack.Info {
	s := &c.spared
	s.bytes = 0
	if len(m.unreadable) == 0 {
		s.bodies, s.last = nil, 0
		return old
	}
	all := c.store.packs.Packs()
	for body, err := range m.unreadable {
		if _, known := s.bodies[body]; !known {
			s.last = all[len(all)-1].ID
			c.store.log.Warn("a list of chunks cannot be read, so what may be in it is not collected", "err", err)
		}
	}
	s.bodies = m.unreadable
	var rest []pack.Info
	for _, p := range old {
		if p.ID <= s.last {
			s.bytes += uint64(p.Size)
		} else {
			rest = append(rest, p)
		}
	}
	return rest
}
