package worker

import (
	"container/heap"
	"fmt"
	"time"
)

// loop is what a module waits for: timers and standard input.
type loop struct {
	start  time.Time
	timers timers
	byID   map[int64]*timer
	last   int64
	stdin  uint64 // the call that reads standard input, or 0
}

// timer calls into the module when its time has come.
type timer struct {
	id    int64
	at    time.Time
	index int // in the heap
}

// timers is a heap, the next first; those of one moment in the order in which they were set.
type timers []*timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if t[i].at.Equal(t[j].at) {
		return t[i].id < t[j].id
	}
	return t[i].at.Before(t[j].at)
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i]; t[i].index, t[j].index = i, j }

// Push implements heap.Interface.
func (t *timers) Push(x any) {
	n := x.(*timer)
	n.index = len(*t)
	*t = append(*t, n)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	old := *t
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return n
}

// timer sets a timer and returns its number.
func (r *run) timer(args []any) (any, error) {
	l := &r.loop
	if len(l.timers) >= maxTimers {
		return nil, fmt.Errorf("more than %d timers", maxTimers)
	}
	if l.byID == nil {
		l.byID = map[int64]*timer{}
	}
	l.last++
	wait := time.Duration(min(max(num(args, 0), 1), 1<<31-1) * float64(time.Millisecond)) // as in node
	t := &timer{id: l.last, at: time.Now().Add(wait)}
	l.byID[t.id] = t
	heap.Push(&l.timers, t)
	return int(t.id), nil
}

func (r *run) clear(args []any) (any, error) {
	id := int64(num(args, 0))
	if t := r.loop.byID[id]; t != nil {
		delete(r.loop.byID, id)
		heap.Remove(&r.loop.timers, t.index)
	}
	return nil, nil
}

// stdin asks for more standard input; __input is called with it.
func (r *run) stdin([]any) (any, error) {
	if r.loop.stdin == 0 {
		r.loop.stdin = r.link.send(Call{Op: OpStdin})
	}
	return nil, nil
}

// now is the milliseconds since the worker began with the module, for performance.now.
func (r *run) now([]any) (any, error) {
	if r.loop.start.IsZero() {
		r.loop.start = time.Now()
	}
	return float64(time.Since(r.loop.start)) / float64(time.Millisecond), nil
}

// wait runs the module until there is nothing more to wait for.
func (r *run) wait() error {
	for {
		n, err := r.vm.ExecutePendingJobs()
		if err != nil {
			return err
		}
		if n > 0 {
			continue // it stops after so many
		}
		if r.done != nil && (r.done.failed != "" || r.done.oom) {
			return nil
		}
		if more, err := r.next(); err != nil || !more {
			return err
		}
	}
}

// next waits for one thing and calls into the module. more is false when there is nothing.
func (r *run) next() (more bool, err error) {
	l := &r.loop
	for i, reply := range r.link.early {
		r.link.early = append(r.link.early[:i:i], r.link.early[i+1:]...)
		return true, r.came(reply)
	}
	var due <-chan time.Time
	if len(l.timers) > 0 {
		t := time.NewTimer(time.Until(l.timers[0].at))
		defer t.Stop()
		due = t.C
	} else if l.stdin == 0 {
		return false, nil
	}
	select {
	case reply, ok := <-r.link.replies:
		if !ok {
			return false, fmt.Errorf("the daemon has gone")
		}
		return true, r.came(reply)
	case <-due:
		t := heap.Pop(&l.timers).(*timer)
		delete(l.byID, t.id)
		_, err := r.vm.Call("__fire", int(t.id))
		return true, err
	}
}

// came passes on what standard input has given.
func (r *run) came(reply Reply) error {
	if reply.ID != r.loop.stdin {
		return nil
	}
	r.loop.stdin = 0
	_, err := r.vm.Call("__input", toLatin1(reply.Data), len(reply.Data) == 0)
	return err
}
