package mirror

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// mix is a tree that arrives as it was in several moments: what is looked up, and then the snapshot, which may be cut.
type mix struct {
	name   string
	looked []string         // paths that the mirror looks up before the snapshot
	mine   func(a, w files) // what the mirror then writes, which is not pushed before the snapshot has come
	then   func(w files)    // what the authority does before the snapshot is taken
	cutAt  string           // the snapshot is cut before this path's inode, ...
	cut    func(w files)    // then the authority does this, and the rest of the snapshot is taken
}

var mixes = []mix{
	{name: "made", looked: []string{"/d/f"}, then: func(w files) { w.write("/d/more", "made there") }},
	{name: "a directory made", looked: []string{"/d/f"}, then: func(w files) { w.mkdir("/d/more"); w.write("/d/more/x", "1") }},
	{name: "removed", looked: []string{"/d/f"}, then: func(w files) { w.remove("/d/f") }},
	{name: "moved away", looked: []string{"/d/f"}, then: func(w files) { w.rename("/d/f", "/e/f") }},
	{name: "moved in", looked: []string{"/d/f"}, then: func(w files) { w.rename("/e/g", "/d/g") }},
	{name: "a directory moved in", looked: []string{"/d/f"}, then: func(w files) { w.rename("/e/sub", "/d/sub") }},
	{name: "a directory moved away", looked: []string{"/e/sub/h"}, then: func(w files) { w.rename("/e/sub", "/d/sub") }},
	{name: "a directory removed", looked: []string{"/e/sub/h"}, then: func(w files) { w.remove("/e/sub/h"); w.rmdir("/e/sub") }},
	{name: "linked", looked: []string{"/d/f"}, then: func(w files) { w.link("/e/g", "/d/g") }},
	{name: "replaced", looked: []string{"/d/f"}, then: func(w files) { w.write("/e/new", "2"); w.rename("/e/new", "/d/f") }},
	{
		name: "made here and there", looked: []string{"/d/f"},
		mine: func(a, _ files) { a.write("/d/mine", "made here"); a.mkdir("/d/mydir") },
		then: func(w files) { w.write("/d/more", "made there"); w.mkdir("/d/its") },
	},
	{
		name: "the same made here and there", looked: []string{"/d/f"},
		mine: func(a, _ files) { a.write("/d/more", "made here") },
		then: func(w files) { w.write("/d/more", "made there") },
	},
	{
		name: "moved into what is moved", looked: []string{"/d/f", "/e/sub/h"},
		mine: func(a, _ files) { a.rename("/e", "/d/e") },
		then: func(w files) { w.rename("/d", "/e/sub/d") },
	},
	{name: "cut, and moved back", cutAt: "/e", cut: func(w files) { w.rename("/e/g", "/d/g") }},
	{name: "cut, and moved on", cutAt: "/e", cut: func(w files) { w.rename("/d/f", "/e/f") }},
	{name: "cut, and a directory moved", cutAt: "/e", cut: func(w files) { w.rename("/d", "/e/d") }},
	{name: "cut, and removed", cutAt: "/e", cut: func(w files) { w.remove("/d/f"); w.rmdir("/d") }},
}

// What was looked up while the first snapshot loads, and each piece of the snapshot, is of a revision of its own. What has
// changed between them makes a tree of it.
func TestSnapshotOfSeveralMoments(t *testing.T) {
	for _, x := range mixes {
		t.Run(x.name, func(t *testing.T) { x.run(t) })
	}
}

func (x *mix) run(t *testing.T) {
	l := newLab(t, 0)
	w := on(t, l.ws)
	for _, dir := range []string{"/d", "/e", "/e/sub"} {
		w.mkdir(dir)
	}
	for _, file := range []string{"/d/f", "/e/g", "/e/sub/h"} {
		w.write(file, "here")
	}
	cutAt := vfs.Ino(0)
	if x.cutAt != "" {
		cutAt = w.ino(x.cutAt)
	}
	l.commit()
	n := &node{lab: l, wire: &wire{path: filepath.Join(l.dir, "sync.sock")}}
	n.config = Config{Dir: filepath.Join(l.dir, "lazy"), Name: "lazy", Log: testLog()}
	l.nodes = append(l.nodes, n)
	release := make(chan struct{})
	await := func(ctx context.Context) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n.spy.follow = await
	n.spy.pushed = func(vfs.Push) { _ = await(n.ctx) }
	if x.cut != nil {
		n.spy.records = x.cutter(l, cutAt)
	}
	n.start()
	a := on(t, n.Tree())
	for _, p := range x.looked {
		a.want(p, "here")
	}
	if x.mine != nil {
		x.mine(a, w)
	}
	if x.then != nil {
		x.then(w)
	}
	l.commit()
	close(release)
	if err := n.AwaitWhole(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.settle()
	if got, err := n.store.Check(t.Context(), casstore.CheckOptions{}); err != nil || len(got.Problems) > 0 {
		t.Errorf("%+v, %v", got.Problems, err)
	}
}

// cutter cuts the first snapshot before an inode.
func (x *mix) cutter(l *lab, at vfs.Ino) func([]vfs.Record) (int, error) {
	done := false
	return func(got []vfs.Record) (int, error) {
		n := slices.IndexFunc(got, func(r vfs.Record) bool { return r.Ino >= at })
		if done || n < 0 {
			return len(got), nil
		}
		done = true
		x.cut(on(l.t, l.ws))
		l.commit()
		return n, errCut
	}
}
