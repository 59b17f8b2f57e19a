package casstore

import (
	"errors"
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// isUnder reports whether a path is another one or below it.
func isUnder(p, top string) bool {
	return p == top || strings.HasPrefix(p, strings.TrimSuffix(top, "/")+"/")
}

// checkRestored looks that what is under a path is what it was, and all else what it is: but for how many names a file has,
// and what is seen by the other names of those that have several.
func checkRestored(t *testing.T, top string, then, now, got map[string]vfstest.Node) {
	t.Helper()
	linked := func(n vfstest.Node) bool { return n.Type != vfs.TypeDir && n.Nlink > 1 }
	want := make(map[string]vfstest.Node)
	for p, n := range now {
		if !isUnder(p, top) {
			want[p] = n
		}
	}
	for p, n := range then {
		if isUnder(p, top) {
			want[p] = n
		}
	}
	got = maps.Clone(got)
	for p, g := range got {
		w, ok := want[p]
		switch {
		case ok && !isUnder(p, top) && (linked(w) || linked(g)):
			w = g
		case ok && p == path.Dir(top):
			w.Mtime, w.Nlink = g.Mtime, g.Nlink
		case ok && g.Type != vfs.TypeDir:
			w.Nlink = g.Nlink
		}
		w.Link, g.Link = "", ""
		got[p] = g
		if ok {
			want[p] = w
		}
	}
	if d := vfstest.DiffTimes(want, got); d != "" {
		t.Errorf("%s restored, it differs:\n%.2000s", top, d)
	}
}

// TestRestorePath changes a workspace in many ways, and restores a directory or a file of it.
func TestRestorePath(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	for _, c := range []struct {
		name   string
		path   string
		change func(d *diffCase)
		links  string // paths that lead to one file in the end
	}{
		{name: "nothing", path: "/dir", change: func(*diffCase) {}},
		{name: "bytes of a file", path: "/dir/a", change: func(d *diffCase) { d.write("/dir/a", "longer"); d.write("/top", "longer") }},
		{name: "bytes below", path: "/dir", change: func(d *diffCase) { d.write("/dir/sub/c", bulk(7)); d.write("/top", "longer") }},
		{name: "mode and attributes", path: "/dir", change: func(d *diffCase) {
			d.set("/dir", vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o700})
			d.xattr("/dir/a", "user.new", "x")
			d.ok(d.w.RemoveXattr(bg, d.find("/dir/sub"), "user.old"))
		}},
		{name: "removed file", path: "/dir/sub/c", change: func(d *diffCase) { d.unlink("/dir/sub/c") }},
		{name: "removed tree", path: "/dir/sub", change: func(d *diffCase) { d.unlink("/dir/sub/c"); d.unlink("/dir/sub/m"); d.rmdir("/dir/sub") }},
		{name: "made", path: "/dir", change: func(d *diffCase) { d.mkdir("/dir/new"); d.file("/dir/new/x", "x"); d.link("/dir/new/x", "/x") }},
		{name: "renamed within", path: "/dir", change: func(d *diffCase) { d.rename("/dir/sub", "/dir/sub2"); d.rename("/dir/a", "/dir/sub2/a") }},
		{name: "swapped within", path: "/dir", change: func(d *diffCase) { d.swap("/dir/a", "/dir/b") }},
		{name: "moved away", path: "/dir/sub", change: func(d *diffCase) { d.rename("/dir/sub", "/away"); d.write("/away/c", "other") }},
		{name: "moved away from below", path: "/dir", change: func(d *diffCase) { d.rename("/dir/a", "/a"); d.write("/a", "other"); d.rename("/dir/sub", "/sub") }},
		{name: "file moved away", path: "/dir/a", change: func(d *diffCase) { d.rename("/dir/a", "/a") }},
		{name: "moved in", path: "/dir", change: func(d *diffCase) { d.rename("/top", "/dir/top") }},
		{name: "file became a directory", path: "/dir/a", change: func(d *diffCase) { d.unlink("/dir/a"); d.mkdir("/dir/a"); d.file("/dir/a/x", "x") }},
		{name: "directory became a file", path: "/dir/sub", change: func(d *diffCase) { d.rename("/dir/sub", "/away"); d.file("/dir/sub", "file") }},
		{name: "saved by an editor", path: "/dir/a", change: func(d *diffCase) { d.file("/tmp", "new"); d.rename("/tmp", "/dir/a") }},
		{name: "linked elsewhere since", path: "/dir/a", change: func(d *diffCase) { d.link("/dir/a", "/hard"); d.write("/hard", "longer") }, links: "/dir/a /hard"},
		{name: "linked elsewhere then", path: "/dir/l", change: func(d *diffCase) { d.write("/l", "longer"); d.unlink("/dir/l") }, links: "/dir/l /l"},
		{name: "linked twice within", path: "/dir", change: func(d *diffCase) { d.unlink("/dir/sub/m") }, links: "/dir/m /dir/sub/m"},
		{name: "link moved away", path: "/dir/sub", change: func(d *diffCase) { d.rename("/dir/sub", "/away") }, links: "/away/m /dir/m"},
		{name: "its directory was renamed", path: "/dir/a", change: func(d *diffCase) { d.rename("/dir", "/was"); d.mkdir("/dir") }},
		{name: "it moved above itself", path: "/dir/sub", change: func(d *diffCase) { d.rename("/dir/sub", "/x"); d.rename("/dir", "/x/dir"); d.rename("/x", "/dir") }},
		{name: "symlink", path: "/dir/s", change: func(d *diffCase) { d.unlink("/dir/s"); d.file("/dir/s", "file") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &diffCase{t, openWorkspace(t, s, "ws")}
			defer d.close()
			d.mkdir("/dir")
			d.mkdir("/dir/sub")
			d.file("/dir/a", "a")
			d.file("/dir/b", "b")
			d.file("/dir/sub/c", bulk(1))
			d.xattr("/dir/sub", "user.old", "y")
			d.file("/top", "top")
			d.file("/l", "l")
			d.link("/l", "/dir/l")
			d.file("/dir/m", "m")
			d.link("/dir/m", "/dir/sub/m")
			dir, name := d.parent("/dir/s")
			_, err := d.w.Symlink(bg, dir, name, "target", vfs.NewNode{})
			d.ok(err)
			takeSnapshot(t, s, "ws", "then")
			then := viewOf(t, d.w)
			held := d.find(c.path) // a program has it open
			d.w.Hold(held)
			defer d.w.Release(held, 1)
			c.change(d)
			now := viewOf(t, d.w)
			for range 2 { // once more changes nothing
				if err := s.Restore(bg, "ws", "then", c.path); err != nil {
					t.Fatal(err)
				}
				checkRestored(t, c.path, then, now, viewOf(t, d.w))
			}
			d.w.forgetAll()
			got := viewOf(t, d.w)
			checkRestored(t, c.path, then, now, got)
			if links := strings.Fields(c.links); len(links) > 0 && got[links[0]].Link != got[links[1]].Link {
				t.Errorf("%s are not one file any more", c.links)
			}
			checkStore(t, s)
		})
		if err := s.RemoveWorkspace(bg, "ws"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestorePathOpen restores a file that a program has open and writes.
func TestRestorePathOpen(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	d := &diffCase{t, openWorkspace(t, s, "ws")}
	d.file("/a", "one")
	takeSnapshot(t, s, "ws", "then")
	ino := d.find("/a")
	d.w.Hold(ino)
	defer d.w.Release(ino, 1)
	d.write("/a", bulk(1))
	d.unlink("/a")
	if err := s.Restore(bg, "ws", "then", "/a"); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, d.w, ino); got != "one" {
		t.Errorf("who has it open reads %.20q", got)
	}
	d.ok(d.w.WriteAt(bg, ino, []byte("two"), 0, false))
	if got := contentOf(d.w, "a"); got != "two" {
		t.Errorf("what it writes after that: %q", got)
	}
}

func TestRestorePathErrors(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	d := &diffCase{t, openWorkspace(t, s, "ws")}
	d.mkdir("/dir")
	d.file("/dir/a", "a")
	d.file("/f", "f")
	takeSnapshot(t, s, "ws", "then")
	d.unlink("/dir/a")
	d.rmdir("/dir")
	d.file("/dir", "file")
	d.file("/new", "new")
	for _, c := range []struct {
		path string
		want error
	}{
		{"/new", vfs.ErrNotExist}, {"/f/x", vfs.ErrNotDir}, {"/dir/a", vfs.ErrNotDir}, {"/none/x", vfs.ErrNotExist},
		{"/..", vfs.ErrInvalid}, {"/" + strings.Repeat("x", 256), vfs.ErrNameTooLong},
	} {
		if err := s.Restore(bg, "ws", "then", c.path); !errors.Is(err, c.want) {
			t.Errorf("%.20s: %v, want %v", c.path, err, c.want)
		}
	}
	d.unlink("/dir")
	if err := s.Restore(bg, "ws", "then", "/dir/a"); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("its directory is gone: %v", err)
	}
	if err := errors.Join(s.Restore(bg, "ws", "then", "/dir"), s.Restore(bg, "ws", "then", "/")); err != nil {
		t.Error(err)
	}
}
