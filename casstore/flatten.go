package casstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// flattener makes few layers of many, so that a fork of a fork of a fork is read as fast as any, however often that was done.
// It puts what neighbouring layers show into one, under the number of a workspace that nobody can open:
//
//	fork   own │ o1 │ o2 │ … │ o8 │ o9 │ o10
//	       own │          L       │ o9 │ o10     L has what o1 to o8 show over o9, whiteouts too
//
//	copy     L's records are written, some in each revision, marked as those of a load
//	publish  one revision has every fork with these layers look into L, and takes the mark away
//	remove   what of the run was made like this, and nobody looks into any more
//
// Nothing that anybody can see changes. Of all runs that are long enough it takes the one with the fewest records, so layers
// grow like those of a log-structured store: a record is copied as many times as the tree is ten times as large as a change,
// about, and the layers that are as large as the tree are left alone until as much has changed above them.
//
// A crash leaves records that are marked, which are removed when the store is opened, or that nobody looks into, which the next
// collection removes.
//
// L shows only what revisions show that its forks began with, and does not change. So nothing need be kept for it that was
// replaced later, as it is for a workspace at a revision. Layers that are old and that nothing else needs are copied for that.
type flattener struct {
	store *Store
	over  int     // how many layers a fork may have
	age   vfs.Rev // how old a layer becomes before it is copied
	kick  chan struct{}
	ctx   context.Context
	end   context.CancelFunc
	wg    sync.WaitGroup

	turn   turn              // of the one merge that runs, and of those for whom layers must stay; guards what follows
	counts map[origin]uint64 // how many records layers have
	copied uint64            // records
}

func newFlattener(s *Store) *flattener {
	f := &flattener{
		store: s, over: defaulted(s.opt.flattenOver, flattenOver), age: flattenAge, kick: make(chan struct{}, 1),
		turn: newTurn(), counts: make(map[origin]uint64),
	}
	f.ctx, f.end = context.WithCancel(context.Background())
	f.wg.Add(1)
	go f.run()
	return f
}

func (f *flattener) run() {
	defer f.wg.Done()
	for {
		select {
		case <-f.kick:
			if err := f.all(f.ctx, f.rest); err != nil && f.ctx.Err() == nil {
				f.store.log.Warn("layers of forks not merged", "err", err)
			}
		case <-f.ctx.Done():
			return
		}
	}
}

// hint has it look for something to do.
func (f *flattener) hint() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

func (f *flattener) close() {
	f.end()
	f.wg.Wait()
}

// rest leaves the disk to others after something that has taken a time.
func (f *flattener) rest(took time.Duration) {
	t := time.NewTimer(flattenRest * took)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
	}
}

// all merges until nothing is left to do. After each revision it calls rest, unless that is nil.
func (f *flattener) all(ctx context.Context, rest func(time.Duration)) error {
	for {
		again, err := f.once(ctx, rest)
		if err != nil || !again {
			return err
		}
	}
}

// once makes one layer. It reports whether there may be more to do.
func (f *flattener) once(ctx context.Context, rest func(time.Duration)) (again bool, err error) {
	if err := f.turn.take(ctx); err != nil {
		return false, err
	}
	defer f.turn.give()
	if ctx.Err() != nil {
		return false, vfs.ErrInterrupted
	}
	if len(f.counts) > 64*maxOrigins {
		clear(f.counts)
	}
	m, err := f.choose(ctx)
	if err != nil || m == nil {
		return false, err
	}
	if !m.hold() {
		return true, nil // it is no longer a fork's
	}
	err = m.make(ctx, rest)
	f.copied += m.copied
	m.letGo()
	if err == nil {
		err = m.tidy(ctx)
	} else if f.ctx.Err() == nil { // else it is removed when the store is opened
		err = errors.Join(err, f.store.dropLoad(context.WithoutCancel(ctx), m.layer))
	}
	if errors.Is(err, errNoFork) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("merge layers: %w", err)
	}
	return true, nil
}

