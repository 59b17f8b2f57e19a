package fusefs

import (
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// habits decides which listings carry attributes (READDIRPLUS). They spare du, grep -r and the like one LOOKUP for each
// name, at ten times the price; but find, which does not want them, pays for an inode that has to be found in the store.
//
// The kernel has a rule of its own (READDIRPLUS_AUTO): the first piece of a listing has attributes, and the next ones
// when names of the first have been used. But programs read a directory to its end before they use its names, and list
// each directory once. So we look at what a thread has done in the directory before:
//
//   - its first listing is as by the kernel's rule;
//   - the second has no attributes, which shows what it does without: if it looks names up, the following ones have them;
//   - from time to time there is one without again, because habits change.
//
// A kernel that knows the names already asks for none, so these listings have no attributes either.
type habits struct {
	mu      sync.Mutex
	threads map[uint32]*habit  // at most maxHabits; then all are forgotten
	dirs    map[vfs.Ino]*habit // by the directory that was listed last
}

type habit struct {
	dir   vfs.Ino // what the thread has listed last
	lists int     // how many directories it has listed
	looks bool    // names are looked up when it has listed them
}

// list returns whether a piece of a listing by a thread is to have attributes. first says that it is the first piece.
func (h *habits) list(thread uint32, dir vfs.Ino, first bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.ofLocked(thread)
	if first {
		if h.dirs[t.dir] == t {
			delete(h.dirs, t.dir)
		}
		h.dirs[dir], t.dir = t, dir
		t.lists++
		t.looks = t.looks && t.lists%tryBare != 0
	}
	return t.looks || first && t.lists == 1
}

func (h *habits) ofLocked(thread uint32) *habit {
	t := h.threads[thread]
	if t == nil {
		if len(h.threads) >= maxHabits || h.threads == nil {
			h.threads, h.dirs = make(map[uint32]*habit), make(map[vfs.Ino]*habit)
		}
		t = new(habit)
		h.threads[thread] = t
	}
	return t
}

// lookup notes that a name of what is not a directory has been looked up; a directory is by everybody who goes into it.
// Programs with several threads look up in one what they have listed in another.
func (h *habits) lookup(dir vfs.Ino) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.dirs[dir]; t != nil {
		t.looks = true
	}
}
