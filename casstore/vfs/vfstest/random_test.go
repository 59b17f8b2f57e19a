package vfstest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func TestTreeAtRandom(t *testing.T) {
	t.Run("seed of the day", func(t *testing.T) {
		vfstest.Random(t, vfstest.Seed(t), 3000, vfstest.NewTree(), vfstest.NewTree(), nil)
	})
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			vfstest.Random(t, seed, 1500, vfstest.NewTree(), vfstest.NewTree(), func(step int, tree vfs.Tree) vfs.Tree {
				if step%100 == 0 {
					if _, err := tree.Commit(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				return tree
			})
		})
	}
}

// broken is a tree with one fault, for Random to find.
type broken struct {
	*vfstest.Tree
	fault string
}

func (b broken) Rename(
	ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags vfs.RenameFlags,
) error {
	if b.fault == "noreplace replaces" {
		flags &^= vfs.RenameNoReplace
	}
	if _, err := b.Tree.Lookup(ctx, newDir, newName); b.fault == "no rename over" && err == nil && flags == 0 {
		return vfs.ErrExist
	}
	return b.Tree.Rename(ctx, dir, name, newDir, newName, flags)
}

func (b broken) WriteAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64, killPriv bool) error {
	if b.fault == "write drops a byte" && len(p) > 4096 {
		p = append(slices.Clone(p[:len(p)-1]), 0)
	}
	return b.Tree.WriteAt(ctx, ino, p, off, killPriv && b.fault != "privileges stay")
}

func (b broken) Seek(ctx context.Context, ino vfs.Ino, off uint64, whence vfs.Whence) (uint64, error) {
	at, err := b.Tree.Seek(ctx, ino, off, whence)
	if b.fault == "seek overshoots" && err == nil && whence == vfs.SeekData && at == off {
		a, err := b.Tree.Stat(ctx, ino)
		return min(at+1, a.Size), err
	}
	return at, err
}

func (b broken) Hold(ino vfs.Ino) {
	if b.fault != "hold does not" {
		b.Tree.Hold(ino)
	}
}

func (b broken) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	err := b.Tree.Unlink(ctx, dir, name)
	if b.fault == "unknown error" && err != nil {
		return errors.New("something")
	}
	return err
}

func (b broken) ReadDir(ctx context.Context, dir vfs.Ino, after vfs.Offset, yield func(vfs.Dirent) bool) error {
	return b.Tree.ReadDir(ctx, dir, after, func(e vfs.Dirent) bool {
		return b.fault == "readdir hides e" && e.Name == "e" || yield(e)
	})
}

// caught stands in for a test that is to fail.
type caught struct {
	testing.TB
	report string
}

func (c *caught) Fatalf(format string, args ...any) {
	c.report = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestRandomFindsFaults(t *testing.T) {
	for _, fault := range []string{
		"", "noreplace replaces", "no rename over", "write drops a byte", "privileges stay", "seek overshoots",
		"hold does not", "unknown error", "readdir hides e",
	} {
		t.Run(fault, func(t *testing.T) {
			c := &caught{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				vfstest.Random(c, 42, 1000, broken{vfstest.NewTree(), fault}, vfstest.NewTree(), nil)
			}()
			<-done
			switch {
			case fault == "" && c.report != "":
				t.Error(c.report)
			case fault != "" && !strings.Contains(c.report, "VFSTEST_SEED=42 go test"):
				t.Errorf("not found; the report is %q", c.report)
			}
		})
	}
}

// session is a tree whose holds end with it, as those of a store that is closed.
type session struct {
	*vfstest.Tree
	held map[vfs.Ino]uint64
}

func (s *session) Hold(ino vfs.Ino) {
	s.Tree.Hold(ino)
	if _, err := s.Stat(context.Background(), ino); err == nil {
		s.held[ino]++
	}
}

func (s *session) Release(ino vfs.Ino, n uint64) {
	s.Tree.Release(ino, n)
	s.held[ino] -= min(n, s.held[ino])
}

func (s *session) reopen() *session {
	for ino, n := range s.held {
		s.Tree.Release(ino, n)
	}
	return &session{s.Tree, make(map[vfs.Ino]uint64)}
}

func TestRandomGoesOnWithAnotherTree(t *testing.T) {
	tree := &session{vfstest.NewTree(), make(map[vfs.Ino]uint64)}
	vfstest.Random(t, vfstest.Seed(t), 2000, tree, vfstest.NewTree(), func(step int, tree vfs.Tree) vfs.Tree {
		if step%300 == 299 {
			return tree.(*session).reopen()
		}
		return tree
	})
}
