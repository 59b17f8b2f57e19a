package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// CheckOptions say how thorough a check is.
type CheckOptions struct {
	// Bytes also reads every chunk and hashes it.
	Bytes bool
	// Progress, if set, is told how many keys of about how many have been looked at, from the caller's goroutine.
	Progress func(done, total uint64)
}

// Problem is an invariant of FORMAT.md that does not hold.
type Problem struct {
	Where string // the record, chunk or pack
	What  string
}

// CheckReport says what a check has seen.
type CheckReport struct {
	Records  uint64 // inodes, dirents, attributes and atimes
	Chunks   uint64
	Packs    uint64
	Bytes    uint64 // of the chunks' frames; read, when that was asked for
	Problems []Problem
	More     uint64 // problems beyond maxProblems, which are only counted
}

// maxProblems bounds the memory and the output of a check of a store that is thoroughly broken.
const maxProblems = 1000

// Check verifies every invariant of FORMAT.md on the newest revision, while the store is in use. The error is of what
// kept it from looking; what it found is in the report.
func (s *Store) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	s.collector.mu.Lock() // it would move the chunks that the check looks at
	defer s.collector.mu.Unlock()
	c := &checker{
		store: s, opt: o, ctx: ctx, r: s.reader(),
		nodes: make(map[nodeKey]*checkedNode), spaces: make(map[workspaceID]string),
	}
	defer c.r.Close()
	for _, step := range []func() error{
		c.checkHead, c.checkIndex, c.checkWorkspaces, c.checkInodes, c.checkDirents, c.checkXattrs, c.checkAtimes, c.checkLinks,
	} {
		if err := step(); err != nil {
			return c.report, fmt.Errorf("check: %w", err)
		}
		if ctx.Err() != nil {
			return c.report, fmt.Errorf("check: %w", vfs.ErrInterrupted)
		}
	}
	return c.report, nil
}

type nodeKey struct {
	ws  workspaceID
	ino vfs.Ino
}

// checkedNode is what the check remembers of an inode: about a hundred bytes.
type checkedNode struct {
	parent  vfs.Ino
	nlink   uint32
	names   uint32 // dirents that lead to it
	subdirs uint32
	xattrs  uint32
	found   uint32 // attributes
	typ     vfs.Type
	rooted  bool // known to hang from the root
}

type checker struct {
	store  *Store
	opt    CheckOptions
	ctx    context.Context
	r      *reader
	report CheckReport
	done   uint64
	nodes  map[nodeKey]*checkedNode
	spaces map[workspaceID]string
	ends   map[uint32]uint32
}

func (c *checker) problem(where, format string, args ...any) {
	if len(c.report.Problems) == maxProblems {
		c.report.More++
		return
	}
	c.report.Problems = append(c.report.Problems, Problem{Where: where, What: fmt.Sprintf(format, args...)})
}

// scan calls fn for every key of a kind. What does not decode is a problem, not an error.
func (c *checker) scan(kind byte, fn func(key, value []byte)) error {
	return c.r.scan([]byte{kind}, nil, true, func(key, value []byte) (bool, error) {
		if c.done++; c.opt.Progress != nil && c.done%1024 == 0 {
			c.opt.Progress(c.done, max(c.done, c.estimate()))
		}
		fn(key, value)
		return c.ctx.Err() == nil, nil
	})
}

// estimate is about how many keys there are: each is in the tables as some versions of some hundred bytes.
func (c *checker) estimate() uint64 {
	var n uint64
	for _, t := range c.store.db.Tables() {
		n += uint64(t.KeyCount)
	}
	return n
}

func (c *checker) checkHead() error {
	h, err := c.r.head()
	if err != nil {
		return err
	}
	if h.rev != c.r.rev {
		c.problem("head", "says revision %d in revision %d", h.rev, c.r.rev)
	}
	return nil
}

