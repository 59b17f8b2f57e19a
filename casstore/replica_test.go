package casstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// testOrigin has a root directory and chunks. It is where replicas of the tests come from.
type testOrigin struct {
	replica *Replica
	chunks  map[chunk.ID]vfs.Chunk
	loads   atomic.Int64
	fetches atomic.Int64
}

func (o *testOrigin) Load(context.Context, vfs.Ino, bool) error {
	o.loads.Add(1)
	return nil
}

func (o *testOrigin) Numbers(context.Context) error {
	return o.replica.AddNumbers(vfs.InoRange{First: 1000, Last: 1 << 40})
}

func (o *testOrigin) Fetch(ctx context.Context, id chunk.ID) error {
	o.fetches.Add(1)
	c, ok := o.chunks[id]
	if !ok {
		return fmt.Errorf("chunk %v: %w", id, vfs.ErrCorrupt)
	}
	return o.replica.AddChunks(ctx, []vfs.Chunk{c})
}

var rootKey = vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}

func rootRecord() []byte {
	root := vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755, Nlink: 2, Parent: vfs.RootIno}
	return root.Append(nil)
}

// openReplica opens a replica, and gives one that is new its root directory.
func openReplica(t *testing.T, s *Store) (*Workspace, *Replica, *testOrigin) {
	t.Helper()
	o := &testOrigin{chunks: make(map[chunk.ID]vfs.Chunk)}
	_, err := s.CreateReplica(bg, "ws")
	fresh := err == nil
	if err != nil && !errors.Is(err, vfs.ErrExist) {
		t.Fatal(err)
	}
	w, r, err := s.OpenReplica(bg, "ws", o)
	if err != nil {
		t.Fatal(err)
	}
	o.replica = r
	t.Cleanup(func() { _ = w.Close() }) // the store may be closed by then, which has closed it
	if fresh {
		if _, err := r.Apply(bg, Incoming{Raw: []vfs.Record{{Key: rootKey, Value: rootRecord()}}}); err != nil {
			t.Fatal(err)
		}
	}
	return w, r, o
}

