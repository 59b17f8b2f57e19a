package writebuf

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// hook counts what vfs.WillBlock says.
type hook struct{ said atomic.Int32 }

func (h *hook) WillBlock() { h.said.Add(1) }

// writers starts writers that wait, and tells in which order they are admitted.
type writers struct {
	pool *Pool
	done chan int // sizes of the writers, as they are admitted
}

// start begins an Admit of n bytes and returns when it waits or is done.
func (w *writers) start(n int) {
	go func() {
		if err := w.pool.Admit(context.Background(), n); err != nil {
			n = -1
		}
		w.done <- n
	}()
	synctest.Wait()
}

// admitted returns the sizes of the writers that have been admitted since the last call.
func (w *writers) admitted() []int {
	synctest.Wait()
	var sizes []int
	for len(w.done) > 0 {
		sizes = append(sizes, <-w.done)
	}
	return sizes
}

func newWriters(pool *Pool) *writers { return &writers{pool: pool, done: make(chan int, 16)} }

func wantSizes(t *testing.T, when string, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: admitted %v, want %v", when, got, want)
	}
}

func TestAdmitWhileThereIsRoom(t *testing.T) {
	p := NewPool(100)
	h := new(hook)
	ctx := context.WithValue(context.Background(), vfs.BlockHookKey, h)
	for _, c := range []struct {
		used int64
		n    int
	}{{0, 100}, {0, 1000}, {60, 40}, {100, 0}} {
		p.charge(c.used)
		if err := p.Admit(ctx, c.n); err != nil {
			t.Errorf("%d used: admit %d: %v", c.used, c.n, err)
		}
		p.charge(-c.used)
	}
	if h.said.Load() != 0 {
		t.Error("said that it blocks, and did not")
	}
	if p.Budget() != 100 || p.Used() != 0 {
		t.Errorf("budget %d, used %d", p.Budget(), p.Used())
	}
}

func TestAdmitWaitsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		w := newWriters(p)
		p.charge(95)
		w.start(60)
		w.start(7)
		w.start(3) // fits, and has to wait for its turn
		wantSizes(t, "full", w.admitted(), nil)
		p.charge(-30)
		wantSizes(t, "65 used", w.admitted(), nil)
		p.charge(-30) // 35 used: room for 60 and for no other beside it
		wantSizes(t, "35 used", w.admitted(), []int{60})
		p.charge(60)
		p.charge(-5)
		wantSizes(t, "90 used", sorted(w.admitted()), []int{3, 7})
	})
}

func TestAdmitTooLargeWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		w := newWriters(p)
		p.charge(1)
		w.start(101)
		wantSizes(t, "1 used", w.admitted(), nil)
		p.charge(-1)
		wantSizes(t, "nothing used", w.admitted(), []int{101})
	})
}

func TestAdmitSaysThatItBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := NewPool(100), new(hook)
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), vfs.BlockHookKey, h))
		p.charge(100)
		done := make(chan error)
		go func() { done <- p.Admit(ctx, 1) }()
		synctest.Wait()
		if h.said.Load() != 1 {
			t.Errorf("said %d times that it blocks, want once", h.said.Load())
		}
		cancel()
		if err := <-done; !errors.Is(err, vfs.ErrInterrupted) {
			t.Errorf("cancelled: %v, want ErrInterrupted", err)
		}
	})
}

// TestCancelPassesTheTurnOn: the writer behind one that gives up must not wait for it.
func TestCancelPassesTheTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		w := newWriters(p)
		ctx, cancel := context.WithCancel(context.Background())
		p.charge(50)
		done := make(chan error, 1)
		go func() { done <- p.Admit(ctx, 90) }()
		synctest.Wait()
		w.start(20)
		wantSizes(t, "behind a large one", w.admitted(), nil)
		cancel()
		wantSizes(t, "alone", w.admitted(), []int{20})
		if err := <-done; !errors.Is(err, vfs.ErrInterrupted) {
			t.Errorf("cancelled: %v, want ErrInterrupted", err)
		}
		if err := p.Admit(context.Background(), 50); err != nil {
			t.Errorf("queue is empty and there is room: %v", err)
		}
	})
}

func TestCloseEndsAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		b := New(p)
		b.Write(make([]byte, 100), 0)
		done := make(chan error, 3)
		for range 3 {
			go func() { done <- p.Admit(context.Background(), 10) }()
		}
		synctest.Wait()
		p.Close()
		for range 3 {
			if err := <-done; !errors.Is(err, vfs.ErrClosed) {
				t.Errorf("waiting at Close: %v, want ErrClosed", err)
			}
		}
		if err := p.Admit(context.Background(), 0); !errors.Is(err, vfs.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
		b.Discard()
		if p.Used() != 0 {
			t.Errorf("used %d after Discard", p.Used())
		}
	})
}

func TestPressureOncePerCrossing(t *testing.T) {
	p := NewPool(100)
	calls := 0
	p.OnPressure(func() {
		calls++
		p.Used() // would hang if a lock were held
	})
	admit := func(n, want int) {
		t.Helper()
		if err := p.Admit(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		p.charge(int64(n))
		if calls != want {
			t.Fatalf("%d used: pressure was called %d times, want %d", p.Used(), calls, want)
		}
	}
	admit(50, 0) // the half, and not past it
	admit(1, 1)
	admit(20, 1)
	p.charge(-20) // 51
	admit(10, 1)
	p.charge(-11) // 50: armed again
	admit(5, 2)
	p.charge(-55)
	admit(10, 2)
	admit(60, 3)
}

func TestPressureWhenWritersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		w := newWriters(p)
		var calls atomic.Int32
		p.OnPressure(func() { calls.Add(1) })
		want := func(when string, n int32) {
			t.Helper()
			synctest.Wait()
			if calls.Load() != n {
				t.Fatalf("%s: pressure was called %d times, want %d", when, calls.Load(), n)
			}
		}
		w.start(90)
		p.charge(90)
		want("past the half", 1)
		w.start(60)
		want("a writer waits", 2)
		w.start(5)
		want("another waits", 2)
		p.charge(-20)
		want("not enough was given back", 3)
		wantSizes(t, "not enough", w.admitted(), []int{90})
		p.charge(-70)
		want("all is free, and more than the half is taken again", 4)
		wantSizes(t, "enough", sorted(w.admitted()), []int{5, 60})
	})
}

func sorted(s []int) []int {
	slices.Sort(s)
	return s
}

func TestGivingBackTooMuchPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewPool(10).charge(-1)
}
