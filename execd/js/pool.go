package js

import (
	"context"
	"sync"
	"time"
)

const (
	// poolSize is how many workers wait: one for the next module, and one for a module after that which comes before
	// another is ready. Each takes 17 MiB, 13 of which are the program's and shared.
	poolSize = 2
	// poolIdle is how long they wait while nobody runs a module. After that the next one starts its own.
	poolIdle = 10 * time.Minute
	// refillDelay is how long after one has been taken the next is started, unless its module has ended before: longer than
	// short modules take, which would have to share the processors with it.
	refillDelay = 20 * time.Millisecond
	// toldDelay is how long it waits after that end, of which somebody is being told.
	toldDelay = 5 * time.Millisecond
)

// waiting is a worker that waits for its module.
type waiting interface {
	alive() bool
	kill() // returns when nothing of it is left
}

// pool has workers started before there is something to do. Each is given away once.
type pool[W waiting] struct {
	start  func(context.Context) (W, error)
	ctx    context.Context // of those that are being started
	cancel context.CancelFunc
	owned  sync.WaitGroup // fill, and who kills

	mu      sync.Mutex
	closed  bool
	ready   []W // the oldest first
	filling bool
	coming  chan W // the one that is being started, unless somebody waits for it; closed when it failed
	idle    *time.Timer
}

// newPool returns a pool that is filled soon. It must be closed.
func newPool[W waiting](start func(context.Context) (W, error)) *pool[W] {
	p := &pool[W]{start: start}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.idle = time.AfterFunc(poolIdle, p.expire)
	p.refill(nil)
	return p
}

// take gives one that is ready, or waits for the one that is being started when nobody else does. ok is false when there is
// neither.
func (p *pool[W]) take(ctx context.Context) (w W, ok bool) {
	for {
		w, coming, ok := p.pop()
		switch {
		case ok && w.alive():
			return w, true
		case ok:
			w.kill()
			continue
		case coming == nil:
			return w, false
		}
		select {
		case w, ok := <-coming:
			return w, ok
		case <-ctx.Done():
			p.giveBack(coming)
			return w, false
		}
	}
}

// pop takes one away, or the right to the one that is coming.
func (p *pool[W]) pop() (w W, coming chan W, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return w, nil, false
	}
	p.idle.Reset(poolIdle)
	if len(p.ready) > 0 {
		w, p.ready = p.ready[0], p.ready[1:]
		return w, nil, true
	}
	coming, p.coming = p.coming, nil
	return w, coming, false
}

// giveBack keeps the one that somebody has waited for and does not any more.
func (p *pool[W]) giveBack(coming chan W) {
	p.own(func() {
		if w, ok := <-coming; ok && !p.put(w) {
			w.kill()
		}
	})
}

// own has something done that close waits for. After close it is done at once.
func (p *pool[W]) own(f func()) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.owned.Go(f)
	}
	p.mu.Unlock()
	if closed {
		f()
	}
}

func (p *pool[W]) put(w W) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.ready) >= poolSize {
		return false
	}
	p.idle.Reset(poolIdle)
	p.ready = append(p.ready, w)
	return true
}

// refill has the pool filled a little after over is closed, or when refillDelay has passed.
func (p *pool[W]) refill(over <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.filling {
		return
	}
	p.filling = true
	p.owned.Go(func() {
		wait := time.NewTimer(refillDelay)
		defer wait.Stop()
		select {
		case <-over:
			wait.Reset(toldDelay)
			select {
			case <-wait.C:
			case <-p.ctx.Done():
			}
		case <-wait.C:
		case <-p.ctx.Done():
		}
		for p.makeOne() {
		}
	})
}

// makeOne starts one. It reports false when there is to be no more: there are enough, or it failed, which whoever needs the
// next will be told.
func (p *pool[W]) makeOne() bool {
	p.mu.Lock()
	if p.closed || len(p.ready) >= poolSize {
		p.filling = false
		p.mu.Unlock()
		return false
	}
	coming := make(chan W, 1)
	p.coming = coming
	p.mu.Unlock()
	w, err := p.start(p.ctx)
	p.mu.Lock()
	wanted := p.coming != coming
	if !wanted {
		p.coming = nil
	}
	p.filling = err == nil
	p.mu.Unlock()
	switch {
	case err != nil:
		close(coming)
		return false
	case wanted:
		coming <- w
	case !p.put(w):
		w.kill()
	}
	return true
}

// expire ends those that nobody has wanted for long.
func (p *pool[W]) expire() {
	p.own(func() {
		for _, w := range p.empty() {
			w.kill()
		}
	})
}

func (p *pool[W]) empty() (all []W) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, p.ready = p.ready, nil
	return all
}

// close ends all that wait, and returns when none is left.
func (p *pool[W]) close() {
	p.mu.Lock()
	p.closed = true
	p.idle.Stop()
	p.mu.Unlock()
	p.cancel()
	for _, w := range p.empty() {
		w.kill()
	}
	p.owned.Wait()
}
