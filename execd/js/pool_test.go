package js

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sleeper is a worker that is none.
type sleeper struct {
	number int
	mu     sync.Mutex
	dead   bool
}

func (s *sleeper) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.dead
}

func (s *sleeper) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

// nursery starts sleepers, which takes startTime, and knows all of them.
type nursery struct {
	mu   sync.Mutex
	all  []*sleeper
	fail error
}

const startTime = 40 * time.Millisecond

func (n *nursery) start(ctx context.Context) (*sleeper, error) {
	select {
	case <-time.After(startTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		return nil, n.fail
	}
	s := &sleeper{number: len(n.all)}
	n.all = append(n.all, s)
	return s, nil
}

func (n *nursery) count() (started, living int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.all {
		if s.alive() {
			living++
		}
	}
	return len(n.all), living
}

// inPool runs a test with a pool, and finds nobody alive after.
func inPool(t *testing.T, test func(t *testing.T, n *nursery, p *pool[*sleeper])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &nursery{}
		p := newPool(n.start)
		test(t, n, p)
		p.close()
		if _, living := n.count(); living != 0 {
			t.Errorf("%d live on", living)
		}
	})
}

func (n *nursery) expect(t *testing.T, what string, started, living int) {
	t.Helper()
	synctest.Wait()
	if s, l := n.count(); s != started || l != living {
		t.Errorf("%s: %d were started, %d live, want %d, %d", what, s, l, started, living)
	}
}

var over = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// The pool is filled after its delay, and no further; who takes one gets the oldest, and another takes its place.
func TestPool(t *testing.T) {
	inPool(t, func(t *testing.T, n *nursery, p *pool[*sleeper]) {
		n.expect(t, "at first", 0, 0)
		time.Sleep(refillDelay + 3*startTime)
		n.expect(t, "filled", poolSize, poolSize)
		for i := range 4 {
			start := time.Now()
			w, ok := p.take(t.Context())
			if !ok || w.number != i || time.Since(start) != 0 {
				t.Errorf("%d: took %+v, %v after %v", i, w, ok, time.Since(start))
			}
			w.kill()
			p.refill(over)
			time.Sleep(toldDelay + startTime)
			n.expect(t, "refilled", i+3, poolSize)
		}
	})
}

// The next is not started while a module runs that has just begun.
func TestPoolDelay(t *testing.T) {
	inPool(t, func(t *testing.T, n *nursery, p *pool[*sleeper]) {
		time.Sleep(time.Second)
		w, _ := p.take(t.Context())
		defer w.kill()
		running := make(chan struct{})
		p.refill(running)
		p.refill(running) // is one with the first
		time.Sleep(refillDelay + startTime - time.Millisecond)
		n.expect(t, "while it runs", poolSize, poolSize)
		time.Sleep(time.Millisecond)
		n.expect(t, "when it runs long", poolSize+1, poolSize+1)
	})
}

// One that has died is not given away.
func TestPoolDeath(t *testing.T) {
	inPool(t, func(t *testing.T, n *nursery, p *pool[*sleeper]) {
		time.Sleep(time.Second)
		n.mu.Lock()
		n.all[0].kill()
		n.mu.Unlock()
		if w, ok := p.take(t.Context()); !ok || w.number != 1 {
			t.Errorf("took %+v, %v", w, ok)
		} else {
			w.kill()
		}
		if w, ok := p.take(t.Context()); ok {
			t.Errorf("took %+v", w)
		}
	})
}

// Who finds none waits for the one that is being started, unless somebody does already, and as long as they want.
func TestPoolComing(t *testing.T) {
	inPool(t, func(t *testing.T, n *nursery, p *pool[*sleeper]) {
		time.Sleep(refillDelay + startTime/2)
		var first sync.WaitGroup
		first.Go(func() {
			w, ok := p.take(t.Context())
			if !ok || w.number != 0 {
				t.Errorf("took %+v, %v", w, ok)
			}
			w.kill()
		})
		synctest.Wait()
		if w, ok := p.take(t.Context()); ok {
			t.Errorf("the second took %+v", w)
		}
		first.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), startTime/2)
		defer cancel()
		synctest.Wait()
		if w, ok := p.take(ctx); ok {
			t.Errorf("who did not wait took %+v", w)
		}
		time.Sleep(time.Second)
		n.expect(t, "in the end", poolSize+1, poolSize)
	})
}

// Those that nobody wants are ended, and come back when somebody does.
func TestPoolIdle(t *testing.T) {
	inPool(t, func(t *testing.T, n *nursery, p *pool[*sleeper]) {
		time.Sleep(poolIdle - time.Second)
		n.expect(t, "before", poolSize, poolSize)
		time.Sleep(2 * time.Second)
		n.expect(t, "after", poolSize, 0)
		if w, ok := p.take(t.Context()); ok {
			t.Errorf("took %+v", w)
		}
		p.refill(over)
		time.Sleep(time.Second)
		n.expect(t, "again", 2*poolSize, poolSize)
		time.Sleep(2 * poolIdle)
		n.expect(t, "at last", 2*poolSize, 0)
	})
}

// One that cannot be started keeps nobody waiting, and is tried again when there is reason to.
func TestPoolFailure(t *testing.T) {
	inPool(t, func(t *testing.T, n *nursery, p *pool[*sleeper]) {
		n.mu.Lock()
		n.fail = errors.New("no memory")
		n.mu.Unlock()
		time.Sleep(refillDelay + startTime/2)
		if w, ok := p.take(t.Context()); ok {
			t.Errorf("took %+v", w)
		}
		time.Sleep(time.Second)
		n.expect(t, "while it fails", 0, 0)
		n.mu.Lock()
		n.fail = nil
		n.mu.Unlock()
		p.refill(over)
		time.Sleep(time.Second)
		n.expect(t, "when it does not", poolSize, poolSize)
	})
}

// A pool that is being filled is closed at once.
func TestPoolClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nursery{}
		p := newPool(n.start)
		time.Sleep(refillDelay + startTime/2)
		start := time.Now()
		p.close()
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
		p.refill(over)
		if w, ok := p.take(t.Context()); ok {
			t.Errorf("took %+v", w)
		}
		n.expect(t, "after it", 0, 0)
	})
}
