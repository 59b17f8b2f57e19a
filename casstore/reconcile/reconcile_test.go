package reconcile_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/reconcile"
	"github.com/carrelfs/carrel/casstore/reconcile/reconciletest"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// problemOf is what two sides have made of a base.
func problemOf(base, mine, theirs reconciletest.Records, next *vfs.Ino) *reconcile.Problem {
	p := &reconcile.Problem{
		Versions: make(map[vfs.Key]reconcile.Version), View: base, Mirror: "m",
		NewIno: func() (vfs.Ino, error) { *next++; return *next, nil },
	}
	for _, side := range []reconciletest.Records{base, mine, theirs} {
		for k := range side {
			if v := (reconcile.Version{Base: base[k], Mine: mine[k], Theirs: theirs[k]}); !reconcile.Equal(v.Base, v.Mine) || !reconcile.Equal(v.Base, v.Theirs) {
				p.Versions[k] = v
			}
		}
	}
	return p
}

// merged returns the tree that a solution makes of one of the sides, after it has passed for a push to it.
func merged(t *testing.T, from reconciletest.Records, s *reconcile.Solution) reconciletest.Records {
	t.Helper()
	var push vfs.Push
	out := maps.Clone(from)
	for k, v := range s.Merged {
		old := vfs.Record{Key: k, Value: from[k]}
		push.Records = append(push.Records, vfs.PushRecord{Record: vfs.Record{Key: k, Value: v}, Base: old.Base()})
		if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	check := vfs.CheckPush
	if retypes(from, s) {
		check = vfs.CheckMending
	}
	if stale, err := check(from, &push); err != nil || len(stale) > 0 {
		t.Errorf("not a tree: %v, stale %v\n%s", err, stale, strings.Join(out.Listing(), "\n"))
	}
	return out
}

// retypes reports whether a number becomes that of an inode of another type.
func retypes(from reconciletest.Records, s *reconcile.Solution) bool {
	for k, v := range s.Merged {
		if k.Kind == vfs.KeyInode && reconcile.Retyped(v, from[k]) {
			return true
		}
	}
	return false
}

func reconciled(t *testing.T, base, mine, theirs reconciletest.Records, next *vfs.Ino) (reconciletest.Records, *reconcile.Solution) {
	t.Helper()
	s, err := reconcile.Reconcile(problemOf(base, mine, theirs, next))
	if err != nil {
		t.Fatal(err)
	}
	a, b := merged(t, mine, s), merged(t, theirs, s)
	if !maps.EqualFunc(a, b, bytes.Equal) {
		t.Error("the two sides differ afterwards")
	}
	return a, s
}

func TestReconcile(t *testing.T) {
	for name, tt := range map[string]struct {
		base, mine, theirs string // scripts, with ';' between lines
		want               string // the listing, with ';' between lines
		conflicts          string
	}{
		"nothing in common": {"mkdir a", "create a/x 1", "create y 2", "a/; a/x=1; y=2", ""},
		"attributes one by one": {
			"create f 1", "chmod f 600", "write f 2", "f=2 600", "",
		},
		"a storm of chmods is no conflict": {"create f 1", "chmod f 600", "chmod f 640", "f=1 640", ""},
		"both write": {
			"create f 1", "write f mine", "write f theirs", "f.conflict-m-1=mine; f=theirs", "bytes",
		},
		"both write the same":     {"create f 1", "write f 2", "write f 2", "f=2", ""},
		"both make a file":        {"", "create f mine", "create f theirs", "f.conflict-m-1=mine; f=theirs", "name"},
		"both make the same file": {"", "create f 1", "create f 1", "f=1", ""},
		"both make a directory":   {"", "mkdir d; create d/x 1", "mkdir d", "d.conflict-m-1/; d.conflict-m-1/x=1; d/", "name"},
		"both make the same tree": {
			"create f 1", "write f 2; mkdir d; create d/x 1; create y 1", "write f 3; mkdir d; create d/x 1; create y 1",
			"d.conflict-m-1/; d.conflict-m-1/x=1; d/; d/x=1; f.conflict-m-1=2; f=3; y=1", "bytes name",
		},
		"a file where a directory is":   {"", "create d 1", "mkdir d", "d.conflict-m-1=1; d/", "name"},
		"I remove what they write":      {"create f 1", "rm f", "write f 2", "f=2", "removed"},
		"they remove what I write":      {"create f 1", "write f 2", "rm f", "f=2", "removed"},
		"I remove what they leave":      {"create f 1", "rm f", "create g 1", "g=1", ""},
		"both remove":                   {"create f 1", "rm f", "rm f", "", ""},
		"I remove a tree they write in": {"mkdir a; mkdir a/b; create a/b/x 1; create a/y 1", "rmr a", "write a/b/x 2", "a/; a/b/; a/b/x=2", "removed removed removed"},
		"they remove a tree I write in": {"mkdir a; mkdir a/b; create a/b/x 1; create a/y 1", "create a/b/z 2", "rmr a", "a/; a/b/; a/b/z=2", "removed removed"},
		"they rename a directory I write in": {
			"mkdir a; create a/x 1", "create a/y 2", "mv a b", "b/; b/x=1; b/y=2", "",
		},
		"both rename a directory": {"mkdir a; create a/x 1", "mv a b", "mv a c", "c/; c/x=1", "moved"},
		"both rename a file":      {"create a 1", "mv a b", "mv a c", "c=1", "moved"},
		"I rename, they link":     {"create a 1", "mv a b", "link a c", "b=1; c=1", ""},
		"moves into each other": {
			"mkdir a; mkdir b", "mv a b/a", "mv b a/b", "a/; a/b/", "moved",
		},
		"a loop of three": {
			"mkdir a; mkdir b; mkdir c", "mv a b/a", "mv b c/b; mv c a/c", "a/; a/c/; a/c/b/", "moved",
		},
		"I move into what they removed": {"mkdir a; create f 1", "mv f a/f", "rm a", "a/; a/f=1", "removed"},
		"I replace, they write":         {"create f 1; create g 2", "mv g f", "write f 3", "f.conflict-m-1=3; f=2", "name"},
		"both replace":                  {"create f 1; create g 2; create h 3", "mv g f", "mv h f", "f.conflict-m-1=2; f=3", "name"},
		"attributes of both":            {"create f 1", "setx f a 1", "setx f b 2", "f=1 a:1 b:2", ""},
		"one attribute twice":           {"create f 1", "setx f a 1", "setx f a 2", "f=1 a:2", "attribute"},
		"removed with attributes":       {"create f 1; setx f a 1", "rm f", "write f 2", "f=2 a:1", "removed"},
		"a name is taken":               {"create f 1; create f.conflict-m-1 0", "write f 2", "write f 3", "f.conflict-m-1=0; f.conflict-m-2=2; f=3", "bytes"},
		"they put a file at my new name": {
			"create a 1", "mv a b", "create b 2", "b.conflict-m-1=1; b=2", "name",
		},
		"the name they move back to is taken": {
			"mkdir a; mkdir b", "mv a b/a; create a 1", "mv b a/b", "a.conflict-m-1=1; a/; a/b/", "moved name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			next, clock := vfs.Ino(1), vfs.Time(0)
			base := reconciletest.NewRecords()
			run := func(r reconciletest.Records, script string) reconciletest.Records {
				for _, line := range strings.Split(script, ";") {
					if strings.TrimSpace(line) != "" {
						reconciletest.Side{Records: r, Next: &next, Clock: &clock}.Do(line)
					}
				}
				return r
			}
			run(base, tt.base)
			mine, theirs := run(maps.Clone(base), tt.mine), run(maps.Clone(base), tt.theirs)
			got, s := reconciled(t, base, mine, theirs, &next)
			if listing := strings.Join(got.Listing(), "; "); listing != tt.want {
				t.Errorf("is  %s\nnot %s", listing, tt.want)
			}
			var kinds []string
			for _, c := range s.Conflicts {
				kinds = append(kinds, string(c.Kind))
			}
			slices.Sort(kinds)
			if got := strings.Join(kinds, " "); got != tt.conflicts {
				t.Errorf("conflicts %q, not %q", got, tt.conflicts)
			}
		})
	}
}

