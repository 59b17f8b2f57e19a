package casstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	// Merging layers would have what the check knows of forks be out of date, and a collection move the chunks that it looks at.
	for _, t := range []turn{s.flattener.turn, s.collector.turn} {
		if err := t.take(ctx); err != nil {
			return CheckReport{}, fmt.Errorf("check: %w", err)
		}
		defer t.give()
	}
	c := &checker{
		store: s, opt: o, ctx: ctx, r: s.reader(),
		spaces: make(map[workspaceID]string), forks: make(map[workspaceID]forkRecord), origins: make(map[origin]bool),
	}
	defer c.r.Close()
	for _, step := range []func() error{
		c.checkHead, c.checkIndex, c.checkWorkspaces, c.checkForks, c.checkTrees, c.checkSnapshots, c.checkMerges, c.checkPast,
		c.checkStandings, c.checkLeases, c.checkPushes, c.checkQuotas,
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
	lost    bool // known not to, or on the way that is being followed
}

type checker struct {
	store  *Store
	opt    CheckOptions
	ctx    context.Context
	r      *reader
	report CheckReport
	done   uint64
	spaces map[workspaceID]string
	forks  map[workspaceID]forkRecord
	ends   map[uint32]uint32

	origins map[origin]bool // that have been looked at
	checkedTree
}

// checkedTree is the tree that is being looked at.
type checkedTree struct {
	ws      workspaceID
	name    string
	bodies  bool // are looked at, too
	loading bool // its numbers are taken when that is done
	nodes   map[vfs.Ino]*checkedNode
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
	return c.scanPrefix([]byte{kind}, fn)
}

