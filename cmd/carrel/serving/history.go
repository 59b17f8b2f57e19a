package serving

import (
	"sort"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// history remembers when the revisions of a workspace were first seen, to tell by how much time a peer is behind.
type history struct {
	marks []mark // ascending
}

type mark struct {
	rev vfs.Rev
	at  time.Time
}

// note says that rev is the newest revision now.
func (h *history) note(rev vfs.Rev, now time.Time) {
	if n := len(h.marks); n > 0 && h.marks[n-1].rev >= rev {
		return
	}
	if len(h.marks) == maxMarks {
		h.thin()
	}
	h.marks = append(h.marks, mark{rev, now})
}

// thin forgets every other mark, and neither the first nor the last.
func (h *history) thin() {
	kept := h.marks[:0]
	for i, m := range h.marks {
		if i%2 == 0 || i == len(h.marks)-1 {
			kept = append(kept, m)
		}
	}
	h.marks = kept
}

// lag is for how long there has been a revision above rev, at least: what was made before the first mark was made
// unseen.
func (h *history) lag(rev vfs.Rev, now time.Time) time.Duration {
	i := sort.Search(len(h.marks), func(i int) bool { return h.marks[i].rev > rev })
	if i == len(h.marks) {
		return 0
	}
	return now.Sub(h.marks[i].at)
}
