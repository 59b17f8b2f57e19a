package wiretest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// bent is a Memory of which some methods are another's.
type bent struct {
	*Memory
	push        func(*Memory, vfs.PeerID, vfs.Push) (vfs.Outcome, error)
	read        func(*Memory, context.Context, vfs.Query, func(vfs.Record) error) (vfs.Position, error)
	barrier     func(*Memory) vfs.Position
	wait        func(*Memory, vfs.Rev) vfs.Position
	get         func(*Memory, []vfs.Key) []vfs.Record
	sums        func(*Memory, []vfs.InoRange) []vfs.InoRange
	lease       func(*Memory, vfs.PeerID, uint64) (vfs.InoRange, error)
	missing     func(*Memory, []chunk.ID) []chunk.ID
	readChunks  func(*Memory, []chunk.ID) []chunk.ID
	writeChunks func(*Memory, []vfs.Chunk) error
}

func (b *bent) Push(ctx context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	if b.push != nil {
		return b.push(b.Memory, peer, p)
	}
	return b.Memory.Push(ctx, peer, p)
}

func (b *bent) Read(ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
	if b.read != nil {
		return b.read(b.Memory, ctx, q, yield)
	}
	return b.Memory.Read(ctx, q, yield)
}

func (b *bent) Barrier(ctx context.Context) (vfs.Position, error) {
	if b.barrier != nil {
		return b.barrier(b.Memory), nil
	}
	return b.Memory.Barrier(ctx)
}

func (b *bent) Wait(ctx context.Context, after vfs.Rev) (vfs.Position, error) {
	if b.wait != nil {
		return b.wait(b.Memory, after), nil
	}
	return b.Memory.Wait(ctx, after)
}

func (b *bent) Get(ctx context.Context, keys []vfs.Key) ([]vfs.Record, vfs.Rev, error) {
	if b.get != nil && len(keys) <= vfs.MaxGetKeys {
		return b.get(b.Memory, keys), b.Memory.position.Rev, nil
	}
	return b.Memory.Get(ctx, keys)
}

func (b *bent) Sums(ctx context.Context, ranges []vfs.InoRange) ([]vfs.Digest, vfs.Rev, error) {
	if b.sums != nil {
		ranges = b.sums(b.Memory, ranges)
	}
	return b.Memory.Sums(ctx, ranges)
}

func (b *bent) LeaseInos(ctx context.Context, peer vfs.PeerID, n uint64) (vfs.InoRange, error) {
	if b.lease != nil {
		return b.lease(b.Memory, peer, n)
	}
	return b.Memory.LeaseInos(ctx, peer, n)
}

func (b *bent) MissingChunks(ctx context.Context, ids []chunk.ID) ([]chunk.ID, error) {
	if b.missing != nil {
		return b.missing(b.Memory, ids), nil
	}
	return b.Memory.MissingChunks(ctx, ids)
}

func (b *bent) ReadChunks(ctx context.Context, ids []chunk.ID, yield func(vfs.Chunk) error) error {
	if b.readChunks != nil {
		ids = b.readChunks(b.Memory, ids)
	}
	return b.Memory.ReadChunks(ctx, ids, yield)
}

func (b *bent) WriteChunks(ctx context.Context, chunks []vfs.Chunk) error {
	if b.writeChunks != nil {
		return b.writeChunks(b.Memory, chunks)
	}
	return b.Memory.WriteChunks(ctx, chunks)
}

// force applies records without a look at them.
func force(m *Memory, p vfs.Push) (vfs.Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := vfs.Outcome{Prev: m.position.Rev}
	var records []vfs.Record
	for _, r := range p.Records {
		records = append(records, r.Record)
	}
	m.commitLocked(records)
	o.Position = m.position
	return o, nil
}