// checkIndex: every chunk lies within the committed part of a pack, as a whole frame of its id.
func (c *checker) checkIndex() (err error) {
	if c.ends, err = c.r.packEnds(); err != nil {
		return err
	}
	sizes := make(map[uint32]int64)
	for _, p := range c.store.packs.Packs() {
		sizes[p.ID] = p.Size
	}
	for id, end := range c.ends {
		c.report.Packs++
		if size, ok := sizes[id]; !ok || size < int64(end) {
			c.problem(fmt.Sprintf("pack %08d", id), "has %d bytes, %d are committed", size, end)
		}
	}
	return c.scan(keyChunk, func(key, value []byte) {
		if len(key) != 1+chunk.IDSize {
			c.problem(fmt.Sprintf("key %x", key), "is no chunk's")
			return
		}
		c.report.Chunks++
		c.checkChunk(chunk.ID(key[1:]), value)
	})
}

func (c *checker) checkChunk(id chunk.ID, value []byte) {
	where := fmt.Sprintf("chunk %v", id)
	loc, err := decodeLoc(value)
	if err != nil {
		c.problem(where, "index: %v", err)
		return
	}
	c.report.Bytes += uint64(loc.Len)
	if end := c.ends[loc.Pack]; uint64(loc.Off)+uint64(loc.Len) > uint64(end) {
		c.problem(where, "is at %v, past the pack's committed end %d", loc, end)
		return
	}
	if !c.opt.Bytes {
		return
	}
	if _, err := c.store.packs.ReadChunk(nil, loc, id); err != nil {
		c.problem(where, "%v", err)
	}
}

func (c *checker) checkWorkspaces() error {
	names := make(map[string]bool)
	return c.scan(keyWorkspace, func(key, value []byte) {
		ws, err := decodeWorkspace(value)
		switch {
		case err != nil || len(key) != 9:
			c.problem(fmt.Sprintf("key %x", key), "is no workspace: %v", err)
			return
		case names[ws.name]:
			c.problem("workspace "+ws.name, "is there twice")
		}
		names[ws.name] = true
		id := workspaceID(binary.BigEndian.Uint64(key[1:]))
		c.spaces[id] = ws.name
		if id >= c.store.peekWS() {
			c.problem("workspace "+ws.name, "has number %d, which is not given out yet", id)
		}
	})
}

func (c *checker) where(k nodeKey) string {
	return fmt.Sprintf("workspace %s, inode %d", c.spaces[k.ws], k.ino)
}

// node returns what is known of the inode that a key belongs to. ok is false when the key is one of a workspace that has
// been removed, whose records go little by little, or is no key of an inode.
func (c *checker) node(key []byte, minLen int) (k nodeKey, n *checkedNode, ok bool) {
	if len(key) < minLen {
		c.problem(fmt.Sprintf("key %x", key), "is too short")
		return k, nil, false
	}
	k.ws, k.ino = nodeOfKey(key)
	if _, ok := c.spaces[k.ws]; !ok {
		return k, nil, false
	}
	c.report.Records++
	return k, c.nodes[k], true
}

// checkInodes: records are canonical, and their bodies are whole.
func (c *checker) checkInodes() error {
	return c.scan(keyInode, func(key, value []byte) {
		k, _, ok := c.node(key, prefixLen)
		if !ok {
			return
		}
		rec, err := vfs.DecodeInode(value)
		if err != nil {
			c.problem(c.where(k), "%v", err)
			return
		}
		if k.ino >= c.store.peekIno() {
			c.problem(c.where(k), "has a number that is not given out yet")
		}
		c.nodes[k] = &checkedNode{typ: rec.Type, parent: rec.Parent, nlink: rec.Nlink, xattrs: rec.Xattrs}
		if err := c.checkBody(rec); err != nil {
			c.problem(c.where(k), "%v", err)
		}
	})
}

func (c *checker) checkBody(rec vfs.InodeRecord) error {
	switch rec.Body.Kind {
	case vfs.BodyExtents:
		entries, err := decodeExtents(rec.Body.Data)
		if err != nil {
			return err
		}
		return c.checkManifest(chunk.NewManifest(entries), rec.Size)
	case vfs.BodyTree:
		root, err := decodeRoot(rec.Body.Data)
		if err != nil {
			return err
		}
		m, err := chunk.LoadTree(root, func(id chunk.ID) ([]byte, error) { return c.store.chunks.get(c.ctx, id) })
		if err != nil {
			return err
		}
		return c.checkManifest(m, rec.Size)
	}
	return nil
}

