package image

import (
	"context"
	"fmt"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// slots are the images that this process knows, by the names of their directories.
type slots struct {
	mu   sync.Mutex
	byID map[string]*slot
}

// slot is the place of an image.
type slot struct {
	uses  int
	there bool          // all of it is on the disk
	busy  chan struct{} // closed when whoever changes it has done so; nil when nobody does
}

// enter begins a use of an image. When it is mine, nobody knows whether it is there: the caller finds out, or makes it,
// and calls settle. It waits for whoever is doing so now, and ends with ErrInterrupted when ctx ends first.
func (s *slots) enter(ctx context.Context, name string) (mine bool, err error) {
	for {
		busy, mine := s.tryEnter(name)
		if busy == nil {
			return mine, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return false, fmt.Errorf("unpack an image: %w", vfs.ErrInterrupted)
		}
	}
}

func (s *slots) tryEnter(name string) (busy <-chan struct{}, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.slotLocked(name)
	if x.busy != nil {
		return x.busy, false
	}
	x.uses++
	if !x.there {
		x.busy = make(chan struct{})
	}
	return nil, !x.there
}

// slotLocked returns the slot of a name, making it when there is none.
func (s *slots) slotLocked(name string) *slot {
	if s.byID == nil {
		s.byID = map[string]*slot{}
	}
	x := s.byID[name]
	if x == nil {
		x = &slot{}
		s.byID[name] = x
	}
	return x
}

// settle says whether the image is there now. When it is not, the use has ended.
func (s *slots) settle(name string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byID[name]
	close(x.busy)
	x.busy, x.there = nil, there
	if !there {
		delete(s.byID, name)
	}
}

// hold begins one more use of an image that is there.
func (s *slots) hold(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byID[name]
	if x == nil || !x.there {
		return false
	}
	x.uses++
	return true
}

// leave ends a use.
func (s *slots) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[name].uses--
}

// shut keeps everybody from an image that nobody uses, until settle. It reports false for one that is used.
func (s *slots) shut(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.slotLocked(name)
	if x.uses > 0 || x.busy != nil {
		return false
	}
	x.busy, x.there = make(chan struct{}), false
	return true
}

// used reports whether somebody uses an image, or changes it.
func (s *slots) used(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byID[name]
	return x != nil && (x.uses > 0 || x.busy != nil)
}
