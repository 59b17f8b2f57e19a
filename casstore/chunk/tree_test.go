package chunk

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// nodes is where the tests put nodes.
type nodes struct {
	m    map[ID][]byte
	puts int
	gets int
}

func (n *nodes) put(id ID, plain []byte) error {
	if Sum(plain) != id {
		return errors.New("put under another name")
	}
	n.m[id] = slices.Clone(plain)
	n.puts++
	return nil
}

// get returns the same memory each time, since LoadTree may not rely on more.
func (n *nodes) get() func(ID) ([]byte, error) {
	var buf []byte
	return func(id ID) ([]byte, error) {
		n.gets++
		b, ok := n.m[id]
		if !ok {
			return nil, fmt.Errorf("no node %s", id)
		}
		buf = append(buf[:0], b...)
		return buf, nil
	}
}

func newNodes() *nodes { return &nodes{m: map[ID][]byte{}} }

func build(t rapid.TB, n *nodes, m, base Manifest) Root {
	t.Helper()
	root, err := BuildTree(m, base, n.put)
	if err != nil {
		t.Fatal(err)
	}
	again, rest, err := DecodeRoot(AppendRoot(nil, root))
	if err != nil || len(rest) > 0 || again != root {
		t.Fatalf("root %v decodes to %v, %v", root, again, err)
	}
	return root
}

func load(t rapid.TB, n *nodes, root Root) Manifest {
	t.Helper()
	m, err := LoadTree(root, n.get())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTreeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := chunksOf(MaxInline + 1)
		entries := NewManifest(append(least, drawEntries(t, 6000, "entries")...)).Entries()
		n := newNodes()
		root := build(t, n, NewManifest(entries), Manifest{})
		m := load(t, n, root)
		model(entries).verify(t, m)

		var want, got []ID
		for _, e := range entries {
			if !e.Hole {
				want = append(want, e.ID)
			}
		}
		seen := map[ID]bool{}
		err := WalkTree(root, n.get(), func(e Entry, node bool) error {
			if node {
				seen[e.ID] = true
			} else {
				got = append(got, e.ID)
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) || len(seen) != len(n.m) {
			t.Fatalf("walk: %v, %d chunks of %d, %d nodes of %d", err, len(got), len(want), len(seen), len(n.m))
		}

		// A splice of what was loaded, built onto it, is the tree that is built from nothing.
		model := model(entries)
		at := model.drawOffset(t, "at")
		changed := m.Splice(at, at, []Entry{chunkOf(1, 1)})
		if a, b := build(t, n, changed, m), build(t, newNodes(), NewManifest(changed.Entries()), Manifest{}); a != b {
			t.Fatalf("root %v, from nothing %v", a, b)
		}
	})
}

func TestTreeOfSmallChangePutsLittle(t *testing.T) {
	m := NewManifest(chunksOf(1 << 16))
	n := newNodes()
	root := build(t, n, m, Manifest{})
	if root.Level < 1 || n.puts != len(n.m) {
		t.Fatalf("level %d, %d puts of %d nodes", root.Level, n.puts, len(n.m))
	}
	t.Logf("%d entries: level %d, %d nodes", m.Len(), root.Level, n.puts)
	at, _ := m.Find(m.Size() / 2)
	for name, changed := range map[string]Manifest{
		"nothing": m,
		"front":   m.Splice(0, 0, []Entry{chunkOf(1, 5)}),
		"middle":  m.Splice(at.Start, at.End(), []Entry{chunkOf(1, 5)}),
		"end":     m.Splice(m.Size(), m.Size(), []Entry{chunkOf(1, 5)}),
	} {
		old := len(n.m)
		n.puts = 0
		root := build(t, n, changed, m)
		sameLeaves(t, load(t, n, root), changed)
		if n.puts > 5+root.Level || len(n.m)-old > 4 {
			t.Errorf("%s: %d puts, %d new nodes", name, n.puts, len(n.m)-old)
		}
	}
}

// A base that is so short that it is kept in a record has no node anywhere, so none of its leaves may be left out, not
// even one that is known as the node of another tree.
func TestTreeOnBaseWithoutTree(t *testing.T) {
	front := slices.Repeat([]Entry{chunkOf(4, 5)}, MinNode) // a leaf
	whole := NewManifest(append(slices.Clone(front), chunksOf(20)...))
	build(t, newNodes(), whole, Manifest{})
	for name, base := range map[string]Manifest{
		"new leaf":   NewManifest(chunksOf(20)),
		"known leaf": whole.Splice(0, 5*MinNode, nil),
	} {
		if base.Len() != 20 {
			t.Fatalf("%s: %d entries", name, base.Len())
		}
		m := base.Splice(0, 0, front)
		n := newNodes()
		sameLeaves(t, load(t, n, build(t, n, m, base)), m)
	}
}

