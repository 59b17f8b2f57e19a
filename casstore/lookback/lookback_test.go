package lookback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// TestMain looks for goroutines that were left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The directory changes nothing of the tree that it is in.
func TestConformance(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) vfs.Tree {
		tree := Over(vfstest.NewTree())
		t.Cleanup(func() { _ = tree.Close() })
		return tree
	})
}

// library is a past in memory: trees by the names of snapshots.
type library struct {
	mu      sync.Mutex
	rev     vfs.Rev
	changed vfs.Time
	list    []casstore.Snapshot
	trees   map[casstore.Snapshot]vfs.Tree
	open    int // snapshots
	opens   int // so far
}

func newLibrary() *library { return &library{rev: 1, trees: map[casstore.Snapshot]vfs.Tree{}} }

func (l *library) Rev(context.Context) (vfs.Rev, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rev++
	return l.rev, nil
}

func (l *library) Changed() vfs.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *library) Snapshots(context.Context) ([]casstore.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list), nil
}

func (l *library) Snapshot(_ context.Context, name string) (casstore.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.list, func(sn casstore.Snapshot) bool { return sn.Name == name })
	if i < 0 {
		return casstore.Snapshot{}, vfs.ErrNoRevision
	}
	return l.list[i], nil
}

// lent is a snapshot of a library that is open.
type lent struct {
	vfs.Tree
	giveBack func()
}

func (l *lent) Close() error {
	l.giveBack()
	return nil
}

func (l *library) Open(_ context.Context, sn casstore.Snapshot) (Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tree, ok := l.trees[sn]
	if !ok {
		return nil, vfs.ErrNoRevision
	}
	l.open++
	l.opens++
	return &lent{tree, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	})}, nil
}

// add makes a snapshot with one file, which holds the snapshot's name.
func (l *library) add(t *testing.T, name string) {
	t.Helper()
	tree := vfstest.NewTree()
	dir, err := tree.Mkdir(t.Context(), vfs.RootIno, "dir", vfs.NewNode{Mode: 0o700, UID: 7})
	if err == nil {
		put(t, tree, dir.Ino, "file", name)
	} else {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed++
	sn := casstore.Snapshot{Name: name, Rev: vfs.Rev(l.changed), Created: l.changed}
	l.list, l.trees[sn] = append(l.list, sn), tree
}

func (l *library) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed++
	l.list = slices.DeleteFunc(l.list, func(sn casstore.Snapshot) bool {
		if sn.Name == name {
			delete(l.trees, sn)
		}
		return sn.Name == name
	})
}

// counts returns how many snapshots are open, and how many have been opened.
func (l *library) counts() (open, opens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.opens
}

