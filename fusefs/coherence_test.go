package fusefs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// describe says what a process sees of each path.
var describe = scenario("describe", func(c *client) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		c.must(err)
		st := c.stat(path)
		n := vfstest.Node{Mode: st.Mode & vfs.ModeMask, Nlink: uint32(st.Nlink), UID: st.Uid, GID: st.Gid}
		n.Mtime = vfs.TimeFromUnix(st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			n.Type = vfs.TypeDir
		case unix.S_IFLNK:
			n.Type = vfs.TypeSymlink
			n.Target, err = os.Readlink(path)
			c.must(err)
		case unix.S_IFREG:
			n.Type = vfs.TypeRegular
			b, err := os.ReadFile(path)
			c.must(err)
			n.Content = sha256.Sum256(b)
			n.Size = uint64(st.Size)
		}
		c.say(line(filepath.Join("/", path), n))
		return nil
	})
	c.must(err)
})

func line(path string, n vfstest.Node) string {
	return fmt.Sprintf("%s type %d mode %o links %d owner %d:%d size %d mtime %d target %q content %x",
		path, n.Type, n.Mode, n.Nlink, n.UID, n.GID, n.Size, n.Mtime, n.Target, n.Content[:4])
}

// compare checks that a process sees what is in the tree.
func (m *mounted) compare(t *testing.T) {
	t.Helper()
	m.settle(t)
	nodes, err := vfstest.Snapshot(context.Background(), m.tree)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for path, n := range nodes {
		n.Content = [sha256.Size]byte{}
		if n.Type == vfs.TypeRegular {
			n.Content = m.hash(t, path)
		}
		if n.Type == vfs.TypeSymlink {
			n.Size = 0
		}
		want = append(want, line(path, n))
	}
	c := m.start(t, 0, "", describe)
	for l := range c.lines {
		got = append(got, l)
	}
	c.wait()
	slices.Sort(want)
	slices.Sort(got)
	for _, l := range got {
		if _, ok := slices.BinarySearch(want, l); !ok {
			t.Errorf("seen:    %s", l)
		}
	}
	for _, l := range want {
		if _, ok := slices.BinarySearch(got, l); !ok {
			t.Errorf("is there: %s", l)
		}
	}
}

// hash reads a file through the tree.
func (m *mounted) hash(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	ctx := context.Background()
	a := vfs.Attr{Ino: vfs.RootIno}
	for _, name := range strings.Split(path, "/")[1:] {
		var err error
		if a, err = m.tree.Lookup(ctx, a.Ino, name); err != nil {
			t.Fatal(err)
		}
	}
	b := make([]byte, a.Size)
	if n, err := m.tree.ReadAt(ctx, a.Ino, b, 0); err != nil || n != len(b) {
		t.Fatalf("%s: read %d of %d bytes, %v", path, n, len(b), err)
	}
	return sha256.Sum256(b)
}

// churn does things at random to few names until it is told to end, and does not mind what fails.
var churn = scenario("churn", func(c *client) {
	seed, err := strconv.ParseUint(c.args[0], 10, 64)
	c.must(err)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, i))
			for {
				select {
				case <-stop:
					return
				default:
					churnPath(rnd)
				}
			}
		})
	}
	c.turn("churning")
	close(stop)
	wg.Wait()
})

// noise returns up to n bytes that are unlike others.
func noise(rnd *rand.Rand, n int) []byte {
	return bytes.Repeat([]byte{byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32())}, rnd.IntN(n/3))
}

func randomPath(rnd *rand.Rand) string {
	return fmt.Sprintf("d%d/n%d", rnd.IntN(3), rnd.IntN(6))
}

