package mirror

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// part is a first snapshot of which a mirror has got a part when it is stopped.
type part struct {
	name   string
	cutAt  string        // nothing comes of this path's inode and those after it; empty: nothing at all
	looked []string      // paths that the mirror looks up beside it
	mine   func(a files) // what the mirror then does, which nobody hears of
	then   func(w files) // what the authority does before the mirror is started again
	early  []string      // paths that the mirror looks up before the feed goes on
	cutTo  string        // the next snapshot is cut before this path's inode, ...
	again  func(w files) // then the authority does this, and one more is taken
	kept   []string      // contents that must be there in the end
}

var parts = []part{
	{name: "nothing but the root", looked: []string{}, then: func(w files) { w.write("/d/more", "1") }},
	{
		name: "looked up and changed", looked: []string{"/d/f", "/e/sub/h"},
		then: func(w files) { w.write("/d/f", "2"); w.write("/d/more", "3"); w.remove("/e/sub/h") },
	},
	{
		name: "looked up and moved", looked: []string{"/d/f", "/e/sub/h"},
		then: func(w files) { w.rename("/d/f", "/e/f"); w.rename("/e/sub", "/d/sub"); w.rmdir("/empty") },
	},
	{
		name: "cut and changed", cutAt: "/d/f", then: func(w files) {
			w.rename("/d/f", "/e/f")
			w.rmdir("/empty")
			w.mkdir("/d/more")
			w.rename("/e/g", "/d/more/g")
		},
	},
	{
		name: "cut, looked up early, and removed", cutAt: "/e", looked: []string{"/d/f"}, early: []string{"/e/g"},
		then: func(w files) { w.remove("/d/f"); w.rmdir("/d"); w.write("/e/g", "here") },
	},
	{
		name: "cut twice", cutAt: "/e/g", cutTo: "/e/sub/h", then: func(w files) { w.rename("/d/f", "/e/f"); w.rename("/e/g", "/g") },
		again: func(w files) { w.rename("/e/f", "/d/f"); w.rename("/g", "/d/g"); w.rmdir("/empty") },
	},
	{
		name: "edited", looked: []string{"/d/f", "/e/sub/h"}, kept: []string{"mine", "my own", "my edit"},
		mine: func(a files) { a.write("/d/f", "mine"); a.write("/d/new", "my own"); a.write("/e/sub/h", "my edit") },
		then: func(w files) { w.write("/d/more", "1"); w.write("/d/f", "theirs") },
	},
	{
		name: "edited and removed", cutAt: "/e/g", looked: []string{"/d/f", "/e/sub/h"}, kept: []string{"mine", "my edit"},
		mine: func(a files) { a.write("/d/f", "mine"); a.write("/e/sub/h", "my edit"); a.rename("/e/sub", "/d/sub") },
		then: func(w files) { w.remove("/d/f"); w.remove("/e/sub/h"); w.rmdir("/e/sub") },
	},
	{
		name: "removed and edited", looked: []string{"/d/f", "/e/sub/h"}, kept: []string{"theirs"},
		mine: func(a files) { a.remove("/d/f"); a.remove("/e/sub/h"); a.rmdir("/e/sub") },
		then: func(w files) { w.write("/d/f", "theirs") },
	},
}

// A mirror is stopped while its first snapshot comes. When it is started again, the authority can tell what has changed since, or
// it cannot: because that is too long ago, because its store is in another life, or because that is one of before. Then nothing
// is taken for what it no longer is, and what was done here is there.
func TestRestartInTheFirstSnapshot(t *testing.T) {
	for _, how := range []string{"good", "too old", "another life", "put back"} {
		for _, x := range parts {
			t.Run("cursor "+how+"/"+x.name, func(t *testing.T) { x.run(t, how) })
		}
	}
}

