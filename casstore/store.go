package casstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/writebuf"
)

// Options say how a store is opened. The zero Options open one that is there.
type Options struct {
	// Logger hears what nobody else is told. Nil: nobody.
	Logger *slog.Logger
	// Clock gives the times of files and revisions. Nil: time.Now.
	Clock func() time.Time
	// Create makes the store when its directory is missing or empty.
	Create bool
	// Key is what the store is encrypted with, KeyLen random bytes, or empty. A store is encrypted from when it is made, or
	// never; vfs.ErrKey for a key that is not the store's, or a missing one.
	Key []byte
	// DefaultHistory is for how long history is kept when nobody has said: see [Store.KeepHistory]. Zero: none.
	DefaultHistory time.Duration
	// BufferBytes bounds the dirty file bytes in memory. Zero: 128 MiB.
	BufferBytes int64
	// CommitEvery is how long a change stays in memory at the most, while the disk can keep up. Zero: a second.
	CommitEvery time.Duration

	// CacheBytes is what packs may take of a store with replicas, whose chunks can be fetched again. Zero: 10 GiB.
	CacheBytes int64

	// hook fails steps of commits, for tests: a step whose hook fails is not done, as if the process had died before it.
	hook func(step string) error
	// packHook fails operations on packs, for tests.
	packHook func(pack.Op) error
	// packSize bounds packs, for tests. Zero: the package's own size.
	packSize int64

	// loadLoose is for how many chunks a load writes stand-ins, for tests. Zero: the package's own number.
	loadLoose int

	// flattenOver is how many layers a fork may have, for tests. Zero: the package's own number.
	flattenOver int

	// cacheCost bounds what is cached of each workspace, for tests. Zero: the package's own bound.
	cacheCost int
	// reserve is the free space that is kept, for tests. Zero: by the size of the disk.
	reserve uint64
	// compactorsAfter is after how long without a commit Badger's compactors end, for tests. Zero: compactorsAfter.
	compactorsAfter time.Duration
}

// Store is an open store. One process has it open; all methods are safe for concurrent use.
type Store struct {
	dir        string
	opt        Options
	log        *slog.Logger
	lock       *os.File
	witness    *witness
	db         *badger.DB
	maps       tableMaps
	compactors compactors
	keys       keys // empty when the store is not encrypted
	epoch      vfs.Epoch
	packs      *pack.Set
	pool       *writebuf.Pool
	space      *space

	chunks    *chunks
	flusher   *flusher
	committer *committer
	collector *collector
	flattener *flattener

	snapshotsAt atomic.Int64 // when the set of snapshots changed last (Past.Changed)

	headRev  atomic.Uint64
	inos     atomic.Uint64 // the next inode's number
	nextWS   atomic.Uint64
	packEnds map[uint32]uint32   // as committed; the committer's
	emptied  map[uint32]struct{} // packs that no commit is to name again; the committer's

	reading   reading
	window    window                  // the committer's, like history and what follows
	history   window                  // for which what was replaced can be read
	forgotten vfs.Rev                 // the log has no revisions below it
	changed   map[workspaceID]vfs.Rev // the last revision that has changed each workspace, since the store was opened
	opened    vfs.Rev                 // the head when it was

	format   uint64   // the version of its layout; the committer's
	forks    sync.Map // workspaceID → forkRecord
	replicas replicas
	guests   guests
	merging  turn           // of the one merge that is under way: two of the same workspaces would both begin with the same state
	calls    sync.WaitGroup // of authorities and views

	failMu sync.Mutex
	failed error

	mu     sync.Mutex // taken before a tree's lock; guards what follows
	closed bool
	open   map[workspaceID]*Workspace
	views  map[*View]struct{}
	locked map[workspaceID]struct{} // that cannot be opened
}

