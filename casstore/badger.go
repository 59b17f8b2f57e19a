package casstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// openBadger opens the version store. Every write is durable when it returns (SyncWrites): db.Sync alone would not do,
// because it syncs the log of the current memtable only, and the keys of a large revision may be in one before it. With a key
// everything is encrypted that it writes, but for its list of tables and the lengths of things.
func openBadger(dir string, memtable int64, key []byte, log *slog.Logger) (db *badger.DB, err error) {
	defer func() {
		// Badger panics on some damage that it finds.
		if r := recover(); r != nil {
			err = fmt.Errorf("badger: %v: %w", r, vfs.ErrCorrupt)
		}
	}()
	if err := errors.Join(removeEmptyLogs(dir), verifyTables(dir)); err != nil {
		return nil, err
	}
	if memtable, err = roomForLogs(dir, memtable); err != nil {
		return nil, err
	}
	opt := badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithDetectConflicts(false). // there is one writer
		WithMemTableSize(memtable).
		WithBaseTableSize(tableSize).
		WithNumMemtables(3).
		WithNumCompactors(2).
		WithNumLevelZeroTables(memtablesWritten).
		WithNumLevelZeroTablesStall(memtablesMost).
		WithValueThreshold(valueThreshold(memtable)).
		WithValueLogFileSize(2 << 20). // holds nothing: values stay in the tables
		WithBlockCacheSize(blockCacheSize).
		WithIndexCacheSize(indexCacheSize).
		WithCompression(options.Snappy).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithEncryptionKey(key).
		WithEncryptionKeyRotationDuration(keyRotation).
		WithMetricsEnabled(false).
		WithLogger(badgerLog{log})
	// Tables of one size in all levels: see tableSize.
	opt.TableSizeMultiplier = 1
	db, err = badger.OpenManaged(opt)
	if err != nil {
		if strings.Contains(err.Error(), "Cannot acquire directory lock") {
			return nil, fmt.Errorf("%w: %w", vfs.ErrInUse, err)
		}
		return nil, fmt.Errorf("badger: %w: %w", vfs.ErrCorrupt, err)
	}
	return db, nil
}

// removeEmptyLogs removes logs without a byte: a crash leaves one that Badger had just made and not yet given a length,
// and Badger then refuses to open.
func removeEmptyLogs(dir string) error {
	for _, pattern := range []string{logPattern, "*.vlog"} {
		logs, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range logs {
			if info, err := os.Stat(path); err != nil || info.Size() > 0 {
				continue // what is wrong with it Badger will say
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// roomForLogs returns a size of memtables in which those fit whose logs a crash has left, by a store that had larger ones:
// Badger replays each log into one memtable, and panics when that is full.
func roomForLogs(dir string, memtable int64) (int64, error) {
	logs, err := filepath.Glob(filepath.Join(dir, logPattern))
	if err != nil {
		return 0, err
	}
	for _, path := range logs {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		memtable = max(memtable, info.Size()/2) // a log is as long as two memtables from its start
	}
	return memtable, nil
}

// valueThreshold keeps every record in the tables: the largest is vfs.MaxRecord. Badger wants it under a tenth and more
// of a memtable.
func valueThreshold(memtable int64) int64 { return min(2*vfs.MaxRecord, memtable/8) }

// badgerLog passes on what Badger logs that matters.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(f string, a ...any) { l.log.Error("badger: " + sprint(f, a)) }
func (l badgerLog) Infof(f string, a ...any)  { l.log.Debug("badger: " + sprint(f, a)) }
func (l badgerLog) Debugf(string, ...any)     {}

// Warningf passes warnings on, but for those about the sizes of caches: these come every minute after much work, and who uses
// a store cannot choose the sizes.
func (l badgerLog) Warningf(f string, a ...any) {
	level := slog.LevelWarn
	if strings.HasPrefix(f, "%s might be too small") || strings.HasPrefix(f, "Cache life expectancy") {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "badger: "+sprint(f, a))
}

func sprint(f string, a []any) string { return strings.TrimSpace(fmt.Sprintf(f, a...)) }
