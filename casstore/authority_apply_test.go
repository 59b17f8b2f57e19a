package casstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

func mustPush(t *testing.T, d *draft) vfs.Outcome {
	t.Helper()
	o, err := d.a.Push(bg, d.peer, d.changes())
	if err != nil || !o.Applied() {
		t.Fatalf("push: %v, stale %v, missing %v", err, o.Stale, o.Missing)
	}
	d.pull()
	return o
}

func mustRead(t *testing.T, w *Workspace, ino vfs.Ino) string {
	t.Helper()
	p := make([]byte, 1<<20)
	n, err := w.ReadAt(bg, ino, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(p[:n])
}

func (d *draft) text(ino vfs.Ino, text string) {
	body := vfs.Body{Kind: vfs.BodyInline, Data: []byte(text)}
	d.edit(ino, func(r *vfs.InodeRecord) { r.Size, r.Body = uint64(len(text)), body })
}

func (d *draft) find(name string) vfs.Key {
	k, ok := d.pick(func(k vfs.Key, _ vfs.Record) bool { return k.Kind == vfs.KeyDirent && k.Name == name })
	if !ok {
		d.t.Fatalf("no name %q", name)
	}
	return k
}

// pushed is a store with a workspace that holds a file in use, and a mirror of it.
func pushed(t *testing.T, o Options) (*Workspace, *draft, vfs.Ino) {
	s := openStore(t, t.TempDir(), o)
	w := openWorkspace(t, s, "ws")
	ino := mustCreate(t, w, "file", "old text")
	snapshotAt(t, w.Authority())
	d := newDraft(t, w.Authority(), 1, 1)
	d.pull()
	return w, d, ino
}

// TestPushTellsWatchers: whoever watches hears of everything that a push changes, with the origin of the call.
func TestPushTellsWatchers(t *testing.T) {
	w, d, ino := pushed(t, Options{})
	var mu sync.Mutex
	var heard []vfs.Change
	stop := w.Watch(nil, func(c vfs.Change) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, c)
	})
	d.text(ino, "new text")
	made := d.make(vfs.RootIno, "made", vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644})
	if _, err := d.a.Push(vfs.WithOrigin(bg, "me"), d.peer, d.changes()); err != nil {
		t.Fatal(err)
	}
	want := []vfs.Change{
		{Kind: vfs.ChangeAttr, Ino: ino, Origin: "me"}, {Kind: vfs.ChangeData, Ino: ino, Origin: "me"},
		{Kind: vfs.ChangeAttr, Ino: vfs.RootIno, Origin: "me"},
		{Kind: vfs.ChangeEntry, Ino: made, Dir: vfs.RootIno, Name: "made", Origin: "me"},
	}
	for done := false; !done; {
		mu.Lock()
		done = len(heard) >= len(want)
		mu.Unlock()
	}
	stop()
	for _, c := range want {
		if !slices.Contains(heard, c) {
			t.Errorf("%v was not told: %v", c, heard)
		}
	}
}