func (x *part) run(t *testing.T, how string) {
	l := newLab(t, 0)
	x.plant(l)
	backup := filepath.Join(l.dir, "backup")
	if how == "put back" {
		l.shut()
		run(t, "cp -a --sparse=always %s %s", filepath.Join(l.dir, "authority"), backup)
		l.open()
		w := on(t, l.ws)
		w.write("/d/newer", "after the backup")
		w.mkdir("/empty/newer")
		w.rmdir("/empty/newer")
		l.commit()
	}
	n := x.stopped(l)
	switch how {
	case "put back":
		l.shut()
		run(t, "rm -rf %s && mv %s %[1]s", filepath.Join(l.dir, "authority"), backup)
		l.life++
		l.open()
	case "another life":
		l.shut()
		l.life++
		l.open()
	}
	x.then(on(t, l.ws))
	l.commit()
	if how == "too old" {
		at, err := l.ws.Authority().Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.restart(func() { l.oldest = at.Rev })
	}
	x.resume(l, n)
}

// plant makes the workspace.
func (x *part) plant(l *lab) {
	w := on(l.t, l.ws)
	for _, dir := range []string{"/d", "/empty", "/e", "/e/sub"} {
		w.mkdir(dir)
	}
	for _, file := range []string{"/d/f", "/e/g", "/e/sub/h"} {
		w.write(file, "here")
	}
	l.commit()
}

// restart stops the authority and starts it again with something changed.
func (l *lab) restart(change func()) {
	l.shut()
	change()
	l.open()
}

// stopped is a mirror that has got a part of its first snapshot.
func (x *part) stopped(l *lab) *node {
	t := l.t
	n := &node{lab: l, wire: &wire{path: filepath.Join(l.dir, "sync.sock")}}
	n.config = Config{Dir: filepath.Join(l.dir, "lazy"), Name: "lazy", Log: testLog()}
	l.nodes = append(l.nodes, n)
	cut := make(chan struct{})
	if x.cutAt == "" {
		close(cut)
	} else {
		n.spy.records = cutBefore(on(t, l.ws).ino(x.cutAt), func() { close(cut) })
	}
	n.spy.follow = func(ctx context.Context) error {
		select {
		case <-cut:
			<-ctx.Done()
			return ctx.Err()
		default:
			return nil
		}
	}
	n.start()
	<-cut
	a := on(t, n.Tree())
	a.names("/")
	for _, p := range x.looked {
		a.want(p, "here")
	}
	if x.mine != nil {
		if err := n.await(t.Context(), func() (bool, error) { return n.replica.Numbers() > 0, nil }); err != nil {
			t.Fatal(err)
		}
		n.wire.cut()
		x.mine(a)
	}
	n.leave()
	return n
}

// cutBefore ends a feed before an inode, once, and then calls f.
func cutBefore(at vfs.Ino, f func()) func([]vfs.Record) (int, error) {
	done := false
	return func(got []vfs.Record) (int, error) {
		n := slices.IndexFunc(got, func(r vfs.Record) bool { return r.Ino >= at })
		if done || n < 0 {
			return len(got), nil
		}
		done = true
		f()
		return n, errCut
	}
}

// resume starts the mirror again, and looks at what has become of the two.
func (x *part) resume(l *lab, n *node) {
	t := l.t
	before := listing(t, l.ws)
	release := make(chan struct{})
	n.spy.follow = func(ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n.spy.records = nil
	if x.again != nil {
		n.spy.records = cutBefore(on(t, l.ws).ino(x.cutTo), func() {
			x.again(on(t, l.ws))
			l.commit()
			before = listing(t, l.ws)
		})
	}
	n.wire.mend()
	n.start()
	for _, p := range x.early {
		on(t, n.Tree()).want(p, "here")
	}
	close(release)
	if err := n.AwaitWhole(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.settle()
	after := listing(t, l.ws)
	if x.mine == nil && after != before {
		t.Errorf("a mirror that has changed nothing made of\n%s\nthis:\n%s", before, after)
	}
	for _, content := range x.kept {
		if !strings.Contains(after, `"`+content+`"`) {
			t.Errorf("%q is gone:\n%s", content, after)
		}
	}
	if got, err := n.store.Check(context.Background(), casstore.CheckOptions{}); err != nil || len(got.Problems) > 0 {
		t.Errorf("%+v, %v", got.Problems, err)
	}
}
