package casstore

import (
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
	"golang.org/x/sys/unix"
)

// Badger maps its tables, and every page of them that has been read or written counts as the process's memory until the
// table is deleted: with the hundreds of megabytes of records that a day of work leaves, that came to more than the heap,
// and a compaction brings in what it reads and what it writes. The pages themselves are the page cache's, which keeps
// them as long as there is room, so to map them again costs a microsecond for 64 KiB. tableMaps takes the mappings'
// pages out of the process when they have become many.
//
// Badger has no call for it either: its tables are found by their names, as tablePool finds its allocators. Where they
// are not, nothing is done.
type tableMaps struct {
	reads atomic.Uint64 // keys, since the store was opened

	mu      sync.Mutex
	levels  []tableLevel // empty: unknown, or closed
	limit   int64        // bytes of mapped files in memory from which on they are taken out
	trimmed time.Time    // when they last were

	work    chan struct{} // buffered: there has been a commit
	stop    chan struct{} // closed by close
	watcher sync.WaitGroup
}

// tableLevel is a level of Badger's tree, with its own lock.
type tableLevel struct {
	mu     *sync.RWMutex
	tables *[]*table.Table
}

// open is called before anybody reads.
func (m *tableMaps) open(db *badger.DB) {
	m.work, m.stop = make(chan struct{}, 1), make(chan struct{})
	m.levels, m.limit = tableLevels(db), mappedMost
	m.watcher.Go(m.watch)
}

// close must be called before Badger is closed, which unmaps the tables.
func (m *tableMaps) close() {
	close(m.stop)
	m.watcher.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.levels = nil
}

// committed says that there is something to do for Badger.
func (m *tableMaps) committed() {
	select {
	case m.work <- struct{}{}:
	default:
	}
}

// watch looks at the memory from each commit on until nothing has changed for a while: compactions come some time after
// it, and take seconds.
func (m *tableMaps) watch() {
	for {
		select {
		case <-m.work:
		case <-m.stop:
			return
		}
		last := int64(0)
		for still := 0; still < mappedStill; still++ {
			select {
			case <-time.After(mappedPoll):
			case <-m.stop:
				return
			}
			if now := mappedBytes(); now != last {
				last, still = now, 0
			}
			m.trim()
		}
	}
}

// tableLevels returns the levels of Badger's tree, or nil when they are not as known.
func tableLevels(db *badger.DB) []tableLevel {
	control := reflect.ValueOf(db).Elem().FieldByName("lc")
	if control.Kind() != reflect.Pointer || control.IsNil() || control.Elem().Kind() != reflect.Struct {
		return nil
	}
	handlers := control.Elem().FieldByName("levels")
	if handlers.Kind() != reflect.Slice || handlers.Type().Elem().Kind() != reflect.Pointer {
		return nil
	}
	levels := make([]tableLevel, handlers.Len())
	for i := range levels {
		h := handlers.Index(i).Elem()
		mu, tables := h.FieldByName("RWMutex"), h.FieldByName("tables")
		if !mu.IsValid() || !tables.IsValid() || mu.Type() != reflect.TypeFor[sync.RWMutex]() ||
			tables.Type() != reflect.TypeFor[[]*table.Table]() {
			return nil
		}
		levels[i] = tableLevel{
			mu:     (*sync.RWMutex)(unsafe.Pointer(mu.UnsafeAddr())),
			tables: (*[]*table.Table)(unsafe.Pointer(tables.UnsafeAddr())),
		}
	}
	return levels
}

// read counts a key that has been read, and looks at the memory now and then.
func (m *tableMaps) read() {
	if m.reads.Add(1)%mappedEvery == 0 {
		m.trim()
	}
}

// trim takes the tables' pages out of the process if it has too many of files. What is left then, of the program, of
// Badger's logs, and of the tables that a compaction is just writing, is not to be looked for again at once.
func (m *tableMaps) trim() {
	if !m.mu.TryLock() {
		return // somebody does it
	}
	defer m.mu.Unlock()
	if time.Since(m.trimmed) > mappedRest {
		m.limit = mappedMost
	}
	if len(m.levels) == 0 || mappedBytes() < m.limit {
		return
	}
	for _, l := range m.levels {
		l.unload()
	}
	m.limit, m.trimmed = max(mappedMost, mappedBytes()+mappedStep), time.Now()
}

// unload takes a level's pages out of the process. Whoever reads one meanwhile has it back.
func (l tableLevel) unload() {
	for _, t := range l.hold() {
		if t.MmapFile != nil && len(t.Data) > 0 {
			_ = unix.Madvise(t.Data, unix.MADV_DONTNEED) // of a shared mapping: nothing is lost
		}
		_ = t.DecrRef() // the last one deletes the file; one that stays is removed when the store is opened
	}
}

// hold returns the level's tables, each kept from being unmapped.
func (l tableLevel) hold() []*table.Table {
	l.mu.RLock()
	defer l.mu.RUnlock()
	tables := append([]*table.Table(nil), *l.tables...)
	for _, t := range tables {
		t.IncrRef()
	}
	return tables
}

// mappedBytes is how much of the process's memory is of files, or zero when the system does not say (proc_pid_statm(5)).
func mappedBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	var size, resident, shared int64
	if err == nil {
		_, err = fmt.Sscan(string(b), &size, &resident, &shared)
	}
	if err != nil {
		return 0
	}
	return shared * int64(os.Getpagesize())
}
