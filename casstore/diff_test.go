package casstore

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func diffOf(t *testing.T, s *Store, from, to string) (list []DiffEntry) {
	t.Helper()
	err := s.Diff(bg, from, to, func(e DiffEntry) error {
		list = append(list, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func diffText(list []DiffEntry) string {
	var lines []string
	for _, e := range list {
		line := fmt.Sprintf("%v %s", e.Kind, e.Path)
		if e.From != "" {
			line += " from " + e.From
		}
		if names := e.Fields.Names(); len(names) > 0 {
			line += " " + strings.Join(names, ",")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestDiff changes a fork in each way.
func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *diffCase)
		want   string
	}{
		{"nothing", func(*diffCase) {}, ""},
		{"added", func(d *diffCase) { d.file("/new", "x") }, "added /new"},
		{"added below", func(d *diffCase) { d.mkdir("/dir/new"); d.file("/dir/new/a", "x") }, "added /dir/new\nadded /dir/new/a"},
		{"removed", func(d *diffCase) { d.unlink("/dir/a") }, "removed /dir/a"},
		{"removed tree", func(d *diffCase) { d.unlink("/dir/sub/c"); d.rmdir("/dir/sub") }, "removed /dir/sub\nremoved /dir/sub/c"},
		{"bytes", func(d *diffCase) { d.write("/dir/a", "other") }, "modified /dir/a bytes,times"},
		{"mode", func(d *diffCase) { d.set("/dir/a", vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o600}) }, "modified /dir/a mode"},
		{"owner", func(d *diffCase) { d.set("/dir/sub", vfs.AttrSet{Mask: vfs.SetUID, UID: 7}) }, "modified /dir/sub owner"},
		{"times", func(d *diffCase) { d.set("/dir/a", vfs.AttrSet{Mask: vfs.SetMtime, Mtime: 7}) }, "modified /dir/a times"},
		{"xattr", func(d *diffCase) { d.xattr("/dir/a", "user.x", "y") }, "modified /dir/a xattrs"},
		{"renamed", func(d *diffCase) { d.rename("/dir/a", "/b") }, "renamed /b from /dir/a"},
		{"renamed directory", func(d *diffCase) { d.rename("/dir", "/folder") }, "renamed /folder from /dir"},
		{
			"renamed and modified", func(d *diffCase) { d.rename("/dir", "/folder"); d.write("/folder/sub/c", "other") },
			"renamed /folder from /dir\nmodified /folder/sub/c bytes,times",
		},
		{"moved out", func(d *diffCase) { d.rename("/dir/sub", "/sub"); d.rmtree("/dir") }, "removed /dir\nremoved /dir/a\nrenamed /sub from /dir/sub"},
		{"back and forth", func(d *diffCase) { d.rename("/dir/a", "/x"); d.rename("/x", "/dir/a") }, ""},
		{"made and removed", func(d *diffCase) { d.file("/x", "x"); d.sync(); d.unlink("/x") }, ""},
		{"saved by an editor", func(d *diffCase) { d.file("/tmp", "new"); d.rename("/tmp", "/dir/a") }, "modified /dir/a bytes,times"},
		{
			"saved into another directory of the name",
			func(d *diffCase) {
				d.rename("/dir", "/old")
				d.unlink("/old/a")
				d.mkdir("/dir")
				d.file("/dir/a", "new")
			},
			"added /dir\nremoved /dir/a\nadded /dir/a\nrenamed /old from /dir",
		},
		{"link", func(d *diffCase) { d.link("/dir/a", "/hard") }, "added /hard"},
		{"link moved", func(d *diffCase) { d.link("/dir/a", "/hard"); d.unlink("/dir/a") }, "renamed /hard from /dir/a"},
		{"swapped", func(d *diffCase) { d.swap("/dir/a", "/top") }, "renamed /dir/a from /top\nrenamed /top from /dir/a"},
		{"file becomes directory", func(d *diffCase) { d.unlink("/top"); d.mkdir("/top") }, "removed /top\nadded /top"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), Options{})
			d := &diffCase{t, openWorkspace(t, s, "ws")}
			d.mkdir("/dir")
			d.mkdir("/dir/sub")
			d.file("/dir/a", "a")
			d.file("/dir/sub/c", "c")
			d.file("/top", "top")
			d.w = openFork(t, s, "ws", "", "fork")
			c.change(d)
			if got := diffText(diffOf(t, s, "ws", "fork")); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// diffCase changes a tree by paths.
type diffCase struct {
	*testing.T
	w *Workspace
}

func (d *diffCase) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *diffCase) find(p string) vfs.Ino {
	d.Helper()
	ino := vfs.RootIno
	for name := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if name == "" {
			continue
		}
		a, err := d.w.Lookup(bg, ino, name)
		d.ok(err)
		ino = a.Ino
	}
	return ino
}

func (d *diffCase) parent(p string) (vfs.Ino, string) { return d.find(path.Dir(p)), path.Base(p) }

func (d *diffCase) mkdir(p string) {
	dir, name := d.parent(p)
	_, err := d.w.Mkdir(bg, dir, name, vfs.NewNode{Mode: 0o755})
	d.ok(err)
}

func (d *diffCase) file(p, content string) {
	dir, name := d.parent(p)
	_, err := d.w.Create(bg, dir, name, vfs.NewNode{Mode: 0o644})
	d.ok(err)
	d.write(p, content)
}

func (d *diffCase) write(p, content string) {
	d.ok(d.w.WriteAt(bg, d.find(p), []byte(content), 0, false))
}

func (d *diffCase) unlink(p string) {
	dir, name := d.parent(p)
	d.ok(d.w.Unlink(bg, dir, name))
}

func (d *diffCase) rmdir(p string) {
	dir, name := d.parent(p)
	d.ok(d.w.Rmdir(bg, dir, name))
}

func (d *diffCase) rmtree(p string) { d.unlink(p + "/a"); d.rmdir(p) }

func (d *diffCase) rename(from, to string) { d.move(from, to, 0) }

func (d *diffCase) swap(from, to string) { d.move(from, to, vfs.RenameExchange) }

func (d *diffCase) move(from, to string, flags vfs.RenameFlags) {
	dir, name := d.parent(from)
	newDir, newName := d.parent(to)
	d.ok(d.w.Rename(bg, dir, name, newDir, newName, flags))
}

func (d *diffCase) link(from, to string) {
	dir, name := d.parent(to)
	_, err := d.w.Link(bg, d.find(from), dir, name)
	d.ok(err)
}

func (d *diffCase) set(p string, set vfs.AttrSet) {
	_, err := d.w.SetAttr(bg, d.find(p), set)
	d.ok(err)
}

func (d *diffCase) xattr(p, name, value string) {
	d.ok(d.w.SetXattr(bg, d.find(p), name, []byte(value), 0))
}

func (d *diffCase) sync() { commitTree(d.T, d.w) }

func TestDiffSides(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := openWorkspace(t, s, "ws")
	makeFile(t, w, "one", "1")
	takeSnapshot(t, s, "ws", "first")
	makeFile(t, w, "two", "2")
	openFork(t, s, "ws", "", "left")
	right := openFork(t, s, "ws", "first", "right")
	makeFile(t, right, "three", "3")
	openFork(t, s, "right", "", "deep")
	if err := right.Unlink(bg, vfs.RootIno, "one"); err != nil {
		t.Fatal(err)
	}
	openWorkspace(t, s, "other")
	for _, c := range [][3]string{
		{"ws@first", "ws", "added /two"},
		{"ws", "ws@first", "removed /two"},
		{"ws", "ws", ""},
		{"ws", "left", ""},
		{"left", "right", "removed /one\nadded /three\nremoved /two"},
		{"right", "left", "added /one\nremoved /three\nadded /two"},
		{"deep", "right", "removed /one"},
		{"ws@first", "deep", "added /three"},
		{"left", "deep", "added /three\nremoved /two"},
	} {
		if got := diffText(diffOf(t, s, c[0], c[1])); got != c[2] {
			t.Errorf("diff %s %s: got\n%s\nwant\n%s", c[0], c[1], got, c[2])
		}
	}
	none := func(DiffEntry) error { return nil }
	if err := s.Diff(bg, "ws", "other", none); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("of what has nothing in common: %v", err)
	}
	if err := s.Diff(bg, "ws", "ws@none", none); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("of no revision: %v", err)
	}
}

