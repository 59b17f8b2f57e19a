package casstore

import (
	"bytes"
	"context"
	"encoding/binary"
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

// draft is a mirror: what it has from the authority, and what it makes of that at random.
type draft struct {
	t    *testing.T
	a    *Authority
	peer vfs.PeerID
	rnd  *rand.Rand
	base *copied
	own  map[vfs.Key]vfs.Record
	free vfs.InoRange
	seq  uint64

	inline bool // it makes no chunks
}

func newDraft(t *testing.T, a *Authority, peer byte, seed uint64) *draft {
	return &draft{t: t, a: a, peer: vfs.PeerID{peer}, rnd: rand.New(rand.NewPCG(seed, uint64(peer))), base: new(copied)}
}

// pull drops what has not been pushed, and catches up.
func (d *draft) pull() {
	d.t.Helper()
	d.base.pull(d.t, d.a)
	d.own = maps.Clone(d.base.records)
}

func (d *draft) ino() vfs.Ino {
	if d.free.First == 0 || d.free.First > d.free.Last {
		in, err := d.a.LeaseInos(bg, d.peer, 100)
		if err != nil {
			d.t.Fatal(err)
		}
		d.free = in
	}
	d.free.First++
	return d.free.First - 1
}

func (d *draft) get(ino vfs.Ino) vfs.InodeRecord {
	r, err := vfs.DecodeInode(d.own[vfs.Key{Kind: vfs.KeyInode, Ino: ino}].Value)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *draft) put(k vfs.Key, value []byte) { d.own[k] = vfs.Record{Key: k, Value: value} }

func (d *draft) set(ino vfs.Ino, r vfs.InodeRecord) {
	d.seq++
	r.Ctime = vfs.Time(d.seq)
	d.put(vfs.Key{Kind: vfs.KeyInode, Ino: ino}, r.Append(nil))
}

func (d *draft) edit(ino vfs.Ino, f func(*vfs.InodeRecord)) {
	r := d.get(ino)
	f(&r)
	d.set(ino, r)
}

func (d *draft) name(dir vfs.Ino, name string, ino vfs.Ino, typ vfs.Type) {
	d.put(vfs.Key{Kind: vfs.KeyDirent, Ino: dir, Name: name}, (&vfs.DirentRecord{Ino: ino, Type: typ}).Append(nil))
	d.edit(dir, func(r *vfs.InodeRecord) { r.Mtime++ })
}

// make makes a node in a directory.
func (d *draft) make(dir vfs.Ino, name string, r vfs.InodeRecord) vfs.Ino {
	ino := d.ino()
	r.Nlink = 1
	if r.Type == vfs.TypeDir {
		r.Nlink, r.Parent = 2, dir
		d.edit(dir, func(r *vfs.InodeRecord) { r.Nlink++ })
	}
	d.set(ino, r)
	d.name(dir, name, ino, r.Type)
	return ino
}

// keys returns the keys of the draft that a function wants, in order.
func (d *draft) keys(want func(vfs.Key, vfs.Record) bool) (out []vfs.Key) {
	for k, r := range d.own {
		if want(k, r) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, vfs.Key.Compare)
	return out
}

func (d *draft) pick(want func(vfs.Key, vfs.Record) bool) (vfs.Key, bool) {
	list := d.keys(want)
	if len(list) == 0 {
		return vfs.Key{}, false
	}
	return list[d.rnd.IntN(len(list))], true
}

func isInode(types ...vfs.Type) func(vfs.Key, vfs.Record) bool {
	return func(k vfs.Key, r vfs.Record) bool {
		return k.Kind == vfs.KeyInode && slices.Contains(types, vfs.Type(r.Value[0]))
	}
}

func isDirent(k vfs.Key, _ vfs.Record) bool { return k.Kind == vfs.KeyDirent }

func (d *draft) target(k vfs.Key) vfs.DirentRecord {
	r, err := vfs.DecodeDirent(d.own[k].Value)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// step does something.
func (d *draft) step() {
	dir, _ := d.pick(isInode(vfs.TypeDir))
	name := fmt.Sprintf("p%x-%d", d.peer[0], d.rnd.IntN(40))
	_, taken := d.own[vfs.Key{Kind: vfs.KeyDirent, Ino: dir.Ino, Name: name}]
	node, hasNode := d.pick(isInode(vfs.TypeRegular, vfs.TypeDir, vfs.TypeSymlink))
	file, hasFile := d.pick(isInode(vfs.TypeRegular))
	entry, hasEntry := d.pick(isDirent)
	switch d.rnd.IntN(12) {
	case 0, 1:
		if !taken {
			ino := d.make(dir.Ino, name, vfs.InodeRecord{Type: vfs.TypeRegular, Mode: 0o644})
			d.write(ino)
		}
	case 2:
		if !taken {
			d.make(dir.Ino, name, vfs.InodeRecord{Type: vfs.TypeDir, Mode: 0o755})
		}
	case 3:
		if !taken {
			body := vfs.Body{Kind: vfs.BodyTarget, Data: []byte("to")}
			d.make(dir.Ino, name, vfs.InodeRecord{Type: vfs.TypeSymlink, Mode: 0o777, Size: 2, Body: body})
		}
	case 4, 5:
		if hasEntry {
			d.remove(entry)
		}
	case 6:
		if hasEntry && !taken && !d.inside(dir.Ino, d.target(entry).Ino) {
			d.move(entry, dir.Ino, name)
		}
	case 7:
		if hasNode {
			d.edit(node.Ino, func(r *vfs.InodeRecord) { r.Mode ^= 0o111 })
		}
	case 8, 9:
		if hasFile {
			d.write(file.Ino)
		}
	case 10:
		if hasNode {
			d.xattr(node.Ino)
		}
	case 11:
		if hasFile && !taken {
			d.edit(file.Ino, func(r *vfs.InodeRecord) { r.Nlink++ })
			d.name(dir.Ino, name, file.Ino, vfs.TypeRegular)
		}
	}
}

func (d *draft) inside(ino, moved vfs.Ino) bool {
	for ; ino != vfs.RootIno; ino = d.get(ino).Parent {
		if ino == moved {
			return true
		}
	}
	return moved == vfs.RootIno
}

func (d *draft) move(entry vfs.Key, dir vfs.Ino, name string) {
	e := d.target(entry)
	d.unname(entry)
	d.name(dir, name, e.Ino, e.Type)
	if e.Type == vfs.TypeDir {
		d.edit(dir, func(r *vfs.InodeRecord) { r.Nlink++ })
		d.edit(e.Ino, func(r *vfs.InodeRecord) { r.Parent = dir })
	}
}

// unname takes away a name, and what a directory in it counts in its parent.
func (d *draft) unname(entry vfs.Key) {
	typ := d.target(entry).Type
	delete(d.own, entry)
	d.edit(entry.Ino, func(r *vfs.InodeRecord) {
		r.Mtime++
		if typ == vfs.TypeDir {
			r.Nlink--
		}
	})
}

func (d *draft) remove(entry vfs.Key) {
	e := d.target(entry)
	n := d.get(e.Ino)
	if e.Type == vfs.TypeDir {
		if _, full := d.pick(func(k vfs.Key, _ vfs.Record) bool { return k.Kind == vfs.KeyDirent && k.Ino == e.Ino }); full {
			return
		}
	}
	d.unname(entry)
	if e.Type != vfs.TypeDir && n.Nlink > 1 {
		d.edit(e.Ino, func(r *vfs.InodeRecord) { r.Nlink-- })
		return
	}
	maps.DeleteFunc(d.own, func(k vfs.Key, _ vfs.Record) bool { return k.Ino == e.Ino })
}

// write gives a file other bytes: none, some in line, or two chunks and a hole.
func (d *draft) write(ino vfs.Ino) {
	b := make([]byte, 100_000)
	for i := range 64 {
		b[d.rnd.IntN(len(b)/2)] = byte(i + 1)
	}
	var body vfs.Body
	size := uint64(d.rnd.IntN(3)) * 700
	if size > 0 {
		body = vfs.Body{Kind: vfs.BodyInline, Data: b[:size]}
	}
	if d.rnd.IntN(3) == 0 && !d.inline {
		var entries []chunk.Entry
		for _, part := range [][]byte{b[:len(b)/2], b[len(b)/4:]} {
			codec, stored := chunk.Encode(nil, part)
			c := vfs.Chunk{ID: chunk.Sum(part), Codec: codec, PlainLen: len(part), Stored: stored}
			if err := d.a.WriteChunks(bg, []vfs.Chunk{c}); err != nil {
				d.t.Fatal(err)
			}
			entries = append(entries, chunk.Entry{ID: c.ID, Len: uint64(len(part))})
			size += uint64(len(part))
		}
		entries = append(entries, chunk.HoleOf(5000))
		size = uint64(len(b)/2+len(b)-len(b)/4) + 5000
		body = vfs.Body{Kind: vfs.BodyExtents, Data: chunk.AppendEntries(nil, entries)}
	}
	d.edit(ino, func(r *vfs.InodeRecord) { r.Size, r.Body = size, body })
}

func (d *draft) xattr(ino vfs.Ino) {
	k := vfs.Key{Kind: vfs.KeyXattr, Ino: ino, Name: fmt.Sprintf("user.%d", d.rnd.IntN(3))}
	grow := uint32(1)
	if _, ok := d.own[k]; ok {
		grow = 0
		if d.rnd.IntN(2) == 0 {
			delete(d.own, k)
			d.edit(ino, func(r *vfs.InodeRecord) { r.Xattrs-- })
			return
		}
	}
	d.put(k, make([]byte, d.rnd.IntN(100)))
	d.edit(ino, func(r *vfs.InodeRecord) { r.Xattrs += grow })
}

// changes returns what turns the base into the draft.
func (d *draft) changes() vfs.Push {
	var p vfs.Push
	binary.BigEndian.PutUint64(p.ID[:], d.rnd.Uint64())
	all := maps.Clone(d.base.records)
	maps.Copy(all, d.own)
	for _, k := range slices.SortedFunc(maps.Keys(all), vfs.Key.Compare) {
		old, now := d.base.records[k], d.own[k]
		if old.Key = k; (old.Value == nil) != (now.Value == nil) || !bytes.Equal(old.Value, now.Value) {
			p.Records = append(p.Records, vfs.PushRecord{Record: vfs.Record{Key: k, Value: now.Value}, Base: old.Base()})
		}
	}
	return p
}

// push pushes the draft, and checks the answer.
func (d *draft) push() (applied bool) {
	d.t.Helper()
	p := d.changes()
	o, err := d.a.Push(bg, d.peer, p)
	if errors.Is(err, vfs.ErrBusy) {
		return false
	}
	if err != nil {
		d.t.Fatalf("push of %d records: %v", len(p.Records), err)
	}
	if !o.Applied() {
		if len(o.Missing) > 0 {
			d.t.Fatalf("%d chunks are missing", len(o.Missing))
		}
		for _, r := range o.Stale {
			if base := d.base.records[r.Key]; r.Rev > o.Position.Rev || bytes.Equal(r.Value, base.Value) && (r.Value == nil) == (base.Value == nil) {
				d.t.Errorf("%v is stale at %d, and as it was: %x", r.Key, r.Rev, r.Value)
			}
		}
		return false
	}
	again, err := d.a.Push(bg, d.peer, p)
	again.Position.Oldest = o.Position.Oldest
	if err != nil || again.Position != o.Position || again.Prev != o.Prev {
		d.t.Fatalf("%v at first, %v again, %v", o, again, err)
	}
	if o.Prev == d.base.position.Rev {
		if got := (&copied{records: d.own}).digest(vfs.AllInos); got != o.Position.Digest {
			d.t.Fatalf("digest %v, of the draft %v", o.Position.Digest, got)
		}
	}
	// Nobody has changed since what was pushed, if what was pulled is of the push's revision.
	before, from := d.own, d.base.position.Rev
	if d.pull(); d.base.position.Rev == o.Position.Rev && o.Prev == from {
		if !maps.EqualFunc(before, d.own, sameValue) {
			d.t.Fatal("what was pushed is not what is read")
		}
	}
	return true
}

// localStep changes the live tree at random. Errors are those of what happens not to be there.
func localStep(w *Workspace, rnd *rand.Rand, held *[]vfs.Ino) {
	dirs, files := []vfs.Ino{vfs.RootIno}, []vfs.Ino(nil)
	type place struct {
		dir  vfs.Ino
		name string
	}
	var places []place
	for i := 0; i < len(dirs); i++ {
		_ = w.ReadDir(bg, dirs[i], 0, func(e vfs.Dirent) bool {
			if e.Name == "." || e.Name == ".." {
				return true
			}
			places = append(places, place{dirs[i], e.Name})
			if e.Type == vfs.TypeDir {
				dirs = append(dirs, e.Ino)
			} else if e.Type == vfs.TypeRegular {
				files = append(files, e.Ino)
			}
			return true
		})
	}
	dir, name := dirs[rnd.IntN(len(dirs))], fmt.Sprintf("l%d", rnd.IntN(40))
	if len(places) == 0 || len(files) == 0 {
		_, _ = w.Create(bg, dir, name, vfs.NewNode{Mode: 0o600})
		return
	}
	at, file := places[rnd.IntN(len(places))], files[rnd.IntN(len(files))]
	switch rnd.IntN(10) {
	case 0:
		_, _ = w.Create(bg, dir, name, vfs.NewNode{Mode: 0o600})
	case 1:
		_, _ = w.Mkdir(bg, dir, name, vfs.NewNode{Mode: 0o700})
	case 2:
		_ = w.Unlink(bg, at.dir, at.name)
	case 3:
		_ = w.Rmdir(bg, at.dir, at.name)
	case 4:
		_ = w.Rename(bg, at.dir, at.name, dir, name, 0)
	case 5:
		_ = w.WriteAt(bg, file, make([]byte, rnd.IntN(20_000)), uint64(rnd.IntN(100_000)), false)
	case 6:
		_, _ = w.SetAttr(bg, file, vfs.AttrSet{Mask: vfs.SetSize | vfs.SetAtime, Size: uint64(rnd.IntN(150_000)), Atime: 7})
	case 7:
		_ = w.SetXattr(bg, file, fmt.Sprintf("user.%d", rnd.IntN(3)), []byte(name), 0)
	case 8:
		_, _ = w.Link(bg, file, dir, name)
	case 9:
		if len(*held) > 4 {
			w.Release((*held)[0], 1)
			*held = (*held)[1:]
		} else {
			w.Hold(file)
			*held = append(*held, file)
		}
	}
}

// TestPushAtRandom mixes pushes of two mirrors with changes of the live tree, evictions, collections and restarts. The
// live tree is the same as that which a restart reads from the store, and all that is told of it agrees.
func TestPushAtRandom(t *testing.T) {
	seed := vfstest.Seed(t)
	t.Logf("VFSTEST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	dir := t.TempDir()
	o := Options{Create: true, packSize: 1 << 20, CommitEvery: time.Hour}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	w := openWorkspace(t, s, "ws")
	var held []vfs.Ino
	mirrors := []*draft{newDraft(t, w.Authority(), 1, seed), newDraft(t, w.Authority(), 2, seed)}
	for _, d := range mirrors {
		d.pull()
	}
	applied, refused := 0, 0
	for range 300 {
		d := mirrors[rnd.IntN(2)]
		switch rnd.IntN(20) {
		case 0, 1, 2, 3, 4, 5, 6:
			localStep(w, rnd, &held)
		case 7, 8, 9, 10:
			d.pull()
			fallthrough
		case 11, 12, 13, 14:
			for range 1 + rnd.IntN(8) {
				d.step()
			}
			if d.push() {
				applied++
			} else {
				refused++
				d.pull()
			}
		case 15:
			w.forgetAll()
		case 16:
			if err := w.Fsync(bg, vfs.RootIno); err != nil {
				t.Fatal(err)
			}
		case 17:
			if _, err := s.GC(bg); err != nil {
				t.Fatal(err)
			}
		case 18:
			if err := vfstest.Audit(bg, w); err != nil {
				t.Fatal(err)
			}
			snapshotAt(t, w.Authority())
		case 19:
			if rnd.IntN(3) > 0 {
				break
			}
			live := snapshotOf(t, w)
			checkStore(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = Open(dir, o); err != nil {
				t.Fatal(err)
			}
			w, held = openWorkspace(t, s, "ws"), nil
			if d := vfstest.DiffTimes(live, snapshotOf(t, w)); d != "" {
				t.Fatalf("the live tree was not what is stored:\n%.2000s", d)
			}
			for _, d := range mirrors {
				d.a = w.Authority()
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if applied < 10 || refused == 0 {
		t.Errorf("%d pushes were applied, %d were not", applied, refused)
	}
	checkStore(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestPushBesideEverything has two mirrors push while the tree is written, read, watched and collected. A feed follows
// all of it.
func TestPushBesideEverything(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{packSize: 1 << 20})
	w := openWorkspace(t, s, "ws")
	a := w.Authority()
	mustCreate(t, w, "first", "text")
	stop := w.Watch(nil, func(vfs.Change) {})
	defer stop()
	ctx, cancel := context.WithCancel(bg)
	var all, feeds sync.WaitGroup
	for n := range byte(2) {
		all.Go(func() {
			d := newDraft(t, a, n, uint64(n))
			for range 60 {
				d.pull()
				for range 3 {
					d.step()
				}
				d.push()
			}
		})
		all.Go(func() {
			var held []vfs.Ino
			rnd := rand.New(rand.NewPCG(uint64(n), 9))
			for range 150 {
				localStep(w, rnd, &held)
			}
			for _, ino := range held {
				w.Release(ino, 1)
			}
		})
	}
	all.Go(func() {
		for range 5 {
			_, _ = vfstest.Snapshot(bg, w) // of no one moment
			if _, err := s.GC(bg); err != nil {
				t.Error(err)
			}
		}
	})
	follower := new(copied)
	feeds.Go(func() {
		for {
			if _, err := a.Wait(ctx, follower.position.Rev); err != nil {
				return
			}
			follower.pull(t, a)
			if d := follower.digest(vfs.AllInos); d != follower.position.Digest {
				t.Errorf("at %d the digest is %v, and of what was fed %v", follower.position.Rev, follower.position.Digest, d)
			}
		}
	})
	all.Wait()
	cancel()
	feeds.Wait()
	now := snapshotAt(t, a)
	if follower.pull(t, a); !maps.EqualFunc(now.records, follower.records, sameValue) {
		t.Error(now.diff(follower))
	}
	if err := vfstest.Audit(bg, w); err != nil {
		t.Error(err)
	}
}
