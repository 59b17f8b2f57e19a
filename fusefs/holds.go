package fusefs

import (
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// holds counts how often the kernel was given each inode, as it counts itself, and keeps one [vfs.Tree.Hold] on each
// whose count is not zero. The counts are needed because a mount that ends does not give its inodes back one by one.
type holds struct {
	tree   vfs.Tree
	mu     sync.Mutex
	counts map[vfs.Ino]uint64
}

func newHolds(tree vfs.Tree) *holds { return &holds{tree: tree, counts: make(map[vfs.Ino]uint64)} }

// take counts one reply that carries ino. It must come before the reply is sent: the kernel may forget the inode as
// soon as it has it.
func (h *holds) take(ino vfs.Ino) {
	h.mu.Lock()
	n := h.counts[ino] + 1
	h.counts[ino] = n
	h.mu.Unlock()
	if n == 1 {
		h.tree.Hold(ino)
	}
}

// give takes n replies back.
func (h *holds) give(ino vfs.Ino, n uint64) {
	h.mu.Lock()
	have := h.counts[ino]
	last := have > 0 && n >= have
	switch {
	case last:
		delete(h.counts, ino)
	case have > 0:
		h.counts[ino] = have - n
	}
	h.mu.Unlock()
	if last {
		h.tree.Release(ino, 1)
	}
}

// giveAll takes everything back, when the mount has ended.
func (h *holds) giveAll() {
	h.mu.Lock()
	counts := h.counts
	h.counts = make(map[vfs.Ino]uint64)
	h.mu.Unlock()
	for ino := range counts {
		h.tree.Release(ino, 1)
	}
}

// has reports whether the kernel was given ino and has not given it back. The root it always has.
func (h *holds) has(ino vfs.Ino) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[ino] > 0 || ino == vfs.RootIno
}

// inodes returns all inodes that the kernel may know.
func (h *holds) inodes() []vfs.Ino {
	h.mu.Lock()
	defer h.mu.Unlock()
	inos := make([]vfs.Ino, 0, len(h.counts)+1)
	inos = append(inos, vfs.RootIno)
	for ino := range h.counts {
		inos = append(inos, ino)
	}
	return inos
}
