package vfs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest/seed"
)

// state is a workspace's records: a PushView of which the peer was leased the numbers from 100 to 199.
type state map[Key][]byte

func (s state) Value(k Key) ([]byte, error) { return s[k], nil }

func (s state) Names(kind KeyKind, ino Ino, yield func(string) bool) error {
	for k := range s {
		if k.Kind == kind && k.Ino == ino && !yield(k.Name) {
			break
		}
	}
	return nil
}

func (s state) MayMake(ino Ino) (bool, error) { return ino >= 100 && ino < 200, nil }

func (s state) inode(ino Ino) *InodeRecord {
	r, err := inodeOrNil(s[Key{Kind: KeyInode, Ino: ino}])
	if err != nil {
		panic(err)
	}
	return r
}

// edit changes an inode's record as f says, and makes one that is not there.
func (s state) edit(ino Ino, f func(*InodeRecord)) {
	r := s.inode(ino)
	if r == nil {
		r = &InodeRecord{Type: TypeRegular, Nlink: 1}
	}
	f(r)
	s[Key{Kind: KeyInode, Ino: ino}] = r.Append(nil)
}

func (s state) name(dir Ino, name string, ino Ino, t Type) {
	s[Key{KeyDirent, dir, name}] = (&DirentRecord{Ino: ino, Type: t}).Append(nil)
}

func (s state) mkdir(dir Ino, name string, ino Ino) {
	s.edit(ino, func(r *InodeRecord) { *r = InodeRecord{Type: TypeDir, Nlink: 2, Parent: dir} })
	s.edit(dir, func(r *InodeRecord) { r.Nlink++ })
	s.name(dir, name, ino, TypeDir)
}

func (s state) move(ino, from Ino, name string, to Ino, newName string) {
	s.edit(ino, func(r *InodeRecord) { r.Parent = to })
	s.edit(from, func(r *InodeRecord) { r.Nlink-- })
	s.edit(to, func(r *InodeRecord) { r.Nlink++ })
	delete(s, Key{KeyDirent, from, name})
	s.name(to, newName, ino, TypeDir)
}

func (s state) remove(keys ...Key) {
	for _, k := range keys {
		delete(s, k)
	}
}

func (s state) xattr(ino Ino, name string, value []byte) {
	s[Key{KeyXattr, ino, name}] = value
	s.edit(ino, func(r *InodeRecord) { r.Xattrs++ })
}

// pushTo returns the push that turns s into to.
func (s state) pushTo(to state) *Push {
	keys := make(map[Key]bool)
	for k := range s {
		keys[k] = true
	}
	for k := range to {
		keys[k] = true
	}
	p := new(Push)
	for _, k := range slices.SortedFunc(maps.Keys(keys), Key.Compare) {
		old := Record{Key: k, Value: s[k]}
		if new, ok := to[k]; !ok || !bytes.Equal(new, old.Value) || old.Value == nil {
			p.Records = append(p.Records, PushRecord{Record: Record{Key: k, Value: new}, Base: old.Base()})
		}
	}
	return p
}

// sample is
//
//	/       1
//	/a      2
//	/a/f    3, a file, also /c/g
//	/a/b    4
//	/c      5
//	/c/s    6, a symlink
//	/c/d    7, and in it /c/d/e 8
func sample() state {
	s := make(state)
	s.edit(1, func(r *InodeRecord) { *r = InodeRecord{Type: TypeDir, Nlink: 2, Parent: 1} })
	s.mkdir(1, "a", 2)
	s.mkdir(1, "c", 5)
	s.mkdir(2, "b", 4)
	s.mkdir(5, "d", 7)
	s.mkdir(7, "e", 8)
	s.edit(3, func(r *InodeRecord) { r.Nlink = 2 })
	s.name(2, "f", 3, TypeRegular)
	s.name(5, "g", 3, TypeRegular)
	s.xattr(3, "user.x", []byte{})
	target := Body{Kind: BodyTarget, Data: []byte("a/f")}
	s.edit(6, func(r *InodeRecord) { *r = InodeRecord{Type: TypeSymlink, Nlink: 1, Size: 3, Body: target} })
	s.name(5, "s", 6, TypeSymlink)
	return s
}

func inodeKey(ino Ino) Key { return Key{Kind: KeyInode, Ino: ino} }

