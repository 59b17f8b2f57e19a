package fuzz

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore"
	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire"
	"github.com/carrelfs/carrel/syncwire/wiretest/badlink"
)

// sender pushes a file of its own store to another.
type sender struct {
	t      *testing.T
	tree   *casstore.Workspace
	client *syncwire.Client
	ino    vfs.Ino // at the other
	pushed vfs.Record
	has    map[chunk.ID]bool // chunks of the file that was pushed last
}

func newSender(t *testing.T, s *served) *sender {
	t.Helper()
	ctx := context.Background()
	// Nothing is committed but what is asked for, so that no half of a file is pushed.
	store, err := casstore.Open(filepath.Join(s.dir, "sender"), casstore.Options{Create: true, CommitEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := store.CreateWorkspace(ctx, "sender"); err != nil {
		t.Fatal(err)
	}
	n := &sender{t: t, client: syncwire.NewClient(syncwire.ClientConfig{
		Dialer: s.dialer, Workspace: "demo", Token: func(context.Context) ([]byte, error) { return []byte("secret"), nil },
	})}
	t.Cleanup(func() { n.client.Close() })
	if n.tree, err = store.OpenWorkspace(ctx, "sender"); err != nil {
		t.Fatal(err)
	}
	leased, err := n.client.LeaseInos(ctx, vfs.PeerID{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	n.ino = leased.First
	n.pushed.Key = vfs.Key{Kind: vfs.KeyInode, Ino: n.ino}
	return n
}

// stored returns the record of a file that is made of parts.
func (n *sender) stored(parts ...[]byte) vfs.InodeRecord {
	n.t.Helper()
	ctx := context.Background()
	write(n.t, n.tree, "large", parts...)
	if _, err := n.tree.Authority().Barrier(ctx); err != nil {
		n.t.Fatal(err)
	}
	a, err := n.tree.Lookup(ctx, vfs.RootIno, "large")
	if err != nil {
		n.t.Fatal(err)
	}
	records, _, err := n.tree.Authority().Get(ctx, []vfs.Key{{Kind: vfs.KeyInode, Ino: a.Ino}})
	if err != nil {
		n.t.Fatal(err)
	}
	rec, err := vfs.DecodeInode(slices.Clone(records[0].Value))
	if err != nil || rec.Body.Kind != vfs.BodyTree {
		n.t.Fatalf("the record of a large file: %+v, %v", rec, err)
	}
	return rec
}

// chunks returns what a manifest refers to, at any depth.
func (n *sender) chunks(body vfs.Body) (ids []chunk.ID) {
	n.t.Helper()
	root, _, err := chunk.DecodeRoot(body.Data)
	if err == nil {
		err = chunk.WalkTree(root, n.plain, func(e chunk.Entry, _ bool) error {
			ids = append(ids, e.ID)
			return nil
		})
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return ids
}

func (n *sender) plain(id chunk.ID) (plain []byte, err error) {
	err = n.tree.Authority().ReadChunks(context.Background(), []chunk.ID{id}, func(c vfs.Chunk) error {
		plain, err = c.Plain(nil)
		return err
	})
	return plain, err
}

// push makes the file at the other what rec says. It asks for the chunks that the file before had not, uploads those that
// are missing, all but a few, and sends the rest with the record.
func (n *sender) push(rec vfs.InodeRecord) {
	n.t.Helper()
	has, fresh := map[chunk.ID]bool{}, []chunk.ID(nil)
	for _, id := range n.chunks(rec.Body) {
		if !n.has[id] && !has[id] {
			fresh = append(fresh, id)
		}
		has[id] = true
	}
	var missing []chunk.ID
	for some := range slices.Chunk(fresh, vfs.MaxChunkIDs) {
		these, err := n.client.MissingChunks(context.Background(), some)
		if err != nil {
			n.t.Fatal(err)
		}
		missing = append(missing, these...)
	}
	const last = 16
	for some := range slices.Chunk(missing[:max(0, len(missing)-last)], last) {
		n.upload(some)
	}
	n.send(rec, missing[max(0, len(missing)-last):])
	n.has = has
}

func (n *sender) upload(ids []chunk.ID) {
	n.t.Helper()
	var chunks []vfs.Chunk
	err := n.tree.Authority().ReadChunks(context.Background(), ids, func(c vfs.Chunk) error {
		c.Stored = slices.Clone(c.Stored)
		chunks = append(chunks, c)
		return nil
	})
	if err == nil {
		err = n.client.WriteChunks(context.Background(), chunks)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *sender) send(rec vfs.InodeRecord, ids []chunk.ID) {
	n.t.Helper()
	inode := vfs.Record{Key: n.pushed.Key, Value: rec.Append(nil)}
	p := vfs.Push{ID: vfs.PushID{byte(len(n.has)), byte(len(n.has) >> 8), 1}}
	p.Records = []vfs.PushRecord{{Record: inode, Base: n.pushed.Base()}}
	if n.pushed.Value == nil {
		name := vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: "large"}
		dirent := vfs.DirentRecord{Ino: n.ino, Type: vfs.TypeRegular}
		p.Records = append(p.Records, vfs.PushRecord{Record: vfs.Record{Key: name, Value: dirent.Append(nil)}})
	}
	o, err := n.client.PushWith(context.Background(), p, ids, n.tree.Authority())
	if err != nil || !o.Applied() {
		n.t.Fatalf("push: %+v, %v", o, err)
	}
	n.pushed = inode
}

// One byte in front of a large file costs little more on the wire than the chunks that it changes. The packets are
// counted, with their headers, in both directions.
func TestInsertedByte(t *testing.T) {
	t.Parallel()
	size := number(t, "CARREL_INSERT_MIB", 64) << 20
	s := serveOver(t, badlink.Config{Delay: 100 * time.Microsecond, Rate: 1 << 30, Queue: time.Second})
	n := newSender(t, s)
	body := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(body)
	start := time.Now()
	rec := n.stored(body)
	took := time.Since(start)
	start = time.Now()
	n.push(rec)
	t.Logf("%d MiB stored in %v, pushed in %v", size>>20, took.Round(time.Millisecond),
		time.Since(start).Round(time.Millisecond))
	rec = n.stored([]byte{1}, body)
	before := wireBytes(s.network)
	n.push(rec)
	cost := wireBytes(s.network) - before
	// Two chunks of the largest size, and a byte for each KiB of the file: its new nodes and their entries, and ids that
	// are asked for. Of 1 GiB that is 2 MiB.
	limit := 1<<20 + size>>10
	t.Logf("a byte in front of %d MiB: %d bytes on the wire", size>>20, cost)
	if cost > limit {
		t.Errorf("a byte in front of %d MiB: %d bytes on the wire, at most %d", size>>20, cost, limit)
	}
	want := sha256.New()
	want.Write([]byte{1})
	want.Write(body)
	if got := sum(t, s.tree, n.ino); fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want.Sum(nil)) {
		t.Error("the store has another file")
	}
}

// wireBytes is how many bytes of packets were sent to the link.
func wireBytes(n *badlink.Network) int {
	up, down := n.Counts()
	return up.Bytes + down.Bytes
}
