package casstore

import (
	"errors"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// TestBackupHolds lets the commit fail, at each of its steps, by which a backup holds what it is of: nothing stays held.
func TestBackupHolds(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		fail := false
		steps := 0
		s, err := Open(t.TempDir(), Options{Create: true, CommitEvery: time.Hour, hook: func(string) error {
			if steps++; fail && steps > n {
				return errCrash
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		w := openWorkspace(t, s, "ws")
		makeFile(t, w, "file", "x")
		f := openFork(t, s, "ws", "", "fork")
		makeFile(t, w, "later", "y")
		makeFile(t, f, "own", "z")
		held := func() int {
			s.reading.mu.Lock()
			defer s.reading.mu.Unlock()
			sum := 0
			for of := range maps.Values(s.reading.pins) {
				for _, k := range of {
					sum += k
				}
			}
			return sum
		}
		before := held()
		fail, steps = true, 0
		_, err = s.Backup(bg, BackupOptions{}, io.Discard)
		if done = err == nil; !done && !errors.Is(err, errCrash) && !errors.Is(err, vfs.ErrClosed) {
			t.Fatal(err)
		}
		if got := held(); got != before {
			t.Errorf("the commit failed after %d steps: %d are held, %d were before", n, got, before)
		}
		_ = s.Close() // it can commit nothing
	}
}
