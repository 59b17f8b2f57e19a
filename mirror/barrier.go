package mirror

import (
	"context"
	"fmt"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// Now is a barrier: it returns when the authority has everything that was written here before the call, and this mirror
// everything that was written there. Who watches the tree has been told.
func (m *Mirror) Now(ctx context.Context) error {
	for range barrierRounds {
		if err := m.exchange(ctx); err != nil {
			return err
		}
		edits, _, err := m.edits()
		if err != nil {
			return err
		}
		if len(edits) == 0 || m.config.ReadOnly {
			break // else a conflict was met, and what it has made of my side is not there yet, or somebody goes on writing
		}
	}
	return m.replica.FlushWatch(ctx)
}

// barrierRounds is how often a barrier pushes what a conflict on its way has left to be pushed.
const barrierRounds = 3

// exchange pushes what was written here and waits for what was written there.
func (m *Mirror) exchange(ctx context.Context) error {
	rev, err := m.replica.Commit(ctx, 0)
	if err == nil && !m.config.ReadOnly {
		err = m.awaitPushed(ctx, rev)
	}
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	at, err := m.config.Peer.Barrier(ctx)
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	err = m.await(ctx, func() (bool, error) { return m.pos.Epoch == at.Epoch && m.pos.Rev >= at.Rev, nil })
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	return nil
}

// AwaitWhole waits until all metadata is here.
func (m *Mirror) AwaitWhole(ctx context.Context) error {
	return m.await(ctx, func() (bool, error) { return m.loader.isWhole() && m.pos.Rev > 0, nil })
}

// Status says how a mirror is doing.
type Status struct {
	Link      syncwire.ClientStats
	Position  vfs.Position // up to where it has everything
	Whole     bool         // all metadata is here
	Pending   int          // records that the authority does not have
	Refused   error        // why it does not take them, or nil
	Conflicts int          // that are not resolved
	ReadOnly  bool         // because another mirror has the workspace to itself

	Pushes     uint64 // that were applied
	Stale      uint64 // that had to be made again
	Records    uint64 // that came from the authority
	Fetched    uint64 // chunks
	FetchedB   uint64 // bytes of these, as they are stored
	Mismatches uint64 // of digests
	Repaired   uint64 // records
	Compared   uint64 // how often everything was compared
}

// Known returns the authority's revision up to which the mirror has everything; it does not wait for a newer one.
func (m *Mirror) Known(context.Context) (vfs.Rev, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pos.Rev, nil
}

// Status returns how the mirror is doing.
func (m *Mirror) Status(ctx context.Context) (Status, error) {
	edits, _, err := m.edits()
	if err != nil {
		return Status{}, err
	}
	conflicts, err := m.Conflicts()
	if err != nil {
		return Status{}, err
	}
	c, readOnly := &m.stats, m.isWriter() != nil
	m.mu.Lock()
	defer m.mu.Unlock()
	return Status{
		Link: m.config.Peer.Stats(), Position: m.pos, Whole: m.loader.isWhole(), Pending: len(edits), Refused: m.refuse,
		Conflicts: len(conflicts), ReadOnly: readOnly, Pushes: c.pushes.Load(), Stale: c.stale.Load(), Records: c.records.Load(),
		Fetched: c.fetched.Load(), FetchedB: c.fetchedBytes.Load(), Mismatches: c.mismatches.Load(),
		Repaired: c.repaired.Load(), Compared: c.resyncs.Load(),
	}, ctx.Err()
}

func (m *Mirror) now() time.Time {
	if m.config.Clock != nil {
		return m.config.Clock()
	}
	return time.Now()
}

// Push returns when the authority has everything that was written here before the call.
func (m *Mirror) Push(ctx context.Context) error {
	rev, err := m.replica.Commit(ctx, 0)
	if err != nil {
		return err
	}
	return m.awaitPushed(ctx, rev)
}
