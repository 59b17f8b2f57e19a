package vfstest

import (
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// behaviour is one thing that every tree does, and the test of it.
type behaviour struct {
	name string
	test func(s *suite)
}

// Run takes every behaviour that the contract of [vfs.Tree] promises to a tree of its own, which open makes: writable,
// with room for about 200 MiB, and with nothing in it but a root. open registers its own cleanup; the tree is quiet and
// has passed [Audit] by then. Times are compared with each other and never with the clock of the test.
func Run(t *testing.T, open func(t *testing.T) vfs.Tree) {
	RunSome(t, func(string) bool { return true }, open)
}

// RunSome is [Run] for those behaviours that keep says yes to: it is given GROUP/BEHAVIOUR, as go test -run is.
func RunSome(t *testing.T, keep func(name string) bool, open func(t *testing.T) vfs.Tree) {
	groups := []struct {
		name       string
		behaviours []behaviour
	}{
		{"Make", makeBehaviours},
		{"Names", nameBehaviours},
		{"Arguments", argumentBehaviours},
		{"Link", linkBehaviours},
		{"Hold", holdBehaviours},
		{"Rename", renameBehaviours},
		{"Attr", attrBehaviours},
		{"Content", contentBehaviours},
		{"Allocate", allocateBehaviours},
		{"Copy", copyBehaviours},
		{"Seek", seekBehaviours},
		{"Xattr", xattrBehaviours},
		{"ReadDir", readDirBehaviours},
		{"Watch", watchBehaviours},
		{"Durable", durableBehaviours},
		{"Concurrent", concurrentBehaviours},
	}
	for _, g := range groups {
		some := slices.DeleteFunc(slices.Clone(g.behaviours), func(b behaviour) bool { return !keep(g.name + "/" + b.name) })
		if len(some) > 0 {
			t.Run(g.name, func(t *testing.T) { runGroup(t, open, some) })
		}
	}
}

func runGroup(t *testing.T, open func(t *testing.T) vfs.Tree, behaviours []behaviour) {
	if i := slices.IndexFunc(behaviours, func(b behaviour) bool { return b.test == nil }); i >= 0 {
		panic("behaviour without a test: " + behaviours[i].name)
	}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			s := newSuite(t, open(t))
			b.test(s)
			if err := Audit(t.Context(), s.tree); err != nil {
				t.Error(err)
			}
		})
	}
}
