package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/carrelfs/carrel/execd/shell/command/tool"
)

// entry is a file of a snapshot.
type entry struct {
	mode filemode.FileMode // 0 for none
	hash plumbing.Hash
	file bool // its bytes are those of the work tree, and may be in no object
}

// is says whether two entries are the same file.
func (e entry) is(o entry) bool { return e.mode == o.mode && e.hash == o.hash }

func (e entry) none() bool { return e.mode == 0 }

// snapshot is the files of a tree, the index or the work tree, by path.
type snapshot map[string]entry

// treeSnapshot lists a tree; that of no commit is empty.
func (g *call) treeSnapshot(h plumbing.Hash) (snapshot, error) {
	s := snapshot{}
	if h.IsZero() {
		return s, nil
	}
	return s, g.eachEntry(h, "", func(name string, e object.TreeEntry) (bool, error) {
		if e.Mode != filemode.Dir {
			s[name] = entry{mode: e.Mode, hash: e.Hash}
		}
		return true, nil
	})
}

// commitSnapshot lists the tree of a commit; a zero hash stands for none.
func (g *call) commitSnapshot(h plumbing.Hash) (snapshot, error) {
	if h.IsZero() {
		return snapshot{}, nil
	}
	c, ok := g.peel(h)
	if !ok {
		return g.treeSnapshot(h)
	}
	return g.treeSnapshot(c.TreeHash)
}

// change is how one file differs between two snapshots. A side that has no such file is the zero entry.
type change struct {
	path     string
	old      string // the path before, when it was renamed
	score    int    // in hundredths, how much of it is as it was then
	from, to entry
}

// letter is the status that git shows.
func (c change) letter() byte {
	switch {
	case c.old != "":
		return 'R'
	case c.from.mode == 0:
		return 'A'
	case c.to.mode == 0:
		return 'D'
	case c.from.mode&^0o777 != c.to.mode&^0o777:
		return 'T'
	}
	return 'M'
}

// changes compares snapshots, in the order of the paths, within scopes. With renames, a file that went is matched with
// one of the same bytes that came.
func changes(from, to snapshot, within []scope, renames bool) []change {
	var list []change
	for name, a := range from {
		if b := to[name]; (a.hash != b.hash || a.mode != b.mode) && inScopes(within, name) {
			list = append(list, change{path: name, from: a, to: b})
		}
	}
	for name, b := range to {
		if _, ok := from[name]; !ok && inScopes(within, name) {
			list = append(list, change{path: name, to: b})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return strings.Compare(a.path, b.path) })
	if renames {
		list = pairRenames(list)
	}
	return list
}

// pairRenames makes one change of a file that went and one that came with the same bytes.
func pairRenames(list []change) []change {
	gone := map[plumbing.Hash][]int{}
	for i, c := range list {
		if c.to.mode == 0 && c.from.hash != emptyBlob {
			gone[c.from.hash] = append(gone[c.from.hash], i)
		}
	}
	drop := map[int]bool{}
	for i, c := range list {
		if sources := gone[c.to.hash]; c.from.mode == 0 && len(sources) > 0 {
			from := sources[0]
			gone[c.to.hash] = sources[1:]
			list[i].old, list[i].from, list[i].score = list[from].path, list[from].from, 100
			drop[from] = true
		}
	}
	var kept []change
	for i, c := range list {
		if !drop[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

// emptyBlob is the object of no bytes, which says nothing of where a file went.
var emptyBlob = plumbing.ComputeHash(plumbing.BlobObject, nil)

func matchGlob(pattern, name string) bool { return tool.Glob(pattern, name, false) }
