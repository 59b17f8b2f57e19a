package fuzz

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A script is an endless sequence of steps that one process does to a directory. The same seed gives the same steps, so
// whoever knows how many were done knows what the directory must hold, and no list of it has to be kept.
//
// A node is a file, directory or symlink; an entry is a name of one. Steps refer to them, not to paths.

type stepKind uint8

const (
	stepCreate stepKind = iota
	stepMkdir
	stepSymlink
	stepLink
	stepUnlink
	stepRmdir
	stepRename
	stepWrite
	stepTruncate
	stepChmod
	stepSetxattr
	stepFsync
	stepFsyncDir
)

var stepNames = [...]string{
	"create", "mkdir", "symlink", "link", "unlink", "rmdir", "rename", "write", "truncate", "chmod", "setxattr", "fsync", "fsyncdir",
}

// makes says whether a step of the kind makes a node.
func (k stepKind) makes() bool { return k <= stepSymlink }

// syncs says whether all names there were are durable once a step of the kind is done.
func (k stepKind) syncs() bool { return k == stepFsync || k == stepFsyncDir }

// step is one step.
type step struct {
	kind stepKind
	at   *entry // that is made, removed, moved, or leads to the node; nil for the root
	node *node  // that is made or changed
	dir  *node  // the directory that at is in, or comes to by a rename
	name string // that at has, or gets by a rename
	over *entry // that a rename or a link puts at in the place of
	edit edit   // of a write or truncate
	mode uint32 // of a chmod, or the value of an attribute

	// Paths before the step: of what it is done to or makes, and of the new name of a link or rename.
	path, newPath string
}

// node is a file, directory or symlink of a script.
type node struct {
	id     int
	ino    uint64 // as the kernel numbers it; zero until that is known
	typ    byte   // 'f', 'd' or 'l'
	up     *entry // of a directory: its one name, nil for the root
	held   int    // of a directory: how many entries
	bulk   bool   // of a file: it is only appended to, in large pieces
	target string

	edits []edit // of a file, in order
	size  uint64
	modes []uint32 // all it has had
	attrs []uint32 // all values that its attribute has had; zero is none

	// As far as they are acknowledged: how many edits, modes and values.
	ackEdits, ackModes, ackAttrs int
	// renames are the steps at which the file was renamed, and how many edits it had then.
	renames []renamed
}

type renamed struct{ step, edits int }

// edit is a change of a file's bytes: size bytes at off that stamp determines, or a truncation to off.
type edit struct {
	truncate bool
	off      uint64
	size     uint64
	stamp    uint64
	step     int
}

// entry is a name in a directory.
type entry struct {
	dir  *node
	name string
	node *node
}

func (e *entry) path() string {
	if e == nil {
		return "."
	}
	return e.dir.path(e.name)
}

// path returns the path of a name in a directory.
func (n *node) path(name string) string { return n.up.path() + "/" + name }

// hash stands for an entry in a sum over a directory tree: the sums are equal when the trees have the same names.
func (e *entry) hash() uint64 { return hashEntry(e.dir.ino, e.name, e.node.ino, e.node.typ) }

func hashEntry(dir uint64, name string, ino uint64, typ byte) uint64 {
	h := mix(dir) ^ mix(ino+0x9e37)<<1 ^ uint64(typ)
	for _, c := range []byte(name) {
		h = mix(h ^ uint64(c))
	}
	return mix(h)
}

// mix is the output function of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fill fills p with the bytes that stamp has at off.
func fill(p []byte, stamp, off uint64) {
	var word [8]byte
	for i := 0; i < len(p); {
		at := off + uint64(i)
		binary.LittleEndian.PutUint64(word[:], mix(stamp^at>>3))
		i += copy(p[i:], word[at&7:])
	}
}

// Sizes of what scripts write.
const (
	maxPatched = 256 << 10 // of a file that is written to in place
	maxPatch   = 64 << 10  // one request of the kernel: it happens or it does not
	maxBulk    = 64 << 20  // of a file that is appended to
	maxEntries = 120       // in a script's tree
)

// script generates steps and knows the tree as it is after them.
type script struct {
	seed    uint64
	rand    *rand.Rand
	lazy    int // of this many fsyncs that could be, one is
	count   int // steps so far
	root    *node
	nodes   []*node
	dirs    []*node
	entries []*entry
	queue   []func() (step, bool) // what the next steps are to be, when they are possible
	sum     uint64                // over the hashes of entries
}

func newScript(seed, round uint64) *script {
	s := &script{seed: seed ^ mix(round), rand: rand.New(rand.NewPCG(seed, round))}
	s.lazy = []int{1, 1, 5, 100}[s.rand.IntN(4)]
	s.root = s.newNode('d')
	return s
}

func (s *script) newNode(typ byte) *node {
	n := &node{id: len(s.nodes), typ: typ}
	s.nodes = append(s.nodes, n)
	return n
}

