package shell

import (
	"slices"
	"strconv"

	"github.com/tidwall/btree"
)

// indexed is an array by number. Copies share what they have in common, so a subshell's costs nothing until it is
// changed.
type indexed struct {
	m btree.Map[int64, string]
}

func (a *indexed) clone() *indexed {
	if a == nil {
		return nil
	}
	m := a.m // Copy writes to what it copies, which other shells may be reading
	return &indexed{*m.Copy()}
}

// max returns the highest index, or -1.
func (a *indexed) max() int64 {
	if i, _, ok := a.m.Max(); ok {
		return i
	}
	return -1
}

func (a *indexed) keys() []string {
	keys := make([]string, 0, a.m.Len())
	a.m.Scan(func(i int64, _ string) bool {
		keys = append(keys, strconv.FormatInt(i, 10))
		return true
	})
	return keys
}

func (a *indexed) values() []string {
	if a == nil {
		return nil
	}
	return a.m.Values()
}

func indexedOf(values []string) *indexed {
	a := new(indexed)
	for i, v := range values {
		a.m.Set(int64(i), v)
	}
	return a
}

// assoc is an array by string. bash lists one in the order of its hash table, which scripts come to rely on, so the
// order here is the same.
type assoc struct {
	m    btree.Map[string, assocEntry]
	next uint64
}

type assocEntry struct {
	value string
	seq   uint64 // newer entries come first in a bucket
}

func (a *assoc) clone() *assoc {
	if a == nil {
		return nil
	}
	m := a.m
	return &assoc{m: *m.Copy(), next: a.next}
}

func (a *assoc) set(key, value string) {
	e, ok := a.m.Get(key)
	if !ok {
		a.next++
		e.seq = a.next
	}
	e.value = value
	a.m.Set(key, e)
}

// keys are in bash's order: by bucket of an FNV hash, the newest first in each. The table starts with 1024 buckets and
// grows fourfold when it holds twice as many entries.
func (a *assoc) keys() []string {
	buckets := uint32(1024)
	for a.m.Len() >= int(buckets)*2 {
		buckets *= 4
	}
	type place struct {
		key    string
		bucket uint32
		seq    uint64
	}
	places := make([]place, 0, a.m.Len())
	a.m.Scan(func(key string, e assocEntry) bool {
		places = append(places, place{key, hashString(key) & (buckets - 1), e.seq})
		return true
	})
	slices.SortFunc(places, func(x, y place) int {
		if x.bucket != y.bucket {
			return int(x.bucket) - int(y.bucket)
		}
		return int(int64(y.seq) - int64(x.seq))
	})
	keys := make([]string, len(places))
	for i, p := range places {
		keys[i] = p.key
	}
	return keys
}

func (a *assoc) values() []string {
	if a == nil {
		return nil
	}
	keys := a.keys()
	for i, k := range keys {
		e, _ := a.m.Get(k)
		keys[i] = e.value
	}
	return keys
}

// hashString is the 32-bit FNV-1 hash.
func hashString(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = h*16777619 ^ uint32(s[i])
	}
	return h
}