// What directories cost that one side has removed and the other has put something in grows with their number, not its square.
func TestReconcileManyParents(t *testing.T) {
	cost := func(dirs int) float64 {
		next, clock := vfs.Ino(1), vfs.Time(0)
		base := reconciletest.NewRecords()
		run := func(r reconciletest.Records, line string) reconciletest.Records {
			for i := range dirs {
				reconciletest.Side{Records: r, Next: &next, Clock: &clock}.Do(fmt.Sprintf(line, i))
			}
			return r
		}
		run(base, "mkdir d%d")
		mine, theirs := run(maps.Clone(base), "create d%d/x 1"), run(maps.Clone(base), "rm d%d")
		if got, _ := reconciled(t, base, mine, theirs, &next); len(got.Listing()) != 2*dirs {
			t.Errorf("of %d directories %d paths are there", dirs, len(got.Listing()))
		}
		p := problemOf(base, mine, theirs, &next)
		return testing.AllocsPerRun(1, func() {
			if _, err := reconcile.Reconcile(p); err != nil {
				t.Error(err)
			}
		})
	}
	if few, many := cost(20), cost(400); many > 40*few {
		t.Errorf("%v allocations for 20, %v for 400", few, many)
	}
}

// A store that was put back leases numbers again that are in use here: none of them is given to another inode.
func TestRenumberPassesOverWhatIsInUse(t *testing.T) {
	for range 20 { // maps have many orders
		next, clock := vfs.Ino(1), vfs.Time(0)
		base := reconciletest.NewRecords()
		mine := reconciletest.Side{Records: maps.Clone(base), Next: &next, Clock: &clock}
		for _, line := range []string{"create a 1", "mkdir d", "create d/b 2", "create c 3", "rm a"} {
			mine.Do(line)
		}
		p := problemOf(base, mine.Records, base, &next)
		again := vfs.Ino(1)
		p.Stranger, p.NewIno = true, func() (vfs.Ino, error) { again++; return again, nil }
		s, err := reconcile.Reconcile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, side := range []reconciletest.Records{mine.Records, base} {
			if got := strings.Join(merged(t, side, s).Listing(), "; "); got != "c=3; d/; d/b=2" {
				t.Fatal(got)
			}
		}
	}
}

