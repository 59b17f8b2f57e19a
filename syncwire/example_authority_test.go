package syncwire_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/tidwall/btree"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
)

// ledger is a whole authority. Push decides as vfs.Authority lays down. It keeps each record with the revision that gave it its value, and a tombstone of what was
// removed, so that a feed can tell of that too.
type ledger struct {
	vfs.Head     // where the workspace stands: Position, Wait and Barrier
	vfs.ChunkMap // the bytes of large files: MissingChunks, ReadChunks and WriteChunks

	mu      sync.Mutex // guards what follows, and is held while a revision is made
	records *btree.BTreeG[vfs.Record]
	pushes  vfs.PushLog
	leases  vfs.LeaseLog
}

// newLedger returns the authority of a workspace that has nothing but a root.
func newLedger() vfs.Authority {
	l := &ledger{records: btree.NewBTreeG(func(a, b vfs.Record) bool { return a.Key.Compare(b.Key) < 0 })}
	var p vfs.Position
	rand.Read(p.Epoch[:]) // a cursor of another life of the store is void
	l.Set(p)
	root := vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: vfs.RootIno}
	key := vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}
	l.commit([]vfs.PushRecord{{Record: vfs.Record{Key: key, Value: root.Append(nil)}}})
	return vfs.Guard(l)
}

// snapshot returns the workspace at its newest revision. A copy of a tree costs nothing until one of them is written to.
func (l *ledger) snapshot() (vfs.Position, *btree.BTreeG[vfs.Record]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Now(), l.records.Copy()
}

func (l *ledger) Read(_ context.Context, q vfs.Query, yield func(vfs.Record) error) (vfs.Position, error) {
	at, records := l.snapshot()
	return q.Select(at, records.Scan, yield)
}

func (l *ledger) Sums(_ context.Context, ranges []vfs.InoRange) ([]vfs.Digest, vfs.Rev, error) {
	at, records := l.snapshot()
	return vfs.SumsOf(records.Scan, ranges), at.Rev, nil
}

func (l *ledger) Get(_ context.Context, keys []vfs.Key) (found []vfs.Record, rev vfs.Rev, err error) {
	at, records := l.snapshot()
	for _, k := range keys {
		found = append(found, find(records, k))
	}
	return found, at.Rev, nil
}

func find(records *btree.BTreeG[vfs.Record], k vfs.Key) vfs.Record {
	r, _ := records.Get(vfs.Record{Key: k})
	return vfs.Record{Key: k, Value: bytes.Clone(r.Value), Rev: r.Rev} // our own bytes are not given away
}

func (l *ledger) LeaseInos(_ context.Context, peer vfs.PeerID, n uint64) (vfs.InoRange, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases.Lease(peer, n), nil
}

func (l *ledger) Push(_ context.Context, peer vfs.PeerID, p vfs.Push) (vfs.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, known, err := l.pushes.Find(peer, &p); known {
		return o, err
	}
	o := vfs.Outcome{Position: l.Now(), Prev: l.Now().Rev}
	var err error
	if o.Stale, err = vfs.CheckPush(view{l, peer}, &p); err == nil && o.Applied() {
		o.Missing, err = vfs.CheckChunks(&p, l.ChunkMap.Find)
	}
	for i, r := range o.Stale {
		o.Stale[i] = find(l.records, r.Key) // with its revision
	}
	if err == nil && o.Applied() {
		o.Position = l.commit(p.Records)
		l.pushes.Add(peer, &p, o)
	}
	return o, err
}

// commit makes a revision of those records that are not as they were, if there is one.
func (l *ledger) commit(records []vfs.PushRecord) vfs.Position {
	at := l.Now()
	at.Rev++
	for _, r := range records {
		if old := find(l.records, r.Key); !old.Same(&r.Record) {
			at.Digest.Remove(&old)
			at.Digest.Add(&r.Record)
			l.records.Set(vfs.Record{Key: r.Key, Value: bytes.Clone(r.Value), Rev: at.Rev})
		}
	}
	if at.Digest != l.Now().Digest {
		l.Set(at)
	}
	return l.Now()
}

// view is what a peer's push is checked against.
type view struct {
	*ledger
	peer vfs.PeerID
}

func (v view) Value(k vfs.Key) ([]byte, error) { return find(v.records, k).Value, nil }

func (v view) Names(kind vfs.KeyKind, ino vfs.Ino, yield func(string) bool) error {
	v.records.Ascend(vfs.Record{Key: vfs.Key{Kind: kind, Ino: ino}}, func(r vfs.Record) bool {
		return r.Kind == kind && r.Ino == ino && (r.Value == nil || yield(r.Name))
	})
	return nil
}

func (v view) MayMake(ino vfs.Ino) (bool, error) {
	was := find(v.records, vfs.Key{Kind: vfs.KeyInode, Ino: ino}).Rev > 0
	return was || v.leases.Holds(v.peer, ino), nil
}

// An authority of one's own, here in memory: under a hundred lines, comments apart. syncwire/wiretest has the kit that proves
// it, a Server serves it, and a Client is the same authority at the other end of a connection.
func Example_authority() {
	authority := newLedger()
	server := syncwire.NewServer(syncwire.ServerConfig{
		Open:     func(context.Context, string) (vfs.Authority, error) { return authority, nil },
		Verifier: oneToken("secret"),
	})
	defer server.Close()
	client, err := connect(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	outcome, err := pushFile(ctx, client, "hello.txt", "hello")
	fmt.Println("revision", outcome.Position.Rev, err)
	_, err = client.Read(ctx, vfs.Query{Range: vfs.AllInos}, func(r vfs.Record) error {
		fmt.Println(r.Key)
		return nil
	})
	fmt.Println(err)
	// Output:
	// revision 2 <nil>
	// inode 1
	// name 1/"hello.txt"
	// inode 2
	// <nil>
}