// TestPushUnderHolders: files that are held stay what their holders have when a push removes them, and become what a
// push says when it changes them or brings them back.
func TestPushUnderHolders(t *testing.T) {
	w, d, ino := pushed(t, Options{CommitEvery: time.Hour})
	if got := mustRead(t, w, ino); got != "old text" {
		t.Fatal(got)
	}
	w.Hold(ino)
	d.text(ino, "new")
	d.put(vfs.Key{Kind: vfs.KeyXattr, Ino: ino, Name: "user.x"}, []byte("value"))
	d.edit(ino, func(r *vfs.InodeRecord) { r.Xattrs++ })
	mustPush(t, d)
	if v, err := w.GetXattr(bg, ino, "user.x"); err != nil || string(v) != "value" {
		t.Fatalf("%q, %v", v, err)
	}
	if got := mustRead(t, w, ino); got != "new" {
		t.Fatalf("%q after the push", got)
	}
	if err := w.WriteAt(bg, ino, []byte("er"), 3, false); err != nil {
		t.Fatal(err)
	}
	snapshotAt(t, w.Authority())
	d.pull()
	record := d.get(ino)
	d.remove(d.find("file"))
	mustPush(t, d)
	if a, err := w.Stat(bg, ino); err != nil || a.Nlink != 0 {
		t.Fatalf("%v, %v", a, err)
	}
	if _, err := w.Lookup(bg, vfs.RootIno, "file"); !errors.Is(err, vfs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := w.WriteAt(bg, ino, []byte("st of all"), 3, false); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, w, ino); got != "newst of all" {
		t.Fatalf("%q while it has no name", got)
	}
	record.Xattrs = 0
	d.set(ino, record)
	d.name(vfs.RootIno, "back", ino, vfs.TypeRegular)
	mustPush(t, d)
	if names, err := w.ListXattr(bg, ino); err != nil || len(names) > 0 {
		t.Errorf("attributes %v came back, %v", names, err)
	}
	if a, err := w.Lookup(bg, vfs.RootIno, "back"); err != nil || a.Ino != ino || a.Nlink != 1 || a.Size != 5 {
		t.Fatalf("%v, %v", a, err)
	}
	if got := mustRead(t, w, ino); got != "newer" {
		t.Fatalf("%q after it came back", got)
	}
	if err := w.SetXattr(bg, ino, "user.y", []byte("held"), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Unlink(bg, vfs.RootIno, "back"); err != nil {
		t.Fatal(err)
	}
	snapshotAt(t, d.a)
	d.pull()
	d.set(ino, record)
	d.name(vfs.RootIno, "third", ino, vfs.TypeRegular)
	mustPush(t, d)
	if names, err := w.ListXattr(bg, ino); err != nil || len(names) > 0 {
		t.Errorf("attributes %v came back, %v", names, err)
	}
	w.Release(ino, 1)
	if err := w.WriteAt(bg, ino, []byte("N"), 0, false); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, w, ino); got != "Newer" {
		t.Fatalf("%q in the end", got)
	}
}

// TestPushIntoFileInUse: an operation that has begun on a file goes on with the bytes that a push has given it meanwhile.
func TestPushIntoFileInUse(t *testing.T) {
	w, d, ino := pushed(t, Options{CommitEvery: time.Hour})
	n, err := w.acquire(bg, ino)
	if err != nil {
		t.Fatal(err)
	}
	f := n.file
	d.text(ino, "other text")
	mustPush(t, d)
	if n.file != f || f.size != 10 || mustRead(t, w, ino) != "other text" {
		t.Errorf("size %d, %q", f.size, mustRead(t, w, ino))
	}
	record := d.get(ino)
	d.remove(d.find("file"))
	mustPush(t, d)
	if err := w.WriteAt(bg, ino, bytes.Repeat([]byte("lost"), 1<<20), 0, false); !errors.Is(err, vfs.ErrStale) {
		t.Fatal(err) // nobody holds it but the operation
	}
	w.release(n)

	d.set(ino, record)
	d.name(vfs.RootIno, "back", ino, vfs.TypeRegular)
	mustPush(t, d)
	if n, err = w.acquire(bg, ino); err != nil {
		t.Fatal(err)
	}
	f = n.file
	w.Hold(ino)
	d.remove(d.find("back"))
	mustPush(t, d)
	if err := w.WriteAt(bg, ino, bytes.Repeat([]byte("lost"), 1<<20), 0, false); err != nil {
		t.Fatal(err)
	}
	d.set(ino, record)
	d.name(vfs.RootIno, "again", ino, vfs.TypeRegular)
	mustPush(t, d)
	if n.file != f || f.size != 10 || mustRead(t, w, ino) != "other text" {
		t.Errorf("size %d, %q", f.size, mustRead(t, w, ino))
	}
	w.release(n)
	w.Release(ino, 1)
	if err := w.WriteAt(bg, ino, []byte("O"), 0, false); err != nil {
		t.Fatal(err)
	}
	snapshotAt(t, d.a)
	w.forgetAll()
	if got := mustRead(t, w, ino); got != "Other text" {
		t.Error(got)
	}
}

