package casstore

import (
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// TestCompactorsSleep: Badger's compactors end when nothing is committed, are there again when something is, and end again
// after a merge that is asked for.
func TestCompactorsSleep(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{compactorsAfter: 10 * time.Millisecond})
	w := openWorkspace(t, s, "ws")
	ended := func() bool { return s.compactors.asleep.Load() && compacting() == 0 }
	untilSo(t, "the compactors end", ended)
	for range memtablesWritten + 1 {
		if err := s.pushMemtable(bg); err != nil {
			t.Fatal(err)
		}
	}
	untilSo(t, "the tables are merged", func() bool {
		levels := s.db.Levels()
		below := 0
		for _, l := range levels[1:] {
			below += l.NumTables
		}
		return levels[0].NumTables < memtablesWritten && below > 0
	})
	untilSo(t, "the compactors end", ended)
	s.space.recordsRemoved.Store(removedWorth)
	if err := s.compactNow(bg); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, w, "file", "text")
	untilSo(t, "the compactors end", ended)
}

// compacting is how many compactors there are in this process.
func compacting() int {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
	return strings.Count(b.String(), "levelsController).runCompactor(")
}

func untilSo(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in a minute not come to be: " + what)
		}
	}
}
