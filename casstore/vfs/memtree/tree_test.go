package memtree_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/memtree"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTreeConforms(t *testing.T) {
	vfstest.Run(t, func(*testing.T) vfs.Tree { return memtree.NewTree() })
}

func TestReadOnlyTreeConforms(t *testing.T) {
	vfstest.RunReadOnly(t, func(_ *testing.T, fill func(vfs.Tree)) vfs.Tree {
		tree := memtree.NewTree()
		fill(tree)
		tree.SetReadOnly(true)
		return tree
	})
}

func TestFullTreeConforms(t *testing.T) {
	vfstest.RunFull(t, func(*testing.T) vfs.Tree { return memtree.NewTree(memtree.WithCapacity(8 << 20)) })
}

func TestSpaceComesBack(t *testing.T) {
	const capacity = 16 << 10
	ctx, tree := t.Context(), memtree.NewTree(memtree.WithCapacity(capacity))
	a, err := tree.Create(ctx, vfs.RootIno, "f", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	free := func(want uint64) {
		t.Helper()
		f, err := tree.StatFS(ctx)
		if err != nil || f.Free*uint64(f.BlockSize) != want || f.Blocks*uint64(f.BlockSize) != capacity {
			t.Errorf("%+v (%v), want %d bytes free", f, err, want)
		}
	}
	write := func(n int, off uint64, want error) {
		t.Helper()
		if err := tree.WriteAt(ctx, a.Ino, make([]byte, n), off, false); !errors.Is(err, want) {
			t.Errorf("write of %d bytes at %d: %v, want %v", n, off, err, want)
		}
	}
	write(capacity+1, 0, vfs.ErrNoSpace)
	write(capacity, 0, nil)
	free(0)
	write(capacity, 0, nil)
	write(1, capacity, vfs.ErrNoSpace)
	if err := tree.Allocate(ctx, a.Ino, vfs.AllocPunchHole, 4096, 4096); err != nil {
		t.Error(err)
	}
	free(4096)
	if err := tree.Allocate(ctx, a.Ino, vfs.AllocKeepSize, 1<<20, 8192); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("allocation of two pages, with one free: %v", err)
	}
	write(1, 1<<30, nil)
	free(0)
	tree.Hold(a.Ino)
	if err := tree.Unlink(ctx, vfs.RootIno, "f"); err != nil {
		t.Error(err)
	}
	free(0)
	tree.Release(a.Ino, 1)
	free(capacity)
}

func TestTimesComeFromTheClock(t *testing.T) {
	now := vfs.Time(100)
	tree := memtree.NewTree(vfstest.WithClock(func() vfs.Time { return now }))
	now = 200
	a, err := tree.Create(t.Context(), vfs.RootIno, "f", vfs.NewNode{})
	if err != nil || a.Atime != 200 || a.Mtime != 200 || a.Ctime != 200 {
		t.Errorf("%+v (%v), want all times 200", a, err)
	}
	if root, err := tree.Stat(t.Context(), vfs.RootIno); err != nil || root.Atime != 100 || root.Mtime != 200 {
		t.Errorf("root %+v (%v), want atime 100 and mtime 200", root, err)
	}
}