// choose returns what is to be merged, or nil.
func (f *flattener) choose(ctx context.Context) (*layerMerge, error) {
	layers := f.longest()
	n, i := 1, -1
	var err error
	if len(layers) > f.over {
		n = len(layers) - max(1, f.over*2/3) + 1
		i, err = f.cheapest(ctx, layers, n)
	} else if layers, i, err = f.oldest(ctx); i < 0 {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return &layerMerge{store: f.store, run: layers[i : i+n], below: layers[i+n:]}, nil
}

// longest is the longest list of layers.
func (f *flattener) longest() (layers []origin) {
	f.store.forks.Range(func(_, rec any) bool {
		if l := rec.(forkRecord).layers; len(l) > len(layers) {
			layers = l
		}
		return true
	})
	return layers
}

// cheapest is where the run of n layers begins that has the fewest records.
func (f *flattener) cheapest(ctx context.Context, layers []origin, n int) (best int, err error) {
	least, sum := uint64(0), uint64(0)
	for i, o := range layers {
		count, err := f.count(ctx, o)
		if err != nil {
			return 0, err
		}
		sum += count
		if i >= n {
			sum -= f.counts[layers[i-n]]
		}
		if first := i - n + 1; first == 0 || first > 0 && sum < least {
			best, least = first, sum
		}
	}
	return best, nil
}

// count is how many records a layer has itself, or flattenCount if that is less.
func (f *flattener) count(ctx context.Context, o origin) (n uint64, err error) {
	if n, known := f.counts[o]; known {
		return n, nil
	}
	r := f.store.readerAt(o.rev)
	defer r.Close()
	for _, kind := range inheritedKinds {
		if err == nil {
			err = r.scanOwn(keyOfNode(kind, o.ws, 0)[:9], func(*badger.Item) (bool, error) {
				n++
				return n < flattenCount && ctx.Err() == nil, nil
			})
		}
	}
	if err == nil && ctx.Err() != nil {
		err = vfs.ErrInterrupted
	}
	if err == nil {
		f.counts[o] = n
	}
	return n, err
}

// oldest returns layers with one that is old, and which nothing but forks with these layers needs; i is below zero when there is
// none.
func (f *flattener) oldest(ctx context.Context) (layers []origin, i int, err error) {
	s := f.store
	needed := make(map[origin]int)
	lists := make(map[origin][]origin)
	s.forks.Range(func(_, rec any) bool {
		l := rec.(forkRecord).layers
		for i, o := range l {
			needed[o]++
			lists[o] = l[i:]
		}
		return true
	})
	head := s.head()
	for o, l := range lists {
		if o.of > 0 || head-min(head, o.rev) < f.age || !s.pinnedOnly(o, needed[o]) {
			continue
		}
		n, err := f.count(ctx, o)
		if err != nil {
			return nil, -1, err
		}
		if vfs.Rev(n) <= head-o.rev {
			return l, 0, nil
		}
	}
	return nil, -1, nil
}

// pinnedOnly reports whether a revision of a workspace is pinned so many times.
func (s *Store) pinnedOnly(o origin, n int) bool {
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	return s.reading.pins[o.ws][o.rev] == n
}

// layerMerge puts what a run of layers shows over those below it into a new one.
type layerMerge struct {
	store      *Store
	run, below []origin
	layer      workspaceID

	kind   int    // of inheritedKinds, that is being copied
	after  []byte // what of the last key that was looked at does not depend on the workspace
	copied uint64
}

// hold keeps the layers readable. It reports whether a fork has them.
func (m *layerMerge) hold() (ok bool) {
	s := m.store
	s.reading.mu.Lock()
	defer s.reading.mu.Unlock()
	s.forks.Range(func(_, rec any) bool {
		ok = m.isEndOf(rec.(forkRecord).layers)
		return !ok
	})
	if ok {
		s.reading.pins.addLayers(m.run, 1)
		s.reading.pins.addLayers(m.below, 1)
	}
	return ok
}

func (m *layerMerge) letGo() {
	s := m.store
	s.reading.mu.Lock()
	s.reading.pins.addLayers(m.run, -1)
	s.reading.pins.addLayers(m.below, -1)
	s.reading.mu.Unlock()
	s.letGoOld()
}

// isEndOf reports whether a list of layers ends with these.
func (m *layerMerge) isEndOf(layers []origin) bool {
	i := len(layers) - len(m.run) - len(m.below)
	return i >= 0 && slices.Equal(layers[i:i+len(m.run)], m.run) && slices.Equal(layers[i+len(m.run):], m.below)
}

// errNoFork says that no fork has the layers any more.
var errNoFork = errors.New("no fork has these layers")

func (m *layerMerge) make(ctx context.Context, rest func(time.Duration)) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	for done := false; !done; {
		began := time.Now()
		kvs, size, last, err := m.next()
		if err == nil {
			err = m.write(ctx, kvs, size)
		}
		if err != nil {
			return err
		}
		if done = last; !done && rest != nil {
			rest(time.Since(began))
		}
	}
	return m.publish(ctx)
}