// scanPrefix is scan for the keys that begin in some way.
func (c *checker) scanPrefix(prefix []byte, fn func(key, value []byte)) error {
	return c.r.scan(prefix, nil, true, func(key, value []byte) (bool, error) {
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

func (c *checker) where(ino vfs.Ino) string {
	return fmt.Sprintf("workspace %s, inode %d", c.name, ino)
}

// scanTree calls fn for every key of a kind of the tree: a fork's with what it has of its origins. Keys that are too short
// are a problem.
func (c *checker) scanTree(kind byte, minLen int, fn func(ino vfs.Ino, key, value []byte)) error {
	return c.scanPrefix(keyOfNode(kind, c.ws, 0)[:9], func(key, value []byte) {
		if len(key) < minLen {
			c.problem(fmt.Sprintf("key %x", key), "is too short")
			return
		}
		c.report.Records++
		_, ino := nodeOfKey(key)
		fn(ino, key, value)
	})
}

// checkTrees looks at one workspace after the other. Records of those that have been removed count for nothing.
func (c *checker) checkTrees() error {
	for _, ws := range slices.Sorted(maps.Keys(c.spaces)) {
		var err error
		if origins := c.forks[ws].layers; len(origins) > 0 && !c.store.hasRecords(ws) {
			err = c.checkOrigin(origins) // what the fork shows is what that does
		} else {
			err = c.checkTree(checkedTree{ws: ws, name: c.spaces[ws], bodies: len(origins) == 0})
		}
		if err == nil {
			err = c.checkJournal(ws)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTree looks at a tree as the checker's reader sees it.
func (c *checker) checkTree(t checkedTree) error {
	c.checkedTree = t
	c.nodes = make(map[vfs.Ino]*checkedNode)
	for _, step := range []func() error{c.checkInodes, c.checkDirents, c.checkXattrs, c.checkAtimes, c.checkLinks} {
		if err := step(); err != nil || c.ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// checkInodes: records are canonical, and their bodies are whole.
func (c *checker) checkInodes() error {
	return c.scanTree(keyInode, prefixLen, func(ino vfs.Ino, _, value []byte) {
		rec, err := vfs.DecodeInode(value)
		if err != nil {
			c.problem(c.where(ino), "%v", err)
			return
		}
		if !c.loading && ino >= c.store.peekIno() {
			c.problem(c.where(ino), "has a number that is not given out yet")
		}
		c.nodes[ino] = &checkedNode{typ: rec.Type, parent: rec.Parent, nlink: rec.Nlink, xattrs: rec.Xattrs}
		if !c.bodies {
			return
		}
		if err := c.checkBody(rec); err != nil {
			c.problem(c.where(ino), "%v", err)
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
		m, err := chunk.LoadTree(root, func(id chunk.ID) ([]byte, error) { return c.store.chunks.getHere(c.ctx, id) })
		if errors.Is(err, errAbsent) && c.store.replicas.any.Load() {
			return nil
		}
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
		case errors.Is(err, vfs.ErrNotExist) && c.store.replicas.any.Load(): // it can be fetched
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
	return c.scanTree(keyDirent, direntLen+1, func(ino vfs.Ino, key, value []byte) {
		name := string(key[direntLen:])
		where := fmt.Sprintf("%s, name %q", c.where(ino), name)
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
		dir := c.nodes[ino]
		if dir == nil || dir.typ != vfs.TypeDir {
			c.problem(where, "is in what is not a directory")
			return
		}
		n := c.nodes[rec.Ino]
		if n == nil || n.typ != rec.Type {
			c.problem(where, "leads to inode %d of type %d, which is not there", rec.Ino, rec.Type)
			return
		}
		n.names++
		if n.typ == vfs.TypeDir {
			dir.subdirs++
			if n.parent != ino {
				c.problem(where, "leads to a directory whose parent is %d", n.parent)
			}
		}
	})
}

func (c *checker) checkXattrs() error {
	return c.scanTree(keyXattr, prefixLen+1, func(ino vfs.Ino, key, value []byte) {
		n := c.nodes[ino]
		switch {
		case n == nil:
			c.problem(c.where(ino), "has an attribute but no record")
		case len(key)-prefixLen > vfs.MaxXattrName || len(value) > vfs.MaxXattrSize:
			c.problem(c.where(ino), "has an attribute that is too long")
		default:
			n.found++
		}
	})
}

func (c *checker) checkAtimes() error {
	return c.scanTree(keyAtime, prefixLen, func(ino vfs.Ino, _, value []byte) {
		if _, err := uvarints(value, 1); err != nil || c.nodes[ino] == nil {
			c.problem(c.where(ino), "has an atime but no record, or one that does not decode")
		}
	})
}

// checkLinks: link counts are the numbers of names, every inode has a name, and every directory hangs from the root.
func (c *checker) checkLinks() error {
	if n := c.nodes[vfs.RootIno]; n == nil || n.typ != vfs.TypeDir || n.parent != vfs.RootIno {
		c.problem("workspace "+c.name, "has no root directory")
	} else {
		n.rooted = true
	}
	for ino, n := range c.nodes {
		want := n.names
		if n.typ == vfs.TypeDir {
			want = 2 + n.subdirs
			if names := n.names; names > 1 || (names == 0) != (ino == vfs.RootIno) {
				c.problem(c.where(ino), "is a directory with %d names", names)
			}
			if !c.hangs(ino) {
				c.problem(c.where(ino), "is a directory that does not hang from the root")
			}
		}
		if n.nlink != want || want == 0 {
			c.problem(c.where(ino), "has link count %d, not %d", n.nlink, want)
		}
		if n.xattrs != n.found {
			c.problem(c.where(ino), "has %d attributes, not %d", n.found, n.xattrs)
		}
	}
	return nil
}

// hangs follows a directory's parents to one of which it is known whether it hangs from the root, or which it has come by:
// that is a loop. All calls together take no more steps than there are directories.
func (c *checker) hangs(ino vfs.Ino) (rooted bool) {
	var path []*checkedNode
	for n := c.nodes[ino]; n != nil && n.typ == vfs.TypeDir && !n.lost; n = c.nodes[n.parent] {
		if rooted = n.rooted; rooted {
			break
		}
		n.lost = true
		path = append(path, n)
	}
	for _, n := range path {
		n.rooted, n.lost = rooted, !rooted
	}
	return rooted
}

// checkStandings: the digest of a workspace that is replicated is that of its records, as far as the store still has what
// has changed since it was written.
func (c *checker) checkStandings() error {
	for id, name := range c.spaces {
		rec, err := c.r.standing(id)
		switch {
		case errors.Is(err, vfs.ErrNotExist):
			continue
		case err != nil:
			c.problem("workspace "+name, "%v", err)
			continue
		}
		at := c.store.readerSince(rec.at)
		if at == nil {
			continue
		}
		err = c.checkDigest(id, rec.standing, at)
		at.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkDigest(id workspaceID, st standing, at *reader) error {
	if err := st.follow(id, at, c.r, c.ctx.Err); err != nil {
		return err
	}
	digest, err := c.r.digest(id, vfs.AllInos, c.ctx.Err)
	if err == nil && digest != st.digest {
		c.problem("workspace "+c.spaces[id], "has digest %v, and its records %v", st.digest, digest)
	}
	return err
}

// checkLeases: no number is leased twice, or not given out yet.
func (c *checker) checkLeases() error {
	var before vfs.InoRange
	var ws workspaceID
	return c.scan(keyLease, func(key, value []byte) {
		l, err := decodeLease(key, value)
		if err != nil {
			c.problem(fmt.Sprintf("key %x", key), "%v", err)
			return
		}
		id, _ := nodeOfKey(key)
		if id != ws {
			ws, before = id, vfs.InoRange{}
		}
		if l.First <= before.Last || l.Last >= c.store.peekIno() {
			c.problem(fmt.Sprintf("workspace %d, lease of %d to %d", id, l.First, l.Last), "is of numbers that are leased already or not given out yet")
		}
		before = l.InoRange
	})
}

// checkPushes: what is remembered of pushes is of revisions that are there.
func (c *checker) checkPushes() error {
	return c.scan(keyPush, func(key, value []byte) {
		p, err := decodeAppliedPush(value)
		if err != nil || len(key) != len(keyOfPush(0, vfs.PeerID{}, 0)) || p.prev > p.rev || p.rev > c.r.rev {
			c.problem(fmt.Sprintf("key %x", key), "is no push: from %d to %d, %v", p.prev, p.rev, err)
		}
	})
}