// A store that was put back gives numbers again: whatever was made in both lives, what I had is somewhere in the outcome, and nothing
// of the authority's is another's.
func TestReconcileLives(t *testing.T) {
	told := 0
	for n := range 200 {
		seed := uint64(n)
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { told += reconcileLives(t, rand.New(rand.NewPCG(seed, 2))) }) {
			break
		}
	}
	if told == 0 {
		t.Error("no number was given to inodes of two types")
	}
}

func reconcileLives(t *testing.T, rng *rand.Rand) (told int) {
	next, clock := vfs.Ino(1), vfs.Time(0)
	var script []string
	walk := func(from reconciletest.Records, next *vfs.Ino, who string, n int) reconciletest.Records {
		s := reconciletest.Side{Records: maps.Clone(from), Next: next, Clock: &clock}
		for range n {
			if line := reconciletest.RandomStep(s, rng); line != "" {
				script = append(script, who+": "+line)
				s.Do(line)
			}
		}
		return s.Records
	}
	backup := walk(reconciletest.NewRecords(), &next, "backup", rng.IntN(8))
	again, apart := next, clock
	known := walk(backup, &next, "known", 1+rng.IntN(12))
	mine := walk(known, &next, "mine", rng.IntN(6))
	theirs := walk(backup, &again, "theirs", 1+rng.IntN(12))
	next = max(next, again)
	p := problemOf(known, mine, theirs, &next)
	p.Renumber, p.Stranger = true, true
	for k, v := range p.Versions {
		if !reconcile.Equal(v.Base, v.Theirs) {
			v.Base = nil
		}
		p.Versions[k] = v
		if k.Kind == vfs.KeyInode && reconcile.Retyped(v.Mine, v.Theirs) {
			told++
		}
	}
	s, err := reconcile.Reconcile(p)
	if err != nil {
		t.Fatal(err)
	}
	got := merged(t, theirs, s)
	if !maps.EqualFunc(merged(t, mine, s), got, bytes.Equal) {
		t.Error("the two sides differ afterwards")
	}
	now := names(t, got, 0)
	for content := range names(t, mine, 0) {
		if now[content] == 0 {
			t.Errorf("%q of mine is lost", content)
		}
	}
	for who, side := range map[string]reconciletest.Records{"mine": mine, "theirs": theirs} {
		for content, n := range names(t, side, apart) { // which are of nobody else
			if now[content] > n || now[content] == 0 {
				t.Errorf("%q of %s has %d names, not %d", content, who, now[content], n)
			}
		}
	}
	if t.Failed() {
		t.Logf("%s\nmine:\n%s\ntheirs:\n%s\nmerged:\n%s", strings.Join(script, "\n"), strings.Join(mine.Listing(), "\n"),
			strings.Join(theirs.Listing(), "\n"), strings.Join(got.Listing(), "\n"))
	}
	return told
}

