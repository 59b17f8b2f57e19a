package chunk

import (
	"errors"
	"fmt"
)

// BuildTree encodes m as a tree, gives every node to put, each after those below it, and returns the root. The bytes
// given to put are valid until it returns. m must have more than MaxInline entries (else BuildTree panics); more than
// MaxEntries are ErrTooBig. An error of put comes back as it is, at once.
//
// Leaves that m shares with base are not put: base must be a manifest whose tree is already where put puts, and stays
// there. The zero Manifest is a base that shares nothing. The inner nodes, one in some hundreds, are always put.
func BuildTree(m, base Manifest, put func(id ID, plain []byte) error) (Root, error) {
	switch {
	case m.n <= MaxInline:
		panic(fmt.Sprintf("chunk: a tree of %d entries", m.n))
	case m.n > MaxEntries:
		return Root{}, fmt.Errorf("%d entries: %w", m.n, ErrTooBig)
	}
	level, err := putLeaves(m, base, put)
	height := 0
	for ; err == nil && len(level) > 1; height++ {
		level, err = putInner(height+1, level, put)
	}
	if err != nil {
		return Root{}, err
	}
	return Root{ID: level[0].ID, Level: height, Len: uint64(m.n), Size: m.size, Stored: m.stored}, nil
}

// putLeaves puts the leaves of m that are not in base, and returns all of them as children.
func putLeaves(m, base Manifest, put func(ID, []byte) error) ([]Child, error) {
	there := base.leafSet()
	children := make([]Child, len(m.leaves))
	var buf []byte
	for i, r := range m.leaves {
		id := r.id.Load()
		if _, ok := there[r.leaf]; !ok || id == nil {
			buf = AppendNode(buf[:0], Node{Entries: r.entries})
			id = r.name(buf)
			if err := put(*id, buf); err != nil {
				return nil, err
			}
		}
		children[i] = Child{ID: *id, Size: r.size(), Entries: uint64(len(r.entries))}
	}
	return children, nil
}

// leafSet returns the leaves that are nodes of m's tree: none when m is so short that it has no tree.
func (m Manifest) leafSet() map[*leaf]struct{} {
	set := make(map[*leaf]struct{}, len(m.leaves))
	if m.n > MaxInline {
		for _, r := range m.leaves {
			set[r.leaf] = struct{}{}
		}
	}
	return set
}

// putInner gathers children into nodes of a level, puts them, and returns them as children of the next.
func putInner(level int, children []Child, put func(ID, []byte) error) ([]Child, error) {
	var nodes []Child
	var buf []byte
	for len(children) > 0 {
		n := 1
		for n < len(children) && !childrenEnd(children[:n]) {
			n++
		}
		node := Node{Level: level, Children: children[:n]}
		children = children[n:]
		buf = AppendNode(buf[:0], node)
		c := Child{ID: Sum(buf)}
		c.Size, c.Entries = node.totals()
		if err := put(c.ID, buf); err != nil {
			return nil, err
		}
		nodes = append(nodes, c)
	}
	return nodes, nil
}

// LoadTree returns the manifest whose tree has this root. get returns the plain bytes of a node, which it has checked
// against the id; they need to be valid only until it is called again. An error of get comes back as it is. Whatever
// BuildTree would not have built wraps ErrCorrupt.
//
// A leaf that occurs more than once is fetched, and kept, once, so a few nodes cannot be made to fill the memory.
func LoadTree(root Root, get func(ID) ([]byte, error)) (Manifest, error) {
	if err := root.check(); err != nil {
		return Manifest{}, err
	}
	l := loader{get: get, leaves: map[ID]*leaf{}}
	if err := l.load(root.child(), root.Level, true); err != nil {
		return Manifest{}, err
	}
	m := l.g.out
	if m.stored != root.Stored {
		return Manifest{}, corrupt("tree %s: %d bytes stored, root says %d", root.ID, m.stored, root.Stored)
	}
	return m, nil
}

