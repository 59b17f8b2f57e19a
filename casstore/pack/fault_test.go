package pack

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
)

// failNth returns a hook that fails the n-th operation, counted from one, with err.
func failNth(n int64, err error) (hook func(Op) error, count *atomic.Int64) {
	count = new(atomic.Int64)
	return func(op Op) error {
		if count.Add(1) == n {
			return fmt.Errorf("%s: %w", op, err)
		}
		return nil
	}, count
}

// Whatever operation fails, and however: what was appended is there, what was synced survives, and the Set goes on.
func TestEveryOperationFails(t *testing.T) {
	disk := smallDisk(t, 64<<20) // in memory: the syncs of all these runs would take most of a minute
	for _, failure := range []error{syscall.EIO, syscall.ENOSPC, syscall.EOPNOTSUPP} {
		for _, prealloc := range []int64{2000, -1} {
			for n := int64(1); ; n++ {
				hook, count := failNth(n, failure)
				run := fmt.Sprintf("%v, prealloc %d, operation %d", failure, prealloc, n)
				failOne(t, run, filepath.Join(disk, run), Options{PackSize: 4000, Prealloc: prealloc, Hook: hook})
				if count.Load() < n {
					break
				}
			}
		}
	}
}

func failOne(t *testing.T, name, dir string, opts Options) {
	t.Helper()
	s := open(t, dir, opts)
	var items, synced []item
	var ends map[uint32]uint32
	failures := 0
	for i := range uint64(12) {
		it, err := tryPut(s, random(i, 1000))
		if err == nil {
			items = append(items, it)
		} else {
			failures++
		}
		if i%3 != 2 {
			continue
		}
		if err := s.Sync(); err == nil {
			synced, ends = slices.Clone(items), s.Ends()
		} else {
			failures++
		}
	}
	if failures > 1 && s.syncErr == nil {
		t.Errorf("%s: %d failures", name, failures)
	}
	s.opts.Hook = nil
	checkAll(t, s, items)
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	opts.Hook = nil
	s = reopen(t, dir, opts, ends)
	checkAll(t, s, synced)
	put(t, s, random(99, 10)).check(t, s)
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if t.Failed() {
		t.Fatal(name)
	}
}

// gate lets a test hold the n-th write of frames, and fail it.
type gate struct {
	n       atomic.Int64
	hold    int64
	release chan error
}

func (g *gate) hook(op Op) error {
	if op == OpWrite && g.n.Add(1) == g.hold {
		return <-g.release
	}
	return nil
}

// holdWrite runs f in a bubble with a Set in which the write of a first chunk is held, while a second one behind it has
// been written.
func holdWrite(t *testing.T, f func(t *testing.T, s *Set, g *gate, first <-chan error, second item)) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{hold: 2, release: make(chan error)} // write 1 is the file header
		s := open(t, t.TempDir(), Options{Hook: g.hook})
		first := make(chan error, 1)
		go func() {
			_, err := tryPut(s, random(1, 1000))
			first <- err
		}()
		synctest.Wait()
		f(t, s, g, first, put(t, s, random(2, 1000)))
	})
}

// A failed write in the middle leaves a dead frame, in which even the file's size is right.
func TestFailedWriteInTheMiddle(t *testing.T) {
	holdWrite(t, func(t *testing.T, s *Set, g *gate, first <-chan error, second item) {
		g.release <- syscall.EIO
		if err := <-first; !errors.Is(err, syscall.EIO) {
			t.Errorf("append: %v", err)
		}
		third := put(t, s, random(3, 10))
		if third.loc.Pack != 2 {
			t.Errorf("after an I/O error appended at %v", third.loc)
		}
		checkAll(t, s, []item{second, third})
		mustSync(t, s)
		checkAll(t, reopen(t, crash(t, s.dir), Options{}, s.Ends()), []item{second, third})
		dead := Loc{1, fileHeader, frameHeader + 1000}
		if _, _, _, err := s.Read(nil, dead, chunk.ID{}); !errors.As(err, new(*CorruptError)) {
			t.Errorf("read of a dead frame: %v", err)
		}
	})
}