// begin takes a number, and marks what is under it as being made.
func (m *layerMerge) begin(ctx context.Context) error {
	return m.store.edit(ctx, func(v *revision) error {
		m.layer = workspaceID(m.store.nextWS.Add(1) - 1)
		v.kvs = append(v.kvs, kv{key: keyOfLoad(m.layer), value: []byte{}})
		return nil
	})
}

// next returns the next records for the layer, with what they cost; last says that these are all.
func (m *layerMerge) next() (kvs []kv, size int, last bool, err error) {
	r := m.store.reader()
	defer r.Close()
	for ; m.kind < len(inheritedKinds); m.kind, m.after = m.kind+1, nil {
		full, err := m.gather(r, &kvs, &size)
		if err != nil || full {
			return kvs, size, false, err
		}
	}
	return kvs, size, true, nil
}

// gather adds records of one kind, until there are enough.
func (m *layerMerge) gather(r *reader, kvs *[]kv, size *int) (full bool, err error) {
	kind := inheritedKinds[m.kind]
	it := m.store.overlay(kind, m.run)
	defer it.Close()
	it.Seek(append(keyOfNode(kind, 0, 0)[:9], m.after...))
	for ; it.Valid(); it.Next() {
		m.store.maps.read()
		rest := it.at.rest()
		if bytes.Equal(rest, m.after) {
			continue
		}
		if *size >= flattenBatch {
			return true, nil
		}
		m.after = append(m.after[:0], rest...)
		e, worth, err := m.entry(r, it.Item())
		if err != nil {
			return false, err
		}
		*size += len(e.key)
		if worth {
			*kvs = append(*kvs, e)
			*size += recordCost + len(e.value)
		}
	}
	return false, nil
}

// entry is what the layer gets of a record. A whiteout is worth nothing when there is nothing below.
func (m *layerMerge) entry(r *reader, item *badger.Item) (e kv, worth bool, err error) {
	e.key = origin{ws: m.layer}.in(item.Key())
	if !isWhiteout(item) {
		value, err := item.ValueCopy(nil)
		e.value = present(value)
		return e, true, badgerError(err, item.Key())
	}
	err = r.getFrom(m.below, e.key, func([]byte) error { return nil })
	if errors.Is(err, vfs.ErrNotExist) {
		return e, false, nil
	}
	e.hide = true
	return e, true, err
}

func (m *layerMerge) write(ctx context.Context, kvs []kv, size int) error {
	if len(kvs) == 0 {
		return nil
	}
	if err := m.store.space.admitRecords(ctx, size); err != nil {
		return err
	}
	m.copied += uint64(len(kvs))
	return m.store.edit(ctx, func(v *revision) error {
		v.kvs = append(v.kvs, kvs...)
		return nil
	})
}

// publish has every fork that ends with the layers look into the new one instead. errNoFork when there is none.
func (m *layerMerge) publish(ctx context.Context) error {
	return m.store.edit(ctx, func(v *revision) error {
		top := m.run[0]
		made := origin{ws: m.layer, rev: v.rev, of: top.shown(top.rev)}
		var forks []newFork
		m.store.forks.Range(func(ws, rec any) bool {
			f := rec.(forkRecord)
			if m.isEndOf(f.layers) {
				above := f.layers[:len(f.layers)-len(m.run)-len(m.below)]
				f.layers = slices.Concat(above, []origin{made}, m.below)
				forks = append(forks, newFork{ws.(workspaceID), f})
			}
			return true
		})
		if len(forks) == 0 {
			return errNoFork
		}
		for _, f := range forks {
			v.setFork(f.ws, f.forkRecord)
		}
		v.kvs = append(v.kvs, kv{key: keyOfLoad(m.layer)})
		return nil
	})
}

// tidy removes what was made like this before, and what no fork looks into any more.
func (m *layerMerge) tidy(ctx context.Context) error {
	used := m.store.usedLayers()
	for _, o := range m.run {
		if o.of > 0 && !used[o.ws] {
			if err := m.store.purge(ctx, o.ws); err != nil {
				return err
			}
		}
	}
	return nil
}

// usedLayers are those that were made of others and that forks look into.
func (s *Store) usedLayers() map[workspaceID]bool {
	used := make(map[workspaceID]bool)
	s.forks.Range(func(_, rec any) bool {
		for _, o := range rec.(forkRecord).layers {
			if o.of > 0 {
				used[o.ws] = true
			}
		}
		return true
	})
	return used
}