// rebase makes a push be based on whatever is there.
func rebase(m *Memory, p vfs.Push) vfs.Push {
	p.Records = slices.Clone(p.Records)
	for i, r := range p.Records {
		old := m.records[r.Key]
		old.Key = r.Key
		p.Records[i].Base = old.Base()
	}
	return p
}

// reading is a Read that goes wrong where it is told to.
func reading(
	ask func(*Memory, *vfs.Query), keep func(vfs.Query, *vfs.Record) bool,
) func(*Memory, context.Context, vfs.Query, func(vfs.Record) error) (vfs.Position, error) {
	return func(m *Memory, ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
		asked := q
		if ask != nil {
			ask(m, &asked)
		}
		return m.Read(ctx, asked, func(r vfs.Record) error {
			if keep != nil && !keep(q, &r) {
				return nil
			}
			return yield(r)
		})
	}
}

// faults are authorities that are each wrong in one way, and the check that finds it.
var faults = []struct {
	name, check string
	bent        bent
}{
	{"a push is not held against its bases", "a stale push is not applied and learns why", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			return m.Push(context.Background(), peer, rebase(m, p))
		},
	}},
	{"what is stale is applied where it is not", "a stale push is not applied and learns why", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			o, err := m.Push(context.Background(), peer, p)
			for _, r := range p.Records {
				if len(o.Stale) > 0 && !slices.Contains(slices.Collect(keysOf(o.Stale)), r.Key) {
					force(m, vfs.Push{Records: []vfs.PushRecord{r}})
				}
			}
			return o, err
		},
	}},
	{"a removed file is edited back", "a stale push is not applied and learns why", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			o, err := m.Push(context.Background(), peer, p)
			o.Stale = slices.DeleteFunc(o.Stale, func(r vfs.Record) bool { return r.Value == nil })
			return o, err
		},
	}},
	{"records are not checked", "what is no tree is not applied", bent{
		push: func(m *Memory, _ vfs.PeerID, p vfs.Push) (vfs.Outcome, error) { return force(m, p) },
	}},
	{"a push again is a new one", "a push again has the same answer and no effect", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			delete(m.applied, peer)
			return m.Push(context.Background(), peer, p)
		},
	}},
	{"only the last push is remembered", "a push again has the same answer and no effect", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			if n := len(m.applied[peer]); n > 1 {
				m.applied[peer] = m.applied[peer][n-1:]
			}
			return m.Push(context.Background(), peer, p)
		},
	}},
	{"an id answers for any records", "an id is not used for two pushes", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			for _, a := range m.applied[peer] {
				if a.id == p.ID {
					return a.outcome, nil
				}
			}
			return m.Push(context.Background(), peer, p)
		},
	}},
	{"ids are everybody's", "ids are a peer's own", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			for _, all := range m.applied {
				if len(all) > 0 && all[0].id == p.ID {
					return all[0].outcome, nil
				}
			}
			return m.Push(context.Background(), peer, p)
		},
	}},
	{"equal records are stale", "what is there already is never stale", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			for _, r := range p.Records {
				if old := m.records[r.Key]; old.Value != nil && old.Base() != r.Base {
					return vfs.Outcome{Position: m.position, Stale: []vfs.Record{old}}, nil
				}
			}
			return m.Push(context.Background(), peer, p)
		},
	}},
	{"any number will do", "numbers that are not the peer's are not used", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			m.leases[peer] = []vfs.InoRange{vfs.AllInos}
			return m.Push(context.Background(), peer, p)
		},
	}},
	{"leases are everybody's", "numbers that are not the peer's are not used", bent{
		lease: func(m *Memory, peer vfs.PeerID, n uint64) (vfs.InoRange, error) {
			in, err := m.LeaseInos(context.Background(), peer, n)
			m.leases[vfs.PeerID{1}] = append(m.leases[vfs.PeerID{1}], in)
			return in, err
		},
	}},
	{"what is gone stays gone", "a removed inode may come back", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			for key, r := range m.records {
				if key.Kind == vfs.KeyInode && r.Value == nil {
					delete(m.records, key)
				}
			}
			return m.Push(context.Background(), peer, p)
		},
	}},
	{"a loop is made", "a loop by two peers is stale", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			o, err := m.Push(context.Background(), peer, p)
			if len(o.Stale) > 0 {
				return force(m, p)
			}
			return o, err
		},
	}},
	{"an empty attribute is none", "an empty attribute is not a tombstone", bent{
		read: reading(nil, func(_ vfs.Query, r *vfs.Record) bool {
			if len(r.Value) == 0 {
				r.Value = nil
			}
			return true
		}),
	}},
	{"a push keeps its slices", "a push does not keep its slices", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			o, err := m.Push(context.Background(), peer, p)
			for _, r := range p.Records {
				m.records[r.Key] = vfs.Record{Key: r.Key, Value: r.Value, Rev: m.records[r.Key].Rev}
			}
			return o, err
		},
	}},
	{"each record is a revision", "a push is one revision", bent{
		push: func(m *Memory, _ vfs.PeerID, p vfs.Push) (o vfs.Outcome, err error) {
			for _, r := range p.Records {
				o, err = force(m, vfs.Push{Records: []vfs.PushRecord{r}})
			}
			return o, err
		},
	}},
	{"the digest is that of the revision before", "a push is one revision", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			before := m.position.Digest
			o, err := m.Push(context.Background(), peer, p)
			o.Position.Digest = before
			return o, err
		},
	}},
	{"tombstones are not told", "a read since a revision is what changed", bent{
		read: reading(nil, func(_ vfs.Query, r *vfs.Record) bool { return r.Value != nil }),
	}},
	{"changes of modes are not told", "a read since a revision is what changed", bent{
		read: reading(nil, func(q vfs.Query, r *vfs.Record) bool {
			return q.Since.Rev == 0 || r.Kind != vfs.KeyInode || r.Value == nil || r.Ino == vfs.RootIno
		}),
	}},
	{"what is told was told before", "a read since a revision is what changed", bent{
		read: reading(func(_ *Memory, q *vfs.Query) { q.Since.Rev -= min(q.Since.Rev, 1) }, nil),
	}},
	{"a snapshot has tombstones", "many changes of a key are one record", bent{
		read: reading(func(m *Memory, q *vfs.Query) { q.Since.Epoch = m.position.Epoch }, nil),
	}},
	{"a read goes on with what is written", "a read is as of one revision", bent{
		read: func(m *Memory, ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
			if _, err := m.Read(ctx, q, yield); err != nil {
				return vfs.Position{}, err
			}
			return m.Position(ctx)
		},
	}},
	{"an interval is everything", "a read of an interval", bent{
		read: reading(func(_ *Memory, q *vfs.Query) {
			if q.Range.Valid() {
				q.Range = vfs.AllInos
			}
		}, nil),
	}},
	{"records of one kind come together", "a snapshot is taken up where it was cut off", bent{
		read: func(m *Memory, ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (p vfs.Position, err error) {
			for kind := vfs.KeyInode; kind <= vfs.KeyXattr && err == nil; kind++ {
				p, err = m.Read(ctx, q, func(r vfs.Record) error {
					if r.Kind != kind {
						return nil
					}
					return yield(r)
				})
			}
			return p, err
		},
	}},
	{"a void cursor has no changes", "a void cursor is an error", bent{
		read: func(m *Memory, ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
			p, err := m.Read(ctx, q, yield)
			if errors.Is(err, vfs.ErrVoidCursor) {
				return m.Position(ctx)
			}
			return p, err
		},
	}},
	{"an error of yield is lost", "an error of yield ends a read", bent{
		read: func(m *Memory, ctx context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
			return m.Read(ctx, q, func(r vfs.Record) error { yield(r); return nil })
		},
	}},
	{"the revision of what is told lags", "a replica that follows is equal at every step", bent{
		read: reading(nil, func(q vfs.Query, r *vfs.Record) bool { return q.Since.Rev == 0 || r.Rev%7 != 3 }),
	}},
	{"keys that are not there are left out", "get", bent{
		get: func(m *Memory, keys []vfs.Key) []vfs.Record {
			records, _, _ := m.Get(context.Background(), keys)
			return slices.DeleteFunc(records, func(r vfs.Record) bool { return r.Value == nil })
		},
	}},
	{"a sum is always that of everything", "sums add up", bent{
		sums: func(_ *Memory, ranges []vfs.InoRange) []vfs.InoRange {
			return slices.Repeat([]vfs.InoRange{vfs.AllInos}, len(ranges))
		},
	}},
	{"wait does not", "wait returns with the next revision", bent{
		wait: func(m *Memory, _ vfs.Rev) vfs.Position { p, _ := m.Position(context.Background()); return p },
	}},
	{"a barrier is a revision", "a barrier without anything new is no revision", bent{
		barrier: func(m *Memory) vfs.Position {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.position.Rev++
			return m.position
		},
	}},
	{"leases overlap", "leases do not overlap", bent{
		lease: func(m *Memory, peer vfs.PeerID, n uint64) (vfs.InoRange, error) {
			in, err := m.LeaseInos(context.Background(), peer, n)
			m.nextIno = in.Last
			return in, err
		},
	}},
	{"no chunk is ever missing", "chunks come back", bent{
		missing: func(*Memory, []chunk.ID) []chunk.ID { return nil },
	}},
	{"chunks come back in another order", "chunks come back", bent{
		readChunks: func(_ *Memory, ids []chunk.ID) []chunk.ID {
			ids = slices.Clone(ids)
			slices.Reverse(ids)
			return ids
		},
	}},
	{"chunks are not checked", "a chunk that is not what its id says is not kept", bent{
		writeChunks: func(m *Memory, chunks []vfs.Chunk) error {
			for _, c := range chunks {
				m.chunks[c.ID] = c
			}
			return nil
		},
	}},
	{"the good ones of a bad lot are kept", "a chunk that is not what its id says is not kept", bent{
		writeChunks: func(m *Memory, chunks []vfs.Chunk) (err error) {
			for _, c := range chunks {
				err = errors.Join(err, m.WriteChunks(context.Background(), []vfs.Chunk{c}))
			}
			return err
		},
	}},
	{"chunks may come later", "a push without its chunks is not applied", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			o, err := m.Push(context.Background(), peer, p)
			if len(o.Missing) > 0 {
				return force(m, p)
			}
			return o, err
		},
	}},
	{"a length is not looked at", "a chunk of another length is not what the record says", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			o, err := m.Push(context.Background(), peer, p)
			if len(o.Missing) > 0 && m.chunks[o.Missing[0]].PlainLen > 0 {
				return force(m, p)
			}
			return o, err
		},
	}},
	{"what is below a node is not looked at", "a long file needs every node and every chunk", bent{
		push: func(m *Memory, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
			o, err := m.Push(context.Background(), peer, p)
			for _, r := range p.Records {
				inode, _ := vfs.DecodeInode(r.Value)
				if inode.Body.Kind == vfs.BodyTree && len(o.Missing) > 0 {
					return force(m, p)
				}
			}
			return o, err
		},
	}},
}

// The kit finds every fault, by the check that is for it.
func TestFaults(t *testing.T) {
	checks := make(map[string]Check)
	for _, c := range Checks() {
		checks[c.Name] = c
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			check, ok := checks[f.check]
			if !ok {
				t.Fatalf("no check %q", f.check)
			}
			b := f.bent
			b.Memory = NewMemory(vfs.Epoch{1})
			err := check.Try(t.Context(), subjectOf(&b))
			if err == nil {
				t.Fatalf("%q does not find it", f.check)
			}
			t.Log(err)
		})
	}
}
