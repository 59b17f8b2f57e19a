package fusefs

import (
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// holds counts how often the kernel was given each inode, as it counts itself, and keeps as many [vfs.Tree.Hold] on it.
// The counts are needed because a mount that ends does not give its inodes back one by one.
type holds struct {
	tree   vfs.Tree
	mu     sync.Mutex
	inodes map[vfs.Ino]held
	root   uint32 // shown, of the root
}

type held struct {
	count uint64
	plain bool   // it has no file capabilities (see worker.dropCapabilities)
	shown uint32 // who has been sent the attributes of a directory since its names last changed: a thread, or several
}

// several is in place of a thread when there were more than one, or one that the kernel does not tell.
const several = ^uint32(0)

func newHolds(tree vfs.Tree) *holds { return &holds{tree: tree, inodes: make(map[vfs.Ino]held)} }

// take counts one reply that carries ino. It must come before the reply is sent: the kernel may forget the inode as
// soon as it has it. The tree holds the inode before it is counted. Counting first, and holding only the first time,
// would let a second reply out while the first has not held the inode yet.
func (h *holds) take(ino vfs.Ino) {
	h.tree.Hold(ino)
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.inodes[ino]
	i.count++
	h.inodes[ino] = i
}

// give takes n replies back.
func (h *holds) give(ino vfs.Ino, n uint64) {
	h.mu.Lock()
	i := h.inodes[ino]
	n = min(n, i.count)
	if i.count -= n; i.count > 0 {
		h.inodes[ino] = i
	} else {
		delete(h.inodes, ino)
	}
	h.mu.Unlock()
	if n > 0 {
		h.tree.Release(ino, n)
	}
}

// giveAll takes everything back, when the mount has ended.
func (h *holds) giveAll() {
	h.mu.Lock()
	inodes := h.inodes
	h.inodes = make(map[vfs.Ino]held)
	h.mu.Unlock()
	for ino, i := range inodes {
		h.tree.Release(ino, i.count)
	}
}

// has reports whether the kernel was given ino and has not given it back. The root it always has.
func (h *holds) has(ino vfs.Ino) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.inodes[ino]
	return ok || ino == vfs.RootIno
}

// all returns all inodes that the kernel may know.
func (h *holds) all() []vfs.Ino {
	h.mu.Lock()
	defer h.mu.Unlock()
	inos := make([]vfs.Ino, 0, len(h.inodes)+1)
	inos = append(inos, vfs.RootIno)
	for ino := range h.inodes {
		inos = append(inos, ino)
	}
	return inos
}

// setPlain notes whether ino is known to have no file capabilities, and returns what was noted before.
func (h *holds) setPlain(ino vfs.Ino, plain bool) (was bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, ok := h.inodes[ino]
	if ok && i.plain != plain {
		h.inodes[ino] = held{i.count, plain, i.shown}
	}
	return i.plain
}

// show notes that a thread is about to be sent the attributes of a directory, which are to be read after that.
func (h *holds) show(dir vfs.Ino, thread uint32) {
	h.setShown(dir, func(was uint32) uint32 {
		if thread == 0 || was != 0 && was != thread {
			return several
		}
		return thread
	})
}

// changed notes that the names in a directory have changed, by a request of a thread. It reports whether another thread was
// sent attributes from before that, which it may not have taken in yet.
func (h *holds) changed(dir vfs.Ino, thread uint32) (shown bool) {
	h.setShown(dir, func(was uint32) uint32 {
		shown = was != 0 && was != thread
		return 0
	})
	return shown
}

func (h *holds) setShown(dir vfs.Ino, next func(was uint32) uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if dir == vfs.RootIno {
		h.root = next(h.root)
	} else if i, ok := h.inodes[dir]; ok {
		was := i.shown
		if i.shown = next(was); i.shown != was {
			h.inodes[dir] = i
		}
	}
}
