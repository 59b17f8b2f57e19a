package subtree_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/subtree"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plant makes directories, one in the other, and a file beside the last.
func plant(t *testing.T) *vfstest.Tree {
	whole, dir := vfstest.NewTree(), vfs.RootIno
	for _, name := range []string{"a", "b"} {
		if _, err := whole.Create(t.Context(), dir, "beside", vfs.NewNode{Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		a, err := whole.Mkdir(t.Context(), dir, name, vfs.NewNode{Mode: 0o755})
		if err != nil {
			t.Fatal(err)
		}
		dir = a.Ino
	}
	return whole
}

func TestConforms(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) vfs.Tree {
		tree, err := subtree.Open(t.Context(), plant(t), "/a/b/")
		if err != nil {
			t.Fatal(err)
		}
		return tree
	})
}

func TestOpen(t *testing.T) {
	whole := plant(t)
	for _, path := range []string{"", "/"} {
		if tree, err := subtree.Open(t.Context(), whole, path); err != nil || tree != vfs.Tree(whole) {
			t.Errorf("%q: %v, %v", path, tree, err)
		}
	}
	for path, want := range map[string]error{"/c": vfs.ErrNotExist, "a/c": vfs.ErrNotExist, "/a/beside": vfs.ErrNotDir} {
		if _, err := subtree.Open(t.Context(), whole, path); !errors.Is(err, want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// Who watches does not take a change of the whole tree's root for one of the subtree's, whatever both are called.
func TestWatchKnowsTheRoots(t *testing.T) {
	whole := plant(t)
	tree, err := subtree.Open(t.Context(), whole, "a")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan vfs.Change, 100)
	stop := tree.Watch(nil, func(c vfs.Change) { told <- c })
	if _, err := whole.Create(t.Context(), vfs.RootIno, "above", vfs.NewNode{}); err != nil {
		t.Fatal(err)
	}
	a, err := tree.Create(t.Context(), vfs.RootIno, "below", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	for c := range told {
		if c.Kind != vfs.ChangeEntry {
			continue
		}
		if c.Dir != vfs.RootIno || c.Name != "below" || c.Ino != a.Ino {
			t.Errorf("%+v", c)
		}
		break
	}
	stop()
}