// Of two writes that are under way the second fails after the first did: the place of the first, marked dead, is now
// the last, and the file must reach to its end. A Sync that was waiting for both takes no end behind that.
func TestFailedWritesInTurn(t *testing.T) {
	for _, firstFails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			release := map[int64]chan error{3: make(chan error), 4: make(chan error)}
			s := open(t, t.TempDir(), Options{Hook: func(op Op) error {
				if op != OpWrite {
					return nil
				}
				if held := release[n.Add(1)]; held != nil {
					return <-held
				}
				return nil
			}})
			items := []item{put(t, s, random(1, 10))} // writes 1 and 2
			results := make(chan item, 2)
			for i := range uint64(2) {
				go func() {
					it, err := tryPut(s, random(2+i, 1000))
					if err != nil {
						it = item{}
					}
					results <- it
				}()
				synctest.Wait()
			}
			synced := make(chan error, 1)
			go func() { synced <- s.Sync() }()
			synctest.Wait()
			var failure error
			if firstFails {
				failure = syscall.ENOSPC
			}
			release[3] <- failure
			if it := <-results; !firstFails {
				items = append(items, it)
			}
			release[4] <- syscall.ENOSPC
			<-results
			if err := <-synced; err != nil {
				t.Error(err)
			}
			if end := s.Ends()[1]; end != fileHeader+2*frameHeader+10+1000 {
				t.Errorf("end %d", end)
			}
			checkAll(t, s, items)
			checkAll(t, reopen(t, crash(t, s.dir), Options{}, s.Ends()), items)
		})
	}
}

// A full disk that had promised space is worked on without reserving; the pack goes on.
func TestFullDiskInTheMiddle(t *testing.T) {
	holdWrite(t, func(t *testing.T, s *Set, g *gate, first <-chan error, second item) {
		g.release <- syscall.ENOSPC
		if err := <-first; !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("append: %v", err)
		}
		third := put(t, s, random(3, 10))
		if third.loc.Pack != 1 || third.loc.Off != second.loc.Off+second.loc.Len {
			t.Errorf("next appended at %v", third.loc)
		}
		checkAll(t, s, []item{second, third})
		mustSync(t, s)
		checkAll(t, reopen(t, crash(t, s.dir), Options{}, s.Ends()), []item{second, third})
	})
}

// An append that takes the end itself waits for writes that were begun when space could be reserved.
func TestAppendAloneWaits(t *testing.T) {
	holdWrite(t, func(t *testing.T, s *Set, g *gate, first <-chan error, second item) {
		s.mu.Lock()
		s.noAlloc = true
		s.mu.Unlock()
		third := make(chan item, 1)
		go func() {
			it, _ := tryPut(s, random(3, 10))
			third <- it
		}()
		synctest.Wait()
		if len(third) != 0 {
			t.Error("did not wait")
		}
		g.release <- syscall.EIO // and the pack is given up meanwhile
		<-first
		it := <-third
		if it.loc.Pack != 2 {
			t.Errorf("appended at %v", it.loc)
		}
		checkAll(t, s, []item{second, it})
	})
}

// The last frame leaves nothing when it fails, and the next takes its place unless the pack is given up.
func TestFailedWriteAtTheEnd(t *testing.T) {
	for failure, pack := range map[error]uint32{syscall.ENOSPC: 1, syscall.EDQUOT: 1, syscall.EIO: 2} {
		for _, prealloc := range []int64{0, -1} {
			writes := 0
			s := open(t, t.TempDir(), Options{Prealloc: prealloc, Hook: func(op Op) error {
				if op == OpWrite {
					if writes++; writes == 3 {
						return failure
					}
				}
				return nil
			}})
			first := put(t, s, random(1, 100))
			if _, err := tryPut(s, random(2, 100)); !errors.Is(err, failure) {
				t.Errorf("%v: append: %v", failure, err)
			}
			third := put(t, s, random(3, 100))
			if third.loc.Pack != pack || pack == 1 && third.loc.Off != first.loc.Off+first.loc.Len {
				t.Errorf("%v: next appended at %v", failure, third.loc)
			}
			checkAll(t, s, []item{first, third})
			mustSync(t, s)
		}
	}
}

func TestOperationsAreNamed(t *testing.T) {
	seen := map[Op]int{}
	dir := t.TempDir()
	hook := func(op Op) error {
		seen[op]++
		return nil
	}
	s := open(t, dir, Options{Hook: hook})
	it := put(t, s, random(1, 10))
	it.check(t, s)
	mustSync(t, s)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(1); err != nil {
		t.Fatal(err)
	}
	want := map[Op]int{
		OpCreate: 1, OpAllocate: 1, OpWrite: 2, OpRead: 1, OpSync: 1, OpSyncDir: 1, OpTruncate: 1, OpRemove: 1,
	}
	if !maps.Equal(seen, want) {
		t.Errorf("operations %v, want %v", seen, want)
	}
}

