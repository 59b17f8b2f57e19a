package casstore

import (
	"fmt"
	"log/slog"
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

// TestLargerLogs: a log that a crash has left of a store with larger memtables is replayed whole.
func TestLargerLogs(t *testing.T) {
	const larger, keys, length, atOnce = 2 * memtableSize, 120, 100 << 10, 20 // more than fits into memtableSize
	dir := t.TempDir()
	db, err := openBadger(dir, larger, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := func(i int) []byte { return fmt.Append(nil, "key ", i) }
	for i := 0; i < keys; i += atOnce {
		txn := db.NewTransactionAt(1, true)
		for k := range atOnce {
			if err := txn.Set(key(i+k), make([]byte, length)); err != nil {
				t.Fatal(err)
			}
		}
		if err := txn.CommitAt(1, nil); err != nil {
			t.Fatal(err)
		}
	}
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	again, err := openBadger(crashed, memtableSize, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	txn := again.NewTransactionAt(1, false)
	defer txn.Discard()
	for i := range keys {
		if _, err := txn.Get(key(i)); err != nil {
			t.Errorf("%s: %v", key(i), err)
		}
	}
}
