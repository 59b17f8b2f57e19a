package writebuf

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Pool is the one budget of memory that all buffers of a store share. It is safe for concurrent use.
//
// Buffers charge a pool without waiting. A writer asks before, by [Pool.Admit], and waits there while the pool is full.
// What is admitted is not set aside, so the writers that run at the same moment may take the pool past its budget by
// one write each, and by the unused ends of their slabs.
type Pool struct {
	budget int64

	mu       sync.Mutex
	used     int64
	queue    []*waiter // writers that wait, the first of them first
	pressure func()
	pressed  bool // pressure has been called since memory was last given back down to half of the budget
	closed   bool
}

// waiter is a writer that waits for n bytes.
type waiter struct {
	n        int64
	wake     chan struct{} // has room for one: something changed for this waiter
	admitted bool          // and not in the queue; guarded by the pool's mu
	refused  error         // of Refuse; guarded by the pool's mu
}

// NewPool returns a pool of budget bytes.
func NewPool(budget int64) *Pool { return &Pool{budget: budget} }

// Budget is the size of the pool in bytes.
func (p *Pool) Budget() int64 { return p.budget }

// Used is what the buffers hold, in bytes, with the unused ends of slabs and the memory of the extents themselves.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// OnPressure sets the function that is called when there is something to store: once when the next write takes the
// pool past half of its budget (and again after it has been at or below the half), when a writer begins to wait, and
// when memory has been given back but not enough for the writer whose turn it is. It is called by Admit, on the
// writer's goroutine, with no lock held. It must not block: it tells another goroutine to start. It is set before the
// first Admit.
func (p *Pool) OnPressure(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pressure = f
}

// Admit returns when a write of n bytes may go on: when it fits into the budget, or nothing is held at all, and no
// earlier writer waits. It is called with no lock held that the storing of files needs, in particular not the file's.
// Before it waits it says so by vfs.WillBlock. It returns vfs.ErrInterrupted when ctx ends while it waits and
// vfs.ErrClosed after Close.
func (p *Pool) Admit(ctx context.Context, n int) error {
	w, pressure, err := p.enter(int64(n))
	if w != nil {
		vfs.WillBlock(ctx)
	}
	if pressure != nil {
		pressure()
	}
	if w != nil {
		err = p.wait(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("admit %d bytes: %w", n, err)
	}
	return nil
}

// Close makes every Admit, waiting or new, return vfs.ErrClosed. Buffers can still be used, and give back what they
// hold.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.queue {
		w.nudge()
	}
}

// Refuse makes every Admit that waits now return err: what they wait for could not be stored.
func (p *Pool) Refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.queue {
		w.refused = err
		w.nudge()
	}
}

// enter admits a writer at once, or puts it in the queue and returns its place there. pressure is to be called, if
// not nil.
func (p *Pool) enter(n int64) (w *waiter, pressure func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, nil, vfs.ErrClosed
	case len(p.queue) == 0 && p.fitsLocked(0, n):
		return nil, p.crossLocked(n), nil
	}
	w = &waiter{n: n, wake: make(chan struct{}, 1)}
	if len(p.queue) == 0 {
		p.pressed = true
		pressure = p.pressure
	}
	p.queue = append(p.queue, w)
	return w, pressure, nil
}

// wait returns when w is admitted, ctx ends or the pool is closed.
func (p *Pool) wait(ctx context.Context, w *waiter) error {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return p.leave(w)
		}
		done, pressure, err := p.look(w)
		if pressure != nil {
			pressure()
		}
		if done {
			return err
		}
	}
}

// look returns how things are for a waiter that has been woken. When it has to go on waiting, pressure is called again:
// what it was called for before has been stored, and was not enough.
func (p *Pool) look(w *waiter) (done bool, pressure func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.admitted:
		return true, p.crossLocked(w.n), nil
	case p.closed:
		p.removeLocked(w)
		return true, nil, vfs.ErrClosed
	case w.refused != nil:
		p.removeLocked(w)
		return true, nil, w.refused
	}
	p.pressed = true
	return false, p.pressure, nil
}

// leave takes a waiter whose context has ended out of the queue, unless it has just been admitted.
func (p *Pool) leave(w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.admitted {
		return nil
	}
	p.removeLocked(w)
	p.admitLocked()
	return vfs.ErrInterrupted
}

// charge adds n bytes, which may be negative, to what is held.
func (p *Pool) charge(n int64) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += n
	if p.used < 0 {
		panic("writebuf: more memory given back than was charged")
	}
	if n > 0 {
		return
	}
	if p.used <= p.budget/2 {
		p.pressed = false
	}
	p.admitLocked()
}

// fitsLocked reports whether n bytes fit beside what is held and what has been promised.
func (p *Pool) fitsLocked(promised, n int64) bool {
	held := p.used + promised
	return held == 0 || held+n <= p.budget
}

// crossLocked returns the function to call when a write of n bytes takes the pool past half of its budget.
func (p *Pool) crossLocked(n int64) func() {
	if p.pressed || p.used+n <= p.budget/2 {
		return nil
	}
	p.pressed = true
	return p.pressure
}

// admitLocked admits waiters in their order while there is room, and wakes the first of the others.
func (p *Pool) admitLocked() {
	var promised int64
	for len(p.queue) > 0 {
		w := p.queue[0]
		w.nudge()
		if !p.fitsLocked(promised, w.n) {
			return
		}
		promised += w.n
		w.admitted = true
		p.removeLocked(w)
	}
}

// removeLocked takes w out of the queue.
func (p *Pool) removeLocked(w *waiter) {
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
}

// nudge wakes w, or leaves it a sign when it is not asleep.
func (w *waiter) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