// next returns the next step. It has been applied to the script's tree, but for the number of a node that it makes: see
// settle.
func (s *script) next() step {
	for {
		st, ok := s.choose()
		if !ok {
			continue
		}
		if st.kind.makes() {
			st.path = st.dir.path(st.name)
		} else if st.path = st.at.path(); st.dir != nil {
			st.newPath = st.dir.path(st.name)
		}
		s.apply(&st)
		s.count++
		return st
	}
}

// choose returns a step that is possible now.
func (s *script) choose() (step, bool) {
	if len(s.queue) > 0 {
		f := s.queue[0]
		s.queue = s.queue[1:]
		return f()
	}
	switch p := s.rand.IntN(100); {
	case p < 14:
		return s.chooseNew(stepCreate)
	case p < 19:
		return s.chooseNew(stepMkdir)
	case p < 22:
		return s.chooseNew(stepSymlink)
	case p < 25:
		return s.chooseLink()
	case p < 33:
		return s.chooseRemove()
	case p < 41:
		return s.chooseRename()
	case p < 53:
		return s.chooseReplace()
	case p < 80:
		return s.chooseWrite(s.anyFile())
	case p < 83:
		return s.chooseTruncate()
	case p < 86:
		n := s.anyFile()
		return step{kind: stepChmod, node: n, at: s.entryOf(n), mode: uint32(0o600 | s.rand.IntN(0o100))}, n != nil
	case p < 89:
		n := s.anyFile()
		return step{kind: stepSetxattr, node: n, at: s.entryOf(n), mode: uint32(s.rand.IntN(4))}, n != nil
	}
	return s.chooseFsync()
}

func (s *script) chooseFsync() (step, bool) {
	if s.rand.IntN(s.lazy) > 0 {
		return step{}, false
	}
	if s.rand.IntN(4) == 0 {
		d := s.anyDir()
		return step{kind: stepFsyncDir, node: d, at: d.up}, true
	}
	n := s.anyFile()
	return step{kind: stepFsync, node: n, at: s.entryOf(n)}, n != nil
}

func (s *script) anyDir() *node {
	if len(s.dirs) == 0 || s.rand.IntN(3) == 0 {
		return s.root
	}
	return s.dirs[s.rand.IntN(len(s.dirs))]
}

func (s *script) anyEntry() *entry {
	if len(s.entries) == 0 {
		return nil
	}
	return s.entries[s.rand.IntN(len(s.entries))]
}

func (s *script) anyFile() *node {
	if e := s.anyEntry(); e != nil && e.node.typ == 'f' {
		return e.node
	}
	return nil
}

func (s *script) entryOf(n *node) *entry {
	i := slices.IndexFunc(s.entries, func(e *entry) bool { return e.node == n })
	if i < 0 {
		return nil
	}
	return s.entries[i]
}

func (s *script) chooseNew(kind stepKind) (step, bool) {
	if len(s.entries) >= maxEntries {
		return s.chooseRemove()
	}
	d := s.anyDir()
	return step{kind: kind, dir: d, name: s.newName()}, true
}

func (s *script) newName() string { return fmt.Sprintf("n%d", s.count) }

func (s *script) chooseLink() (step, bool) {
	n := s.anyFile()
	d := s.anyDir()
	return step{kind: stepLink, node: n, at: s.entryOf(n), dir: d, name: s.newName()}, n != nil
}

func (s *script) chooseRemove() (step, bool) {
	e := s.anyEntry()
	switch {
	case e == nil || e.node.held > 0:
		return step{}, false
	case e.node.typ == 'd':
		return step{kind: stepRmdir, at: e, node: e.node}, true
	}
	return step{kind: stepUnlink, at: e, node: e.node}, true
}

// chooseRename moves an entry to a new name, or over another entry.
func (s *script) chooseRename() (step, bool) {
	e := s.anyEntry()
	if e == nil {
		return step{}, false
	}
	st := step{kind: stepRename, at: e, node: e.node, dir: s.anyDir(), name: s.newName()}
	if over := s.anyEntry(); s.rand.IntN(2) == 0 && over.node != e.node &&
		(over.node.typ == 'd') == (e.node.typ == 'd') && over.node.held == 0 {
		st.over, st.dir, st.name = over, over.dir, over.name
	}
	for d := st.dir; d.up != nil; d = d.up.dir {
		if d == e.node {
			return step{}, false // into itself
		}
	}
	return st, st.dir != e.node
}

