package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
	"golang.org/x/sys/unix"
)

// Names that all processes fight for: few, so that they meet.
var (
	foughtDirs  = []string{"a", "b", "c"}
	foughtNames = []string{"1", "2", "3", "4", "5", "6"}
)

// TestSameNames has processes of many threads create, link, rename and remove the same few names, in a mount. Each gets
// only errors that say that somebody else was there before, and in the end all link counts are right.
func TestSameNames(t *testing.T) {
	const processes = 4
	d := serve(t, tempDir(t), tempDir(t))
	seed := vfstest.Seed(t)
	t.Logf("VFSTEST_SEED=%d", seed)
	seconds := fmt.Sprint(number(t, "CARREL_SECONDS", 5))
	var fighters []*child
	for i := range processes {
		fighters = append(fighters, d.start("", fighter, fmt.Sprint(seed+uint64(i)), seconds))
	}
	total := 0
	for _, f := range fighters {
		n, err := strconv.Atoi(f.finish())
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	t.Logf("%d operations by %d processes of %d threads", total, processes, fightThreads)
	d.run("", linkCounter)
	d.verify().run("", linkCounter)
}

const fightThreads = 50

// fighter fights by many threads for some seconds, and says how many operations that were.
var fighter = worker("fight", func(args []string) error {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var count atomic.Int64
	results := make(chan error)
	for i := range fightThreads {
		go func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			var err error
			for err == nil && time.Now().Before(end) {
				err = fight(r)
				count.Add(1)
			}
			results <- err
		}()
	}
	for range fightThreads {
		err = errors.Join(err, <-results)
	}
	fmt.Print(count.Load())
	return err
})

// fight does one operation on names at random.
func fight(r *rand.Rand) error {
	path := func() string {
		return foughtDirs[r.IntN(len(foughtDirs))] + "/" + foughtNames[r.IntN(len(foughtNames))]
	}
	a, b := path(), path()
	var op string
	var err error
	switch r.IntN(10) {
	case 0, 1:
		op, err = "create", createAndWrite(a)
	case 2, 3:
		op, err = "link", unix.Link(a, b)
	case 4:
		op, err = "unlink", unix.Unlink(a)
	case 5, 6:
		op, err = "rename", unix.Rename(a, b)
	case 7:
		op, err = "mkdir", unix.Mkdir(a, 0o755)
	case 8:
		op, err = "rmdir", unix.Rmdir(a)
	case 9:
		if err = unix.Mkdir(foughtDirs[r.IntN(len(foughtDirs))], 0o755); errors.Is(err, unix.EEXIST) {
			op = "stat"
			var st unix.Stat_t
			err = unix.Lstat(a, &st)
		}
	}
	for _, expected := range []error{
		nil, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.EISDIR, unix.ENOTEMPTY, unix.EPERM, unix.EINVAL,
	} {
		if errors.Is(err, expected) {
			return nil
		}
	}
	return fmt.Errorf("%s %s %s: %w", op, a, b, err)
}

func createAndWrite(path string) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(path))
	return errors.Join(err, unix.Close(fd))
}

// linkCounter compares the link counts of all nodes with the names that lead to them, as a process sees them.
var linkCounter = worker("count-links", func([]string) error {
	names, links := make(map[uint64]uint64), make(map[uint64]uint64)
	var walk func(dir string) error
	walk = func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		subdirs := uint64(0)
		for _, e := range entries {
			path := dir + "/" + e.Name()
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				return err
			}
			if e.IsDir() {
				subdirs++
				if err := walk(path); err != nil {
					return err
				}
				continue
			}
			names[st.Ino]++
			links[st.Ino] = st.Nlink
		}
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil {
			return err
		}
		if st.Nlink != 2+subdirs {
			return fmt.Errorf("%s has %d links and %d subdirectories", dir, st.Nlink, subdirs)
		}
		return nil
	}
	if err := walk("."); err != nil {
		return err
	}
	for ino, n := range links {
		if names[ino] != n {
			return fmt.Errorf("inode %d has %d links and %d names", ino, n, names[ino])
		}
	}
	return nil
})

// TestSameNamesInProcess is the same fight in one process, on the tree itself, for the race detector, with commits and
// syncs between.
func TestSameNamesInProcess(t *testing.T) {
	s, w, err := openStore(tempDir(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	seed := vfstest.Seed(t)
	t.Logf("VFSTEST_SEED=%d", seed)
	dirs := []vfs.Ino{vfs.RootIno}
	for _, name := range foughtDirs {
		a, err := w.Mkdir(t.Context(), vfs.RootIno, name, vfs.NewNode{Mode: 0o755})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, a.Ino)
	}
	var wg sync.WaitGroup
	for i := range 100 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			for range 300 {
				if err := fightTree(t.Context(), w, r, dirs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := vfstest.Audit(t.Context(), w); err != nil {
		t.Error(err)
	}
	if err := errors.Join(w.Close()); err != nil {
		t.Error(err)
	}
	if what := checkText(s); what != "" {
		t.Error(what)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// fightTree does one operation on a tree at random.
func fightTree(ctx context.Context, w vfs.Tree, r *rand.Rand, dirs []vfs.Ino) error {
	dir := func() vfs.Ino { return dirs[r.IntN(len(dirs))] }
	name := func() string { return foughtNames[r.IntN(len(foughtNames))] }
	d := dir()
	var err error
	op := r.IntN(10)
	switch op {
	case 0:
		_, err = w.Create(ctx, d, name(), vfs.NewNode{Mode: 0o644})
	case 1, 2:
		var a vfs.Attr
		if a, err = w.Lookup(ctx, d, name()); err != nil {
			break
		}
		w.Hold(a.Ino)
		if _, err = w.Link(ctx, a.Ino, dir(), name()); err == nil && a.Type == vfs.TypeRegular {
			err = w.WriteAt(ctx, a.Ino, make([]byte, 5000), uint64(r.IntN(50_000)), false)
		}
		w.Release(a.Ino, 1)
	case 3:
		err = w.Unlink(ctx, d, name())
	case 4:
		err = w.Rmdir(ctx, d, name())
	case 5, 6:
		err = w.Rename(ctx, d, name(), dir(), name(), 0)
	case 7:
		err = w.Rename(ctx, d, name(), dir(), name(), vfs.RenameExchange)
	case 8:
		_, err = w.Mkdir(ctx, d, name(), vfs.NewNode{Mode: 0o755})
	case 9:
		if r.IntN(10) == 0 {
			err = w.Fsync(ctx, d)
		} else {
			err = w.ReadDir(ctx, d, 0, func(vfs.Dirent) bool { return true })
		}
	}
	for _, expected := range []error{
		nil, vfs.ErrExist, vfs.ErrNotExist, vfs.ErrNotDir, vfs.ErrIsDir, vfs.ErrNotEmpty, vfs.ErrNotPermitted,
		vfs.ErrInvalid, vfs.ErrStale,
	} {
		if errors.Is(err, expected) {
			return nil
		}
	}
	return fmt.Errorf("operation %d: %w", op, err)
}
