package localpath

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T, dir string) *casstore.Store {
	t.Helper()
	s, err := casstore.Open(dir, casstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openWorkspace opens a workspace, which may be there.
func openWorkspace(t *testing.T, s *casstore.Store, name string) *casstore.Workspace {
	t.Helper()
	if _, err := s.CreateWorkspace(t.Context(), name); err != nil && !errors.Is(err, vfs.ErrExist) {
		t.Fatal(err)
	}
	w, err := s.OpenWorkspace(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// rig is two trees as one.
type rig struct {
	*testing.T
	*Tree
	shared, local *casstore.Workspace
	dir           string
	patterns      []string
	shut          func()
}

func newRig(t *testing.T, patterns ...string) *rig {
	r := &rig{T: t, dir: t.TempDir(), patterns: patterns}
	r.open()
	t.Cleanup(func() { r.shut() })
	return r
}

func (r *rig) open() {
	r.Helper()
	shared, local := openStore(r.T, filepath.Join(r.dir, "shared")), openStore(r.T, filepath.Join(r.dir, "local"))
	r.shared, r.local = openWorkspace(r.T, shared, "w"), openWorkspace(r.T, local, "w")
	r.shut = func() {
		if err := errors.Join(r.shared.Close(), r.local.Close(), shared.Close(), local.Close()); err != nil {
			r.Error(err)
		}
	}
	rules, err := ParseRules(r.patterns)
	r.must(err)
	r.Tree, err = Open(r.Context(), r.shared, r.local, rules)
	r.must(err)
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) fails(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Errorf("%v, want %v", err, want)
	}
}

// at finds the directory of a path in a tree.
func (r *rig) at(tree vfs.Tree, path string) (dir vfs.Ino, name string) {
	r.Helper()
	dir = vfs.RootIno
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, part := range parts[:len(parts)-1] {
		a, err := tree.Lookup(r.Context(), dir, part)
		if err != nil {
			r.Fatalf("%s: %v", path, err)
		}
		dir = a.Ino
	}
	return dir, parts[len(parts)-1]
}

func (r *rig) mkdir(tree vfs.Tree, paths ...string) {
	r.Helper()
	for _, path := range paths {
		dir, name := r.at(tree, path)
		_, err := tree.Mkdir(r.Context(), dir, name, vfs.NewNode{Mode: 0o755})
		r.must(err)
	}
}

func (r *rig) write(tree vfs.Tree, path, text string) vfs.Ino {
	r.Helper()
	dir, name := r.at(tree, path)
	a, err := tree.Create(r.Context(), dir, name, vfs.NewNode{Mode: 0o644})
	r.must(err)
	r.must(tree.WriteAt(r.Context(), a.Ino, []byte(text), 0, false))
	return a.Ino
}

func (r *rig) rename(from, to string) error {
	r.Helper()
	a, b := r.at(r.Tree, from)
	c, d := r.at(r.Tree, to)
	return r.Rename(r.Context(), a, b, c, d, 0)
}

// paths are those of a tree, without the root.
func (r *rig) paths(tree vfs.Tree) (out []string) {
	r.Helper()
	nodes, err := vfstest.Snapshot(r.Context(), tree)
	r.must(err)
	for path := range nodes {
		if path != "/" {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func (r *rig) has(tree vfs.Tree, want ...string) {
	r.Helper()
	if got := r.paths(tree); !slices.Equal(got, want) {
		r.Errorf("%q, want %q", got, want)
	}
	if err := vfstest.Audit(r.Context(), tree); err != nil {
		r.Error(err)
	}
}

func TestConforms(t *testing.T) {
	for name, pattern := range map[string]string{"all shared": "/never/this", "all local": "*"} {
		t.Run(name, func(t *testing.T) {
			rules, err := ParseRules([]string{pattern})
			if err != nil {
				t.Fatal(err)
			}
			s, n := openStore(t, t.TempDir()), 0
			defer s.Close()
			vfstest.Run(t, func(t *testing.T) vfs.Tree {
				n++
				shared, local := openWorkspace(t, s, fmt.Sprint("shared", n)), openWorkspace(t, s, fmt.Sprint("local", n))
				t.Cleanup(func() {
					if err := errors.Join(shared.Close(), local.Close()); err != nil {
						t.Error(err)
					}
				})
				tree, err := Open(t.Context(), shared, local, rules)
				if err != nil {
					t.Fatal(err)
				}
				return tree
			})
		})
	}
}

// The conformance kit does all in a directory of its own, which is local when all is: here the root is the one with the bit.
func TestSetgidRoot(t *testing.T) {
	r := newRig(t, "*.local")
	_, err := r.SetAttr(t.Context(), vfs.RootIno, vfs.AttrSet{
		Mask: vfs.SetMode | vfs.SetGID, Mode: vfs.ModeSetGID | 0o755, GID: 7,
	})
	r.must(err)
	n := vfs.NewNode{Mode: 0o600, UID: 3, GID: 4}
	made := func(a vfs.Attr, err error) {
		t.Helper()
		r.must(err)
		setgid := a.Mode&vfs.ModeSetGID != 0
		if a.Ino&localBit == 0 || a.UID != 3 || a.GID != 7 || setgid != (a.Type == vfs.TypeDir) {
			t.Errorf("%+v", a)
		}
	}
	made(r.Create(t.Context(), vfs.RootIno, "f.local", n))
	made(r.Mknod(t.Context(), vfs.RootIno, "p.local", vfs.TypeFIFO, n))
	made(r.Symlink(t.Context(), vfs.RootIno, "s.local", "f.local", n))
	made(r.Mkdir(t.Context(), vfs.RootIno, "d.local", n))
	dir, name := r.at(r.Tree, "d.local/e")
	made(r.Mkdir(t.Context(), dir, name, n))
}

// Whether a tree is all shared or all local makes no difference to who uses it.
func TestAtRandom(t *testing.T) {
	for name, pattern := range map[string]string{"all shared": "/never/this", "all local": "*"} {
		t.Run(name, func(t *testing.T) {
			vfstest.Random(t, vfstest.Seed(t), 1500, newRig(t, pattern).Tree, vfstest.NewTree(), nil)
		})
	}
}

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		lines   []string
		path    string
		dir, in bool
	}{
		{[]string{"node_modules/"}, "node_modules", true, true},
		{[]string{"node_modules/"}, "node_modules", false, false},
		{[]string{"node_modules/"}, "a/node_modules", true, true},
		{[]string{"/build/"}, "build", true, true},
		{[]string{"/build/"}, "a/build", true, false},
		{[]string{"a/*.o"}, "a/x.o", false, true},
		{[]string{"a/*.o"}, "b/a/x.o", false, false},
		{[]string{"*.o", "!keep.o"}, "keep.o", false, false},
		{[]string{"*.o", "!keep.o"}, "lose.o", false, true},
		{[]string{"# *.o", "", "  "}, "x.o", false, false},
	} {
		r, err := ParseRules(tt.lines)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.match(strings.Split(tt.path, "/"), tt.dir); got != tt.in {
			t.Errorf("%q: %s is local: %t", tt.lines, tt.path, got)
		}
	}
	for _, bad := range []string{"[", "/", "!", "a/[b/c"} {
		if _, err := ParseRules([]string{bad}); !errors.Is(err, vfs.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What is local stays so over a restart, and the shared tree has nothing of it.
func TestLocalPathsStay(t *testing.T) {
	r := newRig(t, "node_modules/", "/build/", "*.o")
	r.mkdir(r, "/p", "/p/node_modules", "/p/node_modules/x", "/build", "/p/build", "/p/build/node_modules")
	r.write(r, "/p/node_modules/x/y", "1")
	r.write(r, "/p/a.o", "2")
	r.write(r, "/p/a.c", "3")
	r.write(r, "/p/build/node_modules/z", "4")
	all := r.paths(r)
	r.has(r.shared, "/p", "/p/a.c", "/p/build")
	r.must(r.Sync(t.Context()))
	r.shut()
	r.open()
	r.has(r, all...)
	r.has(r.shared, "/p", "/p/a.c", "/p/build")
	dir, name := r.at(r, "/p/build/node_modules/z")
	r.must(r.Unlink(t.Context(), dir, name))
	r.fails(r.Rmdir(t.Context(), r.ino("/p"), "build"), vfs.ErrNotEmpty)
	r.must(r.Rmdir(t.Context(), r.ino("/p/build"), "node_modules"))
	r.must(r.Rmdir(t.Context(), r.ino("/p"), "build"))
	r.has(r.shared, "/p", "/p/a.c")
}

func (r *rig) ino(path string) vfs.Ino {
	r.Helper()
	dir, name := r.at(r, path)
	a, err := r.Lookup(r.Context(), dir, name)
	r.must(err)
	return a.Ino
}

// What others have under a name that is local here is neither seen nor changed, and stands in the way of nothing but the removal of
// the directory that it is in.
func TestOthersHaveTheName(t *testing.T) {
	r := newRig(t, "node_modules/")
	r.mkdir(r.shared, "/p", "/p/node_modules")
	r.write(r.shared, "/p/node_modules/theirs", "1")
	if got := r.paths(r); !slices.Equal(got, []string{"/p"}) {
		t.Errorf("%q", got)
	}
	r.fails(r.Unlink(t.Context(), r.ino("/p"), "node_modules"), vfs.ErrNotExist)
	r.mkdir(r, "/p/node_modules")
	r.write(r, "/p/node_modules/mine", "2")
	r.has(r.shared, "/p", "/p/node_modules", "/p/node_modules/theirs")
	if got := r.paths(r); !slices.Equal(got, []string{"/p", "/p/node_modules", "/p/node_modules/mine"}) {
		t.Errorf("%q", got)
	}
	r.must(r.rename("/p/node_modules", "/p/other"))
	r.has(r.shared, "/p", "/p/node_modules", "/p/node_modules/theirs", "/p/other", "/p/other/mine")
	r.fails(r.rename("/p", "/node_modules"), vfs.ErrNotEmpty)
	r.fails(removeAll(t.Context(), r, vfs.RootIno, "p"), vfs.ErrNotEmpty)
	r.has(r.shared, "/p", "/p/node_modules", "/p/node_modules/theirs")
	// Of another type it is seen, unless something local has the name.
	r.write(r.shared, "/node_modules", "a file of theirs")
	r.fails(r.rename("/p", "/node_modules"), vfs.ErrNotDir)
	_, err := r.Mkdir(t.Context(), vfs.RootIno, "node_modules", vfs.NewNode{Mode: 0o755})
	r.fails(err, vfs.ErrExist)
}

// A directory keeps its local entries wherever others move it to, and loses them when they remove it.
func TestDirectoryIsMovedByOthers(t *testing.T) {
	r := newRig(t, "node_modules/", "/a/tmp/")
	r.mkdir(r, "/a", "/a/node_modules", "/a/tmp", "/b", "/b/tmp")
	r.must(r.shared.Rename(t.Context(), vfs.RootIno, "a", r.ino("/b"), "a", 0))
	if got := r.paths(r); !slices.Equal(got, []string{"/b", "/b/a", "/b/a/node_modules", "/b/a/tmp", "/b/tmp"}) {
		t.Errorf("%q", got)
	}
	r.mkdir(r, "/a", "/a/tmp") // the path is another directory's now
	r.has(r.shared, "/a", "/b", "/b/a", "/b/tmp")
	r.must(r.shared.Rmdir(t.Context(), r.ino("/b"), "a"))
	r.must(r.Sync(t.Context()))
	r.shut()
	r.open()
	r.must(r.Sweep(t.Context()))
	if names, err := namesIn(t.Context(), r.local, vfs.RootIno); err != nil || len(names) != 1 {
		t.Errorf("boxes %q, %v", names, err)
	}
	r.has(r, "/a", "/a/tmp", "/b", "/b/tmp")
}

// plant makes a directory with everything in it that there can be.
func (r *rig) plant(path string) {
	r.mkdir(r, path, path+"/sub", path+"/sub/node_modules", path+"/empty")
	big := r.write(r, path+"/big", strings.Repeat("0123456789abcdef", 1<<16))
	_, err := r.SetAttr(r.Context(), big, vfs.AttrSet{Mask: vfs.SetSize, Size: 3 << 20}) // a hole at the end
	r.must(err)
	r.must(r.WriteAt(r.Context(), big, []byte("end"), 5<<20, false))
	ino := r.write(r, path+"/sub/f", "text")
	r.must(r.SetXattr(r.Context(), ino, "user.x", []byte("1"), 0))
	_, err = r.Link(r.Context(), ino, r.ino(path), "link")
	r.must(err)
	_, err = r.Symlink(r.Context(), r.ino(path), "symlink", "sub/f", vfs.NewNode{Mode: 0o777, UID: 7})
	r.must(err)
	_, err = r.Mknod(r.Context(), r.ino(path), "fifo", vfs.TypeFIFO, vfs.NewNode{Mode: 0o600})
	r.must(err)
	r.write(r, path+"/sub/node_modules/m", "module")
	_, err = r.SetAttr(r.Context(), r.ino(path+"/sub"), vfs.AttrSet{
		Mask: vfs.SetMode | vfs.SetUID | vfs.SetGID | vfs.SetMtime, Mode: 0o2750, UID: 3, GID: 4, Mtime: 12345,
	})
	r.must(err)
}

// A rename from one tree to the other moves everything, there and back. What is local in what becomes shared stays local.
func TestMoveAcross(t *testing.T) {
	r := newRig(t, "/build/", "node_modules/")
	r.plant("/build")
	r.has(r.shared)
	before := r.below("/build")
	r.must(r.rename("/build", "/out"))
	if d := vfstest.DiffTimes(before, r.below("/out")); d != "" {
		t.Error(d)
	}
	r.has(r.shared, "/out", "/out/big", "/out/empty", "/out/fifo", "/out/link", "/out/sub", "/out/sub/f", "/out/symlink")
	r.must(r.Sync(t.Context()))
	r.shut()
	r.open()
	if d := vfstest.DiffTimes(before, r.below("/out")); d != "" {
		t.Error(d)
	}
	r.must(r.rename("/out", "/build"))
	if d := vfstest.DiffTimes(before, r.below("/build")); d != "" {
		t.Error(d)
	}
	r.has(r.shared)
	if err := vfstest.Audit(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// below is a snapshot of what is below a directory, which "/" then stands for.
func (r *rig) below(path string) map[string]vfstest.Node {
	r.Helper()
	all, err := vfstest.Snapshot(r.Context(), r)
	r.must(err)
	out := make(map[string]vfstest.Node)
	for p, n := range all {
		if rest, in := strings.CutPrefix(p, path); in {
			n.Link = strings.TrimPrefix(n.Link, path)
			out["/"+strings.TrimPrefix(rest, "/")] = n
		}
	}
	return out
}

func TestMoveAcrossReplaces(t *testing.T) {
	r := newRig(t, "*.tmp", "build/")
	r.write(r, "/x.tmp", "new")
	old := r.write(r, "/x", "old")
	r.Hold(old)
	r.must(r.rename("/x.tmp", "/x"))
	r.has(r, "/x")
	r.has(r.shared, "/x")
	if a, err := r.Stat(t.Context(), old); err != nil || a.Nlink != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	r.Release(old, 1)
	r.mkdir(r, "/build", "/build/d", "/full", "/empty")
	r.write(r, "/full/f", "1")
	r.fails(r.rename("/build", "/full"), vfs.ErrNotEmpty)
	r.fails(r.rename("/build", "/x"), vfs.ErrNotDir)
	r.fails(r.rename("/x", "/build"), vfs.ErrIsDir)
	r.fails(r.rename("/full", "/full/build"), vfs.ErrInvalid)
	r.fails(r.Rename(t.Context(), vfs.RootIno, "build", vfs.RootIno, "empty", vfs.RenameNoReplace), vfs.ErrExist)
	r.fails(r.Rename(t.Context(), vfs.RootIno, "build", vfs.RootIno, "empty", vfs.RenameExchange), vfs.ErrInvalid)
	_, err := r.Link(t.Context(), r.ino("/x"), vfs.RootIno, "y.tmp")
	r.fails(err, vfs.ErrNotPermitted)
	r.must(r.rename("/build", "/empty"))
	r.has(r, "/empty", "/empty/d", "/full", "/full/f", "/x")
	r.has(r.shared, "/empty", "/empty/d", "/full", "/full/f", "/x")
}

// A move that cannot be made leaves everything as it was.
func TestMoveThatFails(t *testing.T) {
	r := newRig(t, "/build/", "node_modules/")
	r.plant("/build")
	before, err := vfstest.Snapshot(t.Context(), r)
	r.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	stop := r.shared.Watch(nil, func(c vfs.Change) {
		if c.Kind == vfs.ChangeEntry && c.Name == "f" {
			cancel()
		}
	})
	err = r.Rename(ctx, vfs.RootIno, "build", vfs.RootIno, "out", 0)
	stop()
	if err == nil { // the watcher was too slow
		r.must(r.rename("/out", "/build"))
	} else if !errors.Is(err, vfs.ErrInterrupted) {
		t.Error(err)
	}
	after, snapErr := vfstest.Snapshot(t.Context(), r)
	r.must(snapErr)
	if d := vfstest.Diff(before, after); d != "" {
		t.Errorf("%v:\n%s", err, d)
	}
	r.has(r.shared)
}

// A crash in a move leaves nothing in the local tree that would not go.
func TestStagesAreSwept(t *testing.T) {
	r := newRig(t, "build/")
	r.mkdir(r.local, "/"+stagePrefix+"x", "/"+stagePrefix+"x/d")
	r.shut()
	r.open()
	r.has(r.local)
}

// Watchers are told of both trees as they are presented.
func TestWatch(t *testing.T) {
	r := newRig(t, "node_modules/")
	r.mkdir(r, "/p", "/p/node_modules")
	told := make(chan vfs.Change, 100)
	stop := r.Watch(nil, func(c vfs.Change) { told <- c })
	r.mkdir(r.shared, "/p/node_modules") // is not seen
	r.write(r.shared, "/p/f", "1")
	until := func(name string) (out []vfs.Change) {
		for c := range told {
			if c.Kind != vfs.ChangeEntry {
				continue
			}
			if out = append(out, c); c.Name == name {
				break
			}
		}
		return out
	}
	if got := until("f"); len(got) != 1 || got[0].Dir != r.ino("/p") {
		t.Errorf("%+v", got)
	}
	module := r.write(r, "/p/node_modules/m", "2")
	if got := until("m"); got[0].Ino != module || got[0].Dir != r.ino("/p/node_modules") || module&localBit == 0 {
		t.Errorf("%+v, want inode %d", got, module)
	}
	r.must(r.rename("/p/node_modules", "/p/shared"))
	now := make(map[string]vfs.Ino) // of two trees, in any order
	for len(now) < 2 {
		if c := <-told; c.Kind == vfs.ChangeEntry && c.Dir == r.ino("/p") && (c.Name == "shared" || c.Name == "node_modules") {
			now[c.Name] = c.Ino
		}
	}
	if now["node_modules"] != 0 || now["shared"] != r.ino("/p/shared") {
		t.Errorf("%v", now)
	}
	stop()
}
