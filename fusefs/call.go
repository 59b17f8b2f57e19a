package fusefs

import (
	"context"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// call is the context of requests. A worker uses one for all its requests, until one of them is cancelled: a request
// that is answered from memory should not cost an allocation, and almost none is ever cancelled.
type call struct {
	w    *worker
	once sync.Once
	done chan struct{}
}

var _ context.Context = (*call)(nil)

func newCall(w *worker) *call { return &call{w: w, done: make(chan struct{})} }

// Deadline says that there is none: the kernel waits.
func (c *call) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed when the process that waits is being killed, or the mount is gone.
func (c *call) Done() <-chan struct{} { return c.done }

// Err is context.Canceled once Done is closed.
func (c *call) Err() error {
	if c.cancelled() {
		return context.Canceled
	}
	return nil
}

// Value answers the two keys of package vfs.
func (c *call) Value(key any) any {
	switch key {
	case vfs.BlockHookKey:
		return c.w
	case vfs.OriginKey:
		return c.w.srv
	}
	return nil
}

func (c *call) cancel() { c.once.Do(func() { close(c.done) }) }

func (c *call) cancelled() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
