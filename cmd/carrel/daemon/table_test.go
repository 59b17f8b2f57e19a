package daemon

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// The daemon ends when the last who needs it has let go, and then takes nobody.
func TestKeep(t *testing.T) {
	table := newTable(nil, t.TempDir(), slog.New(slog.DiscardHandler))
	ended := func() bool {
		select {
		case <-table.empty:
			return true
		default:
			return false
		}
	}
	first, err := table.keep()
	if err != nil {
		t.Fatal(err)
	}
	second, err := table.keep()
	if err != nil {
		t.Fatal(err)
	}
	first()
	if ended() {
		t.Error("it has ended while it was needed")
	}
	second()
	if !ended() {
		t.Error("it has not ended")
	}
	if _, err := table.keep(); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("keep after the end: %v, want ErrClosed", err)
	}
}
