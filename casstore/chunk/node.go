package chunk

import "encoding/binary"

// The header of a node: two bytes of magic, the version of the encoding, the level.
const (
	nodeMagic0  = 'C'
	nodeMagic1  = 'N'
	nodeVersion = 1
	nodeHeader  = 4
)

// Child is one item of an inner node: a node one level below.
type Child struct {
	ID      ID
	Size    uint64 // bytes of the file below it
	Entries uint64 // entries below it
}

// Node is one node of an encoded manifest.
type Node struct {
	Level    int     // 0 for a leaf
	Entries  []Entry // of a leaf
	Children []Child // of any other
}

// AppendNode appends the encoding of a node to dst: the one in the package comment.
func AppendNode(dst []byte, n Node) []byte {
	dst = append(dst, nodeMagic0, nodeMagic1, nodeVersion, byte(n.Level))
	if n.Level == 0 {
		return AppendEntries(dst, n.Entries)
	}
	dst = binary.AppendUvarint(dst, uint64(len(n.Children)))
	for _, c := range n.Children {
		dst = append(dst, c.ID[:]...)
		dst = binary.AppendUvarint(dst, c.Size)
		dst = binary.AppendUvarint(dst, c.Entries)
	}
	return dst
}

// DecodeNode decodes a node that is all of b. It takes only a node that keeps the rule of where nodes end, except that
// it may end early, as the last of its level does. Errors wrap ErrCorrupt.
func DecodeNode(b []byte) (Node, error) {
	if len(b) < nodeHeader || b[0] != nodeMagic0 || b[1] != nodeMagic1 || b[2] != nodeVersion || b[3] > MaxLevel {
		return Node{}, corrupt("node: bad header % x", b[:min(len(b), nodeHeader)])
	}
	n := Node{Level: int(b[3])}
	var err error
	if b = b[nodeHeader:]; n.Level == 0 {
		n.Entries, b, err = DecodeEntries(b, MaxNode)
	} else {
		n.Children, b, err = decodeChildren(b)
	}
	switch {
	case err != nil:
		return Node{}, err
	case len(b) > 0:
		return Node{}, corrupt("node: %d bytes after its end", len(b))
	case n.items() == 0:
		return Node{}, corrupt("node: empty")
	case n.endsWithin():
		return Node{}, corrupt("node: goes on where it should end")
	}
	return n, nil
}

func decodeChildren(b []byte) ([]Child, []byte, error) {
	const least = IDSize + 2
	n, b, ok := cutUvarint(b)
	if !ok || n > MaxNode || n > uint64(len(b)/least) {
		return nil, nil, corrupt("children: count %d in %d bytes", n, len(b))
	}
	children := make([]Child, n)
	var size, entries uint64
	for i := range children {
		c := &children[i]
		if len(b) < IDSize {
			return nil, nil, corrupt("child %d: cut short", i)
		}
		c.ID, b = ID(b[:IDSize]), b[IDSize:]
		if c.Size, b, ok = cutUvarint(b); ok {
			c.Entries, b, ok = cutUvarint(b)
		}
		if !ok || c.Entries == 0 || c.Entries > MaxEntries || c.Size < c.Entries || c.Size > MaxFileSize {
			return nil, nil, corrupt("child %d: %d entries of %d bytes", i, c.Entries, c.Size)
		}
		size, entries = size+c.Size, entries+c.Entries
	}
	if size > MaxFileSize || entries > MaxEntries {
		return nil, nil, corrupt("children: %d entries of %d bytes", entries, size)
	}
	return children, b, nil
}

// items returns how many entries or children the node holds.
func (n Node) items() int { return len(n.Entries) + len(n.Children) }

// totals returns how much of the file lies below the node.
func (n Node) totals() (size, entries uint64) {
	for _, e := range n.Entries {
		size += e.Len
	}
	entries = uint64(len(n.Entries))
	for _, c := range n.Children {
		size, entries = size+c.Size, entries+c.Entries
	}
	return size, entries
}

// endsWithin reports whether the rule would have ended the node before its last item.
func (n Node) endsWithin() bool {
	for i := MinNode; i < n.items(); i++ {
		if n.Level == 0 && entriesEnd(n.Entries[:i]) || n.Level > 0 && childrenEnd(n.Children[:i]) {
			return true
		}
	}
	return false
}

// entriesEnd is the rule of the package comment: whether a leaf that holds entries is full.
func entriesEnd(entries []Entry) bool {
	n := len(entries)
	return n == MaxNode || n >= MinNode && !entries[n-1].Hole && endsNode(entries[n-1].ID)
}

// childrenEnd is the same rule for an inner node.
func childrenEnd(children []Child) bool {
	n := len(children)
	return n == MaxNode || n >= MinNode && endsNode(children[n-1].ID)
}

// endsNode reports whether a node may end after the item with this id: one in 256 does.
func endsNode(id ID) bool { return id[IDSize-1] == 0 }