func extentsOf(size uint64) Body {
	entries := []chunk.Entry{{ID: chunk.ID{1}, Len: size}}
	return Body{Kind: BodyExtents, Data: chunk.AppendEntries(nil, entries)}
}

func TestCheckPush(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(s state)
		want error
	}{
		{"nothing", func(state) {}, nil},
		{"times", func(s state) { s.edit(3, func(r *InodeRecord) { r.Mtime = 5 }) }, nil},
		{"a new file", func(s state) { s.edit(100, func(*InodeRecord) {}); s.name(2, "n", 100, TypeRegular) }, nil},
		{"a new directory", func(s state) { s.mkdir(4, "n", 199) }, nil},
		{"a chain of new directories", func(s state) { s.mkdir(4, "n", 100); s.mkdir(100, "n", 101) }, nil},
		{"another link", func(s state) { s.name(4, "n", 3, TypeRegular); s.edit(3, func(r *InodeRecord) { r.Nlink++ }) }, nil},
		{"one link less", func(s state) {
			s.remove(Key{KeyDirent, 5, "g"})
			s.edit(3, func(r *InodeRecord) { r.Nlink-- })
		}, nil},
		{"a symlink goes", func(s state) { s.remove(Key{KeyDirent, 5, "s"}, inodeKey(6)) }, nil},
		{"a file of many names goes", func(s state) {
			s.remove(Key{KeyDirent, 5, "g"}, Key{KeyDirent, 2, "f"}, inodeKey(3), Key{KeyXattr, 3, "user.x"})
		}, nil},
		{"an empty directory goes", func(s state) {
			s.remove(Key{KeyDirent, 2, "b"}, inodeKey(4))
			s.edit(2, func(r *InodeRecord) { r.Nlink-- })
		}, nil},
		{"a tree of directories goes", func(s state) {
			s.remove(Key{KeyDirent, 5, "d"}, Key{KeyDirent, 7, "e"}, inodeKey(7), inodeKey(8))
			s.edit(5, func(r *InodeRecord) { r.Nlink-- })
		}, nil},
		{"a directory is renamed", func(s state) { s.remove(Key{KeyDirent, 1, "a"}); s.name(1, "z", 2, TypeDir) }, nil},
		{"a directory moves", func(s state) { s.move(2, 1, "a", 8, "a") }, nil},
		{"two directories change places", func(s state) { s.move(7, 5, "d", 2, "d"); s.move(4, 2, "b", 5, "b") }, nil},
		{"an attribute comes", func(s state) { s.xattr(4, "user.y", []byte("1")) }, nil},
		{"an attribute becomes empty", func(s state) { s[Key{KeyXattr, 3, "user.x"}] = []byte("1") }, nil},
		{"bytes", func(s state) { s.edit(3, func(r *InodeRecord) { r.Size, r.Body = 9000, extentsOf(9000) }) }, nil},

		{"bytes of another size", func(s state) { s.edit(3, func(r *InodeRecord) { r.Size, r.Body = 9000, extentsOf(9001) }) }, ErrCorrupt},
		{"a body that does not decode", func(s state) {
			s.edit(3, func(r *InodeRecord) { r.Size, r.Body = 9000, Body{BodyTree, []byte("tree")} })
		}, ErrCorrupt},
		{"a device number of a file", func(s state) { s.edit(3, func(r *InodeRecord) { r.Rdev = 1 }) }, ErrCorrupt},
		{"a record that is not canonical", func(s state) {
			s[Key{KeyDirent, 2, "f"}] = []byte{byte(TypeRegular), 0x83, 0}
		}, ErrCorrupt},
		{"a name with a slash", func(s state) { s.name(4, "a/b", 6, TypeSymlink) }, ErrInvalid},
		{"a name that is too long", func(s state) { s.name(4, strings.Repeat("n", 256), 6, TypeSymlink) }, ErrNameTooLong},
		{"an attribute without a name", func(s state) { s.xattr(4, "", nil) }, ErrInvalid},
		{"an attribute that is too large", func(s state) { s.xattr(4, "a", make([]byte, MaxXattrSize+1)) }, ErrXattrTooBig},
		{"names of attributes that fit no list", func(s state) {
			for i := range 260 {
				s.xattr(4, fmt.Sprintf("%0255d", i), []byte{})
			}
		}, ErrXattrTooBig},
		{"inode zero", func(s state) { s.edit(0, func(*InodeRecord) {}) }, ErrInvalid},
		{"a number that was not leased", func(s state) { s.edit(200, func(*InodeRecord) {}); s.name(2, "n", 200, TypeRegular) }, ErrNotPermitted},
		{"a file without a name", func(s state) { s.edit(100, func(*InodeRecord) {}) }, ErrInvalid},
		{"a file without a name and link count", func(s state) { s.edit(100, func(r *InodeRecord) { r.Nlink = 0 }) }, ErrInvalid},
		{"too few links", func(s state) { s.name(4, "n", 3, TypeRegular) }, ErrInvalid},
		{"too many links", func(s state) { s.edit(3, func(r *InodeRecord) { r.Nlink++ }) }, ErrInvalid},
		{"a name that leads nowhere", func(s state) { s.name(4, "n", 101, TypeRegular) }, ErrInvalid},
		{"a name of another type", func(s state) { s.name(4, "n", 3, TypeFIFO); s.edit(3, func(r *InodeRecord) { r.Nlink++ }) }, ErrInvalid},
		{"a name in a file", func(s state) { s.name(6, "n", 3, TypeRegular); s.edit(3, func(r *InodeRecord) { r.Nlink++ }) }, ErrInvalid},
		{"a name in nothing", func(s state) { s.name(150, "n", 3, TypeRegular); s.edit(3, func(r *InodeRecord) { r.Nlink++ }) }, ErrInvalid},
		{"another type", func(s state) { s.edit(4, func(r *InodeRecord) { r.Type, r.Parent, r.Nlink = TypeFIFO, 0, 1 }) }, ErrInvalid},
		{"a directory of two names", func(s state) { s.name(1, "z", 4, TypeDir) }, ErrInvalid},
		{"a directory of two names in its parent", func(s state) {
			s.name(2, "z", 4, TypeDir)
			s.edit(2, func(r *InodeRecord) { r.Nlink++ })
		}, ErrInvalid},
		{"a new directory of two names", func(s state) {
			s.mkdir(4, "n", 100)
			s.name(4, "m", 100, TypeDir)
			s.edit(4, func(r *InodeRecord) { r.Nlink++ })
		}, ErrInvalid},
		{"a directory moves without its record", func(s state) { s.move(2, 1, "a", 8, "a"); s.edit(2, func(r *InodeRecord) { r.Parent = 1 }) }, ErrInvalid},
		{"a parent changes alone", func(s state) { s.edit(4, func(r *InodeRecord) { r.Parent = 5 }) }, ErrInvalid},
		{"a directory's links do not change", func(s state) { s.mkdir(4, "n", 100); s.edit(4, func(r *InodeRecord) { r.Nlink-- }) }, ErrInvalid},
		{"a directory inside itself", func(s state) { s.move(5, 1, "c", 7, "c") }, ErrInvalid},
		{"two directories inside each other", func(s state) { s.move(2, 1, "a", 7, "a"); s.move(5, 1, "c", 4, "c") }, ErrInvalid},
		{"the root moves", func(s state) { s.edit(1, func(r *InodeRecord) { r.Parent = 2 }) }, ErrInvalid},
		{"the root gets a name", func(s state) { s.name(2, "r", 1, TypeDir); s.edit(2, func(r *InodeRecord) { r.Nlink++ }) }, ErrInvalid},
		{"the root goes", func(s state) { clear(s) }, ErrInvalid},
		{"a file goes and leaves a name", func(s state) {
			s.remove(Key{KeyDirent, 5, "g"}, inodeKey(3), Key{KeyXattr, 3, "user.x"})
		}, ErrInvalid},
		{"a file goes and leaves an attribute", func(s state) {
			s.remove(Key{KeyDirent, 5, "g"}, Key{KeyDirent, 2, "f"}, inodeKey(3))
		}, ErrInvalid},
		{"a directory goes and leaves an entry", func(s state) {
			s.remove(Key{KeyDirent, 5, "d"}, inodeKey(7))
			s.edit(5, func(r *InodeRecord) { r.Nlink-- })
		}, ErrInvalid},
		{"an attribute that is not counted", func(s state) { s[Key{KeyXattr, 4, "user.y"}] = []byte{} }, ErrInvalid},
		{"an attribute of nothing", func(s state) { s[Key{KeyXattr, 150, "user.y"}] = []byte{} }, ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, to := sample(), sample()
			tt.edit(to)
			stale, err := CheckPush(from, from.pushTo(to))
			if !errors.Is(err, tt.want) || len(stale) > 0 {
				t.Fatalf("stale %v, %v, want %v", stale, err, tt.want)
			}
		})
	}
}

