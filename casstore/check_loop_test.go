package casstore

import (
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestCheckOfLoops looks at directories in one large loop, at such as lead to it, and at a deep tree. It takes a moment, and
// took minutes when each directory was followed around the loop.
func TestCheckOfLoops(t *testing.T) {
	const n = 1 << 16
	c := &checker{}
	c.nodes = map[vfs.Ino]*checkedNode{vfs.RootIno: {typ: vfs.TypeDir, parent: vfs.RootIno, rooted: true}}
	add := func(ino, parent vfs.Ino) { c.nodes[ino] = &checkedNode{typ: vfs.TypeDir, parent: parent} }
	for i := vfs.Ino(0); i < n; i++ {
		add(2+i, 2+(i+1)%n)                                 // the loop
		add(2+n+i, 2+i)                                     // leads to it
		add(2+2*n+i, max(vfs.RootIno, min(i, 1)*(1+2*n+i))) // hangs from the root, each from the one before
	}
	add(1<<40, 1<<41) // from nothing
	c.nodes[1<<42] = &checkedNode{typ: vfs.TypeRegular}
	add(1<<43, 1<<42) // from a file
	for ino, node := range c.nodes {
		if node.typ != vfs.TypeDir {
			continue
		}
		want := ino == vfs.RootIno || ino >= 2+2*n && ino < 2+3*n
		if got := c.hangs(ino); got != want {
			t.Fatalf("directory %d hangs from the root: %v", ino, got)
		}
	}
}