// TestPushMeetsDirtyBytes: bytes that are written here and have no revision yet make a push of their inode stale, and
// have a revision when that is said. What is dirty elsewhere is not in the push's revision.
func TestPushMeetsDirtyBytes(t *testing.T) {
	w, d, ino := pushed(t, Options{CommitEvery: time.Hour})
	if err := w.WriteAt(bg, ino, bytes.Repeat([]byte("local "), 50_000), 0, false); err != nil {
		t.Fatal(err)
	}
	snapshotAt(t, d.a)
	d.pull()
	// So little goes to the journal when it is fsynced: there it is durable and has no revision.
	if err := w.WriteAt(bg, ino, []byte("LOCAL"), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Fsync(bg, ino); err != nil {
		t.Fatal(err)
	}
	d.text(ino, "pushed")
	o, err := d.a.Push(bg, d.peer, d.changes())
	if err != nil || len(o.Stale) != 1 || o.Stale[0].Ino != ino || o.Stale[0].Rev != o.Position.Rev {
		t.Fatalf("%v, %v", o, err)
	}
	if rec, err := vfs.DecodeInode(o.Stale[0].Value); err != nil || rec.Size != 300_000 {
		t.Fatalf("%v, %v", rec, err)
	}
	d.pull()
	// The directory is changed here, too, but not by what the push does: an attribute of the file.
	mustCreate(t, w, "elsewhere", "dirty")
	d.xattr(ino)
	p := d.changes()
	if o, err = d.a.Push(bg, d.peer, p); err != nil || !o.Applied() {
		t.Fatalf("%v, %v", o, err)
	}
	var got []vfs.Key
	since := vfs.Cursor{Epoch: o.Position.Epoch, Rev: o.Prev}
	if _, err := d.a.Read(bg, vfs.Query{Since: since, Range: vfs.AllInos}, func(r vfs.Record) error {
		got = append(got, r.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(p.Records) {
		t.Errorf("the revision has %v, pushed were %d records", got, len(p.Records))
	}
	if now := snapshotAt(t, d.a); now.position.Rev <= o.Position.Rev {
		t.Error("what was dirty elsewhere has no revision")
	}
}

func lookup(t *testing.T, w *Workspace, path ...string) (a vfs.Attr) {
	t.Helper()
	a.Ino = vfs.RootIno
	for _, name := range path {
		var err error
		if a, err = w.Lookup(bg, a.Ino, name); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// TestPushMeetsDirtyTree: changes of the tree that have no revision yet count, also of names and of directories that the
// push does not change.
func TestPushMeetsDirtyTree(t *testing.T) {
	w, d, _ := pushed(t, Options{CommitEvery: time.Hour})
	for _, path := range [][]string{{"x"}, {"x", "a"}, {"x", "a", "c"}, {"y"}, {"y", "b"}, {"y", "b", "d"}} {
		dir := lookup(t, w, path[:len(path)-1]...)
		if _, err := w.Mkdir(bg, dir.Ino, path[len(path)-1], vfs.NewNode{Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	snapshotAt(t, d.a)
	d.pull()
	x, a, c := lookup(t, w, "x"), lookup(t, w, "x", "a"), lookup(t, w, "x", "a", "c")
	if err := w.Rename(bg, x.Ino, "a", lookup(t, w, "y", "b", "d").Ino, "a", 0); err != nil {
		t.Fatal(err)
	}
	d.move(d.find("b"), c.Ino, "b")
	o, err := d.a.Push(bg, d.peer, d.changes())
	if err != nil || !slices.ContainsFunc(o.Stale, func(r vfs.Record) bool { return r.Ino == a.Ino && r.Kind == vfs.KeyInode }) {
		t.Fatalf("the loop is not seen: %v, %v", o, err)
	}

	d.pull()
	d.ino() // a lease is a revision
	mustCreate(t, w, "name", "from here")
	root := d.own[vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}]
	d.make(vfs.RootIno, "name", vfs.InodeRecord{Type: vfs.TypeRegular})
	d.own[root.Key] = root
	if o, err = d.a.Push(bg, d.peer, d.changes()); err != nil || len(o.Stale) != 1 || o.Stale[0].Name != "name" {
		t.Fatalf("the name is not seen: %v, %v", o, err)
	}
	if err := vfstest.Audit(bg, w); err != nil {
		t.Error(err)
	}
}

// TestPushLooksAgainForChunks: a collection that begins between the search for a push's chunks and the push does not know
// of them.
func TestPushLooksAgainForChunks(t *testing.T) {
	w, d, ino := pushed(t, Options{})
	d.edit(ino, func(r *vfs.InodeRecord) { r.Mode = 0o600 })
	p := d.changes()
	j := &pushJob{tree: w, peer: d.peer, push: &p, sum: p.Sum(), done: make(chan error, 1)}
	if err := j.findChunks(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.GC(bg); err != nil {
		t.Fatal(err)
	}
	if err := w.store.committer.push(bg, j); !errors.Is(err, errMarking) {
		t.Fatal(err)
	}
	mustPush(t, d)
}

// TestPushOfTree: a file whose manifest is a tree needs all of its nodes and chunks, in the lengths that it says.
func TestPushOfTree(t *testing.T) {
	w, _, _ := pushed(t, Options{})
	b := make([]byte, 20<<20)
	rand.NewChaCha8([32]byte{4}).Read(b)
	big := storedFile(t, w, "big", b)
	snapshotAt(t, w.Authority())
	r := w.store.reader()
	rec, err := r.inode(w.id, big)
	r.Close()
	if err != nil || rec.Body.Kind != vfs.BodyTree {
		t.Fatalf("%v, %v", rec.Body.Kind, err)
	}

	other, d, ino := pushed(t, Options{})
	d.edit(ino, func(r *vfs.InodeRecord) { r.Size, r.Body = rec.Size, rec.Body })
	w.Hold(ino)
	p := d.changes()
	rounds := 0
	for ; ; rounds++ {
		o, err := d.a.Push(bg, d.peer, p)
		if err != nil {
			t.Fatal(err)
		}
		if o.Applied() {
			break
		}
		if len(o.Missing) == 0 {
			t.Fatal(o)
		}
		list := readChunks(t, w.Authority(), o.Missing)
		if len(list) != len(o.Missing) {
			t.Fatalf("%d chunks of %d", len(list), len(o.Missing))
		}
		if err := d.a.WriteChunks(bg, list); err != nil {
			t.Fatal(err)
		}
	}
	if rounds < 2 || rounds > 4 {
		t.Errorf("it took %d rounds", rounds)
	}
	got := make([]byte, len(b))
	if n, err := other.ReadAt(bg, ino, got, 0); n != len(b) || err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n := len(other.store.guests.new); n != 0 {
		t.Errorf("%d chunks are guests still", n)
	}
	// A chunk that is there, in another length, is as good as missing; a node that is none is an error.
	d.pull()
	c := someChunks(1)[0]
	if err := d.a.WriteChunks(bg, []vfs.Chunk{c}); err != nil {
		t.Fatal(err)
	}
	entries := chunk.AppendEntries(nil, []chunk.Entry{{ID: c.ID, Len: uint64(c.PlainLen) - 1}})
	d.edit(ino, func(r *vfs.InodeRecord) {
		r.Size, r.Body = uint64(c.PlainLen)-1, vfs.Body{Kind: vfs.BodyExtents, Data: entries}
	})
	if o, err := d.a.Push(bg, d.peer, d.changes()); err != nil || !slices.Equal(o.Missing, []chunk.ID{c.ID}) {
		t.Errorf("%v, %v", o, err)
	}
	root, _, err := chunk.DecodeRoot(rec.Body.Data)
	if err != nil {
		t.Fatal(err)
	}
	root.ID = c.ID
	d.edit(ino, func(r *vfs.InodeRecord) {
		r.Size, r.Body = rec.Size, vfs.Body{Kind: vfs.BodyTree, Data: chunk.AppendRoot(nil, root)}
	})
	if _, err := d.a.Push(bg, d.peer, d.changes()); !errors.Is(err, vfs.ErrCorrupt) {
		t.Error(err)
	}
}

// TestPushesAreRemembered: the newest pushes of a peer are answered as before, also after a restart, and under the id of
// one of them no other is taken.
func TestPushesAreRemembered(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	d := newDraft(t, w.Authority(), 1, 1)
	d.pull()
	var sent []vfs.Push
	var answers []vfs.Outcome
	for i := range vfs.PushMemory + 5 {
		if i%10 > 0 { // else a push of nothing
			d.make(vfs.RootIno, fmt.Sprint("f", i), vfs.InodeRecord{Type: vfs.TypeRegular})
		}
		p := d.changes()
		o, err := d.a.Push(bg, d.peer, p)
		if err != nil || !o.Applied() || (len(p.Records) == 0) != (o.Prev == o.Position.Rev) {
			t.Fatalf("%v, %v", o, err)
		}
		sent, answers = append(sent, p), append(answers, o)
		d.pull()
	}
	for range 2 {
		before := mustPosition(t, w.Authority())
		for i := 5; i < len(sent); i++ {
			o, err := w.Authority().Push(bg, d.peer, sent[i])
			if err != nil || o.Position.Cursor != answers[i].Position.Cursor || o.Prev != answers[i].Prev ||
				o.Position.Digest != answers[i].Position.Digest {
				t.Fatalf("push %d: %v, %v, not %v", i, o, err, answers[i])
			}
		}
		other := sent[len(sent)-1]
		other.Records = slices.Clone(sent[len(sent)-2].Records)
		if _, err := w.Authority().Push(bg, d.peer, other); !errors.Is(err, vfs.ErrPushReused) {
			t.Error(err)
		}
		if mustPosition(t, w.Authority()) != before {
			t.Error("a repeated push has made a revision")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		w = openWorkspace(t, s, "ws")
	}
	checkStore(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTornPush ends a large push before each of its writes. The store then opens with the tree as it was before, and does
// not know of the push; or, when the head had been written, with all of it, and answers it.
func TestTornPush(t *testing.T) {
	ts := tornStore{t: t, dir: t.TempDir()}
	s, w := ts.open(nil)
	for i := range 900 {
		mustCreate(t, w, fmt.Sprint("f", i), "short")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		hook := func(string) error { return nil }
		s, w := ts.open(func(step string) error { return hook(step) })
		d := newDraft(t, w.Authority(), 1, uint64(n))
		d.inline = true // chunks need not outlive a crash
		if _, err := w.Authority().Barrier(bg); err != nil {
			t.Fatal(err)
		}
		d.pull()
		before := snapshotOf(t, w)
		for _, k := range d.keys(isInode(vfs.TypeRegular)) {
			d.text(k.Ino, fmt.Sprintf("pushed %d %s", n, bytes.Repeat([]byte{'x'}, 4000)))
		}
		for range 8 {
			d.step()
		}
		p := d.changes()
		var crashed func() bool
		hook, crashed = crashAt(n)
		o, err := d.a.Push(bg, d.peer, p)
		if (err != nil) != crashed() || err == nil && !o.Applied() {
			t.Fatalf("step %d: %v, %v", n, o, err)
		}
		var after map[string]vfstest.Node
		if !crashed() {
			after = snapshotOf(t, w)
		}
		_ = s.Close()

		s, w = ts.open(nil)
		got := snapshotOf(t, w)
		snapshotAt(t, w.Authority())
		checkStore(t, s)
		want := before
		if !crashed() {
			want = after
		}
		if diff := vfstest.DiffTimes(want, got); diff != "" {
			t.Fatalf("step %d: the tree differs:\n%.2000s", n, diff)
		}
		again := newDraft(t, w.Authority(), 1, 1)
		if again.pull(); !crashed() && !maps.EqualFunc(again.own, d.own, sameValue) {
			t.Error("what was pushed is not what is read")
		}
		prev := mustPosition(t, w.Authority())
		if o, err = w.Authority().Push(bg, d.peer, p); err != nil || !o.Applied() {
			t.Fatalf("step %d: again: %v, %v", n, o, err)
		}
		if (prev.Rev == o.Position.Rev) == crashed() {
			t.Errorf("step %d: the push is of revision %d, and before it was sent again the newest was %d", n, o.Position.Rev, prev.Rev)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !crashed() {
			if n < 3 {
				t.Fatalf("the push took %d steps only", n)
			}
			return
		}
	}
}