// child returns the root as though it were another node's child.
func (r Root) child() Child { return Child{ID: r.ID, Size: r.Size, Entries: r.Len} }

// loader gathers the leaves of a tree.
type loader struct {
	get    func(ID) ([]byte, error)
	g      gatherer
	leaves map[ID]*leaf
}

// load takes the node c and all below it. last says that no node of its level follows.
func (l *loader) load(c Child, level int, last bool) error {
	if known := l.leaves[c.ID]; known != nil && level == 0 {
		return l.attach(c, known, last)
	}
	n, err := getNode(c, level, l.get)
	if err != nil {
		return err
	}
	if level == 0 {
		lf := newLeaf(n.Entries)
		lf.id.Store(&c.ID)
		l.leaves[c.ID] = lf
		return l.attach(c, lf, last)
	}
	if len(n.Children) == 1 && len(l.g.out.leaves) == 0 && last {
		return corrupt("node %s: a root of one child", c.ID)
	}
	if !last && !childrenEnd(n.Children) {
		return corrupt("node %s: ends too early", c.ID)
	}
	for i, child := range n.Children {
		if err := l.load(child, level-1, last && i == len(n.Children)-1); err != nil {
			return err
		}
	}
	return nil
}

// attach takes a leaf.
func (l *loader) attach(c Child, lf *leaf, last bool) error {
	if lf.size() != c.Size || uint64(len(lf.entries)) != c.Entries {
		return corrupt("node %s: not as long as its parent says", c.ID)
	}
	if !last && !entriesEnd(lf.entries) {
		return corrupt("node %s: ends too early", c.ID)
	}
	if k := len(l.g.out.leaves); k > 0 {
		before := l.g.out.leaves[k-1].entries
		if before[len(before)-1].Hole && lf.entries[0].Hole {
			return corrupt("node %s: a hole after a hole", c.ID)
		}
	}
	l.g.attach(lf)
	return nil
}

// getNode fetches the node c and checks that it is what its parent says.
func getNode(c Child, level int, get func(ID) ([]byte, error)) (Node, error) {
	b, err := get(c.ID)
	if err != nil {
		return Node{}, err
	}
	n, err := DecodeNode(b)
	if err != nil {
		return Node{}, fmt.Errorf("node %s: %w", c.ID, err)
	}
	size, entries := n.totals()
	if n.Level != level || size != c.Size || entries != c.Entries {
		return Node{}, corrupt("node %s: level %d, %d entries of %d bytes; its parent says %d, %d, %d",
			c.ID, n.Level, entries, size, level, c.Entries, c.Size)
	}
	return n, nil
}

// SkipNode is what the function given to WalkTree returns to leave out what is below a node.
var SkipNode = errors.New("skip this node")

// WalkTree calls visit for every node of a tree, without a length, and for every chunk that it lists, a node before what is below
// it, in the order of the file. What is listed twice is visited twice. When visit returns SkipNode for a node, nothing below
// is fetched; any other error ends the walk and comes back as it is. It holds one node a level in memory. get is as in
// LoadTree, and so are the checks, except for those that need two nodes of a level.
func WalkTree(root Root, get func(ID) ([]byte, error), visit func(e Entry, node bool) error) error {
	if err := root.check(); err != nil {
		return err
	}
	return walkNode(root.child(), root.Level, get, visit)
}

func walkNode(c Child, level int, get func(ID) ([]byte, error), visit func(Entry, bool) error) error {
	if err := visit(Entry{ID: c.ID}, true); err != nil {
		if errors.Is(err, SkipNode) {
			return nil
		}
		return err
	}
	n, err := getNode(c, level, get)
	if err != nil {
		return err
	}
	for _, e := range n.Entries {
		if e.Hole {
			continue
		}
		if err := visit(e, false); err != nil {
			return err
		}
	}
	for _, child := range n.Children {
		if err := walkNode(child, level-1, get, visit); err != nil {
			return err
		}
	}
	return nil
}
