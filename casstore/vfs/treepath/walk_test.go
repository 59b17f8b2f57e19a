package treepath_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/treepath"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// builder makes a tree; an error ends the test.
type builder struct {
	t    *testing.T
	tree *vfstest.Tree
}

func (b builder) must(a vfs.Attr, err error) vfs.Ino {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Ino
}

func (b builder) dir(in vfs.Ino, name string) vfs.Ino {
	b.t.Helper()
	return b.must(b.tree.Mkdir(b.t.Context(), in, name, vfs.NewNode{Mode: 0o755}))
}

func (b builder) file(in vfs.Ino, name string) vfs.Ino {
	b.t.Helper()
	return b.must(b.tree.Create(b.t.Context(), in, name, vfs.NewNode{Mode: 0o644}))
}

func (b builder) link(in vfs.Ino, name, target string) vfs.Ino {
	b.t.Helper()
	return b.must(b.tree.Symlink(b.t.Context(), in, name, target, vfs.NewNode{Mode: 0o777}))
}

func TestFind(t *testing.T) {
	b := builder{t, vfstest.NewTree()}
	a := b.dir(vfs.RootIno, "a")
	deep := b.dir(a, "deep")
	f := b.file(deep, "f")
	odd := b.file(vfs.RootIno, "\xff:x")
	toFile := b.link(a, "to-file", "deep/f")
	toDir := b.link(vfs.RootIno, "to-dir", "/a/deep/")
	b.link(deep, "up", "../../to-dir")
	b.link(vfs.RootIno, "escape", "../../../../a")
	b.link(vfs.RootIno, "none", "missing")
	b.link(vfs.RootIno, "loop", "loop")
	b.link(a, "slashed", "deep/f/")
	for i := range 41 {
		b.link(vfs.RootIno, fmt.Sprint("chain", i), fmt.Sprint("chain", i+1))
	}
	end := b.file(vfs.RootIno, "chain41")

	tests := []struct {
		path             string
		follow, noFollow any // an Ino or an error
	}{
		{"", vfs.RootIno, vfs.RootIno},
		{"/", vfs.RootIno, vfs.RootIno},
		{"//./..//", vfs.RootIno, vfs.RootIno},
		{"a", a, a},
		{"/a//deep/./f", f, f},
		{"a/deep/../deep/f", f, f},
		{"a/../../../a", a, a},
		{"\xff:x", odd, odd},
		{"a/to-file", f, toFile},
		{"a/to-file/", vfs.ErrNotDir, vfs.ErrNotDir},
		{"a/slashed", vfs.ErrNotDir, nil},
		{"a/deep/f/", vfs.ErrNotDir, vfs.ErrNotDir},
		{"a/deep/f/.", vfs.ErrNotDir, vfs.ErrNotDir},
		{"a/deep/f/..", vfs.ErrNotDir, vfs.ErrNotDir},
		{"to-dir", deep, toDir},
		{"to-dir/", deep, deep},
		{"to-dir/f", f, f},
		{"to-dir/up/up/f", f, f},
		{"to-dir/..", a, a},
		{"escape/deep", deep, deep},
		{"none", vfs.ErrNotExist, nil},
		{"none/x", vfs.ErrNotExist, vfs.ErrNotExist},
		{"missing", vfs.ErrNotExist, vfs.ErrNotExist},
		{"loop", treepath.ErrLoop, nil},
		{"loop/x", treepath.ErrLoop, treepath.ErrLoop},
		{"chain1", end, nil},
		{"chain0", treepath.ErrLoop, nil},
		{strings.Repeat("n", 256), vfs.ErrNameTooLong, vfs.ErrNameTooLong},
		{"a\x00b", vfs.ErrInvalid, vfs.ErrInvalid},
	}
	w := treepath.Walker{Tree: b.tree}
	for _, tt := range tests {
		expect(t, tt.path, w.Find, tt.follow)
		if tt.noFollow != nil {
			expect(t, tt.path, w.FindNoFollow, tt.noFollow)
		}
	}
}

func expect(t *testing.T, path string, find func(context.Context, string) (treepath.Node, error), want any) {
	t.Helper()
	n, err := find(t.Context(), path)
	switch want := want.(type) {
	case error:
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, %v, want %v", path, n, err, want)
		}
	case vfs.Ino:
		if err != nil || n.Attr.Ino != want {
			t.Errorf("%q: inode %d, %v, want %d", path, n.Attr.Ino, err, want)
		}
	}
}

// A walk below another root never leaves it.
func TestRoot(t *testing.T) {
	b := builder{t, vfstest.NewTree()}
	b.file(vfs.RootIno, "secret")
	jail := b.dir(vfs.RootIno, "jail")
	in := b.file(jail, "in")
	b.link(jail, "out", "/secret")
	b.link(jail, "up", "../secret")
	b.link(jail, "self", "/in")
	w := treepath.Walker{Tree: b.tree, Root: jail}
	expect(t, "self", w.Find, in)
	expect(t, "../in", w.Find, in)
	expect(t, "out", w.Find, vfs.ErrNotExist)
	expect(t, "up", w.Find, vfs.ErrNotExist)
	expect(t, "..", w.Find, jail)
}

func TestPlace(t *testing.T) {
	b := builder{t, vfstest.NewTree()}
	a := b.dir(vfs.RootIno, "a")
	b.file(a, "f")
	b.link(vfs.RootIno, "l", "a")
	w := treepath.Walker{Tree: b.tree}
	for path, want := range map[string]treepath.Place{
		"new":    {vfs.RootIno, "new"},
		"/a/new": {a, "new"},
		"l/new":  {a, "new"},
		"l":      {vfs.RootIno, "l"},
		"a/new/": {a, "new"},
	} {
		if got, err := w.Place(t.Context(), path); err != nil || got != want {
			t.Errorf("Place(%q) = %v, %v, want %v", path, got, err, want)
		}
	}
	for path, want := range map[string]error{
		"": vfs.ErrInvalid, "/": vfs.ErrInvalid, "a/..": vfs.ErrInvalid, "a/.": vfs.ErrInvalid,
		"none/x": vfs.ErrNotExist, "a/f/x": vfs.ErrNotDir, "a/" + strings.Repeat("n", 256): vfs.ErrNameTooLong,
	} {
		if got, err := w.Place(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("Place(%q) = %v, %v, want %v", path, got, err, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("a/b/../l")
	f.Add("l/l//")
	f.Add("/../..\xff")
	f.Fuzz(func(t *testing.T, path string) {
		if path == "" || len(path) > vfs.MaxSymlinkLen || strings.Contains(path, "\x00") {
			return // no symlink can hold it
		}
		b := builder{t, vfstest.NewTree()}
		a := b.dir(vfs.RootIno, "a")
		b.file(a, "b")
		b.link(a, "l", path)
		b.link(vfs.RootIno, "l", "a/l")
		w := treepath.Walker{Tree: b.tree, Root: a}
		n, err := w.Find(t.Context(), path)
		if err == nil && n.Attr.Ino == vfs.RootIno {
			t.Errorf("%q left the walk's root", path)
		}
	})
}