// Open opens the store in dir. ErrNotStore when there is none (see Options.Create) or dir holds something else, ErrInUse
// when a process has it open, ErrNewerFormat when a later version made it, ErrCorrupt when it is damaged.
func Open(dir string, o Options) (*Store, error) {
	s, err := open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

func open(dir string, o Options) (*Store, error) {
	s := &Store{
		dir: dir, opt: o, log: o.Logger, open: make(map[workspaceID]*Workspace), emptied: make(map[uint32]struct{}),
		reading: reading{open: make(map[vfs.Rev]int), pins: make(pins)}, changed: make(map[workspaceID]vfs.Rev),
		views: make(map[*View]struct{}), merging: newTurn(), locked: make(map[workspaceID]struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.snapshotsChanged()
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.letGo())
	}
	return s, nil
}

// start brings a store up. When it fails, letGo undoes what it has done.
func (s *Store) start() error {
	if err := s.claim(); err != nil {
		return err
	}
	reserve, memtable, err := s.sizes()
	if err != nil {
		return err
	}
	if s.witness, err = openWitness(s.dir); err != nil {
		return err
	}
	if err := s.openRecords(memtable); err != nil {
		return err
	}
	// A pack is emptied by copying what lives in it, which on a full disk must fit into half of the reserve.
	packSize := defaulted(s.opt.packSize, min(pack.DefaultPackSize, int64(reserve/2)))
	if s.opt.CacheBytes > 0 {
		packSize = min(packSize, max(s.opt.CacheBytes/cachePacks, chunk.MaxSize))
	}
	s.packs, err = pack.Open(filepath.Join(s.dir, packDir), pack.Options{PackSize: packSize, Key: s.keys.packs, Hook: s.opt.packHook})
	if err != nil {
		return mapError(err)
	}
	if err := s.packs.TruncateTo(s.packEnds); err != nil {
		return mapError(err)
	}
	s.pool = writebuf.NewPool(defaulted(s.opt.BufferBytes, defaultBuffer))
	s.space = newSpace(s, s.dir, reserve)
	s.chunks = newChunks(s)
	s.flusher = newFlusher(s)
	s.pool.OnPressure(s.flusher.pressure)
	s.flattener = newFlattener(s)
	s.committer = newCommitter(s, defaulted(s.opt.CommitEvery, defaultCommitEvery))
	s.collector = newCollector(s)
	err = s.replay(context.Background())
	if err == nil {
		err = s.dropLoads(context.Background())
	}
	if err == nil {
		err = s.beginHistory(context.Background())
	}
	if err == nil {
		err = s.adoptFamily(context.Background())
	}
	if err != nil {
		s.stop()
		return err
	}
	s.flattener.hint()
	return nil
}

// stop ends the goroutines. What is dirty stays so.
func (s *Store) stop() {
	s.collector.close()
	s.flattener.close()
	s.flusher.close()
	s.committer.close()
}

// openRecords opens Badger and sees that it has everything that was committed.
func (s *Store) openRecords(memtable int64) (err error) {
	if err := s.witness.saveLogs(); err != nil {
		return err
	}
	if s.db, err = openBadger(filepath.Join(s.dir, badgerDir), memtable, s.keys.records, s.log); err != nil {
		return err
	}
	s.maps.open(s.db)
	s.compactors.open(s.db, defaulted(s.opt.compactorsAfter, compactorsAfter))
	if err := s.recover(); err != nil {
		return err
	}
	return s.witness.forgetLogs()
}

const (
	badgerDir = "badger"
	packDir   = "packs"
	lockFile  = "LOCK"
)

func defaulted[T comparable](v, d T) T {
	if v == *new(T) {
		return d
	}
	return v
}

// claim makes sure that dir is a store's and that no other process has it.
func (s *Store) claim() error {
	if s.opt.Create {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(s.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("no such directory: %w", vfs.ErrNotStore)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("not a directory: %w", vfs.ErrNotStore)
	case err != nil:
		return err
	}
	_, err = os.Stat(filepath.Join(s.dir, badgerDir))
	fresh := errors.Is(err, os.ErrNotExist)
	if fresh && (!s.opt.Create || !onlyOurs(entries)) {
		return vfs.ErrNotStore
	}
	if s.lock, err = os.OpenFile(filepath.Join(s.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return vfs.ErrInUse
	}
	return s.useKey(fresh)
}

// onlyOurs reports whether a directory holds nothing, or what is left of a store that was never finished being made,
// so that a store may be made there.
func onlyOurs(entries []os.DirEntry) bool {
	for _, e := range entries {
		switch e.Name() {
		case lockFile, witnessFile, encryptionFile, "lost+found", "control.sock", "daemon.log":
		default:
			return false
		}
	}
	return true
}

// sizes chooses the reserve and the size of Badger's memtables by the size of the disk.
func (s *Store) sizes() (reserve uint64, memtable int64, err error) {
	disk, err := s.diskSize()
	if err != nil {
		return 0, 0, err
	}
	reserve, memtable = largeReserve, memtableSize
	if disk < smallDisk {
		reserve, memtable = smallReserve, smallMemtable
	}
	return defaulted(s.opt.reserve, reserve), memtable, nil
}

// diskSize is how many bytes the disk has.
func (s *Store) diskSize() (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return 0, fmt.Errorf("statfs: %w", err)
	}
	return st.Blocks * uint64(st.Bsize), nil
}

// Close commits what is dirty, waits for all goroutines and lets go of the directory. Open workspaces are closed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return vfs.ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	s.collector.close()
	s.flattener.close()
	var errs []error
	for _, w := range s.openWorkspaces() {
		errs = append(errs, w.shut())
	}
	for _, v := range s.openViews() {
		errs = append(errs, v.Close())
	}
	s.calls.Wait()
	s.flusher.close()
	s.committer.close()
	errs = append(errs, s.letGo())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// letGo closes what is open of the files.
func (s *Store) letGo() error {
	var errs []error
	if s.pool != nil {
		s.pool.Close()
	}
	if s.packs != nil {
		errs = append(errs, s.packs.Close())
	}
	if s.db != nil {
		s.maps.close()
		s.compactors.close()
		errs = append(errs, s.db.Close())
	}
	if s.witness != nil {
		errs = append(errs, s.witness.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

func (s *Store) head() vfs.Rev { return vfs.Rev(s.headRev.Load()) }

func (s *Store) publish(r vfs.Rev) { s.headRev.Store(uint64(r)) }

func (s *Store) nextIno() vfs.Ino { return vfs.Ino(s.inos.Add(1) - 1) }

func (s *Store) peekIno() vfs.Ino { return vfs.Ino(s.inos.Load()) }

func (s *Store) peekWS() workspaceID { return workspaceID(s.nextWS.Load()) }

func (s *Store) now() vfs.Time {
	if s.opt.Clock != nil {
		return vfs.TimeOf(s.opt.Clock())
	}
	return vfs.Time(time.Now().UnixNano())
}

func (s *Store) hook(step string) error {
	if s.opt.hook == nil {
		return nil
	}
	if err := s.opt.hook(step); err != nil {
		return s.fail(err)
	}
	return nil
}

// fail makes the store refuse every later commit: after an error in the middle of writing, what is on disk is known
// only to recover, when the store is opened again.
func (s *Store) fail(err error) error {
	s.failMu.Lock()
	defer s.failMu.Unlock()
	if s.failed == nil {
		s.failed = err
		if s.space != nil {
			s.space.left.Store(math.MinInt64 / 2) // whoever wants to write looks
		}
		s.log.Error("the store has failed; nothing more is written until it is opened again", "err", err)
	}
	return err
}

func (s *Store) failure() error {
	s.failMu.Lock()
	defer s.failMu.Unlock()
	if s.failed == nil {
		return nil
	}
	return fmt.Errorf("after an earlier error: %w", s.failed)
}

func (s *Store) openWorkspaces() []*Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Workspace, 0, len(s.open))
	for _, w := range s.open {
		list = append(list, w)
	}
	return list
}

// edit commits changes of the store's own records.
func (s *Store) edit(ctx context.Context, f func(*revision) error) error {
	_, err := s.committer.commit(ctx, request{edit: f})
	return err
}
