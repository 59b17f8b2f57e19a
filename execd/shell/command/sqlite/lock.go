package sqlite

import (
	"sync"

	"github.com/ncruces/go-sqlite3"
	sqlitevfs "github.com/ncruces/go-sqlite3/vfs"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// locks are those on one file, as section 3 of "File Locking And Concurrency" in SQLite's documents has them: any number
// may read; one of them may have reserved the right to write; when it wants to, no more readers come (pending), and when
// the last has gone it writes.
type locks struct {
	key      lockKey
	users    int
	readers  int
	reserved bool
	pending  bool
}

// held is what one open file has of them.
type held struct {
	level             sqlitevfs.LockLevel
	reserved, pending bool
}

type lockKey struct {
	tree vfs.Tree // of one script
	ino  vfs.Ino
}

// locked are the files that are open as databases. The lock of it is held for the moment of a change only: nobody waits for
// another's, SQLite tries again if it is told to.
var locked struct {
	mu    sync.Mutex
	files map[lockKey]*locks
}

// lockOf returns the locks on a file, which the caller must release.
func lockOf(tree vfs.Tree, ino vfs.Ino) *locks {
	locked.mu.Lock()
	defer locked.mu.Unlock()
	key := lockKey{tree, ino}
	l := locked.files[key]
	if l == nil {
		if locked.files == nil {
			locked.files = make(map[lockKey]*locks)
		}
		l = &locks{key: key}
		locked.files[key] = l
	}
	l.users++
	return l
}

func (l *locks) release() {
	locked.mu.Lock()
	defer locked.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(locked.files, l.key)
	}
}

// lock raises what h has to a level, or gives sqlite3.BUSY.
func (l *locks) lock(h *held, level sqlitevfs.LockLevel) error {
	locked.mu.Lock()
	defer locked.mu.Unlock()
	if h.level >= level {
		return nil
	}
	switch level {
	case sqlitevfs.LOCK_SHARED:
		if l.pending {
			return sqlite3.BUSY
		}
		l.readers++
	case sqlitevfs.LOCK_RESERVED:
		if l.reserved || l.pending {
			return sqlite3.BUSY
		}
		l.reserved, h.reserved = true, true
	default:
		if l.pending && !h.pending {
			return sqlite3.BUSY
		}
		l.pending, h.pending = true, true
		h.level = sqlitevfs.LOCK_PENDING
		if l.readers > 1 {
			return sqlite3.BUSY
		}
	}
	h.level = level
	return nil
}

// unlock lowers what h has to a level, to LOCK_SHARED or LOCK_NONE.
func (l *locks) unlock(h *held, level sqlitevfs.LockLevel) {
	locked.mu.Lock()
	defer locked.mu.Unlock()
	if h.level <= level {
		return
	}
	if h.reserved {
		l.reserved, h.reserved = false, false
	}
	if h.pending {
		l.pending, h.pending = false, false
	}
	if level == sqlitevfs.LOCK_NONE {
		l.readers--
	}
	h.level = level
}

func (l *locks) isReserved() bool {
	locked.mu.Lock()
	defer locked.mu.Unlock()
	return l.reserved || l.pending
}
