package casstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/casstore/vfs/vfstest"
)

// copied is what a mirror has of a workspace.
type copied struct {
	records  map[vfs.Key]vfs.Record
	position vfs.Position
}

// pull brings a copy up to date. A copy that has nothing takes a snapshot.
func (c *copied) pull(t *testing.T, a *Authority) {
	t.Helper()
	if c.records == nil {
		c.records = make(map[vfs.Key]vfs.Record)
	}
	var before vfs.Key
	p, err := a.Read(bg, vfs.Query{Since: c.position.Cursor, Range: vfs.AllInos}, func(r vfs.Record) error {
		if r.Ino < before.Ino || r.Ino == before.Ino && r.Kind < before.Kind {
			t.Errorf("%v after %v", r.Key, before)
		}
		if before = r.Key; r.Value == nil {
			delete(c.records, r.Key)
		} else {
			r.Value = bytes.Clone(r.Value)
			c.records[r.Key] = r
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read since %d: %v", c.position.Rev, err)
	}
	c.position = p
}

// diff says what two copies do not have in common.
func (c *copied) diff(o *copied) string {
	var out []string
	for k, r := range c.records {
		if got, ok := o.records[k]; !ok || !bytes.Equal(got.Value, r.Value) {
			out = append(out, fmt.Sprintf("%v: %x, %x", k, r.Value, got.Value))
		}
	}
	for k := range o.records {
		if _, ok := c.records[k]; !ok {
			out = append(out, fmt.Sprintf("%v: is there", k))
		}
	}
	return fmt.Sprint(len(out), out[:min(len(out), 5)])
}

func (c *copied) digest(in vfs.InoRange) (d vfs.Digest) {
	for _, r := range c.records {
		if in.Contains(r.Ino) {
			d.Add(&r)
		}
	}
	return d
}

// snapshotAt takes a copy that is as new as everything that has been done, and compares what the authority says of it.
func snapshotAt(t *testing.T, a *Authority) *copied {
	t.Helper()
	p, err := a.Barrier(bg)
	if err != nil {
		t.Fatal(err)
	}
	c := new(copied)
	c.pull(t, a)
	if c.position != p {
		t.Fatalf("barrier at %v, read at %v", p, c.position)
	}
	if d := c.digest(vfs.AllInos); d != p.Digest {
		t.Fatalf("digest %v, of the records %v", p.Digest, d)
	}
	return c
}

func mustPosition(t *testing.T, a *Authority) vfs.Position {
	t.Helper()
	p, err := a.Position(bg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compact has Badger rewrite its tables, and drop what it may. What is in its memory it does not look at, so that there
// is something in tables the store should have been opened anew.
func compact(t *testing.T, s *Store) {
	t.Helper()
	s.letGoOld()
	if err := s.compactors.flatten(); err != nil {
		t.Fatal(err)
	}
}

// TestAuthorityAtRandom has copies of all ages catch up while a tree changes at random.
func TestAuthorityAtRandom(t *testing.T) {
	seed := vfstest.Seed(t)
	dir := t.TempDir()
	o := Options{Create: true, packSize: 1 << 20, BufferBytes: 4 << 20}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	rnd := rand.New(rand.NewPCG(seed, 2))
	var copies []*copied
	catchUp := func() {
		now := snapshotAt(t, w.Authority())
		if len(copies) > 0 {
			i := rnd.IntN(len(copies))
			from := copies[i].position.Rev
			if copies[i].pull(t, w.Authority()); !maps.EqualFunc(copies[i].records, now.records, sameValue) {
				t.Fatalf("since %d: %s", from, now.diff(copies[i]))
			}
		}
		if len(copies) < 6 {
			copies = append(copies, now)
		}
		in := vfs.InoRange{First: vfs.Ino(rnd.IntN(50)), Last: vfs.Ino(50 + rnd.IntN(500))}
		sums, rev, err := w.Authority().Sums(bg, []vfs.InoRange{in, vfs.AllInos, {First: 3, Last: 3}, in})
		if err != nil || rev != now.position.Rev || sums[1] != now.position.Digest || sums[0] != sums[3] ||
			sums[0] != now.digest(in) || sums[2] != now.digest(vfs.InoRange{First: 3, Last: 3}) {
			t.Fatalf("sums %v at %d, %v", sums, rev, err)
		}
	}
	vfstest.Random(t, seed, 900, w, vfstest.NewTree(), func(_ int, tree vfs.Tree) vfs.Tree {
		switch rnd.IntN(80) {
		case 0, 1, 2, 3, 4:
			catchUp()
		case 5:
			if err := w.Fsync(bg, vfs.RootIno); err != nil {
				t.Fatal(err)
			}
		case 6:
			w.forgetAll()
		case 7:
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = Open(dir, o); err != nil {
				t.Fatal(err)
			}
			compact(t, s)
			w = openWorkspace(t, s, "ws")
			return w
		}
		return tree
	})
	catchUp()
	checkStore(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func sameValue(a, b vfs.Record) bool { return bytes.Equal(a.Value, b.Value) }

func mustCreate(t *testing.T, w *Workspace, name, text string) vfs.Ino {
	t.Helper()
	a, err := w.Create(bg, vfs.RootIno, name, vfs.NewNode{Mode: 0o644})
	if err == nil {
		err = w.WriteAt(bg, a.Ino, []byte(text), 0, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.Ino
}

// TestWaitPushes: while somebody waits, a change becomes a revision though the time of the next commit is far.
func TestWaitPushes(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	a := w.Authority()
	p := mustPosition(t, a)
	mustCreate(t, w, "before", "dirty before the wait")
	for i := range 3 {
		next, err := a.Wait(bg, p.Rev)
		if err != nil || next.Rev <= p.Rev {
			t.Fatalf("after %d: %d, %v", p.Rev, next.Rev, err)
		}
		p = next
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := a.Wait(bg, p.Rev); err != nil {
				t.Error(err)
			}
		}()
		mustCreate(t, w, fmt.Sprint("during", i), "")
		<-done
		mustCreate(t, w, fmt.Sprint("between", i), "")
	}
}

// TestWaitSeesFsynced: bytes that an fsync has put into the journal get into the record without delay while somebody waits.
func TestWaitSeesFsynced(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	ino := mustCreate(t, w, "file", strings.Repeat("some text ", 10_000))
	snapshotAt(t, w.Authority())
	if err := w.WriteAt(bg, ino, []byte("SOME"), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Fsync(bg, ino); err != nil {
		t.Fatal(err)
	}
	attr, err := w.Stat(bg, ino)
	if err != nil {
		t.Fatal(err)
	}
	key := vfs.Key{Kind: vfs.KeyInode, Ino: ino}
	for {
		got, rev, err := w.Authority().Get(bg, []vfs.Key{key})
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := vfs.DecodeInode(got[0].Value); err != nil || rec.Mtime == attr.Mtime {
			break
		}
		if _, err := w.Authority().Wait(bg, rev); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPositionStands: what does not change the records of a workspace makes no revision of it.
func TestPositionStands(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w, other := openWorkspace(t, s, "ws"), openWorkspace(t, s, "other")
	ino := mustCreate(t, w, "file", "text")
	a := w.Authority()
	before, err := a.Barrier(bg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SetAttr(bg, ino, vfs.AttrSet{Mask: vfs.SetAtime, Atime: 5}); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, other, "file", "text")
	if other.Authority().tree.epoch() == w.epoch() {
		t.Error("two workspaces have one epoch")
	}
	if _, err := s.GC(bg); err != nil {
		t.Fatal(err)
	}
	// An atime sets the ctime, too, so there is one revision; the others are none.
	after, err := a.Barrier(bg)
	if err != nil || after.Rev <= before.Rev {
		t.Fatalf("%v, %v", after, err)
	}
	mustCreate(t, other, "more", "text")
	if err := other.Sync(bg); err != nil {
		t.Fatal(err)
	}
	if again, err := a.Barrier(bg); err != nil || again != after {
		t.Fatalf("%v, not %v, %v", again, after, err)
	}
}

// TestDigestOfRemovedAttributes: an attribute that is changed and then goes with its inode is taken from the digest once.
func TestDigestOfRemovedAttributes(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitEvery: time.Hour})
	w := openWorkspace(t, s, "ws")
	for round := range 3 {
		ino := mustCreate(t, w, "file", "text")
		for _, value := range []string{"first", "second"} {
			snapshotAt(t, w.Authority())
			if err := w.SetXattr(bg, ino, "user.x", []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
		if round == 1 {
			if err := w.RemoveXattr(bg, ino, "user.x"); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Unlink(bg, vfs.RootIno, "file"); err != nil {
			t.Fatal(err)
		}
		snapshotAt(t, w.Authority())
	}
}

// TestWindow: the window slides, the cursors below it are void, and that is so after a restart, too.
func TestWindow(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w, idle := openWorkspace(t, s, "ws"), openWorkspace(t, s, "idle")
	a := w.Authority()
	old, still := new(copied), new(copied)
	old.pull(t, a)
	still.pull(t, idle.Authority())
	s.window.bounds.revisions = 2 * discardEvery
	for i := range 8 * discardEvery {
		ino := mustCreate(t, w, fmt.Sprint("f", i), "")
		if i%2 == 0 {
			if err := w.Unlink(bg, vfs.RootIno, fmt.Sprint("f", i)); err != nil {
				t.Fatal(err)
			}
		} else if err := w.Fsync(bg, ino); err != nil {
			t.Fatal(err)
		}
	}
	p := mustPosition(t, a)
	if p.Oldest <= old.position.Rev || p.Rev-p.Oldest > 3*discardEvery {
		t.Errorf("the window is from %d to %d", p.Oldest, p.Rev)
	}
	isVoid := func(since vfs.Cursor) {
		t.Helper()
		_, err := a.Read(bg, vfs.Query{Since: since, Range: vfs.AllInos}, func(vfs.Record) error { return nil })
		if !errors.Is(err, vfs.ErrVoidCursor) {
			t.Errorf("since %d: %v", since.Rev, err)
		}
	}
	isVoid(old.position.Cursor)
	isVoid(vfs.Cursor{Epoch: p.Epoch, Rev: p.Rev + 1})
	isVoid(vfs.Cursor{Epoch: p.Epoch})
	isVoid(vfs.Cursor{Rev: p.Rev})
	isVoid(still.position.Cursor)
	// Nothing has happened to the workspace that stood still, so its mirror need not begin again when something does.
	mustCreate(t, idle, "first", "")
	if err := idle.Sync(bg); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, idle, "second", "")
	now := snapshotAt(t, idle.Authority())
	if still.pull(t, idle.Authority()); !maps.EqualFunc(still.records, now.records, sameValue) {
		t.Error(now.diff(still))
	}
	p = mustPosition(t, a)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	w = openWorkspace(t, s, "ws")
	if a = w.Authority(); mustPosition(t, a) != p {
		t.Errorf("before %v, after %v", p, mustPosition(t, a))
	}
	isVoid(old.position.Cursor)
	if len(s.window.marks) < 2 {
		t.Error("the marks of the window are gone")
	}
	if err := s.closeWindow(bg); err != nil {
		t.Fatal(err)
	}
	if p = mustPosition(t, a); p.Oldest != p.Rev {
		t.Errorf("oldest is %d at %d", p.Oldest, p.Rev)
	}
}

// TestStandingFollows: changes that were made while nobody used the workspace as an authority are found when somebody
// does, from the window or from all records.
func TestStandingFollows(t *testing.T) {
	for _, closed := range []bool{false, true} {
		dir := t.TempDir()
		s, err := Open(dir, Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		w := openWorkspace(t, s, "ws")
		mustCreate(t, w, "a", "1")
		first := snapshotAt(t, w.Authority())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		w = openWorkspace(t, s, "ws")
		mustCreate(t, w, "b", "2")
		if err := w.Unlink(bg, vfs.RootIno, "a"); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(bg); err != nil {
			t.Fatal(err)
		}
		if closed {
			if err := s.closeWindow(bg); err != nil {
				t.Fatal(err)
			}
		}
		now := snapshotAt(t, w.Authority())
		if !closed {
			if first.pull(t, w.Authority()); !maps.EqualFunc(first.records, now.records, sameValue) {
				t.Error(now.diff(first))
			}
		}
		checkStore(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadIsOneMoment: what is written, let go and compacted while a read runs is not in it.
func TestReadIsOneMoment(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		dir := t.TempDir()
		s, err := Open(dir, Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		w := openWorkspace(t, s, "ws")
		for i := range 20 {
			mustCreate(t, w, fmt.Sprint("f", i), "old")
		}
		got := snapshotAt(t, w.Authority())
		for i := range 10 {
			if err := w.Unlink(bg, vfs.RootIno, fmt.Sprint("f", i)); err != nil {
				t.Fatal(err)
			}
		}
		want := snapshotAt(t, w.Authority())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, dir, Options{})
		w = openWorkspace(t, s, "ws")
		if snapshot {
			got = &copied{records: make(map[vfs.Key]vfs.Record)}
		}
		q := vfs.Query{Since: got.position.Cursor, Range: vfs.AllInos}
		steps := 0
		p, err := w.Authority().Read(bg, q, func(r vfs.Record) error {
			if steps++; steps == 1 {
				mustCreate(t, w, "new", "")
				if err := w.Unlink(bg, vfs.RootIno, "f15"); err != nil {
					return err
				}
				if _, err := w.Authority().Barrier(bg); err != nil {
					return err
				}
				if err := s.closeWindow(bg); err != nil {
					return err
				}
				compact(t, s)
			}
			if r.Value == nil {
				delete(got.records, r.Key)
			} else {
				got.records[r.Key] = vfs.Record{Key: r.Key, Value: bytes.Clone(r.Value)}
			}
			return nil
		})
		if err != nil || p.Cursor != want.position.Cursor || !maps.EqualFunc(got.records, want.records, sameValue) {
			t.Errorf("at %d, not %d, %v: %s", p.Rev, want.position.Rev, err, want.diff(got))
		}
		failed := errors.New("failed")
		if _, err := w.Authority().Read(bg, vfs.Query{Range: vfs.AllInos}, func(vfs.Record) error { return failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
		compact(t, s)
		snapshotAt(t, w.Authority())
	}
}

// TestCheckKnowsReplication: a check finds a wrong digest and leases that overlap, and what is kept for a workspace's
// mirrors goes with the workspace.
func TestCheckKnowsReplication(t *testing.T) {
	s, err := Open(t.TempDir(), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := openWorkspace(t, s, "ws")
	d := newDraft(t, w.Authority(), 1, 1)
	d.pull()
	d.step()
	d.push()
	in, err := w.Authority().LeaseInos(bg, d.peer, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkStore(t, s)
	var right standingRecord
	err = s.edit(bg, func(v *revision) error {
		r := s.reader()
		defer r.Close()
		wrong, err := r.standing(w.id)
		right = wrong
		wrong.digest[3]++
		l := lease{InoRange: vfs.InoRange{First: in.First + 1, Last: in.Last + 100}}
		v.kvs = append(v.kvs, kv{key: keyOfStanding(w.id), value: wrong.encode()},
			kv{key: keyOfNode(keyLease, w.id, l.First), value: l.encode()},
			kv{key: keyOfPush(w.id, d.peer, v.rev), value: (&appliedPush{prev: 9, rev: 8}).encode()})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.Check(bg, CheckOptions{})
	if err != nil || len(report.Problems) != 3 {
		t.Errorf("%v, %v, with digest %v", report.Problems, err, right.digest)
	}
	if err := s.RemoveWorkspace(bg, "ws"); err != nil {
		t.Fatal(err)
	}
	r := s.reader()
	defer r.Close()
	for _, kind := range []byte{keyStanding, keyLease, keyPush, keyInode} {
		err := r.scan([]byte{kind}, nil, false, func(key, _ []byte) (bool, error) {
			t.Errorf("%x is left", key)
			return true, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	checkStore(t, s)
}
