package casstore

import (
	"reflect"
	"unsafe"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

// Badger keeps the memory that tables were built in for the next ones: of eight builders, each as much as the largest
// table ever took. With ours that came to more than 100 MiB, which nobody could use and Go's collector had to work
// around. There is no call for it, so the pool is looked for by its name, and emptied now and then; a builder that finds
// none takes new memory.

// tablePool returns Badger's pool of memory for building tables, or nil when it has none that is known.
func tablePool(db *badger.DB) *z.AllocatorPool {
	f := reflect.ValueOf(db).Elem().FieldByName("allocPool")
	if !f.IsValid() || f.Type() != reflect.TypeFor[*z.AllocatorPool]() {
		return nil
	}
	return *(**z.AllocatorPool)(unsafe.Pointer(f.UnsafeAddr()))
}

// trimTables gives back what Badger keeps for building tables.
func (s *Store) trimTables() {
	pool := tablePool(s.db)
	if pool == nil {
		return
	}
	const kept = 8 // at most
	for range kept {
		pool.Get(1, "none").Release()
	}
}
