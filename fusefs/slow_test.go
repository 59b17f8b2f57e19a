package fusefs

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// slow is a tree in which Fsync, and reads of one file, wait until they are let go, as they do for a disk or a peer.
type slow struct {
	vfs.Tree
	slowRead atomic.Uint64 // the file

	mu          sync.Mutex
	gate        chan struct{} // closed to let go
	waiting     int
	most        int // that ever waited at once
	interrupted int
}

func newSlow(tree vfs.Tree) *slow { return &slow{Tree: tree, gate: make(chan struct{})} }

func (s *slow) wait(ctx context.Context) error {
	vfs.WillBlock(ctx)
	vfs.WillBlock(ctx) // once more does no harm
	s.mu.Lock()
	gate := s.gate
	s.waiting++
	s.most = max(s.most, s.waiting)
	s.mu.Unlock()
	var err error
	select {
	case <-gate:
	case <-ctx.Done():
		err = vfs.ErrInterrupted
	}
	s.mu.Lock()
	s.waiting--
	if err != nil {
		s.interrupted++
	}
	s.mu.Unlock()
	return err
}

func (s *slow) Fsync(ctx context.Context, ino vfs.Ino) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Tree.Fsync(ctx, ino)
}

func (s *slow) ReadAt(ctx context.Context, ino vfs.Ino, p []byte, off uint64) (int, error) {
	if s.slowRead.Load() == uint64(ino) {
		if err := s.wait(ctx); err != nil {
			return 0, err
		}
	}
	return s.Tree.ReadAt(ctx, ino, p, off)
}

// letGo ends all waiting, and lets nobody wait until hold.
func (s *slow) letGo() { close(s.gate) }

// hold makes calls wait again.
func (s *slow) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

// waits returns a function that reports whether n calls wait.
func (s *slow) waits(n int) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.waiting == n
	}
}

func (s *slow) interrupts(n int) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.interrupted == n
	}
}
