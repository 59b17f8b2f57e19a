package serving

import (
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

func TestHistory(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var h history
	if lag := h.lag(0, at(5)); lag != 0 {
		t.Errorf("with nothing seen the lag is %v", lag)
	}
	for _, m := range []struct{ rev, second int }{{10, 100}, {10, 101}, {14, 102}, {20, 110}} {
		h.note(vfs.Rev(m.rev), at(m.second))
	}
	for rev, want := range map[vfs.Rev]time.Duration{
		20: 0, 21: 0, 19: 10 * time.Second, 14: 10 * time.Second, 13: 18 * time.Second, 10: 18 * time.Second,
		9: 20 * time.Second, 0: 20 * time.Second,
	} {
		if got := h.lag(rev, at(120)); got != want {
			t.Errorf("lag of revision %d: %v, want %v", rev, got, want)
		}
	}
}

// However much happens, the memory is bounded, and what is forgotten is neither the first nor the newest.
func TestHistoryIsBounded(t *testing.T) {
	var h history
	const n = 10 * maxMarks
	for i := 1; i <= n; i++ {
		h.note(vfs.Rev(i), time.Unix(int64(i), 0))
		if len(h.marks) > maxMarks {
			t.Fatalf("%d marks", len(h.marks))
		}
	}
	now := time.Unix(n+1, 0)
	if got := h.lag(0, now); got != n*time.Second {
		t.Errorf("lag since the first: %v", got)
	}
	if got := h.lag(n-1, now); got != time.Second {
		t.Errorf("lag since the last but one: %v", got)
	}
	if got := h.lag(n/2, now); got > n/2*time.Second || got < n/4*time.Second {
		t.Errorf("lag since half: %v", got)
	}
}
