package mirror

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/mirror/localpath"
	"github.com/carrelfs/carrel/syncwire"
)

// Peer is the authority as a mirror reaches it: *syncwire.Client.
type Peer interface {
	vfs.Authority
	PushWith(ctx context.Context, p vfs.Push, ids []chunk.ID, from vfs.Chunks) (vfs.Outcome, error)
	Follow(ctx context.Context, in vfs.InoRange, f syncwire.Follower) error
	Welcome(ctx context.Context) (syncwire.Welcome, error)
	Acknowledge(rev vfs.Rev)
	OpenService(ctx context.Context, name string) (syncwire.Stream, error)
	Stats() syncwire.ClientStats
}

// Config says what a mirror is of.
type Config struct {
	// Dir is the mirror's own, and is made when it is missing: see Identity.
	Dir  string
	Peer Peer
	// Name stands in the names of conflicting copies. Empty: some of the mirror's id.
	Name string
	// CacheBytes bounds the chunks on disk that can be fetched again. Zero: 10 GiB.
	CacheBytes int64
	// LocalFsync lets Fsync and Sync return when their work is durable in Dir.
	LocalFsync bool
	// ReadOnly refuses every change of the tree.
	ReadOnly bool
	// Exclusive has no other mirror write while this one may (package exclusive). It is read-only while another has that.
	Exclusive bool
	// Prefetch says of which files the bytes are fetched before anybody reads them: PrefetchLearned, PrefetchNone, PrefetchAll, or
	// those whose paths match a pattern of package doublestar. No more are fetched than three quarters of CacheBytes.
	Prefetch string
	// Local are the paths that stay on this machine, in lines of a .gitignore (package localpath).
	Local []string
	Log   *slog.Logger     // nil for none
	Clock func() time.Time // of the local store; nil for time.Now

	commitEvery time.Duration // for tests
}

// Mirror is a replica that is open. All methods are safe for concurrent use.
type Mirror struct {
	config  Config
	log     *slog.Logger
	id      [16]byte
	store   *casstore.Store
	ws      *casstore.Workspace
	replica *casstore.Replica
	loader  *loader
	fetcher *fetcher
	tree    *Tree

	prefetch *prefetcher
	local    *local // nil without local paths

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	group sync.WaitGroup
	turn  turn // held by whoever changes what the authority is known to have

	written  atomic.Int64 // bytes, by writers of the tree
	attached atomic.Bool  // the feed has begun, and nothing has come
	stats    counters

	mu     sync.Mutex
	pos    vfs.Position // up to where the mirror has everything; its cursor is zero while that is nothing
	pushed vfs.Rev      // the local revision up to which the authority has everything
	sent   int64        // of written, how many bytes are pushed
	moved  chan struct{}
	refuse error // why the authority does not take what is pushed, or nil
	writer writer
	resync bool // the next feed is to begin with a snapshot
	quiet  bool // changes of the tree wait until a merge is done
	anew   context.CancelFunc
	kick   chan struct{} // has room for one: something is to be pushed, although nothing was committed

	// Of whoever has the turn:
	flying *flight             // the push that is under way
	ahead  map[vfs.Key]vfs.Rev // keys of pushes beyond the cursor, and their revision
	digest digestWatch
	doubt  bool // the authority's store may be in another life than its epoch says
}

type counters struct {
	pushes, stale, conflicts, mismatches, repaired, fetched, fetchedBytes, resyncs, records, lives atomic.Uint64
}

// workspace is the name of the replica in the mirror's store, which has no other.
const workspace = "mirror"

// Identity returns the id of the mirror that keeps its state in dir, and makes one there when it is missing. Leases and
// pushes of before are found under it, so whoever loses the state must lose the id with it.
func Identity(dir string) (id [16]byte, err error) {
	file := filepath.Join(dir, "id")
	b, err := os.ReadFile(file)
	if err == nil && len(b) == len(id) {
		return [16]byte(b), nil
	}
	if err == nil {
		return id, fmt.Errorf("%s: %d bytes are no id: %w", file, len(b), vfs.ErrCorrupt)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return id, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return id, err
	}
	rand.Read(id[:])
	return id, renameio.WriteFile(file, id[:], 0o600, renameio.WithTempDir(dir))
}

