package worker

import (
	"container/heap"
	"fmt"
	"time"
)

// loop is what a module waits for: timers, standard input, and its next turn. The phases of a round are those of node:
// timers that are due, input, immediates.
//
//	         ┌──────────────── one call into the module, and all that follows from it: turn ─────────────────┐
//	timers ──┤ call ─▶ ticks ─▶ promise jobs ─▶ ... until there are none ─▶ rejections that nobody has taken │
//	         └──────────────────────────────────────────────────────────────────────────────────────────────┘
type loop struct {
	start      time.Time
	timers     timers
	byID       map[int64]*timer
	last       int64
	refs       int    // timers that are waited for
	immediates int    // calls that are due in this round
	stdin      uint64 // the call that reads standard input, or 0
}

// timer calls into the module when its time has come.
type timer struct {
	id    int64
	at    time.Time
	ref   bool // the module does not end before
	index int  // in the heap
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

// timer sets a timer, in milliseconds, and returns its number. The prelude has them whole, and at least 1.
func (r *run) timer(args []any) (any, error) {
	l := &r.loop
	if len(l.timers) >= maxTimers {
		return nil, fmt.Errorf("more than %d timers", maxTimers)
	}
	if l.byID == nil {
		l.byID = map[int64]*timer{}
	}
	l.last++
	l.refs++
	t := &timer{id: l.last, at: time.Now().Add(time.Duration(num(args, 0)) * time.Millisecond), ref: true}
	l.byID[t.id] = t
	heap.Push(&l.timers, t)
	return int(t.id), nil
}

// ref has a timer waited for, or not.
func (r *run) ref(args []any) (any, error) {
	if t := r.loop.byID[int64(num(args, 0))]; t != nil {
		r.loop.setRef(t, num(args, 1) == 1)
	}
	return nil, nil
}

func (l *loop) setRef(t *timer, ref bool) {
	switch {
	case ref && !t.ref:
		l.refs++
	case !ref && t.ref:
		l.refs--
	}
	t.ref = ref
}

func (r *run) clear(args []any) (any, error) {
	l := &r.loop
	if t := l.byID[int64(num(args, 0))]; t != nil {
		heap.Remove(&l.timers, t.index)
		l.forget(t)
	}
	return nil, nil
}

func (l *loop) forget(t *timer) {
	l.setRef(t, false)
	delete(l.byID, t.id)
}

// immediate has the module called in this round.
func (r *run) immediate([]any) (any, error) {
	if r.loop.immediates >= maxImmediates {
		return nil, fmt.Errorf("more than %d immediates", maxImmediates)
	}
	r.loop.immediates++
	return nil, nil
}

// tick has ticks run when what runs now has ended.
func (r *run) tick([]any) (any, error) {
	r.ticks = true
	return nil, nil
}

// stdin asks for more standard input; the prelude is called with it.
func (r *run) stdin([]any) (any, error) {
	if r.loop.stdin == 0 {
		r.loop.stdin = r.link.send(Call{Op: OpStdin})
	}
	return nil, nil
}

// stdinNow waits for more standard input: nothing is its end.
func (r *run) stdinNow([]any) (any, error) {
	id := r.loop.stdin
	if r.loop.stdin = 0; id == 0 {
		id = r.link.send(Call{Op: OpStdin})
	}
	return toLatin1(r.link.answer(id).Data), nil
}

// now is the milliseconds since the module began, for performance.now.
func (r *run) now([]any) (any, error) {
	return float64(time.Since(r.loop.start)) / float64(time.Millisecond), nil
}

// round waits for something to do, and does it. more is false when there is nothing that can happen any more.
func (r *run) round() (more bool, err error) {
	l := &r.loop
	now := time.Now()
	for len(l.timers) > 0 && !l.timers[0].at.After(now) { // those that these set are later
		t := heap.Pop(&l.timers).(*timer)
		l.forget(t)
		more = true
		if err := r.turn(enterFire, int(t.id)); err != nil {
			return false, err
		}
	}
	input, err := r.input(more || l.immediates > 0)
	if err != nil {
		return false, err
	}
	due := l.immediates
	l.immediates = 0
	for range due {
		if err := r.turn(enterImmediate); err != nil {
			return false, err
		}
	}
	return more || input || due > 0, nil
}

// input passes on what standard input has given, or waits for that or the next timer unless there is something else to do.
func (r *run) input(busy bool) (more bool, err error) {
	l := &r.loop
	if reply, ok := r.link.early(l.stdin); ok {
		return true, r.came(reply)
	}
	if busy && l.stdin == 0 || l.refs == 0 && l.stdin == 0 {
		return false, nil
	}
	var due <-chan time.Time
	switch {
	case busy:
		now := make(chan time.Time)
		close(now)
		due = now
	case len(l.timers) > 0:
		t := time.NewTimer(time.Until(l.timers[0].at))
		defer t.Stop()
		due = t.C
	}
	select {
	case reply := <-r.link.replies:
		return true, r.came(reply)
	case <-due:
		return true, nil
	}
}

// came passes on what standard input has given.
func (r *run) came(reply Reply) error {
	if reply.ID != r.loop.stdin {
		return nil
	}
	r.loop.stdin = 0
	return r.turn(enterInput, toLatin1(reply.Data))
}
