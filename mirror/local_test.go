package mirror

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Local paths of one mirror are nobody else's: what is made there is not pushed, what others have under their names is not shown,
// and nothing of it is in a barrier, a digest or a conflict. A rename across the border pushes a subtree, or removes it.
func TestLocalPaths(t *testing.T) {
	l := newLab(t, 1)
	n := l.join(func(c *Config) { c.Local = []string{"node_modules/", "/build/"} })
	a, b := on(t, n.Presented()), on(t, l.nodes[0].Tree())
	a.mkdir("/p")
	a.mkdir("/p/node_modules")
	a.write("/p/node_modules/x", "mine")
	a.mkdir("/build")
	a.mkdir("/build/d")
	a.write("/build/d/f", "built")
	a.fsync("/build/d/f")
	l.settle()
	if got := b.names("/"); !slices.Equal(got, []string{"p"}) {
		t.Errorf("%q", got)
	}
	b.mkdir("/p/node_modules")
	b.write("/p/node_modules/x", "theirs")
	b.mkdir("/build")
	l.settle()
	a.want("/p/node_modules/x", "mine")
	b.want("/p/node_modules/x", "theirs")
	a.rename("/build", "/out")
	l.settle()
	b.want("/out/d/f", "built")
	b.rename("/p", "/q")
	b.write("/out/d/f", "changed there")
	l.settle()
	a.want("/q/node_modules/x", "mine")
	a.rename("/out", "/build")
	l.settle()
	if got := b.names("/"); !slices.Equal(got, []string{"build", "q"}) {
		t.Errorf("%q", got)
	}
	if got := b.names("/build"); len(got) > 0 {
		t.Errorf("%q", got)
	}
	n.leave()
	n.start()
	a = on(t, n.Presented())
	a.want("/build/d/f", "changed there")
	a.want("/q/node_modules/x", "mine")
	if list, err := n.Conflicts(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	// Whose directory is removed is gone, at the latest with the next start.
	b.remove("/q/node_modules/x")
	b.rmdir("/q/node_modules")
	b.rmdir("/q")
	l.settle()
	n.leave()
	n.start()
	l.settle()
	for len(on(t, n.local.ws).names("/")) > 1 {
		time.Sleep(time.Millisecond)
	}
}

// Patterns that mean nothing are refused at once.
func TestLocalPathsOfNoMeaning(t *testing.T) {
	_, err := Open(t.Context(), Config{Dir: t.TempDir(), Peer: &spy{}, Local: []string{"["}})
	if !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
