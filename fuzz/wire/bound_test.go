package wire

import (
	"errors"
	"runtime"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// bounded calls f, and fails when that takes more than max bytes of memory. Others take memory too, the fuzzing itself among
// them, so the least of some calls counts.
func bounded(t *testing.T, max uint64, f func()) {
	t.Helper()
	const calls = 4
	least := ^uint64(0)
	for range calls {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if least = min(least, after.TotalAlloc-before.TotalAlloc); least <= max {
			return
		}
	}
	t.Fatalf("%d bytes of memory, at most %d", least, max)
}

// isCoded reports whether an error has a number in the protocol: one of those that both sides know the meaning of.
func isCoded(err error) bool {
	for _, list := range [][]error{vfs.Errors(), syncwire.Errors()} {
		for _, s := range list {
			if errors.Is(err, s) {
				return true
			}
		}
	}
	return false
}