func TestTreeDeep(t *testing.T) {
	var entries []Entry
	for i := range uint64(MinNode*MinNode*MinNode + 1) {
		entries = append(entries, chunkOf(4*i, 1)) // all may end a leaf
	}
	m := NewManifest(entries)
	n := newNodes()
	root := build(t, n, m, Manifest{})
	if root.Level < 2 {
		t.Errorf("level %d", root.Level)
	}
	sameLeaves(t, load(t, n, root), m)
}

// The same leaf over and over is fetched and held once.
func TestTreeOfRepeatedLeaf(t *testing.T) {
	entries := slices.Repeat([]Entry{chunkOf(1, 1)}, 100*MaxNode)
	n := newNodes()
	root := build(t, n, NewManifest(entries), Manifest{})
	m := load(t, n, root)
	model(entries).verify(t, m)
	if len(n.m) != 2 || n.gets != 2 || len(m.leafSet()) != 1 {
		t.Errorf("%d nodes, %d fetched, %d leaves", len(n.m), n.gets, len(m.leafSet()))
	}
}

func TestTreeLimits(t *testing.T) {
	one := newLeaf(slices.Repeat([]Entry{chunkOf(1, 1)}, MaxNode))
	var g gatherer
	for range MaxEntries/MaxNode + 1 {
		g.attach(one)
	}
	if _, err := BuildTree(g.out, Manifest{}, newNodes().put); !errors.Is(err, ErrTooBig) {
		t.Errorf("too many entries: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a tree of few entries did not panic")
		}
	}()
	BuildTree(NewManifest(chunksOf(MaxInline)), Manifest{}, newNodes().put)
}

func TestTreeErrorsPass(t *testing.T) {
	m := NewManifest(chunksOf(3000))
	n := newNodes()
	root := build(t, n, m, Manifest{})
	failure := errors.New("disk on fire")
	for fail := 1; fail <= n.puts; fail++ {
		left := fail
		countdown := func() error {
			if left--; left == 0 {
				return failure
			}
			return nil
		}
		_, err := BuildTree(m, Manifest{}, func(ID, []byte) error { return countdown() })
		if err != failure {
			t.Errorf("put %d: %v", fail, err)
		}
		get := n.get()
		failing := func(id ID) ([]byte, error) {
			if err := countdown(); err != nil {
				return nil, err
			}
			return get(id)
		}
		left = fail
		if _, err = LoadTree(root, failing); err != failure {
			t.Errorf("get %d: %v", fail, err)
		}
		left = fail
		if err = WalkTree(root, failing, func(Entry, bool) error { return nil }); err != failure {
			t.Errorf("walk, get %d: %v", fail, err)
		}
		left = fail
		if err = WalkTree(root, get, func(Entry, bool) error { return countdown() }); err != failure {
			t.Errorf("walk, visit %d: %v", fail, err)
		}
	}
}

func TestWalkSkips(t *testing.T) {
	n := newNodes()
	root := build(t, n, NewManifest(chunksOf(3000)), Manifest{})
	n.gets = 0
	err := WalkTree(root, n.get(), func(e Entry, node bool) error {
		if !node {
			t.Fatal("a chunk below a skipped node")
		}
		if e.ID != root.ID {
			return SkipNode
		}
		return nil
	})
	if err != nil || n.gets != 1 {
		t.Errorf("%v, %d nodes fetched", err, n.gets)
	}
}