func (c *checker) checkManifest(m chunk.Manifest, size uint64) error {
	if m.Size() != size {
		return fmt.Errorf("size %d, manifest of %d bytes", size, m.Size())
	}
	for p := range m.From(0) {
		if p.Hole {
			continue
		}
		switch _, err := c.r.chunk(p.ID); {
		case errors.Is(err, vfs.ErrNotExist):
			return fmt.Errorf("chunk %v at %d is not in the index", p.ID, p.Start)
		case err != nil:
			return err
		}
	}
	return nil
}

// checkDirents: names are good and where their hash says, and lead from a directory to an inode of that type.
func (c *checker) checkDirents() error {
	return c.scan(keyDirent, func(key, value []byte) {
		k, dir, ok := c.node(key, direntLen+1)
		if !ok {
			return
		}
		name := string(key[direntLen:])
		where := fmt.Sprintf("%s, name %q", c.where(k), name)
		rec, err := vfs.DecodeDirent(value)
		if err != nil {
			c.problem(where, "%v", err)
			return
		}
		if err := vfs.CheckName(name); err != nil {
			c.problem(where, "%v", err)
		}
		if h := binary.BigEndian.Uint64(key[prefixLen:]); h != nameHash(name) {
			c.problem(where, "has hash %x, not %x", h, nameHash(name))
		}
		if dir == nil || dir.typ != vfs.TypeDir {
			c.problem(where, "is in what is not a directory")
			return
		}
		n := c.nodes[nodeKey{k.ws, rec.Ino}]
		if n == nil || n.typ != rec.Type {
			c.problem(where, "leads to inode %d of type %d, which is not there", rec.Ino, rec.Type)
			return
		}
		n.names++
		if n.typ == vfs.TypeDir {
			dir.subdirs++
			if n.parent != k.ino {
				c.problem(where, "leads to a directory whose parent is %d", n.parent)
			}
		}
	})
}

func (c *checker) checkXattrs() error {
	return c.scan(keyXattr, func(key, value []byte) {
		k, n, ok := c.node(key, prefixLen+1)
		switch {
		case !ok:
		case n == nil:
			c.problem(c.where(k), "has an attribute but no record")
		case len(key)-prefixLen > vfs.MaxXattrName || len(value) > vfs.MaxXattrSize:
			c.problem(c.where(k), "has an attribute that is too long")
		default:
			n.found++
		}
	})
}

func (c *checker) checkAtimes() error {
	return c.scan(keyAtime, func(key, value []byte) {
		k, n, ok := c.node(key, prefixLen)
		if !ok {
			return
		}
		if _, err := uvarints(value, 1); err != nil || n == nil {
			c.problem(c.where(k), "has an atime but no record, or one that does not decode")
		}
	})
}

// checkLinks: link counts are the numbers of names, every inode has a name, and every directory hangs from the root.
func (c *checker) checkLinks() error {
	for id, name := range c.spaces {
		if n := c.nodes[nodeKey{id, vfs.RootIno}]; n == nil || n.typ != vfs.TypeDir || n.parent != vfs.RootIno {
			c.problem("workspace "+name, "has no root directory")
		} else {
			n.rooted = true
		}
	}
	for k, n := range c.nodes {
		want := n.names
		if n.typ == vfs.TypeDir {
			want = 2 + n.subdirs
			if names := n.names; names > 1 || (names == 0) != (k.ino == vfs.RootIno) {
				c.problem(c.where(k), "is a directory with %d names", names)
			}
			if !c.hangs(k) {
				c.problem(c.where(k), "is a directory that does not hang from the root")
			}
		}
		if n.nlink != want || want == 0 {
			c.problem(c.where(k), "has link count %d, not %d", n.nlink, want)
		}
		if n.xattrs != n.found {
			c.problem(c.where(k), "has %d attributes, not %d", n.found, n.xattrs)
		}
	}
	return nil
}

// hangs follows a directory's parents to one that is known to hang from the root. More steps than directories are a
// loop.
func (c *checker) hangs(k nodeKey) bool {
	var path []*checkedNode
	for steps := 0; steps <= len(c.nodes); steps++ {
		n := c.nodes[k]
		if n == nil || n.typ != vfs.TypeDir {
			return false
		}
		if n.rooted {
			for _, p := range path {
				p.rooted = true
			}
			return true
		}
		path = append(path, n)
		k.ino = n.parent
	}
	return false
}