func churnPath(rnd *rand.Rand) {
	path, other := randomPath(rnd), randomPath(rnd)
	switch rnd.IntN(14) {
	case 0, 1:
		os.WriteFile(path, noise(rnd, 20_000), 0o644)
	case 2:
		os.ReadFile(path)
	case 3:
		os.Remove(path)
	case 4:
		os.Mkdir(path, 0o755)
	case 5:
		os.Rename(path, other)
	case 6:
		os.Link(path, other)
	case 7:
		os.Symlink(other, path)
	case 8:
		os.Chmod(path, fs.FileMode(rnd.IntN(0o1000)))
	case 9:
		os.Truncate(path, int64(rnd.IntN(10_000)))
	case 10:
		os.ReadDir(filepath.Dir(path))
	case 11:
		unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	case 12:
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			f.WriteAt(noise(rnd, 5_000), int64(rnd.IntN(10_000)))
			f.ReadAt(make([]byte, 100), int64(rnd.IntN(10_000)))
			if rnd.IntN(10) == 0 {
				f.Sync()
			}
			f.Close()
		}
	case 13:
		os.Lstat(path)
	}
}

// churnTree does the same from the other side.
func churnTree(ctx context.Context, tree vfs.Tree, dirs []vfs.Ino, rnd *rand.Rand) {
	name := func() (vfs.Ino, string) { return dirs[rnd.IntN(len(dirs))], fmt.Sprintf("n%d", rnd.IntN(6)) }
	dir, n := name()
	dir2, n2 := name()
	a, err := tree.Lookup(ctx, dir, n)
	switch op := rnd.IntN(8); {
	case err != nil && op < 4:
		tree.Create(ctx, dir, n, vfs.NewNode{Mode: 0o644})
	case err != nil:
		tree.Mkdir(ctx, dir, n, vfs.NewNode{Mode: 0o755})
	case op == 0:
		tree.WriteAt(ctx, a.Ino, noise(rnd, 10_000), uint64(rnd.IntN(10_000)), false)
	case op == 1:
		tree.SetAttr(ctx, a.Ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: uint32(rnd.IntN(0o1000))})
	case op == 2:
		tree.SetAttr(ctx, a.Ino, vfs.AttrSet{Mask: vfs.SetSize, Size: uint64(rnd.IntN(10_000))})
	case op == 3:
		tree.Rename(ctx, dir, n, dir2, n2, 0)
	case op == 4:
		tree.Rename(ctx, dir, n, dir2, n2, vfs.RenameExchange)
	case op == 5:
		tree.Link(ctx, a.Ino, dir2, n2)
	case a.Type == vfs.TypeDir:
		tree.Rmdir(ctx, dir, n)
	default:
		tree.Unlink(ctx, dir, n)
	}
}

// TestCoherence: two processes and somebody behind the mount change the same few names at once. Whenever they stop,
// what a process sees is what is there.
func TestCoherence(t *testing.T) { bothInits(t, coherence) }

func coherence(t *testing.T) {
	seed := vfstest.Seed(t)
	t.Logf("VFSTEST_SEED=%d", seed)
	m := mount(t, nil, Options{})
	f := foreigner{t, m.tree, t.Context()}
	var dirs []vfs.Ino
	for i := range 3 {
		a, err := f.tree.Mkdir(f.ctx, vfs.RootIno, fmt.Sprintf("d%d", i), vfs.NewNode{Mode: 0o755})
		f.must(err)
		dirs = append(dirs, a.Ino)
	}
	m.settle(t)
	rnd := rand.New(rand.NewPCG(seed, 99))
	for round := range uint64(5) {
		a := m.start(t, 0, "", churn, strconv.FormatUint(seed+2*round, 10))
		b := m.start(t, 0, "", churn, strconv.FormatUint(seed+2*round+1, 10))
		a.expect("churning")
		b.expect("churning")
		for range 2000 {
			churnTree(f.ctx, f.tree, dirs, rnd)
		}
		a.tell("end")
		b.tell("end")
		a.wait()
		b.wait()
		m.compare(t)
		if t.Failed() {
			return
		}
	}
}