// pending returns the edits of a replica.
func pending(t *testing.T, r *Replica) map[vfs.Key]Edit {
	t.Helper()
	edits := make(map[vfs.Key]Edit)
	_, err := r.Pending(bg, func(e Edit) error {
		edits[e.Key] = e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	head := r.tree.store.reader()
	defer head.Close()
	found := 0
	err = head.scan(keyOfNode(keyBasis, r.tree.id, 0)[:9], nil, true, func(k, value []byte) (bool, error) {
		found++
		key, err := basisKey(k)
		if theirs, _ := decodeBasis(value); err == nil && !bytes.Equal(edits[key].Theirs, theirs) {
			err = fmt.Errorf("%v: %w", key, vfs.ErrCorrupt)
		}
		return true, err
	})
	if err != nil || found != len(edits) {
		t.Fatalf("%d edits of %d, %v", len(edits), found, err)
	}
	return edits
}

// Edits are found however many there are, and those that are left when most were pushed; and in the order of their keys.
func TestReplicaManyEdits(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w, r, _ := openReplica(t, s)
	const many = 1000
	for i := range many {
		if _, err := w.Create(bg, vfs.RootIno, fmt.Sprint(i), vfs.NewNode{Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	edits := pending(t, r)
	if len(edits) != 2*many+1 {
		t.Fatalf("%d edits", len(edits))
	}
	var has []vfs.Record
	for key, e := range edits {
		if key.Kind == vfs.KeyDirent && len(has) < 2*many-20 || key.Ino > 1500 {
			has = append(has, vfs.Record{Key: key, Value: e.Mine})
		}
	}
	if err := r.Settle(bg, has); err != nil {
		t.Fatal(err)
	}
	left := len(edits) - len(has)
	if n := len(pending(t, r)); n != left {
		t.Errorf("%d edits, want %d", n, left)
	}
	if err := errors.Join(w.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	w, r, _ = openReplica(t, s)
	if n := len(pending(t, r)); n != left {
		t.Errorf("when it is opened again: %d edits, want %d", n, left)
	}
	var last vfs.Key
	_, err = r.Pending(bg, func(e Edit) error {
		if last != (vfs.Key{}) && last.Compare(e.Key) >= 0 {
			t.Errorf("%v after %v", e.Key, last)
		}
		last = e.Key
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// What the authority had is remembered with the first change of a record, and forgotten when it is as it was, or pushed.
func TestReplicaBases(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	w, r, _ := openReplica(t, s)
	before, err := r.Theirs(bg, []vfs.InoRange{vfs.AllInos})
	if err != nil {
		t.Fatal(err)
	}
	a, err := w.Create(bg, vfs.RootIno, "f", vfs.NewNode{Mode: 0o600})
	if err != nil || a.Ino != 1000 {
		t.Fatal(a.Ino, err)
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	edits := pending(t, r)
	file, name := vfs.Key{Kind: vfs.KeyInode, Ino: a.Ino}, vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: "f"}
	if len(edits) != 3 || !bytes.Equal(edits[rootKey].Theirs, rootRecord()) || edits[file].Theirs != nil || edits[name].Mine == nil {
		t.Fatalf("%v", edits)
	}
	after, err := r.Theirs(bg, []vfs.InoRange{vfs.AllInos, {First: 2, Last: vfs.AllInos.Last}})
	if err != nil || after[0] != before[0] || after[1] != (vfs.Digest{}) {
		t.Errorf("what the authority has is %v, %v, want %v", after, err, before)
	}
	pushed := []vfs.Record{{Key: file, Value: edits[file].Mine}, {Key: name, Value: edits[name].Mine}}
	if _, err := w.SetAttr(bg, a.Ino, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o640}); err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(bg, pushed, Note{"x", []byte("y")}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	edits = pending(t, r)
	if len(edits) != 2 || !bytes.Equal(edits[file].Theirs, pushed[0].Value) {
		t.Errorf("after the push: %v", slices.Collect(maps.Keys(edits)))
	}
	if err := w.Unlink(bg, vfs.RootIno, "f"); err != nil {
		t.Fatal(err)
	}
	b, err := w.Create(bg, vfs.RootIno, "temporary", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Unlink(bg, vfs.RootIno, "temporary"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, r, _ = openReplica(t, s)
	edits = pending(t, r)
	if _, ok := edits[vfs.Key{Kind: vfs.KeyInode, Ino: b.Ino}]; ok || len(edits) != 3 || edits[file].Mine != nil {
		t.Errorf("after all was removed: %v", slices.Collect(maps.Keys(edits)))
	}
	if notes, err := r.Notes(""); err != nil || len(notes) != 1 || string(notes[0].Value) != "y" {
		t.Errorf("notes %v, %v", notes, err)
	}
	if c, err := w.Create(bg, vfs.RootIno, "next", vfs.NewNode{}); err != nil || c.Ino != b.Ino+1 {
		t.Errorf("the next number is %d, %v, after %d", c.Ino, err, b.Ino)
	}
}

// What comes from the authority replaces what is there, but not what has changed meanwhile.
func TestReplicaApply(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, r, _ := openReplica(t, s)
	a, err := w.Create(bg, vfs.RootIno, "f", vfs.NewNode{Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	key := vfs.Key{Kind: vfs.KeyInode, Ino: a.Ino}
	mine := vfs.Record{Key: key, Value: pending(t, r)[key].Mine}
	rec, err := vfs.DecodeInode(bytes.Clone(mine.Value))
	if err != nil {
		t.Fatal(err)
	}
	rec.Mode, rec.Size, rec.Body = 0o444, 3, vfs.Body{Kind: vfs.BodyInline, Data: []byte("abc")}
	in := Incoming{
		Records: []vfs.PushRecord{{Record: vfs.Record{Key: key, Value: rec.Append(nil)}, Base: mine.Base()}},
		Bases:   []Basis{{Key: key, Same: true}},
	}
	if err := w.WriteAt(bg, a.Ino, []byte("dirty"), 0, false); err != nil {
		t.Fatal(err)
	}
	stale, err := r.Apply(bg, in)
	if err != nil || !slices.Equal(stale, []vfs.Key{key}) {
		t.Fatalf("over a change: %v, %v", stale, err)
	}
	mine.Value = pending(t, r)[key].Mine // which has been committed
	in.Records[0].Base = mine.Base()
	if stale, err = r.Apply(bg, in); err != nil || len(stale) > 0 {
		t.Fatal(stale, err)
	}
	got := make([]byte, 9)
	n, err := w.ReadAt(bg, a.Ino, got, 0)
	if err != nil || string(got[:n]) != "abc" {
		t.Errorf("%q, %v", got[:n], err)
	}
	if _, ok := pending(t, r)[key]; ok {
		t.Error("it still differs from the authority")
	}
	wrong := in
	wrong.Records = []vfs.PushRecord{{Record: vfs.Record{Key: rootKey}, Base: (&vfs.Record{Key: rootKey, Value: rootRecord()}).Base()}}
	wrong.Records = append(wrong.Records, vfs.PushRecord{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: 99}, Value: rec.Append(nil)}})
	if stale, err = r.Apply(bg, wrong); err == nil && len(stale) == 0 {
		t.Error("what is no tree was taken over")
	}
}

// What comes past the live tree does not take the place of what was changed here.
func TestReplicaRawKeepsEdits(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, r, _ := openReplica(t, s)
	if _, err := w.SetAttr(bg, vfs.RootIno, vfs.AttrSet{Mask: vfs.SetMode, Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	before := pending(t, r)[rootKey]
	if _, err := r.Apply(bg, Incoming{Raw: []vfs.Record{{Key: rootKey, Value: rootRecord()}}}); err != nil {
		t.Fatal(err)
	}
	after := pending(t, r)[rootKey]
	if before.Mine == nil || !bytes.Equal(after.Mine, before.Mine) || !bytes.Equal(after.Theirs, before.Theirs) {
		t.Errorf("%x, then %x", before.Mine, after.Mine)
	}
}

// What was changed after somebody has looked is not what the authority has, though it was then.
func TestReplicaBasisOfWhatHasChanged(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, r, _ := openReplica(t, s)
	chmod := func(mode uint32) []byte {
		if _, err := w.SetAttr(bg, vfs.RootIno, vfs.AttrSet{Mask: vfs.SetMode, Mode: mode}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Commit(bg, 0); err != nil {
			t.Fatal(err)
		}
		return pending(t, r)[rootKey].Mine
	}
	looked := chmod(0o700) // and the authority turns out to have the same
	chmod(0o711)
	if _, err := r.Apply(bg, Incoming{Bases: []Basis{{Key: rootKey, Value: looked, Same: true}}}); err != nil {
		t.Fatal(err)
	}
	if e, ok := pending(t, r)[rootKey]; !ok || !bytes.Equal(e.Theirs, looked) {
		t.Errorf("the change is forgotten: %v, based on %x, not %x", ok, e.Theirs, looked)
	}
}

// What was done here too after somebody has looked is not stale, and is no edit any more.
func TestReplicaAppliesWhatWasDoneHereToo(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, r, _ := openReplica(t, s)
	a, err := w.Create(bg, vfs.RootIno, "f", vfs.NewNode{Mode: 0o600})
	if err == nil {
		_, err = r.Commit(bg, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	file, name := vfs.Key{Kind: vfs.KeyInode, Ino: a.Ino}, vfs.Key{Kind: vfs.KeyDirent, Ino: vfs.RootIno, Name: "f"}
	var has []vfs.Record
	var in Incoming
	for k, e := range pending(t, r) {
		has = append(has, vfs.Record{Key: k, Value: e.Mine})
		if k == file || k == name {
			is := vfs.Record{Key: k, Value: e.Mine}
			in.Records = append(in.Records, vfs.PushRecord{Record: vfs.Record{Key: k}, Base: is.Base()})
		}
	}
	if err := r.Settle(bg, has); err != nil {
		t.Fatal(err)
	}
	if err := w.Unlink(bg, vfs.RootIno, "f"); err != nil {
		t.Fatal(err)
	}
	if stale, err := r.Apply(bg, in); err != nil || len(stale) > 0 {
		t.Fatal(stale, err)
	}
	if left := pending(t, r); len(left) != 1 || left[rootKey].Mine == nil {
		t.Errorf("edits %v, not of the root alone", left)
	}
}

// A file that was removed here comes back with the bytes of others, while a flush still has to do with it. It is a file like any.
func TestReplicaFileComesBack(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, r, _ := openReplica(t, s)
	a, err := w.Create(bg, vfs.RootIno, "f", vfs.NewNode{Mode: 0o600})
	if err == nil {
		err = w.WriteAt(bg, a.Ino, []byte("mine"), 0, false)
	}
	if err == nil {
		_, err = r.Commit(bg, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := pending(t, r)
	if err := w.WriteAt(bg, a.Ino, []byte("more"), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Unlink(bg, vfs.RootIno, "f"); err != nil {
		t.Fatal(err)
	}
	w.reap()
	using := w.dirtyFile(a.Ino) // as a flush does
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	var in Incoming
	for k, e := range before {
		is := vfs.Record{Key: k}
		if k == rootKey {
			is.Value = pending(t, r)[k].Mine
		}
		in.Records = append(in.Records, vfs.PushRecord{Record: vfs.Record{Key: k, Value: e.Mine}, Base: is.Base()})
	}
	if stale, err := r.Apply(bg, in); err != nil || len(stale) > 0 {
		t.Fatal(stale, err)
	}
	for _, n := range using {
		w.release(n)
	}
	if err := w.WriteAt(bg, a.Ino, []byte("again"), 2, false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 9)
	if n, err := w.ReadAt(bg, a.Ino, got, 0); err != nil || string(got[:n]) != "miagain" {
		t.Errorf("%q, %v", got[:n], err)
	}
}

// A crash at any step leaves each edit with its basis: what the authority had is the same before and after.
func TestReplicaCrash(t *testing.T) {
	for fail := 1; ; fail++ {
		dir := t.TempDir()
		steps := 0
		s, err := Open(dir, Options{Create: true, hook: func(string) error {
			if steps++; steps >= fail {
				return errDead
			}
			return nil
		}})
		if err != nil {
			continue // before there was anything
		}
		var want vfs.Digest
		w, r, err := crashReplica(s, &want)
		if w != nil {
			_ = w.Close()
		}
		crashed := s.failure() != nil || err != nil
		_, _ = r, s.Close()
		checkReplica(t, dir, want, fail)
		if !crashed {
			return
		}
	}
}

var errDead = errors.New("crash")

// crashReplica works on a replica until something fails.
func crashReplica(s *Store, want *vfs.Digest) (w *Workspace, r *Replica, err error) {
	o := &testOrigin{}
	if _, err = s.CreateReplica(bg, "ws"); err != nil {
		return nil, nil, err
	}
	if w, r, err = s.OpenReplica(bg, "ws", o); err != nil {
		return w, r, err
	}
	o.replica = r
	root := vfs.Record{Key: rootKey, Value: rootRecord()}
	want.Add(&root)
	if _, err = r.Apply(bg, Incoming{Raw: []vfs.Record{root}}); err != nil {
		return w, r, err
	}
	for n := range 4 {
		if _, err = w.Create(bg, vfs.RootIno, fmt.Sprint(n), vfs.NewNode{}); err != nil {
			return w, r, err
		}
		if n == 2 {
			_ = w.Unlink(bg, vfs.RootIno, "0")
		}
		if _, err = r.Commit(bg, 0); err != nil {
			return w, r, err
		}
	}
	return w, r, nil
}

func checkReplica(t *testing.T, dir string, want vfs.Digest, fail int) {
	t.Helper()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	w, r, err := s.OpenReplica(bg, "ws", &testOrigin{})
	if errors.Is(err, vfs.ErrNoWorkspace) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // it changes nothing
	got, err := r.Theirs(bg, []vfs.InoRange{vfs.AllInos})
	if err != nil || got[0] != want && got[0] != (vfs.Digest{}) {
		t.Errorf("crash at step %d: the authority has %v, %v, want %v", fail, got, err, want)
	}
}

// Chunks come when they are read, and are given up when there are too many; what is not pushed stays.
func TestReplicaCache(t *testing.T) {
	const files, size = 24, 256 << 10
	s := openStore(t, t.TempDir(), Options{CacheBytes: 2 << 20})
	w, r, o := openReplica(t, s)
	mine, err := w.Create(bg, vfs.RootIno, "mine", vfs.NewNode{})
	if err != nil {
		t.Fatal(err)
	}
	own := noise(7, size)
	if err := w.WriteAt(bg, mine.Ino, own, 0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(bg, 0); err != nil {
		t.Fatal(err)
	}
	var in Incoming
	for n := range files {
		plain := noise(uint64(n)+100, size)
		c := vfs.Chunk{ID: chunk.Sum(plain), Codec: chunk.Raw, PlainLen: size, Stored: plain}
		o.chunks[c.ID] = c
		rec := vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1, Size: size, Body: vfs.Body{
			Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, []chunk.Entry{{ID: c.ID, Len: size}}),
		}}
		ino := vfs.Ino(10 + n)
		d := vfs.DirentRecord{Ino: ino, Type: vfs.TypeRegular}
		in.Records = append(in.Records,
			vfs.PushRecord{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: ino}, Value: rec.Append(nil)}},
			vfs.PushRecord{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyDirent, Ino: 1, Name: fmt.Sprint(n)}, Value: d.Append(nil)}})
	}
	if stale, err := r.Apply(bg, in); err != nil || len(stale) > 0 {
		t.Fatal(stale, err)
	}
	for round := range 2 {
		for n := range files {
			got := make([]byte, size)
			if k, err := w.ReadAt(bg, vfs.Ino(10+n), got, 0); err != nil || k != size || !bytes.Equal(got, noise(uint64(n)+100, size)) {
				t.Fatalf("round %d, file %d: %d bytes, %v", round, n, k, err)
			}
		}
		if _, err := s.GC(bg); err != nil {
			t.Fatal(err)
		}
		if over := s.overCache(); over > 0 {
			t.Errorf("round %d: %d bytes over the cache", round, over)
		}
	}
	if o.fetches.Load() <= files {
		t.Errorf("%d fetches: nothing was given up", o.fetches.Load())
	}
	got := make([]byte, size)
	if k, err := w.ReadAt(bg, mine.Ino, got, 0); err != nil || k != size || !bytes.Equal(got, own) {
		t.Errorf("what is not pushed: %d bytes, %v", k, err)
	}
	if ids, err := r.Absent(bg, mine.Ino, 0, size); err != nil || len(ids) > 0 {
		t.Errorf("of what is not pushed, %v is gone, %v", ids, err)
	}
}

// shared is a file of chunks that are not here.
func (o *testOrigin) shared(t *testing.T, r *Replica, ino vfs.Ino, sizes ...int) (entries []chunk.Entry) {
	t.Helper()
	rec := vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644, Nlink: 1}
	for i, n := range sizes {
		plain := noise(uint64(i)+1, n)
		c := vfs.Chunk{ID: chunk.Sum(plain), Codec: chunk.Raw, PlainLen: n, Stored: plain}
		o.chunks[c.ID] = c
		entries = append(entries, chunk.Entry{ID: c.ID, Len: uint64(n)})
		rec.Size += uint64(n)
	}
	rec.Body = vfs.Body{Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, entries)}
	d := vfs.DirentRecord{Ino: ino, Type: vfs.TypeRegular}
	in := Incoming{Records: []vfs.PushRecord{
		{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyInode, Ino: ino}, Value: rec.Append(nil)}},
		{Record: vfs.Record{Key: vfs.Key{Kind: vfs.KeyDirent, Ino: 1, Name: "f"}, Value: d.Append(nil)}},
	}}
	if stale, err := r.Apply(bg, in); err != nil || len(stale) > 0 {
		t.Fatal(stale, err)
	}
	return entries
}

// A range is copied behind a short chunk that is shared and not here. What is written after it is flushed without that chunk.
func TestReplicaCopiesBehindWhatIsNotHere(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, r, o := openReplica(t, s)
	const src = 10
	entries := o.shared(t, r, src, 300<<10, 70<<10, 300<<10)
	if err := r.AddChunks(bg, []vfs.Chunk{o.chunks[entries[2].ID]}); err != nil {
		t.Fatal(err)
	}
	if err := r.AddNumbers(vfs.InoRange{First: 100, Last: 200}); err != nil {
		t.Fatal(err)
	}
	dst, err := w.Create(bg, vfs.RootIno, "copy", vfs.NewNode{Mode: 0o644})
	if err != nil {
		t.Fatal(err)
	}
	const n = 470 << 10 // into the third
	if k, err := w.CopyRange(bg, src, 0, dst.Ino, 0, n); err != nil || k != n {
		t.Fatal(k, err)
	}
	if _, err := r.Commit(bg, dst.Ino); err != nil || o.fetches.Load() > 0 {
		t.Errorf("%v, %d chunks were fetched", err, o.fetches.Load())
	}
	ids, err := r.Absent(bg, dst.Ino, 0, n)
	if err != nil || !slices.Equal(ids, []chunk.ID{entries[0].ID, entries[1].ID}) {
		t.Errorf("%v, %v: what is not here is not shared", ids, err)
	}
}

// A write is flushed without what its tree has not fetched for it, also where a short chunk before it is cut anew with it.
func TestReplicaFlushFetchesNothing(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, r, o := openReplica(t, s)
	const ino, size = 10, 970 << 10
	entries := o.shared(t, r, ino, 300<<10, 70<<10, 300<<10, 300<<10)
	const at = 470 << 10 // in the third
	ids, err := r.AbsentAround(bg, ino, at, 10)
	if err != nil || !slices.Equal(ids, []chunk.ID{entries[1].ID, entries[2].ID}) {
		t.Fatalf("%v, %v", ids, err)
	}
	for _, id := range ids {
		if err := r.AddChunks(bg, []vfs.Chunk{o.chunks[id]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteAt(bg, ino, []byte("0123456789"), at, false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(bg, ino); err != nil || o.fetches.Load() > 0 {
		t.Errorf("%v, %d chunks were fetched", err, o.fetches.Load())
	}
	for what, ids := range map[string]func() ([]chunk.ID, error){
		"a chunk that is written over": func() ([]chunk.ID, error) { return r.AbsentAround(bg, ino, 0, 300<<10) },
		"where a chunk ends":           func() ([]chunk.ID, error) { return r.AbsentAround(bg, ino, 300<<10, 0) },
	} {
		if ids, err := ids(); err != nil || len(ids) > 0 {
			t.Errorf("%s: %v, %v", what, ids, err)
		}
	}
	for what, off := range map[string]uint64{"at the end": size, "behind it": size + 1000} {
		if ids, err := r.AbsentAround(bg, ino, off, 10); err != nil || !slices.Equal(ids, []chunk.ID{entries[3].ID}) {
			t.Errorf("%s: %v, %v", what, ids, err)
		}
	}
}
