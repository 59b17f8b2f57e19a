package vfstest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// liar is a tree that does not say what it holds.
type liar struct {
	*vfstest.Tree
	attr    func(vfs.Attr) vfs.Attr                     // in Stat and Lookup
	stat    func(vfs.Attr) vfs.Attr                     // in Stat only
	entries func(vfs.Offset, []vfs.Dirent) []vfs.Dirent // of every listing
	read    func(n int) int
	target  func(string) string
	xattrs  func([]string) []string
}

func (l liar) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	a, err := l.Tree.Lookup(ctx, dir, name)
	if l.attr != nil {
		a = l.attr(a)
	}
	return a, err
}

func (l liar) Stat(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	a, err := l.Tree.Stat(ctx, ino)
	if l.attr != nil {
		a = l.attr(a)
	}
	if l.stat != nil {
		a = l.stat(a)
	}
	return a, err
}

func (l liar) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	var entries []vfs.Dirent
	err := l.Tree.ReadDir(ctx, dir, after, func(e vfs.Dirent) bool {
		entries = append(entries, e)
		return true
	})
	if l.entries != nil {
		entries = l.entries(after, entries)
	}
	for _, e := range entries {
		if !yield(e) {
			break
		}
	}
	return err
}

func (l liar) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	n, err := l.Tree.ReadAt(ctx, ino, p, off)
	if l.read != nil {
		n = l.read(n)
	}
	return n, err
}

func (l liar) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	target, err := l.Tree.Readlink(ctx, ino)
	if l.target != nil {
		target = l.target(target)
	}
	return target, err
}

func (l liar) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	names, err := l.Tree.ListXattr(ctx, ino)
	if l.xattrs != nil && len(names) > 0 {
		names = l.xattrs(names)
	}
	return names, err
}

// sample returns a tree with one of each: /d, /d/f, /g, a second name of it, and /l.
func sample(t *testing.T) *vfstest.Tree {
	t.Helper()
	ctx, tree := t.Context(), vfstest.NewTree(vfstest.WithClock(func() vfs.Time { return 7 }))
	must := func(a vfs.Attr, err error) vfs.Ino {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a.Ino
	}
	n := vfs.NewNode{Mode: 0o640, UID: 1, GID: 2, Rdev: 3}
	d := must(tree.Mkdir(ctx, vfs.RootIno, "d", n))
	f := must(tree.Create(ctx, d, "f", n))
	must(tree.Link(ctx, f, vfs.RootIno, "g"))
	must(tree.Symlink(ctx, vfs.RootIno, "l", "target", n))
	must(tree.Mknod(ctx, vfs.RootIno, "c", vfs.TypeCharDev, n))
	if err := tree.WriteAt(ctx, f, []byte("bytes"), 0, false); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"user.a", "user.b"} {
		if err := tree.SetXattr(ctx, f, name, []byte("value"), 0); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// alter returns a lie about the attributes of one type of inode.
func alter(typ vfs.Type, f func(*vfs.Attr)) func(vfs.Attr) vfs.Attr {
	return func(a vfs.Attr) vfs.Attr {
		if a.Type == typ && a.Ino != vfs.RootIno {
			f(&a)
		}
		return a
	}
}

func TestAuditFindsLies(t *testing.T) {
	const file, dir, symlink = vfs.TypeRegular, vfs.TypeDir, vfs.TypeSymlink
	for name, c := range map[string]struct {
		lie  liar
		want string
	}{
		"nothing":          {liar{}, ""},
		"links of a file":  {liar{attr: alter(file, func(a *vfs.Attr) { a.Nlink++ })}, "3 links, 2 names"},
		"links of a dir":   {liar{attr: alter(dir, func(a *vfs.Attr) { a.Nlink++ })}, "3 links, should be 2"},
		"parent":           {liar{attr: alter(dir, func(a *vfs.Attr) { a.Parent = 99 })}, "parent 99, but it is in 1"},
		"parent of a file": {liar{attr: alter(file, func(a *vfs.Attr) { a.Parent = 1 })}, "it is no directory"},
		"mode":             {liar{attr: alter(file, func(a *vfs.Attr) { a.Mode = 0o100644 })}, "mode 100644"},
		"size":             {liar{attr: alter(file, func(a *vfs.Attr) { a.Size++ })}, "5 bytes to be read"},
		"too large":        {liar{attr: alter(file, func(a *vfs.Attr) { a.Size = 1 << 60 })}, "1152921504606846976 b"},
		"type":             {liar{attr: alter(symlink, func(a *vfs.Attr) { a.Type = vfs.TypeFIFO })}, "of type 3, but"},
		"stat not lookup":  {liar{stat: alter(file, func(a *vfs.Attr) { a.Mtime++ })}, "Lookup says"},
		"short read":       {liar{read: func(n int) int { return n - 1 }}, "4 bytes to be read"},
		"target":           {liar{target: func(string) string { return "targe" }}, "size 6, target of 5 bytes"},
		"order of xattrs": {liar{xattrs: func([]string) []string {
			return []string{"user.b", "user.a"}
		}}, "not in order"},
		"xattr twice": {liar{xattrs: func([]string) []string {
			return []string{"user.a", "user.a"}
		}}, "not in order"},
		"xattr that is not": {liar{xattrs: func([]string) []string {
			return []string{"user.c"}
		}}, "no such attribute"},
		"entry twice": {liar{entries: func(_ vfs.Offset, e []vfs.Dirent) []vfs.Dirent {
			return append(e, e...)
		}}, "is there twice"},
		"low offset": {liar{entries: func(_ vfs.Offset, e []vfs.Dirent) []vfs.Dirent {
			for i := range e {
				e[i].Offset -= 10
			}
			return e
		}}, "offset 6 after 15"},
		"bad name": {liar{entries: func(_ vfs.Offset, e []vfs.Dirent) []vfs.Dirent {
			for i := range e {
				e[i].Name += "/"
			}
			return e
		}}, "invalid argument"},
		"no resumption": {liar{entries: func(after vfs.Offset, e []vfs.Dirent) []vfs.Dirent {
			if after > 0 && len(e) > 0 {
				return e[1:]
			}
			return e
		}}, "resumed after offset"},
		"hidden entry": {liar{entries: func(_ vfs.Offset, e []vfs.Dirent) []vfs.Dirent {
			return e[:min(len(e), 1)]
		}}, "1 names"},
		"dir with two names": {liar{entries: func(_ vfs.Offset, e []vfs.Dirent) []vfs.Dirent {
			for i := range e {
				if e[i].Type == vfs.TypeRegular {
					e[i].Ino, e[i].Type = 2, vfs.TypeDir
				}
			}
			return e
		}}, "more than one name"},
	} {
		t.Run(name, func(t *testing.T) {
			c.lie.Tree = sample(t)
			err := vfstest.Audit(t.Context(), c.lie)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("audit says %v, want it to say %q", err, c.want)
			}
		})
	}
}