// Open opens the mirror in a directory, or begins one. It does not wait for the authority: what needs it does.
func Open(ctx context.Context, c Config) (*Mirror, error) {
	id, err := Identity(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open mirror: %w", err)
	}
	m := &Mirror{
		config: c, log: c.Log, id: id, turn: newTurn(), moved: make(chan struct{}), kick: make(chan struct{}, 1),
		ahead: make(map[vfs.Key]vfs.Rev),
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if m.config.Name == "" {
		m.config.Name = fmt.Sprintf("%x", id[:3])
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	if err := m.start(ctx); err != nil {
		m.stop()
		if m.ws != nil {
			err = errors.Join(err, m.local.close(), m.ws.Close())
		}
		if m.store != nil {
			err = errors.Join(err, m.store.Close())
		}
		return nil, fmt.Errorf("open mirror %s: %w", c.Dir, err)
	}
	return m, nil
}

func (m *Mirror) start(ctx context.Context) (err error) {
	rules, err := localpath.ParseRules(m.config.Local)
	if err == nil {
		err = CheckPrefetch(m.config.Prefetch)
	}
	if err != nil {
		return err
	}
	m.store, err = casstore.Open(filepath.Join(m.config.Dir, "store"), casstore.Options{
		Create: true, Logger: m.config.Log, Clock: m.config.Clock, CacheBytes: m.config.CacheBytes,
		CommitEvery: m.config.commitEvery,
	})
	if err != nil {
		return err
	}
	list, err := m.store.Workspaces(ctx)
	if err == nil && len(list) == 0 {
		_, err = m.store.CreateReplica(ctx, workspace)
	}
	if err != nil {
		return err
	}
	m.loader, m.fetcher, m.prefetch = newLoader(m), newFetcher(m), newPrefetcher(m)
	if m.ws, m.replica, err = m.store.OpenReplica(ctx, workspace, origin{m}); err != nil {
		return err
	}
	m.tree = newTree(m)
	if err := m.recall(); err != nil {
		return err
	}
	if len(m.config.Local) > 0 {
		if m.local, err = m.openLocal(ctx, rules); err != nil {
			return err
		}
		m.group.Go(m.sweepLocal)
	}
	m.group.Go(m.followAlways)
	m.group.Go(m.pushAlways)
	m.group.Go(m.leaseAlways)
	m.group.Go(m.prefetchAlways)
	m.group.Go(m.writerAlways)
	return nil
}

// Close commits, lets go of the authority and closes the store. What is not pushed yet is pushed by the next process: to
// wait for that, call Sync or Now before.
func (m *Mirror) Close() error {
	m.stop()
	m.group.Wait()
	return errors.Join(m.local.close(), m.ws.Close(), m.store.Close())
}

// Tree is the workspace, without what is local.
func (m *Mirror) Tree() *Tree { return m.tree }

// Presented is the workspace as it is to be mounted: with what is local.
func (m *Mirror) Presented() vfs.Tree {
	if m.local != nil {
		return m.local.tree
	}
	return m.tree
}

// turn is held by one at a time, also while it waits.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return interrupted(ctx)
	}
}

func (t turn) giveBack() { <-t }

// interrupted is the error of a call whose context has ended.
func interrupted(ctx context.Context) error {
	return fmt.Errorf("%w: %w", vfs.ErrInterrupted, context.Cause(ctx))
}

// position returns up to where the mirror has everything, and a channel that is closed when it or anything else that is
// waited for has changed.
func (m *Mirror) position() (vfs.Position, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pos, m.moved
}

// change changes what others wait for.
func (m *Mirror) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.moved)
	m.moved = make(chan struct{})
}

// await waits until done, which is called with the lock held, reports true or an error.
func (m *Mirror) await(ctx context.Context, done func() (bool, error)) error {
	for {
		m.mu.Lock()
		ok, err := done()
		moved := m.moved
		m.mu.Unlock()
		if ok || err != nil {
			return err
		}
		vfs.WillBlock(ctx)
		select {
		case <-moved:
		case <-ctx.Done():
			return interrupted(ctx)
		case <-m.ctx.Done():
			return vfs.ErrClosed
		}
	}
}

// pause waits for a while, or until the mirror is closed.
func (m *Mirror) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-m.ctx.Done():
	}
}
