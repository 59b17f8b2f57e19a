package vfstest_test

import (
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// sampleDump is what Dump says of sample. Its lines are as long as they are.
const sampleDump = `"/" type=2 mode=0755 nlink=3 owner=0:0 size=0 mtime=7
"/c" type=6 mode=0640 nlink=1 owner=1:2 size=0 rdev=0x3 mtime=7
"/d" type=2 mode=0640 nlink=2 owner=1:2 size=0 mtime=7
"/d/f" type=1 mode=0640 nlink=2 owner=1:2 size=5 content=5b2dd7c2910279a8 "user.a"="value" "user.b"="value" mtime=7
"/g" type=1 mode=0640 nlink=2 owner=1:2 size=5 content=5b2dd7c2910279a8 link="/d/f" "user.a"="value" "user.b"="value" mtime=7
"/l" type=3 mode=0640 nlink=1 owner=1:2 size=6 target="target" mtime=7
`

func TestDump(t *testing.T) {
	if got := vfstest.Dump(sample(t)); got != sampleDump {
		t.Errorf("got:\n%swant:\n%s", got, sampleDump)
	}
}

// snapshotAfter returns the snapshot of a sample after a change of it.
func snapshotAfter(t *testing.T, change func(tree *vfstest.Tree, file vfs.Ino) error) map[string]vfstest.Node {
	t.Helper()
	tree := sample(t)
	g, err := tree.Lookup(t.Context(), vfs.RootIno, "g")
	if err == nil {
		err = change(tree, g.Ino)
	}
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := vfstest.Snapshot(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

func TestDiff(t *testing.T) {
	ctx := t.Context()
	set := func(s vfs.AttrSet) func(*vfstest.Tree, vfs.Ino) error {
		return func(tree *vfstest.Tree, file vfs.Ino) error {
			_, err := tree.SetAttr(ctx, file, s)
			return err
		}
	}
	nothing := func(*vfstest.Tree, vfs.Ino) error { return nil }
	before := snapshotAfter(t, nothing)
	for name, c := range map[string]struct {
		change      func(*vfstest.Tree, vfs.Ino) error
		lines       int  // of Diff
		withoutTime bool // times are all that differs
	}{
		"nothing": {nothing, 0, false},
		"mode":    {set(vfs.AttrSet{Mask: vfs.SetMode}), 4, false},
		"owner":   {set(vfs.AttrSet{Mask: vfs.SetUID, UID: 9}), 4, false},
		"group":   {set(vfs.AttrSet{Mask: vfs.SetGID, GID: 9}), 4, false},
		"size":    {set(vfs.AttrSet{Mask: vfs.SetSize, Size: 6}), 4, false},
		"mtime":   {set(vfs.AttrSet{Mask: vfs.SetMtime, Mtime: 8}), 0, true},
		"bytes": {func(tree *vfstest.Tree, file vfs.Ino) error {
			return tree.WriteAt(ctx, file, []byte("B"), 0, false)
		}, 4, false},
		"attribute": {func(tree *vfstest.Tree, file vfs.Ino) error {
			return tree.SetXattr(ctx, file, "user.b", nil, 0)
		}, 4, false},
		"new": {func(tree *vfstest.Tree, _ vfs.Ino) error {
			_, err := tree.Create(ctx, vfs.RootIno, "new", vfs.NewNode{})
			return err
		}, 1, false},
		"gone": {func(tree *vfstest.Tree, _ vfs.Ino) error { return tree.Unlink(ctx, vfs.RootIno, "l") }, 1, false},
		"link to a copy": {func(tree *vfstest.Tree, _ vfs.Ino) error {
			if err := tree.Unlink(ctx, vfs.RootIno, "g"); err != nil {
				return err
			}
			_, err := tree.Create(ctx, vfs.RootIno, "g", vfs.NewNode{})
			return err
		}, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := snapshotAfter(t, c.change)
			if d := vfstest.Diff(before, after); strings.Count(d, "\n") != c.lines {
				t.Errorf("want %d lines:\n%s", c.lines, d)
			}
			if d := vfstest.DiffTimes(before, after); (d == "") != (c.lines == 0 && !c.withoutTime) {
				t.Errorf("with times:\n%s", d)
			}
		})
	}
}

func TestContentOfZerosAndHolesIsEqual(t *testing.T) {
	ctx := t.Context()
	for _, size := range []uint64{1, 4096, 100_000, 20 << 20} {
		hole := snapshotAfter(t, func(tree *vfstest.Tree, file vfs.Ino) error {
			_, err := tree.SetAttr(ctx, file, vfs.AttrSet{Mask: vfs.SetSize, Size: size})
			return err
		})
		zeros := snapshotAfter(t, func(tree *vfstest.Tree, file vfs.Ino) error {
			err := tree.WriteAt(ctx, file, make([]byte, size), 0, false)
			if err == nil {
				err = tree.WriteAt(ctx, file, []byte("bytes")[:min(size, 5)], 0, false)
			}
			if err == nil {
				_, err = tree.SetAttr(ctx, file, vfs.AttrSet{Mask: vfs.SetSize, Size: size})
			}
			return err
		})
		if d := vfstest.Diff(hole, zeros); d != "" {
			t.Errorf("%d bytes:\n%s", size, d)
		}
		moved := snapshotAfter(t, func(tree *vfstest.Tree, file vfs.Ino) error {
			_, err := tree.SetAttr(ctx, file, vfs.AttrSet{Mask: vfs.SetSize, Size: 0})
			if err == nil {
				_, err = tree.SetAttr(ctx, file, vfs.AttrSet{Mask: vfs.SetSize, Size: size})
			}
			if err == nil {
				err = tree.WriteAt(ctx, file, []byte("bytes")[:min(size, 5)], size-min(size, 5), false)
			}
			return err
		})
		if d := vfstest.Diff(hole, moved); (d == "") != (size == 1) {
			t.Errorf("%d bytes, at the other end:\n%s", size, d)
		}
	}
}
