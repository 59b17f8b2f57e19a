package wiretest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// Memory is an authority that keeps everything in memory, and forgets nothing. It is as simple as one can be: under one
// lock, sorted when it is read. Its leases and pushes lie open, so that tests of the kit can have it go wrong; one built of
// what package vfs offers for that is the example of package syncwire.
type Memory struct {
	mu       sync.Mutex
	position vfs.Position
	records  map[vfs.Key]vfs.Record // with tombstones
	chunks   map[chunk.ID]vfs.Chunk
	applied  map[vfs.PeerID][]appliedPush
	leases   map[vfs.PeerID][]vfs.InoRange
	nextIno  vfs.Ino
	changed  chan struct{} // closed by the next revision
}

type appliedPush struct {
	id      vfs.PushID
	sum     vfs.PushSum
	outcome vfs.Outcome
}

// NewMemory returns an authority of an empty workspace at revision 1: a root directory, owned by root.
func NewMemory(epoch vfs.Epoch) *Memory {
	m := &Memory{
		position: vfs.Position{Cursor: vfs.Cursor{Epoch: epoch}}, nextIno: vfs.RootIno + 1, changed: make(chan struct{}),
		records: make(map[vfs.Key]vfs.Record), chunks: make(map[chunk.ID]vfs.Chunk),
		applied: make(map[vfs.PeerID][]appliedPush), leases: make(map[vfs.PeerID][]vfs.InoRange),
	}
	root := vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: vfs.RootIno}
	m.commitLocked([]vfs.Record{{Key: vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}, Value: root.Append(nil)}})
	return m
}