func TestCheckPushForm(t *testing.T) {
	touch := PushRecord{Record: Record{Key: Key{KeyDirent, 2, "x"}}}
	for _, tt := range []struct {
		name string
		push Push
	}{
		{"a key twice", Push{Records: []PushRecord{touch, touch}}},
		{"a kind that there is not", Push{Records: []PushRecord{{Record: Record{Key: Key{Kind: 4, Ino: 1}}}}}},
		{"an inode with a name", Push{Records: []PushRecord{{Record: Record{Key: Key{KeyInode, 1, "x"}}}}}},
		{"too many records", Push{Records: make([]PushRecord, MaxPushRecords+1)}},
		{"too many bytes", Push{Records: slices.Collect(func(yield func(PushRecord) bool) {
			value := make([]byte, MaxXattrSize)
			for i := range MaxPushBytes/MaxXattrSize + 1 {
				yield(PushRecord{Record: Record{Key: Key{KeyXattr, Ino(i + 1), "x"}, Value: value}})
			}
		})}},
	} {
		if _, err := CheckPush(sample(), &tt.push); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What a push is based on decides, and a record that is as it should be already is never stale.
func TestCheckPushStale(t *testing.T) {
	base, own, theirs := sample(), sample(), sample()
	own.edit(3, func(r *InodeRecord) { r.Mtime = 1 })
	own.edit(6, func(r *InodeRecord) { r.Mtime = 1 })
	p := base.pushTo(own)
	theirs.edit(3, func(r *InodeRecord) { r.Mtime = 2 })
	theirs.edit(6, func(r *InodeRecord) { r.Mtime = 1 })
	stale, err := CheckPush(theirs, p)
	if err != nil || len(stale) != 1 || stale[0].Key != inodeKey(3) || !bytes.Equal(stale[0].Value, theirs[inodeKey(3)]) {
		t.Fatalf("%v, %v", stale, err)
	}
	if stale, err := CheckPush(own, p); err != nil || len(stale) > 0 {
		t.Fatalf("pushed again: %v, %v", stale, err)
	}
	theirs.remove(Key{KeyXattr, 3, "user.x"})
	own[Key{KeyXattr, 3, "user.x"}] = []byte("own")
	if stale, err = CheckPush(theirs, base.pushTo(own)); err != nil || len(stale) != 2 || stale[1].Value != nil {
		t.Fatalf("removed there, changed here: %v, %v", stale, err)
	}
}

// Two mirrors each give a file another name in the same tick. The file's record is the same in both pushes, but counts one
// name only.
func TestCheckPushSameCount(t *testing.T) {
	base, own, theirs := sample(), sample(), sample()
	for name, s := range map[string]state{"own": own, "theirs": theirs} {
		s.edit(3, func(r *InodeRecord) { r.Nlink++ })
		s.name(4, name, 3, TypeRegular)
	}
	stale, err := CheckPush(theirs, base.pushTo(own))
	if err != nil || len(stale) != 1 || stale[0].Key != inodeKey(3) || !bytes.Equal(stale[0].Value, theirs[inodeKey(3)]) {
		t.Fatalf("%v, %v", stale, err)
	}
	own.edit(3, func(r *InodeRecord) { r.Nlink++ }) // as who has merged makes it
	if stale, err := CheckPush(theirs, theirs.pushTo(own)); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a name is removed, but it still counts: %v, %v", stale, err)
	}
	own.name(4, "theirs", 3, TypeRegular)
	if stale, err := CheckPush(theirs, theirs.pushTo(own)); err != nil || len(stale) > 0 {
		t.Fatalf("%v, %v", stale, err)
	}
}

// Two mirrors each move a directory into the other's. No record is in both pushes.
func TestCheckPushLoop(t *testing.T) {
	base := sample()
	base.mkdir(4, "deep", 9)
	own, theirs := maps.Clone(base), maps.Clone(base)
	own.move(7, 5, "d", 9, "d")    // /c/d to /a/b/deep/d
	theirs.move(4, 2, "b", 8, "b") // /a/b to /c/d/e/b
	stale, err := CheckPush(theirs, base.pushTo(own))
	if err != nil {
		t.Fatal(err)
	}
	var keys []Key
	for _, r := range stale {
		keys = append(keys, r.Key)
		if !bytes.Equal(r.Value, theirs[r.Key]) {
			t.Errorf("%v: not the current record", r.Key)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	if want := []Key{inodeKey(4), inodeKey(8)}; !slices.Equal(keys, want) {
		t.Fatalf("stale %v, want %v", keys, want)
	}
}

// checkWhole is CheckPush done the simple way: all of the tree is looked at.
func checkWhole(s state) error {
	names, subdirs, xattrs := map[Ino]int{}, map[Ino]int{}, map[Ino]int{}
	for k, value := range s {
		at := s.inode(k.Ino)
		switch {
		case at == nil:
			return fmt.Errorf("%v of nothing", k)
		case k.Kind == KeyXattr:
			xattrs[k.Ino]++
		case k.Kind == KeyDirent:
			d, _ := DecodeDirent(value)
			n := s.inode(d.Ino)
			if at.Type != TypeDir || n == nil || n.Type != d.Type || n.Type == TypeDir && n.Parent != k.Ino {
				return fmt.Errorf("%v leads astray", k)
			}
			if names[d.Ino]++; d.Type == TypeDir {
				subdirs[k.Ino]++
			}
		}
	}
	for k := range s {
		if k.Kind != KeyInode {
			continue
		}
		r, links := s.inode(k.Ino), names[k.Ino]
		if r.Type == TypeDir {
			links = 2 + subdirs[k.Ino]
			if (names[k.Ino] == 1) == (k.Ino == RootIno) || names[k.Ino] > 1 {
				return fmt.Errorf("directory %d with %d names", k.Ino, names[k.Ino])
			}
			up := k.Ino
			for range len(s) {
				if p := s.inode(up); p != nil {
					up = p.Parent
				}
			}
			if up != RootIno {
				return fmt.Errorf("directory %d does not hang from the root", k.Ino)
			}
		}
		if int(r.Nlink) != links || links == 0 || int(r.Xattrs) != xattrs[k.Ino] {
			return fmt.Errorf("%v counts wrong", k)
		}
	}
	if r := s.inode(RootIno); r == nil || r.Type != TypeDir || r.Parent != RootIno {
		return errors.New("no root")
	}
	return nil
}

func checkTypes(from, to state) error {
	for k := range from {
		if k.Kind == KeyInode && to[k] != nil && from.inode(k.Ino).Type != to.inode(k.Ino).Type {
			return fmt.Errorf("%v becomes of another type", k)
		}
	}
	return nil
}

// What CheckPush accepts is what leaves a valid tree, and nothing else.
func TestCheckPushAgrees(t *testing.T) {
	const rounds = 3000
	seed := seed.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	s, accepted := sample(), 0
	for round := range rounds {
		to := maps.Clone(s)
		for range 1 + r.IntN(3) {
			mutate(r, to)
		}
		stale, err := CheckPush(s, s.pushTo(to))
		ok, want := err == nil && len(stale) == 0, cmp.Or(checkTypes(s, to), checkWhole(to))
		if ok != (want == nil) {
			t.Fatalf("seed %d, round %d: CheckPush says %v, %v, the whole tree %v", seed, round, stale, err, want)
		}
		if ok {
			s, accepted = to, accepted+1
		}
	}
	if accepted < rounds/20 || accepted > rounds*19/20 {
		t.Errorf("seed %d: %d of %d accepted: the test looks at one side only", seed, accepted, rounds)
	}
}

// replica is a state whose peer may make any number, as it can where an authority's records are taken over.
type replica struct{ state }

func (replica) MayMake(Ino) (bool, error) { return true, nil }

// Of a state that has of each key what some revision had, or nothing, CheckMending lets the newest be made.
func TestCheckMending(t *testing.T) {
	seed := seed.Of(t)
	r := rand.New(rand.NewPCG(seed, 2))
	history, refused := []state{sample()}, 0
	for round := range 300 {
		now := history[len(history)-1]
		to := maps.Clone(now)
		mutate(r, to)
		if checkWhole(to) == nil {
			history = append(history, to)
			now = to
		}
		mixed := mix(r, history[max(0, len(history)-4):])
		p := mixed.pushTo(now)
		if stale, err := CheckMending(replica{mixed}, p); err != nil || len(stale) > 0 {
			t.Fatalf("seed %d, round %d: stale %v, %v", seed, round, stale, err)
		}
		if _, err := CheckPush(replica{mixed}, p); err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("seed %d: CheckPush takes all of it too", seed)
	}
}

// mix takes each key from any of some trees, but for the root.
func mix(r *rand.Rand, from []state) state {
	s := make(state)
	for _, tree := range from {
		for k, value := range tree {
			if k == inodeKey(RootIno) || r.IntN(2) == 0 {
				s[k] = value
			}
		}
	}
	return s
}

// What is no tree is not made by mending either.
func TestCheckMendingRefuses(t *testing.T) {
	for name, change := range map[string]func(state){
		"an entry of nothing":           func(s state) { s.name(1, "x", 99, TypeRegular) },
		"an entry of another type":      func(s state) { s.name(1, "x", 3, TypeDir) },
		"an entry in a file":            func(s state) { s.name(3, "x", 6, TypeSymlink) },
		"a directory of other entry":    func(s state) { s.name(1, "x", 7, TypeDir) },
		"no root":                       func(s state) { s.remove(inodeKey(1)) },
		"entries of no directory":       func(s state) { s.remove(inodeKey(7)) },
		"entries of what is a file now": func(s state) { s.edit(7, func(r *InodeRecord) { r.Type, r.Parent = TypeFIFO, 0 }) },
		"a parent that is no parent":    func(s state) { s.edit(4, func(r *InodeRecord) { r.Parent = 3 }) },
		"a directory that holds itself": func(s state) { s.edit(5, func(r *InodeRecord) { r.Parent = 8 }) },
	} {
		to := sample()
		change(to)
		if stale, err := CheckMending(sample(), sample().pushTo(to)); !errors.Is(err, ErrInvalid) && len(stale) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mutate changes a tree by an operation, or a record of it at random.
func mutate(r *rand.Rand, s state) {
	inos := slices.Sorted(func(yield func(Ino) bool) {
		for k := range s {
			if k.Kind == KeyInode && !yield(k.Ino) {
				return
			}
		}
	})
	dir, ino, name := inos[r.IntN(len(inos))], inos[r.IntN(len(inos))], string(rune('a'+r.IntN(4)))
	key := slices.SortedFunc(maps.Keys(s), Key.Compare)[r.IntN(len(s))]
	fresh := Ino(100 + r.IntN(12))
	switch r.IntN(9) {
	case 0:
		s.mkdir(dir, name, fresh)
	case 1:
		s.edit(fresh, func(*InodeRecord) {})
		s.name(dir, name, fresh, TypeRegular)
	case 2:
		s.name(dir, name, ino, s.inode(ino).Type)
		s.edit(ino, func(n *InodeRecord) { n.Nlink++ })
	case 3:
		if key.Kind == KeyDirent {
			if d, _ := DecodeDirent(s[key]); d.Type == TypeDir && s.inode(d.Ino) != nil && s.inode(d.Ino).Type == TypeDir {
				s.move(d.Ino, key.Ino, key.Name, dir, name)
			}
		}
	case 4:
		s.edit(ino, func(n *InodeRecord) { n.Mtime++ })
	case 5:
		s.edit(ino, func(n *InodeRecord) { n.Nlink += uint32(r.IntN(2)); n.Xattrs += uint32(r.IntN(2)) })
	case 6:
		s.xattr(ino, name, []byte{})
	case 7, 8:
		if key.Kind == KeyDirent {
			removeName(s, key)
		} else if key.Ino != RootIno && r.IntN(4) == 0 {
			s.remove(key)
		}
	}
}

func removeName(s state, key Key) {
	d, _ := DecodeDirent(s[key])
	s.remove(key)
	if d.Type == TypeDir {
		s.remove(inodeKey(d.Ino))
		s.edit(key.Ino, func(n *InodeRecord) { n.Nlink-- })
		return
	}
	s.edit(d.Ino, func(n *InodeRecord) { n.Nlink-- })
	if s.inode(d.Ino).Nlink == 0 {
		s.remove(inodeKey(d.Ino))
	}
}