// Trees that BuildTree does not build are refused, even when each node is well formed.
func TestLoadRefuses(t *testing.T) {
	leafOf := func(entries ...Entry) Node { return Node{Entries: entries} }
	full := func(last Entry) Node { // ends by content
		return leafOf(append(slices.Repeat([]Entry{chunkOf(1, 1)}, MinNode-1), last)...)
	}
	maxed := func(first, last Entry) Node { // ends by number
		entries := append([]Entry{first}, slices.Repeat([]Entry{chunkOf(1, 1)}, MaxNode-2)...)
		return leafOf(append(entries, last)...)
	}
	end, mid, hole := chunkOf(4, 1), chunkOf(1, 1), HoleOf(1)
	cases := []struct {
		name   string
		leaves []Node
		spoil  func(n *nodes, r *Root)
		want   error // nil: loads
	}{
		{name: "as built", leaves: []Node{full(end), leafOf(mid)}},
		{name: "as built, by number", leaves: []Node{maxed(mid, hole), leafOf(mid)}},
		{name: "leaf ends too early", leaves: []Node{full(mid), leafOf(mid)}, want: ErrCorrupt},
		{name: "inner node ends too early", leaves: []Node{full(end), leafOf(mid)},
			spoil: func(n *nodes, r *Root) { n.splitRoot(r) }, want: ErrCorrupt},
		{name: "hole after a hole", leaves: []Node{maxed(mid, hole), leafOf(hole, mid)}, want: ErrCorrupt},
		{name: "stored too little", leaves: []Node{full(end), leafOf(mid)},
			spoil: func(_ *nodes, r *Root) { r.Stored-- }, want: ErrCorrupt},
		{name: "size of the root", leaves: []Node{full(end), leafOf(mid)},
			spoil: func(_ *nodes, r *Root) { r.Size++ }, want: ErrCorrupt},
		{name: "entries of the root", leaves: []Node{full(end), leafOf(mid)},
			spoil: func(_ *nodes, r *Root) { r.Len++ }, want: ErrCorrupt},
		{name: "level of the root", leaves: []Node{full(end), leafOf(mid)},
			spoil: func(_ *nodes, r *Root) { r.Level++ }, want: ErrCorrupt},
		{name: "root out of range", leaves: []Node{full(end), leafOf(mid)},
			spoil: func(_ *nodes, r *Root) { r.Len = 1 }, want: ErrCorrupt},
		{name: "root of one child", leaves: []Node{maxed(mid, mid)}, want: ErrCorrupt},
		{name: "garbage", leaves: []Node{full(end), leafOf(mid)},
			spoil: func(n *nodes, r *Root) { n.m[r.ID] = []byte("CN") }, want: ErrCorrupt},
	}
	for _, c := range cases {
		n := newNodes()
		root := n.tree(t, c.leaves)
		if c.spoil != nil {
			c.spoil(n, &root)
		}
		if _, err := LoadTree(root, n.get()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A walk does not compare nodes with each other, but it checks the root and each node.
func TestWalkRefuses(t *testing.T) {
	n := newNodes()
	good := build(t, n, NewManifest(chunksOf(100)), Manifest{})
	for name, spoil := range map[string]func(r *Root){
		"root out of range": func(r *Root) { r.Len = 1 },
		"size of the root":  func(r *Root) { r.Size++ },
		"level of the root": func(r *Root) { r.Level++ },
	} {
		root := good
		spoil(&root)
		err := WalkTree(root, n.get(), func(Entry, bool) error { return nil })
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A child that is not as long as its parent says is refused, both when it is fetched and when it is known already.
func TestLoadRefusesWrongChild(t *testing.T) {
	leaf := Node{Entries: slices.Repeat([]Entry{chunkOf(1, 2)}, MaxNode)}
	for wrong := range 2 {
		n := newNodes()
		id := n.add(t, leaf)
		children := slices.Repeat([]Child{{ID: id, Size: 2 * MaxNode, Entries: MaxNode}}, 2)
		children[wrong].Size++
		root := n.root(t, Node{Level: 1, Children: children}, 4*MaxNode)
		if _, err := LoadTree(root, n.get()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("child %d: %v", wrong, err)
		}
	}
}

// tree puts an inner node over leaves, whatever they are, and returns a root of it.
func (n *nodes) tree(t *testing.T, leaves []Node) Root {
	inner := Node{Level: 1}
	var stored uint64
	for _, l := range leaves {
		c := Child{ID: n.add(t, l)}
		c.Size, c.Entries = l.totals()
		inner.Children = append(inner.Children, c)
		stored += model(l.Entries).stored()
	}
	return n.root(t, inner, stored)
}

// splitRoot puts a root over two nodes that share the root's children, neither of which should end there.
func (n *nodes) splitRoot(r *Root) {
	old, err := DecodeNode(n.m[r.ID])
	if err != nil {
		panic(err)
	}
	node := Node{Level: old.Level + 1}
	for _, child := range old.Children {
		b := AppendNode(nil, Node{Level: old.Level, Children: []Child{child}})
		n.m[Sum(b)] = b
		node.Children = append(node.Children, Child{ID: Sum(b), Size: child.Size, Entries: child.Entries})
	}
	b := AppendNode(nil, node)
	n.m[Sum(b)] = b
	r.ID, r.Level = Sum(b), node.Level
}

func (n *nodes) root(t *testing.T, node Node, stored uint64) Root {
	r := Root{ID: n.add(t, node), Level: node.Level, Stored: stored}
	r.Size, r.Len = node.totals()
	return r
}

func (n *nodes) add(t *testing.T, node Node) ID {
	b := AppendNode(nil, node)
	id := Sum(b)
	if err := n.put(id, b); err != nil {
		t.Fatal(err)
	}
	return id
}

func BenchmarkTree(b *testing.B) {
	m := NewManifest(chunksOf(1 << 16))
	n := newNodes()
	root := build(b, n, m, Manifest{})
	discard := func(ID, []byte) error { return nil }
	b.Run("build", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			BuildTree(NewManifest(m.Entries()), Manifest{}, discard)
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			BuildTree(m.Splice(m.Size(), m.Size(), []Entry{chunkOf(1, 1)}), m, discard)
		}
	})
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			load(b, n, root)
		}
	})
}
