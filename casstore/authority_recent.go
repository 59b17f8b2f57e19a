package casstore

import (
	"slices"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// recent knows the keys that the last revisions of a workspace have changed, so that whoever follows it need not look for them in
// Badger: it compares everything that is in its memory, and not in a table yet, with the revision from which on to tell.
type recent struct {
	since vfs.Rev // what has changed after it is all there
	revs  []recentRev
	count int // of keys
}

// recentRev is what one revision has changed. It is not changed.
type recentRev struct {
	rev  vfs.Rev
	keys []vfs.Key
}

// maxSought is how many changes are looked up, each by its key. More are found by a scan.
const maxSought = 1024

// maxRecent is how many keys are remembered of a workspace: a megabyte or two.
const maxRecent = 16 << 10

// add takes in a revision. The oldest are forgotten for it, and all if it has too many keys itself.
func (r *recent) add(rv recentRev) {
	r.revs = append(r.revs, rv)
	r.count += len(rv.keys)
	for r.count > maxRecent {
		r.since, r.count = r.revs[0].rev, r.count-len(r.revs[0].keys)
		r.revs = r.revs[1:]
	}
}

// after returns the revisions after one. ok is false when they are not all known, or too many to look up what they have changed.
func (r *recent) after(rev vfs.Rev) (revs []recentRev, ok bool) {
	if rev < r.since {
		return nil, false
	}
	n, count := len(r.revs), 0
	for ; n > 0 && r.revs[n-1].rev > rev; n-- {
		if count += len(r.revs[n-1].keys); count > maxSought {
			return nil, false
		}
	}
	return slices.Clone(r.revs[n:]), true
}

// keysOf returns the keys that revisions have changed, of inodes in a range, each once and in order.
func keysOf(revs []recentRev, in vfs.InoRange) (keys []vfs.Key) {
	for _, rv := range revs {
		for _, k := range rv.keys {
			if k.Ino >= in.First && k.Ino <= in.Last {
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, vfs.Key.Compare)
	return slices.Compact(keys)
}

// recordKeys returns the keys of the records that a cut changes, or as many of them as are too many.
func (c *cut) recordKeys() (keys []vfs.Key, err error) {
	for _, e := range c.kvs {
		key, ok, err := recordOfKey(e.key)
		if err != nil || len(keys) > maxRecent {
			return keys, err
		}
		if ok {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
