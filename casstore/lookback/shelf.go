package lookback

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// shelf keeps the snapshots that somebody looks into: it gives each a place, and has a few of them open.
type shelf struct {
	open func(context.Context, casstore.Snapshot) (Snapshot, error)

	mu     sync.Mutex
	closed bool
	last   place
	places map[place]*volume
	names  map[string]*volume // the youngest of each name
	opened list.List          // of *volume with a tree, the last used first
	idle   list.List          // of *volume that nobody holds, the last asked for first
}

// volume is a snapshot on the shelf. shelf.mu guards its fields.
type volume struct {
	place    place
	snapshot casstore.Snapshot
	holds    uint64
	users    int // calls that use the tree; it is not closed while there are any

	tree   Snapshot      // nil while it is not open
	inOpen *list.Element // while it is
	inIdle *list.Element // while holds is zero
}

func newShelf(open func(context.Context, casstore.Snapshot) (Snapshot, error)) *shelf {
	return &shelf{open: open, last: placeFirst - 1, places: map[place]*volume{}, names: map[string]*volume{}}
}

// place returns where a snapshot is: the same place as before, unless it was forgotten since.
func (s *shelf) place(sn casstore.Snapshot) (place, error) {
	s.mu.Lock()
	if v := s.names[sn.Name]; v != nil && v.snapshot == sn {
		if v.inIdle != nil {
			s.idle.MoveToFront(v.inIdle)
		}
		s.mu.Unlock()
		return v.place, nil
	}
	p, err := s.freeLocked()
	if err != nil {
		s.mu.Unlock()
		return 0, err
	}
	v := &volume{place: p, snapshot: sn}
	v.inIdle = s.idle.PushFront(v)
	s.places[p], s.names[sn.Name] = v, v
	trees := s.forgetLocked()
	s.mu.Unlock()
	_ = closeAll(trees)
	return p, nil
}

// freeLocked returns a place that no snapshot has. One that has become free is not used again for as long as possible.
func (s *shelf) freeLocked() (place, error) {
	if len(s.places) >= int(maxPlace-placeFirst) {
		return 0, fmt.Errorf("%d snapshots are in use: %w", len(s.places), vfs.ErrBusy)
	}
	for {
		if s.last++; s.last > maxPlace {
			s.last = placeFirst
		}
		if s.places[s.last] == nil {
			return s.last, nil
		}
	}
}

// forgetLocked forgets what nobody holds and that was not asked for lately. The trees are to be closed without the lock.
func (s *shelf) forgetLocked() (trees []Snapshot) {
	for e := s.idle.Back(); e != nil && s.idle.Len() > maxIdle; {
		v := e.Value.(*volume)
		e = e.Prev()
		if v.users > 0 {
			continue
		}
		s.idle.Remove(v.inIdle)
		v.inIdle = nil
		delete(s.places, v.place)
		if s.names[v.snapshot.Name] == v {
			delete(s.names, v.snapshot.Name)
		}
		trees = append(trees, s.shutLocked(v)...)
	}
	return trees
}

// shutLocked takes the tree from a volume that no call is using.
func (s *shelf) shutLocked(v *volume) []Snapshot {
	if v.tree == nil {
		return nil
	}
	tree := v.tree
	s.opened.Remove(v.inOpen)
	v.tree, v.inOpen = nil, nil
	return []Snapshot{tree}
}

// use runs a call on the snapshot in a place, which it opens if need be: vfs.ErrStale when none is there.
func (s *shelf) use(ctx context.Context, p place, call func(vfs.Tree) error) error {
	v, tree, err := s.take(ctx, p)
	if err != nil {
		return err
	}
	defer s.put(v)
	return call(tree)
}

func (s *shelf) take(ctx context.Context, p place) (*volume, Snapshot, error) {
	s.mu.Lock()
	v := s.places[p]
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, nil, vfs.ErrClosed
	case v == nil:
		s.mu.Unlock()
		return nil, nil, vfs.ErrStale
	}
	v.users++
	if v.tree != nil {
		s.opened.MoveToFront(v.inOpen)
		tree := v.tree
		s.mu.Unlock()
		return v, tree, nil
	}
	s.mu.Unlock()
	tree, err := s.open(ctx, v.snapshot)
	if err != nil {
		s.put(v)
		return nil, nil, err
	}
	return v, s.keep(v, tree), nil
}

// keep makes tree the one of v, unless somebody else has opened it meanwhile, and returns the one that it has.
func (s *shelf) keep(v *volume, tree Snapshot) Snapshot {
	s.mu.Lock()
	var trees []Snapshot
	if v.tree != nil || s.closed {
		trees = append(trees, tree) // of a shelf that is closed it gives vfs.ErrClosed
		if v.tree != nil {
			tree = v.tree
		}
	} else {
		v.tree, v.inOpen = tree, s.opened.PushFront(v)
	}
	s.mu.Unlock()
	_ = closeAll(trees)
	return tree
}

// put ends a use, and closes what has been open for longest when too many are.
func (s *shelf) put(v *volume) {
	s.mu.Lock()
	v.users--
	var trees []Snapshot
	for e := s.opened.Back(); e != nil && s.opened.Len() > maxOpen; {
		w := e.Value.(*volume)
		e = e.Prev()
		if w.users == 0 {
			trees = append(trees, s.shutLocked(w)...)
		}
	}
	s.mu.Unlock()
	_ = closeAll(trees)
}

// hold notes that somebody holds an inode of a place.
func (s *shelf) hold(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.places[p]
	if v == nil {
		return
	}
	if v.holds++; v.inIdle != nil {
		s.idle.Remove(v.inIdle)
		v.inIdle = nil
	}
}

// release takes n holds back.
func (s *shelf) release(p place, n uint64) {
	s.mu.Lock()
	var trees []Snapshot
	if v := s.places[p]; v != nil && v.holds > 0 {
		if v.holds -= min(n, v.holds); v.holds == 0 {
			v.inIdle = s.idle.PushFront(v)
			if v.users == 0 {
				trees = s.shutLocked(v)
			}
			trees = append(trees, s.forgetLocked()...)
		}
	}
	s.mu.Unlock()
	_ = closeAll(trees)
}

// close closes all that is open, and waits for the calls that use it. Later calls give vfs.ErrClosed.
func (s *shelf) close() error {
	s.mu.Lock()
	s.closed = true
	var trees []Snapshot
	for _, v := range s.places {
		trees = append(trees, s.shutLocked(v)...)
	}
	s.mu.Unlock()
	return closeAll(trees)
}

// closeAll closes snapshots. Of those that are closed in passing the error has no meaning to anybody: they were only read.
func closeAll(trees []Snapshot) error {
	var errs []error
	for _, t := range trees {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
