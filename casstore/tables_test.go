package casstore

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUnfinishedTable: a table that a crash has left half written is in no manifest, and is no damage.
func TestUnfinishedTable(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	openWorkspace(t, s, "ws")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(dir, badgerDir, "000999.sst")
	if err := os.WriteFile(torn, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir, Options{})
}

// TestUnbegunLog: a log that a crash has left without a byte is no damage.
func TestUnbegunLog(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	openWorkspace(t, s, "ws")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00099.mem", "000099.vlog"} {
		if err := os.WriteFile(filepath.Join(dir, badgerDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openStore(t, dir, Options{})
}