// names is how many names lead to each content of the files that were made after some time.
func names(t *testing.T, r reconciletest.Records, after vfs.Time) map[string]int {
	t.Helper()
	out := make(map[string]int)
	for k, v := range r {
		if k.Kind != vfs.KeyDirent {
			continue
		}
		rec, err := reconcile.InodeOf(r[reconcile.InodeKey(reconcile.Target(v))])
		if err != nil || rec == nil {
			t.Fatalf("%v leads to %v, %v", k, rec, err)
		}
		if rec.Type != vfs.TypeDir && rec.Btime > after {
			out[string(rec.Body.Data)]++
		}
	}
	return out
}

// Whatever two sides do, the outcome is a tree, the same on both, and what somebody wrote last is somewhere in it.
func TestReconcileRandom(t *testing.T) {
	for n := range 1000 {
		seed := uint64(n)
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { reconcileRandom(t, rand.New(rand.NewPCG(seed, 1))) }) {
			break
		}
	}
}

func reconcileRandom(t *testing.T, rng *rand.Rand) {
	next, clock := vfs.Ino(1), vfs.Time(0)
	base := reconciletest.NewRecords()
	baseSide := reconciletest.Side{Records: base, Next: &next, Clock: &clock}
	var script []string
	step := func(s reconciletest.Side, who string) {
		if line := reconciletest.RandomStep(s, rng); line != "" {
			script = append(script, who+": "+line)
			s.Do(line)
		}
	}
	for range 12 {
		step(baseSide, "base")
	}
	mine, theirs := reconciletest.Side{Records: maps.Clone(base), Next: &next, Clock: &clock}, reconciletest.Side{Records: maps.Clone(base), Next: &next, Clock: &clock}
	for range 1 + rng.IntN(8) {
		step(mine, "mine")
		step(theirs, "theirs")
	}
	got, _ := reconciled(t, base, mine.Records, theirs.Records, &next)
	contents := make(map[string]bool)
	for _, line := range got.Listing() {
		if _, content, ok := strings.Cut(line, "="); ok {
			contents[strings.Fields(content + " ")[0]] = true
		}
	}
	for _, s := range []reconciletest.Records{mine.Records, theirs.Records} {
		for k, v := range s {
			rec, err := reconcile.InodeOf(v)
			if k.Kind != vfs.KeyInode || err != nil || rec.Type == vfs.TypeDir || bytes.Equal(base[k], v) {
				continue
			}
			was, err := reconcile.InodeOf(base[k])
			if err == nil && (was == nil || (was.Size != rec.Size || !bytes.Equal(was.Body.Data, rec.Body.Data))) && !contents[string(rec.Body.Data)] {
				t.Errorf("%q is lost", rec.Body.Data)
			}
		}
	}
	if t.Failed() {
		t.Logf("%s\nmine:\n%s\ntheirs:\n%s\nmerged:\n%s", strings.Join(script, "\n"), strings.Join(mine.Listing(), "\n"),
			strings.Join(theirs.Listing(), "\n"), strings.Join(got.Listing(), "\n"))
	}
}
