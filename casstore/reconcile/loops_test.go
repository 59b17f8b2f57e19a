package reconcile

import (
	"fmt"
	"maps"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// records are a tree, by key.
type records map[vfs.Key][]byte

func (r records) Value(k vfs.Key) ([]byte, error) { return r[k], nil }

func (r records) NameOf([]vfs.Ino) (map[vfs.Ino]Place, error) { return nil, nil }

// mkdir makes a directory.
func (r records) mkdir(ino vfs.Ino, at Place) { r.put(ino, at, 0) }

// move moves it, by which its ctime is another.
func (r records) move(ino vfs.Ino, from, to Place) {
	delete(r, from.Key())
	r.put(ino, to, 1)
}

func (r records) put(ino vfs.Ino, at Place, ctime vfs.Time) {
	rec := vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: at.Dir, Ctime: ctime}
	name := vfs.DirentRecord{Ino: ino, Type: vfs.TypeDir}
	r[InodeKey(ino)], r[at.Key()] = rec.Append(nil), name.Append(nil)
}

// placed reconciles the names of what two sides have made of a base, and returns how many steps that took for loops.
func placed(t *testing.T, base, mine, theirs records) *merger {
	t.Helper()
	p := &Problem{Versions: make(map[vfs.Key]Version), View: base, Mirror: "m"}
	for _, side := range []records{base, mine, theirs} {
		for k := range side {
			if v := (Version{base[k], mine[k], theirs[k]}); !Equal(v.Base, v.Mine) || !Equal(v.Base, v.Theirs) {
				p.Versions[k] = v
			}
		}
	}
	m := &merger{p: p, merged: make(map[vfs.Key][]byte), theirs: make(map[vfs.Key][]byte)}
	m.index()
	for _, step := range []func() error{m.mergeNames, m.place} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestBreakLoopsSteps merges trees in which many directories were moved, and counts the steps from one to its parent: they grow as
// the number of directories does.
func TestBreakLoopsSteps(t *testing.T) {
	const n = 4_000
	t.Run("deep", func(t *testing.T) { // each directory is in the one before, and I rename all
		base := make(records)
		at := Place{vfs.RootIno, "d"}
		for ino := vfs.Ino(2); ino < n; ino++ {
			base.mkdir(ino, at)
			at = Place{ino, "d"}
		}
		mine := maps.Clone(base)
		at = Place{vfs.RootIno, "d"}
		for ino := vfs.Ino(2); ino < n; ino++ {
			mine.move(ino, at, Place{at.Dir, "renamed"})
			at = Place{ino, "d"}
		}
		if m := placed(t, base, mine, base); m.steps > 4*n || len(m.conflicts) > 0 {
			t.Errorf("%d steps, %d conflicts", m.steps, len(m.conflicts))
		}
	})
	t.Run("loops", func(t *testing.T) { // of each two, I move one into the other, and they the other into the one
		base := make(records)
		for ino := vfs.Ino(2); ino < n; ino++ {
			base.mkdir(ino, Place{vfs.RootIno, fmt.Sprint(ino)})
		}
		mine, theirs := maps.Clone(base), maps.Clone(base)
		for a := vfs.Ino(2); a+1 < n; a += 2 {
			b := a + 1
			mine.move(a, Place{vfs.RootIno, fmt.Sprint(a)}, Place{b, "in"})
			theirs.move(b, Place{vfs.RootIno, fmt.Sprint(b)}, Place{a, "in"})
		}
		m := placed(t, base, mine, theirs)
		if m.steps > 8*n || len(m.conflicts) != n/2-1 {
			t.Errorf("%d steps, %d conflicts", m.steps, len(m.conflicts))
		}
	})
	t.Run("one loop", func(t *testing.T) { // all are in one loop, to which each side adds every other step
		base := make(records)
		for ino := vfs.Ino(2); ino < n+2; ino++ {
			base.mkdir(ino, Place{vfs.RootIno, fmt.Sprint(ino)})
		}
		mine, theirs := maps.Clone(base), maps.Clone(base)
		for ino := vfs.Ino(2); ino < n+2; ino++ {
			side := mine
			if ino%2 == 1 {
				side = theirs
			}
			side.move(ino, Place{vfs.RootIno, fmt.Sprint(ino)}, Place{2 + (ino-1)%n, "in"})
		}
		m := placed(t, base, mine, theirs)
		if m.steps > 8*n || len(m.conflicts) != 1 {
			t.Errorf("%d steps, %d conflicts", m.steps, len(m.conflicts))
		}
	})
}