// checkDiff holds a diff of two trees against all that is in them.
func checkDiff(t *testing.T, list []DiffEntry, from, to map[string]vfstest.Node) {
	t.Helper()
	entries := make(map[string][]DiffEntry)
	removed := make(map[string]bool)
	for _, e := range list {
		if e.Kind == DiffRemoved {
			removed[e.Path] = true
		} else {
			entries[e.Path] = append(entries[e.Path], e)
		}
	}
	var origin func(p string) string // in from, or nothing
	origin = func(p string) string {
		if p == "/" {
			return p
		}
		for _, e := range entries[p] {
			switch e.Kind {
			case DiffAdded:
				return ""
			case DiffRenamed:
				return e.From
			}
		}
		dir := origin(path.Dir(p))
		if dir == "" {
			return ""
		}
		return path.Join(dir, path.Base(p))
	}
	stays := make(map[string]bool)
	for p, n := range to {
		o := origin(p)
		if o == "" {
			continue
		}
		was, ok := from[o]
		if !ok {
			t.Errorf("%s was at %s, the diff says, where nothing was", p, o)
		}
		stays[o] = true
		if fields := differenceOf(was, n); fields && len(entries[n.Link])+len(entries[p]) == 0 && !linkSaid(entries, to, n) {
			t.Errorf("%s is different, and not in the diff: %+v, %+v", p, was, n)
		}
	}
	for p := range from {
		if stays[p] == removed[p] && !stays[p] {
			t.Errorf("%s is gone, and not in the diff", p)
		}
	}
}

// linkSaid reports whether a name of the same file is in the diff: what is different of it is said once.
func linkSaid(entries map[string][]DiffEntry, to map[string]vfstest.Node, n vfstest.Node) bool {
	for p, other := range to {
		if other.Link == n.Link && len(entries[p]) > 0 {
			return true
		}
	}
	return false
}

func differenceOf(a, b vfstest.Node) bool {
	if a.Type == vfs.TypeDir {
		a.Mtime = b.Mtime
	}
	return a.Type != b.Type || a.Mode != b.Mode || a.UID != b.UID || a.GID != b.GID || a.Rdev != b.Rdev || a.Size != b.Size ||
		a.Mtime != b.Mtime || a.Content != b.Content || a.Target != b.Target || fmt.Sprint(a.Xattrs) != fmt.Sprint(b.Xattrs)
}