// commitLocked makes a revision of what is another than before.
func (m *Memory) commitLocked(records []vfs.Record) {
	records = slices.DeleteFunc(records, func(r vfs.Record) bool {
		old := vfs.Record{Key: r.Key, Value: m.records[r.Key].Value}
		return r.Same(&old)
	})
	if len(records) == 0 {
		return
	}
	m.position.Rev++
	for _, r := range records {
		old := m.records[r.Key]
		m.position.Digest.Remove(&old)
		m.position.Digest.Add(&r)
		m.records[r.Key] = vfs.Record{Key: r.Key, Value: bytes.Clone(r.Value), Rev: m.position.Rev}
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// Position implements vfs.Authority.
func (m *Memory) Position(ctx context.Context) (vfs.Position, error) { return m.Wait(ctx, 0) }

// Barrier implements vfs.Authority. What was pushed has its revision, and nothing else writes.
func (m *Memory) Barrier(ctx context.Context) (vfs.Position, error) { return m.Wait(ctx, 0) }

// Wait implements vfs.Authority.
func (m *Memory) Wait(ctx context.Context, after vfs.Rev) (vfs.Position, error) {
	for ctx.Err() == nil {
		m.mu.Lock()
		position, changed := m.position, m.changed
		m.mu.Unlock()
		if position.Rev > after {
			return position, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return vfs.Position{}, fmt.Errorf("wait: %w", vfs.ErrInterrupted)
}

// Read implements vfs.Authority. It yields from a copy, so that writers need not wait.
func (m *Memory) Read(ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
	m.mu.Lock()
	position, records := m.position, slices.Collect(maps.Values(m.records))
	m.mu.Unlock()
	if !q.Range.Valid() {
		return vfs.Position{}, fmt.Errorf("read %v: %w", q.Range, vfs.ErrInvalid)
	}
	slices.SortFunc(records, func(a, b vfs.Record) int { return a.Key.Compare(b.Key) })
	return q.Select(position, slices.Values(records), func(r vfs.Record) error {
		if ctx.Err() != nil {
			return fmt.Errorf("read: %w", vfs.ErrInterrupted)
		}
		return yield(r)
	})
}

// Get implements vfs.Authority.
func (m *Memory) Get(_ context.Context, keys []vfs.Key) ([]vfs.Record, vfs.Rev, error) {
	if len(keys) > vfs.MaxGetKeys {
		return nil, 0, fmt.Errorf("get %d keys: %w", len(keys), vfs.ErrInvalid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	records := make([]vfs.Record, len(keys))
	for i, k := range keys {
		r := m.records[k]
		records[i] = vfs.Record{Key: k, Value: bytes.Clone(r.Value), Rev: r.Rev}
	}
	return records, m.position.Rev, nil
}

// Sums implements vfs.Authority.
func (m *Memory) Sums(_ context.Context, ranges []vfs.InoRange) ([]vfs.Digest, vfs.Rev, error) {
	if len(ranges) > vfs.MaxSumRanges {
		return nil, 0, fmt.Errorf("sums of %d intervals: %w", len(ranges), vfs.ErrInvalid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	digests := make([]vfs.Digest, len(ranges))
	for i, in := range ranges {
		if !in.Valid() {
			return nil, 0, fmt.Errorf("sum of %v: %w", in, vfs.ErrInvalid)
		}
		for _, r := range m.records {
			if in.Contains(r.Ino) {
				digests[i].Add(&r)
			}
		}
	}
	return digests, m.position.Rev, nil
}

// LeaseInos implements vfs.Authority.
func (m *Memory) LeaseInos(_ context.Context, peer vfs.PeerID, n uint64) (vfs.InoRange, error) {
	if n == 0 || n > vfs.MaxLease {
		return vfs.InoRange{}, fmt.Errorf("lease of %d: %w", n, vfs.ErrInvalid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in := vfs.InoRange{First: m.nextIno, Last: m.nextIno + vfs.Ino(n) - 1}
	m.nextIno = in.Last + 1
	m.leases[peer] = append(m.leases[peer], in)
	return in, nil
}

// Push implements vfs.Authority.
func (m *Memory) Push(_ context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := p.Sum()
	for _, a := range m.applied[peer] {
		if a.id == p.ID && a.sum == sum {
			return a.outcome, nil
		} else if a.id == p.ID {
			return vfs.Outcome{}, fmt.Errorf("push %x: %w", p.ID, vfs.ErrPushReused)
		}
	}
	stale, err := vfs.CheckPush(memoryView{m, peer}, &p)
	if err != nil {
		return vfs.Outcome{}, fmt.Errorf("push %x: %w", p.ID, err)
	}
	if len(stale) > 0 {
		for i := range stale {
			stale[i].Rev = m.records[stale[i].Key].Rev
		}
		return vfs.Outcome{Position: m.position, Stale: stale}, nil
	}
	absent, err := vfs.CheckChunks(&p, m.findLocked)
	if err != nil || len(absent) > 0 {
		return vfs.Outcome{Position: m.position, Missing: absent}, err
	}
	outcome := vfs.Outcome{Prev: m.position.Rev}
	records := make([]vfs.Record, len(p.Records))
	for i, r := range p.Records {
		records[i] = r.Record
	}
	m.commitLocked(records)
	outcome.Position = m.position
	m.applied[peer] = append(m.applied[peer], appliedPush{p.ID, sum, outcome})
	if old := len(m.applied[peer]) - vfs.PushMemory; old > 0 {
		m.applied[peer] = m.applied[peer][old:]
	}
	return outcome, nil
}

func (m *Memory) findLocked(id chunk.ID) (vfs.Chunk, bool) {
	c, ok := m.chunks[id]
	return c, ok
}

// memoryView is the state of a Memory, whose lock is held, for one peer.
type memoryView struct {
	m    *Memory
	peer vfs.PeerID
}

func (v memoryView) Value(k vfs.Key) ([]byte, error) { return v.m.records[k].Value, nil }

func (v memoryView) Names(kind vfs.KeyKind, ino vfs.Ino, yield func(string) bool) error {
	for k, r := range v.m.records {
		if k.Kind == kind && k.Ino == ino && r.Value != nil && !yield(k.Name) {
			break
		}
	}
	return nil
}

func (v memoryView) MayMake(ino vfs.Ino) (bool, error) {
	_, was := v.m.records[vfs.Key{Kind: vfs.KeyInode, Ino: ino}]
	return was || slices.ContainsFunc(v.m.leases[v.peer], func(in vfs.InoRange) bool { return in.Contains(ino) }), nil
}

// MissingChunks implements vfs.Authority.
func (m *Memory) MissingChunks(_ context.Context, ids []chunk.ID) (absent []chunk.ID, err error) {
	if len(ids) > vfs.MaxChunkIDs {
		return nil, fmt.Errorf("missing of %d chunks: %w", len(ids), vfs.ErrInvalid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if _, ok := m.chunks[id]; !ok {
			absent = append(absent, id)
		}
	}
	return absent, nil
}

// ReadChunks implements vfs.Authority.
func (m *Memory) ReadChunks(_ context.Context, ids []chunk.ID, yield func(vfs.Chunk) error) error {
	if len(ids) > vfs.MaxChunkIDs {
		return fmt.Errorf("read of %d chunks: %w", len(ids), vfs.ErrInvalid)
	}
	for _, id := range ids {
		m.mu.Lock()
		c, ok := m.chunks[id]
		m.mu.Unlock()
		if !ok {
			continue
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}

// WriteChunks implements vfs.Authority.
func (m *Memory) WriteChunks(_ context.Context, chunks []vfs.Chunk) error {
	if len(chunks) > vfs.MaxChunkIDs {
		return fmt.Errorf("write of %d chunks: %w", len(chunks), vfs.ErrInvalid)
	}
	var checker vfs.Checker
	if err := checker.Check(chunks...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range chunks {
		c.Stored = bytes.Clone(c.Stored)
		m.chunks[c.ID] = c
	}
	return nil
}
