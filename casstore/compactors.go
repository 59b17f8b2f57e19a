package casstore

import (
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/dgraph-io/badger/v4"
)

// compactors are the goroutines in which Badger merges tables. Each looks twenty times a second whether there is something
// to merge, which costs a daemon that does nothing 0.6 % of a core, and a battery its rest. So they are ended once nothing
// has been committed for a while and nothing is left to merge, and started with the next commit.
//
// Badger does that around a Flatten and has no other call for it, so its own functions are taken by their names. Without
// them the program does not link.
type compactors struct {
	db    *badger.DB
	after time.Duration // without a commit, until they are ended

	commits atomic.Uint64
	asleep  atomic.Bool
	wake    chan struct{} // buffered: there has been a commit since they were ended
	stop    chan struct{} // closed by close
	watcher sync.WaitGroup

	mu sync.Mutex // of Badger's start and end of them
}

//go:linkname stopCompactions github.com/dgraph-io/badger/v4.(*DB).stopCompactions
func stopCompactions(*badger.DB)

//go:linkname startCompactions github.com/dgraph-io/badger/v4.(*DB).startCompactions
func startCompactions(*badger.DB)

// open is called before anything is committed.
func (c *compactors) open(db *badger.DB, after time.Duration) {
	c.db, c.after = db, after
	c.wake, c.stop = make(chan struct{}, 1), make(chan struct{})
	c.asleep.Store(false)
	c.watcher.Go(c.watch)
}

// close must be called before Badger is closed.
func (c *compactors) close() {
	close(c.stop)
	c.watcher.Wait()
}

// committed says that there may be something to merge.
func (c *compactors) committed() {
	c.commits.Add(1)
	if c.asleep.Load() {
		c.rouse()
	}
}

func (c *compactors) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *compactors) watch() {
	for {
		seen := c.commits.Load()
		select {
		case <-time.After(c.after):
		case <-c.stop:
			return
		}
		if c.commits.Load() != seen || !c.idle() {
			continue
		}
		c.end()
		// Who commits after this look finds them asleep.
		if c.commits.Load() == seen {
			select {
			case <-c.wake:
			case <-c.stop:
				return
			}
		}
		c.begin()
	}
}

// idle reports whether no level is too full.
func (c *compactors) idle() bool {
	for _, l := range c.db.Levels() {
		if l.Adjusted >= 1 {
			return false
		}
	}
	return true
}

// end ends them, once what they are doing is done.
func (c *compactors) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep.Store(true)
	stopCompactions(c.db)
}

func (c *compactors) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asleep.Swap(false) {
		startCompactions(c.db)
	}
}

// flatten merges all tables. Badger ends the compactors for it, and starts them after it.
func (c *compactors) flatten() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.db.Flatten(1)
	if c.asleep.Swap(false) {
		c.rouse()
	}
	return err
}
