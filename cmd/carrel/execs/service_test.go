package execs

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A service that cannot be opened leaves nothing behind: TestMain looks for goroutines.
func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "exec"), nil, 0o600))
	s, err := Open(Config{Store: newStore(t, filepath.Join(dir, "store")), Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, syscall.ENOTDIR) || s != nil {
		t.Errorf("%v, %v", s, err)
	}
}
