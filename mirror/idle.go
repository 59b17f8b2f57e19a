package mirror

import (
	"context"
	"sync"
)

// idle counts who waits for a fetch.
type idle struct {
	mu      sync.Mutex
	waiting int
	over    chan struct{} // closed when nobody waits
}

func newIdle() *idle {
	i := &idle{over: make(chan struct{})}
	close(i.over)
	return i
}

// busy says that somebody waits, until done is called.
func (i *idle) busy() (done func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting++; i.waiting == 1 {
		i.over = make(chan struct{})
	}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.waiting--; i.waiting == 0 {
			close(i.over)
		}
	}
}

// await returns when nobody waits.
func (i *idle) await(ctx context.Context) error {
	i.mu.Lock()
	over := i.over
	i.mu.Unlock()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return interrupted(ctx)
	}
}
