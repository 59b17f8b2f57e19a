package mirror

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/reconcile"
)

func text(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

// What one mirror writes the authority has, and another mirror sees.
func TestTwoMirrors(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.mkdir("/d")
	a.write("/d/small", "hello")
	large := text(1, 3<<20)
	a.write("/d/large", large)
	a.fsync("/d/large")
	on(t, l.ws).want("/d/large", large)
	l.nodes[1].sync()
	b.want("/d/small", "hello")
	b.want("/d/large", large)
	b.write("/d/small", "from b")
	b.rename("/d/large", "/moved")
	b.fsync("/d/small")
	l.nodes[0].sync()
	a.want("/d/small", "from b")
	a.want("/moved", large)
	a.remove("/moved")
	l.settle()
	if got := b.names("/"); !reflect.DeepEqual(got, []string{"d"}) {
		t.Errorf("%v", got)
	}
}

// What is there when a mirror joins is there for it, whatever it looks at first.
func TestJoin(t *testing.T) {
	l := newLab(t, 0)
	w := on(t, l.ws)
	w.mkdir("/d")
	w.mkdir("/d/e")
	w.write("/d/e/file", "deep")
	w.write("/top", strings.Repeat("x", 100_000))
	if err := l.ws.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := l.join()
	on(t, n.Tree()).want("/d/e/file", "deep")
	on(t, n.Tree()).want("/top", strings.Repeat("x", 100_000))
	on(t, n.Tree()).write("/d/new", "new")
	l.settle()
}

// Two mirrors that work on one file without each other keep both versions.
func TestOffline(t *testing.T) {
	l := newLab(t, 2)
	a, b := on(t, l.nodes[0].Tree()), on(t, l.nodes[1].Tree())
	a.write("/f", "base")
	l.settle()
	l.nodes[0].wire.cut()
	l.nodes[1].wire.cut()
	a.write("/f", "of a")
	a.write("/only-a", "1")
	b.write("/f", "of b")
	b.write("/only-b", "2")
	for _, n := range l.nodes {
		if err := n.ws.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.wire.mend()
		n.sync()
	}
	l.settle()
	a.want("/f", "of a")
	a.want("/f.conflict-m1-1", "of b")
	b.want("/f.conflict-m1-1", "of b")
	a.want("/only-b", "2")
	b.want("/only-a", "1")
	list, err := l.nodes[1].Conflicts()
	if err != nil || len(list) != 1 || list[0].Kind != reconcile.ConflictBytes {
		t.Errorf("%+v, %v", list, err)
	}
}

// A mirror that is started again has what it had, and pushes what it had not pushed.
func TestRestart(t *testing.T) {
	l := newLab(t, 1)
	n := l.nodes[0]
	a := on(t, n.Tree())
	a.write("/f", "one")
	l.settle()
	n.wire.cut()
	a.write("/f", "two")
	a.write("/g", "three")
	n.leave()
	n.start()
	a = on(t, n.Tree())
	a.want("/f", "two")
	n.wire.mend()
	l.settle()
	on(t, l.ws).want("/g", "three")
}

// Of a file that I have replaced and they have written the copy is theirs: to keep theirs is to keep it.
func TestResolveKeepsWhatItSays(t *testing.T) {
	for how, want := range map[reconcile.Resolution]string{reconcile.KeepTheirs: "theirs", reconcile.KeepMine: "mine"} {
		t.Run(string(how), func(t *testing.T) {
			l := newLab(t, 2)
			n := l.nodes[0]
			a, b := on(t, n.Tree()), on(t, l.nodes[1].Tree())
			a.write("/f", "base")
			a.write("/new", "mine")
			l.settle()
			n.wire.cut()
			a.rename("/new", "/f")
			b.write("/f", "theirs")
			l.nodes[1].sync()
			n.wire.mend()
			l.settle()
			a.want("/f", "mine")
			a.want("/f.conflict-m0-1", "theirs")
			list, err := n.Conflicts()
			if err != nil || len(list) != 1 || !list[0].Theirs {
				t.Fatalf("%+v, %v", list, err)
			}
			if err := n.Resolve(t.Context(), list[0].Number, how); err != nil {
				t.Fatal(err)
			}
			l.settle()
			b.want("/f", want)
			if got := b.names("/"); !reflect.DeepEqual(got, []string{"f"}) {
				t.Errorf("%v", got)
			}
		})
	}
}