// chooseReplace writes a new file and renames it into place, as editors do, half the time with an fsync before.
func (s *script) chooseReplace() (step, bool) {
	target := s.anyEntry()
	if target == nil || target.node.typ == 'd' || len(s.entries) >= maxEntries {
		return step{}, false
	}
	first := step{kind: stepCreate, dir: target.dir, name: s.newName() + ".tmp"}
	var e *entry
	s.queue = append(s.queue, func() (step, bool) {
		e = s.entries[len(s.entries)-1]
		return s.chooseWrite(e.node)
	})
	if s.rand.IntN(2) == 0 && s.rand.IntN(s.lazy) == 0 {
		s.queue = append(s.queue, func() (step, bool) { return step{kind: stepFsync, node: e.node, at: e}, true })
	}
	s.queue = append(s.queue, func() (step, bool) {
		return step{kind: stepRename, at: e, node: e.node, over: target, dir: target.dir, name: target.name}, true
	})
	if s.rand.IntN(2) == 0 && s.rand.IntN(s.lazy) == 0 {
		s.queue = append(s.queue, func() (step, bool) { return step{kind: stepFsyncDir, node: e.dir, at: e.dir.up}, true })
	}
	return first, true
}

func (s *script) chooseWrite(n *node) (step, bool) {
	if n == nil {
		return step{}, false
	}
	st := step{kind: stepWrite, node: n, at: s.entryOf(n)}
	st.edit = edit{off: n.size, stamp: mix(s.seed ^ uint64(s.count)), step: s.count}
	switch p := s.rand.IntN(20); {
	case n.bulk:
		st.edit.size = uint64(128<<10 + s.rand.IntN(4<<20))
		if p == 0 {
			st.edit.size = 20 << 20
		}
	case p < 12: // append little
		st.edit.size = uint64(1 + s.rand.IntN(8000))
	default: // patch
		st.edit.size = uint64(1 + s.rand.IntN(maxPatch))
		st.edit.off = uint64(s.rand.IntN(maxPatched - maxPatch))
	}
	end := st.edit.off + st.edit.size
	return st, end <= maxPatched || (n.bulk && end <= maxBulk)
}

func (s *script) chooseTruncate() (step, bool) {
	n := s.anyFile()
	if n == nil || n.bulk {
		return step{}, false
	}
	e := edit{truncate: true, off: uint64(s.rand.IntN(int(n.size) + 5000)), step: s.count}
	return step{kind: stepTruncate, node: n, at: s.entryOf(n), edit: e}, true
}

// apply changes the script's tree.
func (s *script) apply(st *step) {
	switch st.kind {
	case stepCreate, stepMkdir, stepSymlink:
		s.applyNew(st)
	case stepLink:
		st.at = s.enter(st.dir, st.name, st.node)
	case stepUnlink, stepRmdir:
		s.leave(st.at)
	case stepRename:
		s.applyRename(st)
	case stepWrite:
		st.node.edits = append(st.node.edits, st.edit)
		st.node.size = max(st.node.size, st.edit.off+st.edit.size)
	case stepTruncate:
		st.node.edits = append(st.node.edits, st.edit)
		st.node.size = st.edit.off
	case stepChmod:
		st.node.modes = append(st.node.modes, st.mode)
	case stepSetxattr:
		st.node.attrs = append(st.node.attrs, st.mode)
	}
}

func (s *script) applyNew(st *step) {
	n := s.newNode(map[stepKind]byte{stepCreate: 'f', stepMkdir: 'd', stepSymlink: 'l'}[st.kind])
	st.node, st.mode = n, 0o644
	n.bulk = n.typ == 'f' && s.rand.IntN(25) == 0
	n.modes, n.attrs = []uint32{st.mode}, []uint32{0}
	switch n.typ {
	case 'd':
		s.dirs = append(s.dirs, n)
	case 'l':
		n.target = fmt.Sprintf("to/%d", s.count)
	}
	// The number of the node is not known, so the sum lacks it until settle.
	st.at = &entry{dir: st.dir, name: st.name, node: n}
	s.entries = append(s.entries, st.at)
	st.dir.held++
	if n.typ == 'd' {
		n.up = st.at
	}
}

// settle says which number a node that a step has made got.
func (s *script) settle(st step, ino uint64) {
	st.node.ino = ino
	s.sum ^= st.at.hash()
}

func (s *script) enter(dir *node, name string, n *node) *entry {
	e := &entry{dir: dir, name: name, node: n}
	s.entries = append(s.entries, e)
	dir.held++
	s.sum ^= e.hash()
	return e
}

func (s *script) leave(e *entry) {
	s.sum ^= e.hash()
	e.dir.held--
	i := slices.Index(s.entries, e)
	last := len(s.entries) - 1
	s.entries[i] = s.entries[last]
	s.entries = s.entries[:last]
	if e.node.typ == 'd' {
		s.dirs = slices.DeleteFunc(s.dirs, func(d *node) bool { return d == e.node })
	}
}

// applyRename moves the entry itself, so that whoever refers to it does not notice.
func (s *script) applyRename(st *step) {
	if st.over != nil {
		s.leave(st.over)
	}
	e := st.at
	s.sum ^= e.hash()
	e.dir.held--
	e.dir, e.name = st.dir, st.name
	e.dir.held++
	s.sum ^= e.hash()
	if e.node.typ == 'f' {
		e.node.renames = append(e.node.renames, renamed{s.count, len(e.node.edits)})
	}
}
