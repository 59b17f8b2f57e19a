package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// shelf holds the workspaces that sessions use. They are opened when one comes, by name: whoever has the name then, so
// that a workspace which was renamed is not found under its old one.
type shelf struct {
	store *casstore.Store
	only  []string // names that may be opened; nil for all

	mu     sync.Mutex
	closed bool
	books  map[*casstore.Workspace]*book
	byName map[string]*book // as sessions know them
}

// book is a workspace on the shelf.
type book struct {
	tree  *casstore.Workspace
	opens int // how often the store has been asked for it, and must be told of its end
	names map[string]struct{}
	used  time.Time // when a session last was seen at it
	history
}

func newShelf(store *casstore.Store, only []string) *shelf {
	return &shelf{store: store, only: only, books: map[*casstore.Workspace]*book{}, byName: map[string]*book{}}
}

// open returns the authority of a workspace: ErrNoWorkspace for one that there is not, or that is not served.
func (s *shelf) open(ctx context.Context, name string) (vfs.Authority, error) {
	if s.only != nil && !slices.Contains(s.only, name) {
		return nil, vfs.ErrNoWorkspace
	}
	tree, err := s.store.OpenWorkspace(ctx, name)
	if err != nil {
		return nil, err
	}
	if !s.put(tree, name) {
		return nil, errors.Join(fmt.Errorf("open workspace %q: %w", name, vfs.ErrClosed), tree.Close())
	}
	return tree.Authority(), nil
}

func (s *shelf) put(tree *casstore.Workspace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	b := s.books[tree]
	if b == nil {
		b = &book{tree: tree, names: map[string]struct{}{}}
		s.books[tree] = b
	}
	b.opens++
	b.names[name] = struct{}{}
	b.used = time.Now()
	s.byName[name] = b
	return true
}

// sample notes where the workspaces are, and closes those that have had no session for a while. inUse are names that
// sessions have.
func (s *shelf) sample(ctx context.Context, inUse map[string]struct{}, now time.Time) error {
	s.mu.Lock()
	var used, idle []*book
	for _, b := range s.books {
		if b.isIn(inUse) {
			b.used = now
		}
		if now.Sub(b.used) <= idleWorkspace {
			used = append(used, b)
			continue
		}
		s.takeLocked(b)
		idle = append(idle, b)
	}
	s.mu.Unlock()
	for _, b := range used {
		s.note(ctx, b, now)
	}
	return closeAll(idle)
}

// isIn reports whether one of the names under which the workspace was opened is in a set.
func (b *book) isIn(names map[string]struct{}) bool {
	for name := range b.names {
		if _, ok := names[name]; ok {
			return true
		}
	}
	return false
}

func (s *shelf) note(ctx context.Context, b *book, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	p, err := b.tree.Authority().Position(ctx)
	if err != nil {
		return // it is being closed, or takes its time: its sessions hear of it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.history.note(p.Rev, now)
}

func (s *shelf) takeLocked(b *book) {
	delete(s.books, b.tree)
	for name := range b.names {
		if s.byName[name] == b {
			delete(s.byName, name)
		}
	}
}

// head returns the newest revision of a workspace that was seen.
func (s *shelf) head(name string) vfs.Rev {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byName[name]
	if b == nil || len(b.marks) == 0 {
		return 0
	}
	return b.marks[len(b.marks)-1].rev
}

// lack returns how many revisions of a workspace are above acked, and for how long there has been one.
func (s *shelf) lack(name string, acked vfs.Rev, now time.Time) (n uint64, lag time.Duration) {
	s.mu.Lock()
	b := s.byName[name]
	if b == nil {
		s.mu.Unlock()
		return 0, 0
	}
	lag = b.lag(acked, now)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	counted, oldest, err := b.tree.RevisionsAfter(ctx, acked, maxCounted)
	if err != nil || counted == 0 {
		return 1, lag // at least: it is being closed, or the log does not reach back
	}
	// The log knows of what was made while nobody looked, and the marks of what is above acked and too old for the log.
	return uint64(counted), max(lag, now.Sub(time.Unix(0, int64(oldest))))
}

// close closes all workspaces. Nobody may use one any more.
func (s *shelf) close() error {
	s.mu.Lock()
	s.closed = true
	var all []*book
	for _, b := range s.books {
		s.takeLocked(b)
		all = append(all, b)
	}
	s.mu.Unlock()
	return closeAll(all)
}

func closeAll(books []*book) error {
	var errs []error
	for _, b := range books {
		for range b.opens {
			errs = append(errs, b.tree.Close())
		}
	}
	return errors.Join(errs...)
}
