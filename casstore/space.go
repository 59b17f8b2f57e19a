package casstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// space keeps the store from filling its disk. Badger maps its files, so writing into them on a full disk is a SIGBUS:
// a reserve of free space is never given to callers, and is what commits and deletions work with. Work is admitted
// while what it will need fits beside the reserve; what does not fit is refused with ErrNoSpace, before anything is
// acknowledged.
type space struct {
	store   *Store
	dir     string
	reserve uint64

	// left is what may still be admitted before the disk is asked again.
	left atomic.Int64

	// promised is what the records need that are in memory only.
	promised atomic.Int64

	// garbage is how many bytes have been deleted or replaced since the collector ran: an estimate, because other files
	// may share them. When the store is opened it is not known, and not nothing.
	garbage atomic.Int64

	// inHistory is how many bytes of packs are there for the history only, as the collector has found.
	inHistory atomic.Int64

	// recordsRemoved and recordsWritten are how many bytes of records have been removed since Badger was compacted, and
	// how many written, some of which have replaced others: estimates, too. A store that is opened may have been full of
	// removed ones, so a compaction is worth it.
	recordsRemoved, recordsWritten atomic.Int64

	mu sync.Mutex // held while the disk is asked
}

func newSpace(s *Store, dir string, reserve uint64) *space {
	sp := &space{store: s, dir: dir, reserve: reserve}
	sp.garbage.Store(1)
	sp.recordsRemoved.Store(removedWorth)
	return sp
}

// admit returns nil when n more bytes will find room. When they do not, but there is garbage, it is collected first.
func (sp *space) admit(ctx context.Context, n int) error {
	if sp.left.Add(-int64(n)) >= 0 {
		return nil
	}
	ok, err := sp.ask(n)
	if ok || err != nil {
		return err
	}
	if sp.store.collector.mayFree() {
		vfs.WillBlock(ctx)
		if err := sp.store.collectNow(ctx, n); err != nil {
			return err
		}
		if ok, err := sp.ask(n); ok || err != nil {
			return err
		}
	}
	if sp.store.worthCompacting() {
		vfs.WillBlock(ctx)
		if err := sp.store.compactNow(ctx); err != nil {
			return err
		}
		if ok, err := sp.ask(n); ok || err != nil {
			return err
		}
	}
	return vfs.ErrNoSpace
}

// admitRecords is admit for n bytes that stay in memory as records until they are committed. When there are many, a
// commit is made before its time, and when there are too many, the caller waits for one.
func (sp *space) admitRecords(ctx context.Context, n int) error {
	if err := sp.admit(ctx, n); err != nil {
		return err
	}
	switch total := sp.promised.Add(int64(n)); {
	case total > recordBudget:
		_, err := sp.store.committer.commit(ctx, request{})
		return err
	case total > recordBudget/2:
		sp.store.committer.now()
	}
	return nil
}

// written says that n bytes of what was promised have been committed.
func (sp *space) written(n int64) { sp.promised.Add(-n) }

// ask looks at the disk, and sets what may be admitted without looking again.
func (sp *space) ask(n int) (bool, error) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if err := sp.store.failure(); err != nil {
		return false, err
	}
	free, err := sp.free()
	if err != nil {
		return false, err
	}
	free -= int64(sp.reserve) + sp.store.tablesSize() + sp.store.pool.Used() + sp.promised.Load() + int64(n)
	if free < 0 {
		sp.left.Store(0)
		return false, nil
	}
	sp.left.Store(min(free/2, spaceSlack))
	return true, nil
}

// free is the free space of the disk, in bytes, with what the packs have set aside already.
func (sp *space) free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(sp.dir, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", sp.dir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// room returns nil when a commit that writes n bytes to Badger can be made without touching the last of the disk.
func (sp *space) room(n int) error {
	free, err := sp.free()
	if err != nil {
		return err
	}
	// The bytes go to a log, then to a table, which compactions rewrite.
	if free < int64(sp.reserve)/4+3*int64(n) {
		return fmt.Errorf("%d bytes free: %w", free, vfs.ErrNoSpace)
	}
	return nil
}

// deleted counts bytes that may have become garbage.
func (sp *space) deleted(n uint64) { sp.garbage.Add(int64(n)) }

func (sp *space) statFS() (vfs.StatFS, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(sp.dir, &st); err != nil {
		return vfs.StatFS{}, fmt.Errorf("statfs %s: %w", sp.dir, err)
	}
	bs := uint64(st.Bsize)
	reserve := (sp.reserve + uint64(sp.store.pool.Used())) / bs
	less := func(n uint64) uint64 { return n - min(n, reserve) }
	return vfs.StatFS{
		BlockSize: uint32(st.Bsize), Blocks: st.Blocks, Free: less(st.Bfree), Available: less(st.Bavail),
		Files: 1 << 40, FilesFree: 1<<40 - min(1<<40, uint64(sp.store.peekIno())),
	}, nil
}