// A disk that has less than the step, but enough for the frame, takes the frame.
func TestLittleSpaceIsUsed(t *testing.T) {
	n := 0
	s := open(t, t.TempDir(), Options{Hook: func(op Op) error {
		if op == OpAllocate {
			if n++; n == 1 {
				return unix.ENOSPC
			}
		}
		return nil
	}})
	it := put(t, s, random(1, 10))
	if n != 2 || s.active.alloc != int64(it.loc.Off+it.loc.Len) {
		t.Errorf("%d reservations, up to %d", n, s.active.alloc)
	}
	checkAll(t, s, []item{it})
}

// A disk that cannot reserve space is used all the same.
func TestDiskThatCannotReserve(t *testing.T) {
	for _, err := range []error{syscall.EOPNOTSUPP, syscall.ENOSYS} {
		s := open(t, t.TempDir(), Options{Hook: func(op Op) error {
			if op == OpAllocate {
				return err
			}
			return nil
		}})
		checkAll(t, s, []item{put(t, s, random(1, 10)), put(t, s, random(2, 10))})
	}
}

// A header that cannot be written leaves no pack behind.
func TestFailedBegin(t *testing.T) {
	s := open(t, t.TempDir(), Options{Hook: func(op Op) error {
		if op == OpWrite {
			return syscall.ENOSPC
		}
		return nil
	}})
	if _, err := tryPut(s, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Nor is a number used again of which it is not sure that its file is gone.
func TestFailedBeginOfStuckFile(t *testing.T) {
	var s *Set
	fail := true
	s = open(t, t.TempDir(), Options{Hook: func(op Op) error {
		if op != OpWrite || !fail {
			return nil
		}
		fail = false
		// A directory with something in it is a file that cannot be removed.
		return errors.Join(syscall.EIO, os.Remove(s.path(1)), os.MkdirAll(s.path(1)+"/x", 0o700))
	}})
	if _, err := tryPut(s, nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("append: %v", err)
	}
	if it := put(t, s, nil); it.loc.Pack != 2 {
		t.Errorf("appended at %v", it.loc)
	}
}

// Errors of the disk come back as they are, and are not taken for corruption.
func TestErrorsPass(t *testing.T) {
	var failing Op
	hook := func(op Op) error {
		if op == failing {
			return syscall.EIO
		}
		return nil
	}
	dir := t.TempDir()
	s := open(t, dir, Options{Hook: hook})
	it := put(t, s, random(1, 10))
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	put(t, s, random(2, 10))
	mustSync(t, s)
	ends := s.Ends()
	cases := []struct {
		name string
		op   Op
		call func() error
	}{
		{"read", OpRead, func() error { _, err := s.ReadChunk(nil, it.loc, it.id); return err }},
		{"scan", OpRead, func() error { return s.Scan(1, nil) }},
		{"remove", OpRemove, func() error { return s.Remove(1) }},
		{"cut", OpTruncate, func() error { return open(t, dir, Options{Hook: hook}).TruncateTo(ends) }},
		{"cut and remove", OpRemove, func() error { return open(t, dir, Options{Hook: hook}).TruncateTo(nil) }},
	}
	for _, c := range cases {
		failing = c.op
		if err := c.call(); !errors.Is(err, syscall.EIO) || errors.Is(err, chunk.ErrCorrupt) {
			t.Errorf("%s: %v", c.name, err)
		}
		failing = ""
	}
	it.check(t, s)
}

// A directory in a pack's place is the disk's error too, for those who open and those who read.
func TestPackIsDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/"+name(1), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, Options{})
	if err := s.Scan(1, nil); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("scan: %v", err)
	}
	if _, err := s.ReadChunk(nil, Loc{1, fileHeader, frameHeader}, chunk.ID{}); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("read: %v", err)
	}
	if err := s.TruncateTo(map[uint32]uint32{1: fileHeader}); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("truncate: %v", err)
	}
}

// The kernel is told to write before a Sync asks for it.
func TestWritebackStartsEarly(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	for i := range uint64(writebackStep/chunk.MaxSize + 1) {
		put(t, s, random(i, chunk.MaxSize))
	}
	if s.active.flushed < writebackStep {
		t.Errorf("started up to %d", s.active.flushed)
	}
}
