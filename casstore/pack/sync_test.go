package pack

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
)

func TestSyncErrorSticks(t *testing.T) {
	for _, op := range []Op{OpSync, OpSyncDir} {
		fail := true
		s := open(t, t.TempDir(), Options{Hook: func(o Op) error {
			if o == op && fail {
				fail = false
				return syscall.EIO
			}
			return nil
		}})
		it := put(t, s, random(1, 10))
		for range 3 {
			if err := s.Sync(); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: %v", op, err)
			}
			it = put(t, s, random(2, 10))
		}
		it.check(t, s)
		if ends := s.Ends(); len(ends) != 0 {
			t.Errorf("%s: ends %v", op, ends)
		}
	}
}

// Nothing torn may lie below an end.
func TestSyncWaitsForWritesBeforeIt(t *testing.T) {
	holdWrite(t, func(t *testing.T, s *Set, g *gate, first <-chan error, second item) {
		err := s.Scan(1, func(l Loc, _ Header) error { return fmt.Errorf("frame %v behind a write", l) })
		if err != nil {
			t.Error(err)
		}
		synced := make(chan error, 1)
		go func() { synced <- s.Sync() }()
		synctest.Wait()
		select {
		case err := <-synced:
			t.Fatalf("Sync did not wait: %v", err)
		default:
		}
		if len(s.Ends()) != 0 {
			t.Errorf("ends %v", s.Ends())
		}
		g.release <- nil
		if err := errors.Join(<-first, <-synced); err != nil {
			t.Error(err)
		}
		if end := s.Ends()[1]; end != second.loc.Off+second.loc.Len {
			t.Errorf("end %d", end)
		}
	})
}

// When the place of a failed write cannot be marked, ends would lie: no Sync succeeds, and a restart goes back.
func TestFailedMarkFailsSync(t *testing.T) {
	holdWrite(t, func(t *testing.T, s *Set, g *gate, first <-chan error, second item) {
		g.n.Store(0)
		g.hold = 1 // the next write, which is the mark
		g.release <- syscall.EIO
		g.release <- syscall.EROFS
		if err := <-first; !errors.Is(err, syscall.EIO) {
			t.Errorf("append: %v", err)
		}
		if err := s.Sync(); !errors.Is(err, syscall.EROFS) {
			t.Errorf("sync: %v", err)
		}
		second.check(t, s)
		if len(s.Ends()) != 0 {
			t.Errorf("ends %v", s.Ends())
		}
	})
}

// However many call Sync while one runs, the next run is for all of them.
func TestSyncsShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs, dirs atomic.Int64
		hold := make(chan struct{})
		s := open(t, t.TempDir(), Options{Hook: func(op Op) error {
			if op == OpSyncDir {
				dirs.Add(1)
			}
			if op == OpSync && syncs.Add(1) == 1 {
				<-hold
			}
			return nil
		}})
		put(t, s, random(1, 10))
		results := make(chan error, 10)
		go func() { results <- s.Sync() }()
		synctest.Wait()
		it := put(t, s, random(2, 10))
		for range 9 {
			go func() { results <- s.Sync() }()
		}
		synctest.Wait()
		close(hold)
		for range 10 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if n := syncs.Load(); n != 2 {
			t.Errorf("%d syncs for 10 calls", n)
		}
		if end := s.Ends()[1]; end != it.loc.Off+it.loc.Len {
			t.Errorf("end %d", end)
		}
		mustSync(t, s)
		if syncs.Load() != 2 || dirs.Load() != 1 {
			t.Errorf("%d syncs, %d of the directory", syncs.Load(), dirs.Load())
		}
	})
}

func TestCloseWaits(t *testing.T) {
	holdWrite(t, func(t *testing.T, s *Set, g *gate, first <-chan error, second item) {
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close did not wait for a write")
		}
		g.release <- nil
		if err := errors.Join(<-first, <-closed); err != nil {
			t.Error(err)
		}
	})
}
