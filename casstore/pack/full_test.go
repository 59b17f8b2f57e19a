package pack

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// smallDisk mounts a tmpfs of some size. It needs root.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("carrel-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatalf("mount a tmpfs on %s (as root?): %v", dir, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fill appends from some goroutines at once until the disk is full, and returns what was appended.
func fill(t *testing.T, s *Set, seed uint64) []item {
	t.Helper()
	var mu sync.Mutex
	var items []item
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Go(func() {
			for i := uint64(0); ; i++ {
				it, err := tryPut(s, random(seed<<48|w<<32|i, 20_000+int(w)*1000))
				if err != nil {
					if !errors.Is(err, syscall.ENOSPC) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				items = append(items, it)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return items
}

// A full disk is an error of Append. It damages nothing, all of the disk is used, and removing a pack makes room.
func TestFullDisk(t *testing.T) {
	const disk = 4 << 20
	for _, prealloc := range []int64{0, 100_000, -1} {
		t.Run(fmt.Sprintf("prealloc %d", prealloc), func(t *testing.T) {
			dir := smallDisk(t, disk)
			opts := Options{PackSize: 1 << 20, Prealloc: prealloc}
			s := open(t, dir, opts)
			items := fill(t, s, 1)
			if stored := len(items) * 20_000; stored < disk*3/4 {
				t.Errorf("full after %d bytes of %d", stored, disk)
			}
			checkAll(t, s, items)
			mustSync(t, s)
			for _, info := range s.Packs() {
				if st, err := os.Stat(s.path(info.ID)); err != nil || st.Size() != info.Size {
					t.Errorf("pack %d: a file of %d bytes for %d, %v", info.ID, st.Size(), info.Size, err)
				}
			}

			if err := s.Remove(1); err != nil {
				t.Fatal(err)
			}
			items = without(items, 1)
			more := fill(t, s, 2)
			if len(more)*20_000 < 1<<20/2 {
				t.Errorf("%d chunks fit where a pack was", len(more))
			}
			items = append(items, more...)
			checkAll(t, s, items)
			mustSync(t, s)
			ends := s.Ends()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			s = reopen(t, dir, opts, ends)
			checkAll(t, s, items)
			fill(t, s, 3)
			checkScans(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// without returns the items that are not in a pack.
func without(items []item, pack uint32) (rest []item) {
	for _, it := range items {
		if it.loc.Pack != pack {
			rest = append(rest, it)
		}
	}
	return rest
}

func checkScans(t *testing.T, s *Set) {
	t.Helper()
	for _, info := range s.Packs() {
		err := s.Scan(info.ID, func(l Loc, h Header) error {
			_, err := s.ReadChunk(nil, l, h.ID)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A chunk that does not fit does not keep a smaller one out.
func TestFullDiskFromTheStart(t *testing.T) {
	dir := smallDisk(t, 64<<10)
	s := open(t, dir, Options{})
	if _, err := tryPut(s, random(1, chunk.MaxSize)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	checkAll(t, s, []item{put(t, s, random(2, 1000))})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
