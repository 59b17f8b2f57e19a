package command

import (
	"errors"
	"sync/atomic"
)

// Errors of a script that has used up what it was given.
var (
	ErrSteps  = errors.New("too much work: step limit reached")
	ErrMemory = errors.New("too much memory: limit reached")
	ErrOutput = errors.New("too much output: limit reached")
)

// Meter counts what all processes of one script use together, and tells the script's owner when that is too much. It is
// safe for concurrent use. A nil Meter counts nothing.
type Meter struct {
	limit struct{ steps, memory, output int64 }
	over  func(error)

	steps, memory, output atomic.Int64
}

// NewMeter returns a meter of so many steps, bytes of memory and bytes of output; 0 is no bound. over is called, more
// than once perhaps, with the error that the call over the bound returns; it is to end the script's context.
func NewMeter(steps, memory, output int64, over func(error)) *Meter {
	m := &Meter{over: over}
	m.limit.steps, m.limit.memory, m.limit.output = steps, memory, output
	return m
}

// Step counts n units of work: ErrSteps when there were too many.
func (m *Meter) Step(n int) error {
	if m == nil {
		return nil
	}
	return m.add(&m.steps, m.limit.steps, int64(n), ErrSteps)
}

// Memory counts n bytes that are taken, or given back when n is negative: ErrMemory when too many are taken at once.
// What was refused is counted too, so that a pair of calls always evens out.
func (m *Meter) Memory(n int64) error {
	if m == nil {
		return nil
	}
	return m.add(&m.memory, m.limit.memory, n, ErrMemory)
}

// Output counts n bytes written to where the script's owner reads: ErrOutput when there were too many.
func (m *Meter) Output(n int) error {
	if m == nil {
		return nil
	}
	return m.add(&m.output, m.limit.output, int64(n), ErrOutput)
}

func (m *Meter) add(count *atomic.Int64, limit, n int64, err error) error {
	if sum := count.Add(n); limit == 0 || sum <= limit || n < 0 {
		return nil
	}
	if m.over != nil {
		m.over(err)
	}
	return err
}