func put(t *testing.T, tree vfs.Tree, dir vfs.Ino, name, content string) vfs.Attr {
	t.Helper()
	a, err := tree.Create(t.Context(), dir, name, vfs.NewNode{Mode: 0o644})
	if err == nil {
		err = tree.WriteAt(t.Context(), a.Ino, []byte(content), 0, false)
	}
	if err == nil {
		a, err = tree.Stat(t.Context(), a.Ino)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// find walks down from the root.
func find(t *testing.T, tree vfs.Tree, names ...string) vfs.Attr {
	t.Helper()
	a, err := look(t, tree, names...)
	if err != nil {
		t.Fatalf("%q: %v", names, err)
	}
	return a
}

func look(t *testing.T, tree vfs.Tree, names ...string) (vfs.Attr, error) {
	t.Helper()
	a, err := tree.Stat(t.Context(), vfs.RootIno)
	for _, name := range names {
		if err == nil {
			a, err = tree.Lookup(t.Context(), a.Ino, name)
		}
	}
	return a, err
}

func content(t *testing.T, tree vfs.Tree, a vfs.Attr) string {
	t.Helper()
	b := make([]byte, a.Size+10)
	n, err := tree.ReadAt(t.Context(), a.Ino, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func names(t *testing.T, tree vfs.Tree, dir vfs.Ino, after vfs.Offset) (list []string, last vfs.Offset) {
	t.Helper()
	err := tree.ReadDir(t.Context(), dir, after, func(d vfs.Dirent) bool {
		list, last = append(list, d.Name), d.Offset
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, last
}

// newTree returns a tree with a library, which has nothing open when the test has ended.
func newTree(t *testing.T) (*Tree, *library) {
	l := newLibrary()
	tree := New(vfstest.NewTree(), l)
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if open, _ := l.counts(); open != 0 {
			t.Errorf("%d snapshots are still open", open)
		}
	})
	return tree, l
}

func TestDirectory(t *testing.T) {
	tree, l := newTree(t)
	l.add(t, "first")
	put(t, tree, vfs.RootIno, "file", "now")

	if list, _ := names(t, tree, vfs.RootIno, 0); !slices.Equal(list, []string{"file"}) {
		t.Errorf("the root lists %q", list)
	}
	dir := find(t, tree, Name)
	if list, _ := names(t, tree, dir.Ino, 0); !slices.Equal(list, []string{"snapshots", "rev"}) {
		t.Errorf("%s lists %q", Name, list)
	}
	if _, err := look(t, tree, Name, "other"); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("another name: %v", err)
	}
	snapshots := find(t, tree, Name, "snapshots")
	root := find(t, tree, Name, "snapshots", "first")
	sub := find(t, tree, Name, "snapshots", "first", "dir")
	for _, tt := range []struct {
		a          vfs.Attr
		parent     vfs.Ino
		mode, user uint32
	}{
		{dir, vfs.RootIno, 0o555, find(t, tree).UID},
		{snapshots, dir.Ino, 0o555, find(t, tree).UID},
		{root, snapshots.Ino, find(t, tree).Mode, find(t, tree).UID},
		{sub, root.Ino, 0o700, 7},
	} {
		if tt.a.Type != vfs.TypeDir || tt.a.Parent != tt.parent || tt.a.Mode != tt.mode || tt.a.UID != tt.user {
			t.Errorf("%+v, want parent %d, mode %o, owner %d", tt.a, tt.parent, tt.mode, tt.user)
		}
		if now, err := tree.Stat(t.Context(), tt.a.Ino); err != nil || now != tt.a {
			t.Errorf("stat %+v, %v, lookup %+v", now, err, tt.a)
		}
	}
	if got := content(t, tree, find(t, tree, Name, "snapshots", "first", "dir", "file")); got != "first" {
		t.Errorf("the snapshot's file holds %q", got)
	}
	if !tree.Volatile(dir.Ino) || !tree.Volatile(snapshots.Ino) || tree.Volatile(root.Ino) || tree.Volatile(vfs.RootIno) {
		t.Error("other directories are volatile than those whose names come and go")
	}
}

// A file rev says one revision for good, and the next look-up another.
func TestRev(t *testing.T) {
	tree, _ := newTree(t)
	first, second := find(t, tree, Name, "rev"), find(t, tree, Name, "rev")
	if first.Ino == second.Ino {
		t.Fatal("two revisions have one inode")
	}
	for _, tt := range []struct {
		a    vfs.Attr
		want string
	}{{first, "2\n"}, {second, "3\n"}, {first, "2\n"}} {
		if got := content(t, tree, tt.a); got != tt.want || tt.a.Size != 2 || tt.a.Type != vfs.TypeRegular {
			t.Errorf("%+v says %q, want %q", tt.a, got, tt.want)
		}
	}
	if at, err := tree.Seek(t.Context(), first.Ino, 1, vfs.SeekHole); at != 2 || err != nil {
		t.Errorf("a hole at %d, %v", at, err)
	}
	if _, err := tree.Seek(t.Context(), first.Ino, 2, vfs.SeekData); !errors.Is(err, vfs.ErrNoData) {
		t.Errorf("data behind the end: %v", err)
	}
}

func TestNothingChanges(t *testing.T) {
	tree, l := newTree(t)
	l.add(t, "first")
	now := put(t, tree, vfs.RootIno, "now", "now")
	root, dir := find(t, tree, Name, "snapshots", "first"), find(t, tree, Name, "snapshots", "first", "dir")
	file, rev := find(t, tree, Name, "snapshots", "first", "dir", "file"), find(t, tree, Name, "rev")
	ctx, node := t.Context(), vfs.NewNode{Mode: 0o600}
	for _, in := range []vfs.Ino{find(t, tree, Name).Ino, find(t, tree, Name, "snapshots").Ino, root.Ino, dir.Ino} {
		_, create := tree.Create(ctx, in, "x", node)
		_, mkdir := tree.Mkdir(ctx, in, "x", node)
		_, mknod := tree.Mknod(ctx, in, "x", vfs.TypeFIFO, node)
		_, symlink := tree.Symlink(ctx, in, "x", "y", node)
		_, link := tree.Link(ctx, now.Ino, in, "x")
		for what, err := range map[string]error{
			"create": create, "mkdir": mkdir, "mknod": mknod, "symlink": symlink, "link": link,
			"unlink": tree.Unlink(ctx, in, "file"), "rmdir": tree.Rmdir(ctx, in, "dir"),
			"out": tree.Rename(ctx, in, "dir", vfs.RootIno, "x", 0), "in": tree.Rename(ctx, vfs.RootIno, "now", in, "x", 0),
		} {
			if !errors.Is(err, vfs.ErrReadOnly) {
				t.Errorf("%s in %x: %v", what, in, err)
			}
		}
	}
	for _, ino := range []vfs.Ino{file.Ino, rev.Ino, dir.Ino} {
		_, setattr := tree.SetAttr(ctx, ino, vfs.AttrSet{Mask: vfs.SetMode})
		_, copied := tree.CopyRange(ctx, now.Ino, 0, ino, 0, 1)
		for what, err := range map[string]error{
			"setattr": setattr, "copy": copied, "write": tree.WriteAt(ctx, ino, []byte("x"), 0, false),
			"allocate": tree.Allocate(ctx, ino, 0, 0, 1), "setxattr": tree.SetXattr(ctx, ino, "user.x", nil, 0),
			"removexattr": tree.RemoveXattr(ctx, ino, "user.x"),
		} {
			if !errors.Is(err, vfs.ErrReadOnly) {
				t.Errorf("%s of %x: %v", what, ino, err)
			}
		}
		if list, err := tree.ListXattr(ctx, ino); err != nil || len(list) > 0 {
			t.Errorf("attributes of %x: %q, %v", ino, list, err)
		}
	}
	if _, err := tree.Link(ctx, file.Ino, vfs.RootIno, "linked"); !errors.Is(err, vfs.ErrNotPermitted) {
		t.Errorf("link out of a snapshot: %v", err)
	}
	for what, err := range map[string]error{
		"remove": tree.Rmdir(ctx, vfs.RootIno, Name), "move": tree.Rename(ctx, vfs.RootIno, Name, vfs.RootIno, "x", 0),
		"replace": tree.Rename(ctx, vfs.RootIno, "now", vfs.RootIno, Name, 0),
	} {
		if !errors.Is(err, vfs.ErrReadOnly) {
			t.Errorf("%s the directory: %v", what, err)
		}
	}
	if n, err := tree.CopyRange(ctx, file.Ino, 1, now.Ino, 3, 3); n != 3 || err != nil {
		t.Errorf("copied %d, %v", n, err)
	}
	if got := content(t, tree, find(t, tree, "now")); got != "nowirs" {
		t.Errorf("holds %q", got)
	}
}

// An entry of the workspace's own is found in the place of the directory, and can be removed.
func TestOwnEntry(t *testing.T) {
	base := vfstest.NewTree()
	tree := New(base, newLibrary())
	defer tree.Close()
	hidden := find(t, tree, Name)
	if _, err := tree.Create(t.Context(), vfs.RootIno, Name, vfs.NewNode{}); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("create: %v", err)
	}
	own := put(t, base, vfs.RootIno, Name, "mine")
	if a := find(t, tree, Name); a.Ino != own.Ino {
		t.Errorf("finds %x, want %x", a.Ino, own.Ino)
	}
	if _, err := tree.Lookup(t.Context(), hidden.Ino, "rev"); err != nil {
		t.Errorf("who is in the directory: %v", err)
	}
	if err := tree.Rename(t.Context(), vfs.RootIno, Name, vfs.RootIno, "mine", 0); err != nil {
		t.Error(err)
	}
	if a := find(t, tree, Name); a.Ino != hidden.Ino {
		t.Errorf("finds %x, want %x", a.Ino, hidden.Ino)
	}
}

// Snapshots that come and go, and one that takes the name of another.
func TestSnapshotsChange(t *testing.T) {
	tree, l := newTree(t)
	before := find(t, tree, Name, "snapshots")
	l.add(t, "first")
	after := find(t, tree, Name, "snapshots")
	if after.Ino != before.Ino || after.Mtime <= before.Mtime {
		t.Errorf("%+v, then %+v", before, after)
	}
	file := find(t, tree, Name, "snapshots", "first", "dir", "file")
	tree.Hold(file.Ino)
	l.remove("first")
	if _, err := look(t, tree, Name, "snapshots", "first"); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("a snapshot that was removed: %v", err)
	}
	l.add(t, "first")
	if again := find(t, tree, Name, "snapshots", "first", "dir", "file"); again.Ino == file.Ino {
		t.Error("two snapshots have one inode")
	}
	tree.Release(file.Ino, 1)
	if open, _ := l.counts(); open != 1 {
		t.Errorf("%d are open, want the one that is there", open)
	}
	if _, err := tree.Stat(t.Context(), file.Ino); !errors.Is(err, vfs.ErrNoRevision) {
		t.Errorf("of a snapshot that was removed: %v", err)
	}
}

func TestListing(t *testing.T) {
	tree, l := newTree(t)
	dir := find(t, tree, Name, "snapshots")
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("s%02d", i))
		l.add(t, want[i])
	}
	all, _ := names(t, tree, dir.Ino, 0)
	var pieces []string
	for after := vfs.Offset(0); ; {
		var got []vfs.Dirent
		err := tree.ReadDir(t.Context(), dir.Ino, after, func(d vfs.Dirent) bool {
			got = append(got, d)
			return len(got) < 7
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for _, d := range got {
			pieces, after = append(pieces, d.Name), d.Offset
			if a := find(t, tree, Name, "snapshots", d.Name); a.Ino != d.Ino || d.Offset < vfs.FirstOffset || d.Offset >= 1<<63 {
				t.Errorf("%+v is listed for %x", d, a.Ino)
			}
		}
	}
	if !slices.Equal(all, pieces) {
		t.Errorf("in one piece %q, in several %q", all, pieces)
	}
	slices.Sort(all)
	if !slices.Equal(all, want) {
		t.Errorf("lists %q", all)
	}
}

// However many snapshots are looked into, few stay open, and what nobody holds is forgotten.
func TestBounds(t *testing.T) {
	tree, l := newTree(t)
	const many = 3 * maxOpen
	var files []vfs.Attr
	for i := range many {
		l.add(t, fmt.Sprint("s", i))
		file := find(t, tree, Name, "snapshots", fmt.Sprint("s", i), "dir", "file")
		tree.Hold(file.Ino)
		files = append(files, file)
		if open, _ := l.counts(); open > maxOpen {
			t.Fatalf("%d snapshots are open", open)
		}
	}
	if _, opens := l.counts(); opens != many {
		t.Errorf("%d openings for %d snapshots", opens, many)
	}
	for i, file := range files { // those that were closed are opened again
		if got := content(t, tree, file); got != fmt.Sprint("s", i) {
			t.Errorf("%d: holds %q", i, got)
		}
	}
	for _, file := range files {
		tree.Release(file.Ino, 1)
	}
	if open, _ := l.counts(); open != 0 {
		t.Errorf("%d are open that nobody holds", open)
	}
	shelf := newShelf(l.Open)
	for i := range maxIdle + 100 {
		if _, err := shelf.place(casstore.Snapshot{Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(shelf.places) != maxIdle || len(shelf.names) != maxIdle {
		t.Errorf("%d places and %d names are remembered", len(shelf.places), len(shelf.names))
	}
}

// Many use, hold and release at once.
func TestConcurrent(t *testing.T) {
	tree, l := newTree(t)
	for i := range 2 * maxOpen {
		l.add(t, fmt.Sprint("s", i))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := fmt.Sprint("s", (g*7+i)%(2*maxOpen))
				file, err := look(t, tree, Name, "snapshots", name, "dir", "file")
				if err != nil {
					t.Error(err)
					return
				}
				tree.Hold(file.Ino)
				b := make([]byte, 8)
				if n, err := tree.ReadAt(t.Context(), file.Ino, b, 0); err != nil || string(b[:n]) != name {
					t.Errorf("%s holds %q, %v", name, b[:n], err)
				}
				tree.Release(file.Ino, 1)
			}
		})
	}
	wg.Wait()
}

func TestClosed(t *testing.T) {
	l := newLibrary()
	l.add(t, "first")
	tree := New(vfstest.NewTree(), l)
	file := find(t, tree, Name, "snapshots", "first", "dir", "file")
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Stat(t.Context(), file.Ino); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("stat: %v", err)
	}
	if open, _ := l.counts(); open != 0 {
		t.Errorf("%d are open", open)
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		p place
		n vfs.Ino
	}{{placeSelf, 1}, {placeRev, maxNumber}, {placeFirst, 1}, {maxPlace, maxNumber}} {
		ino, err := join(tt.p, tt.n)
		p, n := split(ino)
		if err != nil || !isBelow(ino) || p != tt.p || n != tt.n {
			t.Errorf("%v is %x, which is %d, %d, %v", tt, ino, p, n, err)
		}
	}
	if _, err := join(placeFirst, maxNumber+1); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("a number that is too large: %v", err)
	}
}
