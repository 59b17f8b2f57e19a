package syncwire

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// replica follows a feed as a mirror does, and checks what it is told.
type replica struct {
	t *testing.T

	mu       sync.Mutex
	state    map[vfs.Key][]byte
	position vfs.Position
	start    vfs.Cursor // of a snapshot that is being received
	last     vfs.Ino    // that has begun in it
	part     *FeedPart
	seen     map[vfs.Key]bool // in the part
	got      []vfs.Record     // all that ever came
	parts    []FeedPart
	own      []vfs.PushID
	pushed   map[vfs.PushID]vfs.Push // what is the replica's own
	updated  chan vfs.Position
	hook     func(vfs.Record)
}

func newReplica(t *testing.T) *replica {
	return &replica{
		t: t, state: make(map[vfs.Key][]byte), pushed: make(map[vfs.PushID]vfs.Push), updated: make(chan vfs.Position, 1000),
	}
}

func (r *replica) Resume() (vfs.Cursor, vfs.Ino) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != 0 {
		return r.start, r.last
	}
	return r.position.Cursor, 0
}

func (r *replica) Begin(p FeedPart) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.part = &p
	r.parts = append(r.parts, p)
	if p.Since != 0 || p.First == 0 {
		r.seen = make(map[vfs.Key]bool)
	}
	if p.Since == 0 && p.First == 0 {
		r.start, r.last = p.Start, 0
	}
	return nil
}

func (r *replica) Records(records []vfs.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range records {
		rec.Value = bytes.Clone(rec.Value)
		r.got = append(r.got, rec)
		r.put(rec)
		if r.seen[rec.Key] = true; r.part.Since == 0 {
			r.last = rec.Ino
		}
		if r.hook != nil {
			r.hook(rec)
		}
	}
	return nil
}

func (r *replica) put(rec vfs.Record) {
	if rec.Value == nil {
		delete(r.state, rec.Key)
	} else {
		r.state[rec.Key] = rec.Value
	}
}

func (r *replica) Update(u FeedUpdate) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := r.part.Since == 0
	if snapshot {
		for key := range r.state {
			if !r.seen[key] {
				delete(r.state, key)
			}
		}
		r.last = 0
	}
	for _, id := range u.Own {
		p, ok := r.pushed[id]
		if !ok {
			r.t.Errorf("update at %d: push %x is not of this replica", u.Position.Rev, id)
		}
		for _, rec := range p.Records {
			if !r.seen[rec.Key] {
				r.put(rec.Record)
			}
		}
	}
	r.own = append(r.own, u.Own...)
	if r.part.First != 0 {
		return nil
	}
	if u.Position.Epoch == r.position.Epoch && u.Position.Rev < r.position.Rev {
		r.t.Errorf("the feed goes from %d to %d", r.position.Rev, u.Position.Rev)
	}
	r.position = u.Position
	if d := r.digest(); d != u.Position.Digest {
		r.t.Errorf("digest at %d: %v, want %v", u.Position.Rev, d, u.Position.Digest)
	}
	r.updated <- u.Position
	return nil
}

func (r *replica) digest() (d vfs.Digest) {
	for key, value := range r.state {
		d.Add(&vfs.Record{Key: key, Value: value})
	}
	return d
}

// owns tells the replica of a push that it makes itself.
func (r *replica) owns(p vfs.Push) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pushed[p.ID] = p
}

// until waits until the replica is at a revision.
func (r *replica) until(rev vfs.Rev) {
	for p := range r.updated {
		if p.Rev >= rev {
			return
		}
	}
}

// counted returns how many records have come, and forgets them.
func (r *replica) counted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.got)
	r.got = nil
	return n
}

// writer makes pushes of an authority, which nobody else changes.
type writer struct {
	t    testing.TB
	a    vfs.Authority
	peer vfs.PeerID
	free vfs.InoRange
	tick vfs.Time
}

func newWriter(t testing.TB, a vfs.Authority, peer byte) *writer {
	return &writer{t: t, a: a, peer: vfs.PeerID{peer}}
}

// files returns a push that makes files of the same body.
func (w *writer) files(prefix string, n int, body vfs.Body, size uint64) vfs.Push {
	w.t.Helper()
	if w.free.First == 0 {
		var err error
		if w.free, err = w.a.LeaseInos(context.Background(), w.peer, 1<<16); err != nil {
			w.t.Fatal(err)
		}
	}
	var p vfs.Push
	rand.Read(p.ID[:])
	root := vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}
	old, _, err := w.a.Get(context.Background(), []vfs.Key{root})
	if err != nil {
		w.t.Fatal(err)
	}
	rec, err := vfs.DecodeInode(old[0].Value)
	if err != nil {
		w.t.Fatal(err)
	}
	w.tick++
	rec.Mtime = w.tick
	p.Records = append(p.Records, vfs.PushRecord{Record: vfs.Record{Key: root, Value: rec.Append(nil)}, Base: old[0].Base()})
	file := vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, Body: body, Size: size}
	for i := range n {
		ino := w.free.First
		w.free.First++
		dirent := vfs.DirentRecord{Ino: ino, Type: vfs.TypeRegular}
		name := fmt.Sprintf("%s%d", prefix, i)
		p.Records = append(p.Records,
			vfs.PushRecord{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: ino}, Value: file.Append(nil)}},
			vfs.PushRecord{Record: vfs.Record{
				Key: vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: name}, Value: dirent.Append(nil),
			}})
	}
	return p
}

func (w *writer) text(prefix string, n int) vfs.Push {
	return w.files(prefix, n, vfs.Body{Kind: vfs.BodyInline, Data: []byte("text")}, 4)
}

// push makes a push that must be applied.
func (w *writer) push(p vfs.Push) vfs.Outcome {
	w.t.Helper()
	o, err := w.a.Push(context.Background(), w.peer, p)
	if err != nil || !o.Applied() {
		w.t.Fatalf("push: %v, %v", o, err)
	}
	return o
}

// plainChunk is n bytes that no compression helps, as a chunk.
func plainChunk(n int) vfs.Chunk {
	b := make([]byte, n)
	rand.Read(b)
	return vfs.Chunk{ID: chunk.Sum(b), Codec: chunk.Raw, PlainLen: n, Stored: b}
}

// bodyOf is the body of a file that is made of chunks.
func bodyOf(chunks ...vfs.Chunk) (body vfs.Body, size uint64) {
	var entries []chunk.Entry
	for _, c := range chunks {
		entries = append(entries, chunk.Entry{ID: c.ID, Len: uint64(c.PlainLen)})
		size += uint64(c.PlainLen)
	}
	return vfs.Body{Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, entries)}, size
}

func idsOf(chunks []vfs.Chunk) (ids []chunk.ID) {
	for _, c := range chunks {
		ids = append(ids, c.ID)
	}
	return ids
}
