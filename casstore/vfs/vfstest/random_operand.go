package vfstest

import (
	"strings"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// randomNames are few, so that they collide, and some are unusual.
var randomNames = []string{"a", "b", "c", "d", "e", "\xff\xfe", strings.Repeat("n", vfs.MaxNameLen)}

// badNames are given now and then.
var badNames = []string{"", ".", "..", "a/b", "a\x00", strings.Repeat("n", vfs.MaxNameLen+1)}

func pick[T any](r *random, from []T) T { return from[r.rand.IntN(len(from))] }

// chance is true n times in a hundred.
func (r *random) chance(n int) bool { return r.rand.IntN(100) < n }

func (r *random) name() string {
	if r.chance(1) {
		return pick(r, badNames)
	}
	return pick(r, randomNames)
}

// node returns an inode of any kind; it may be gone.
func (r *random) node() vfs.Ino { return pick(r, r.known) }

// nodeOf returns an inode of a type that is not gone, when there is one.
func (r *random) nodeOf(t vfs.Type) vfs.Ino {
	var of []vfs.Ino
	for _, ino := range r.known {
		if a, err := r.model.Stat(r.ctx(), ino); err == nil && a.Type == t {
			of = append(of, ino)
		}
	}
	if len(of) == 0 || r.chance(2) {
		return r.node()
	}
	return pick(r, of)
}

func (r *random) file() vfs.Ino { return r.nodeOf(vfs.TypeRegular) }
func (r *random) dir() vfs.Ino  { return r.nodeOf(vfs.TypeDir) }

// directories counts those that have a name.
func (r *random) directories() int {
	n := 0
	for _, ino := range r.known {
		if a, err := r.model.Stat(r.ctx(), ino); err == nil && a.Type == vfs.TypeDir && a.Nlink > 0 {
			n++
		}
	}
	return n
}

// size returns the size of a file in the model.
func (r *random) size(ino vfs.Ino) uint64 {
	a, err := r.model.Stat(r.ctx(), ino)
	if err != nil || a.Type != vfs.TypeRegular {
		return 0
	}
	return a.Size
}

// length returns a number of bytes, near those at which a store changes its ways.
func (r *random) length() uint64 {
	switch edge := uint64(edgeSizes[r.rand.IntN(len(edgeSizes))]); r.rand.IntN(20) {
	case 0:
		return edge
	case 1, 2:
		return uint64(4090 + r.rand.IntN(12))
	case 3, 4:
		return r.rand.Uint64N(200_000)
	case 5, 6, 7:
		return r.rand.Uint64N(20_000)
	}
	return r.rand.Uint64N(300)
}

// offset returns a position in or near a file of a size.
func (r *random) offset(size uint64) uint64 {
	switch r.rand.IntN(10) {
	case 0, 1, 2:
		return size
	case 3:
		return 0
	case 4:
		return size + r.length()
	case 5:
		if r.chance(5) {
			return 1<<40 + r.rand.Uint64N(1<<40)
		}
	}
	return r.rand.Uint64N(size + 1)
}

func (r *random) newNode() vfs.NewNode {
	modes := []uint32{0o644, 0o755, 0o600, 0o2755, 0o4711, 0o6777, 0o1777, 0o2644}
	return vfs.NewNode{Mode: pick(r, modes), UID: r.rand.Uint32N(3), GID: r.rand.Uint32N(3), Rdev: r.rand.Uint32()}
}

// dirFaults are what an operation on a name in dir may say when dir has been removed: it may be known still, or not.
func (r *random) dirFaults(dir vfs.Ino) []error {
	a, err := r.model.Stat(r.ctx(), dir)
	switch {
	case err != nil || a.Type == vfs.TypeDir && a.Nlink == 0:
		return []error{vfs.ErrNotExist, vfs.ErrStale}
	case a.Type != vfs.TypeDir:
		return []error{vfs.ErrNotDir}
	}
	return nil
}

// lookup returns what a name leads to in the model.
func (r *random) lookup(dir vfs.Ino, name string) (a vfs.Attr, found bool) {
	a, err := r.model.Lookup(r.ctx(), dir, name)
	return a, err == nil
}

// linkFaults are all the faults of a Link.
func (r *random) linkFaults(ino, dir vfs.Ino, name string) []error {
	faults := r.dirFaults(dir)
	if _, taken := r.lookup(dir, name); taken {
		faults = append(faults, vfs.ErrExist)
	}
	a, err := r.model.Stat(r.ctx(), ino)
	switch {
	case err != nil:
		return append(faults, vfs.ErrStale)
	case a.Type == vfs.TypeDir:
		faults = append(faults, vfs.ErrNotPermitted)
	}
	if a.Nlink == 0 {
		faults = append(faults, vfs.ErrNotExist, vfs.ErrStale)
	}
	return faults
}

// renameFaults are all the faults of a Rename.
func (r *random) renameFaults(dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags) []error {
	faults := append(r.dirFaults(dir), r.dirFaults(newDir)...)
	src, found := r.lookup(dir, name)
	dst, taken := r.lookup(newDir, newName)
	exchange := flags&vfs.RenameExchange != 0
	if flags > vfs.RenameExchange {
		faults = append(faults, vfs.ErrInvalid)
	}
	if !found || exchange && !taken {
		faults = append(faults, vfs.ErrNotExist)
	}
	if taken && flags&vfs.RenameNoReplace != 0 {
		faults = append(faults, vfs.ErrExist)
	}
	if found && r.isWithin(newDir, src.Ino) || exchange && taken && r.isWithin(dir, dst.Ino) {
		faults = append(faults, vfs.ErrInvalid)
	}
	if found && taken && !exchange {
		faults = append(faults, r.replaceFaults(src, dst)...)
	}
	return faults
}

func (r *random) replaceFaults(src, dst vfs.Attr) []error {
	var faults []error
	if src.Type == vfs.TypeDir && dst.Type != vfs.TypeDir {
		faults = append(faults, vfs.ErrNotDir)
	}
	if dst.Type != vfs.TypeDir {
		return faults
	}
	if src.Type != vfs.TypeDir {
		faults = append(faults, vfs.ErrIsDir)
	}
	if entries, err := list(r.ctx(), r.model, dst.Ino, 0); err == nil && len(entries) > 0 {
		faults = append(faults, vfs.ErrNotEmpty)
	}
	return faults
}

// isWithin reports whether dir is top or below it, in the model.
func (r *random) isWithin(dir, top vfs.Ino) bool {
	for dir != top {
		a, err := r.model.Stat(r.ctx(), dir)
		if err != nil || a.Type != vfs.TypeDir || a.Ino == vfs.RootIno || a.Nlink == 0 {
			return false
		}
		dir = a.Parent
	}
	return true
}

// contentFaults are what an operation on bytes may say of what has none.
func (r *random) contentFaults(ino vfs.Ino) []error {
	if a, err := r.model.Stat(r.ctx(), ino); err == nil && a.Type == vfs.TypeDir {
		return []error{vfs.ErrIsDir, vfs.ErrInvalid}
	}
	return nil
}
