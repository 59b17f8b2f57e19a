package wiretest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// readChecks are what holds for reading records.
var readChecks = []Check{
	{"a new workspace is a root", checkFresh},
	{"a read since a revision is what changed", checkReadSince},
	{"many changes of a key are one record", checkReadOnce},
	{"a read is as of one revision", checkReadIsolation},
	{"a read of an interval", checkReadRange},
	{"a snapshot is taken up where it was cut off", checkReadResume},
	{"a void cursor is an error", checkReadVoid},
	{"an error of yield ends a read", checkReadYield},
	{"a replica that follows is equal at every step", checkReplica},
	{"get", checkGet},
	{"sums add up", checkSums},
}

func checkFresh(k *kit) {
	s, position := k.snapshot()
	root, err := vfs.DecodeInode(s[inodeKey(vfs.RootIno)].Value)
	if k.must(err, "root"); len(s) != 1 || root.Type != vfs.TypeDir {
		k.fail("a new workspace has %d records", len(s))
	}
	if position.Rev == 0 || position.Epoch == (vfs.Epoch{}) || position.Oldest > position.Rev {
		k.fail("a new workspace is at %v", position)
	}
}

func checkReadSince(k *kit) {
	d := k.draft(0)
	kept := d.text(vfs.RootIno, "kept", "one")
	gone := d.text(vfs.RootIno, "gone", "two")
	d.xattr(gone, "user.x", []byte("x"))
	first := d.commit()
	d.remove(vfs.RootIno, "gone")
	d.edit(kept, func(r *vfs.InodeRecord) { r.Mode = 0o600 })
	second := d.commit()
	got := make(map[vfs.Key]bool)
	records, position := k.read(vfs.Query{Since: first.Position.Cursor, Range: vfs.AllInos})
	for _, r := range records {
		got[r.Key] = r.Value != nil
		if r.Rev != second.Position.Rev {
			k.fail("%v changed in %d, is of revision %d", r.Key, second.Position.Rev, r.Rev)
		}
	}
	want := map[vfs.Key]bool{
		inodeKey(vfs.RootIno): true, inodeKey(kept): true, inodeKey(gone): false, xattrKey(gone, "user.x"): false,
		direntKey(vfs.RootIno, "gone"): false,
	}
	if !maps.Equal(got, want) || !sameState(position, second.Position) {
		k.fail("read since %d: %v, want %v", first.Position.Rev, got, want)
	}
	if records, position := k.read(vfs.Query{Since: position.Cursor, Range: vfs.AllInos}); len(records) > 0 ||
		!sameState(position, second.Position) {
		k.fail("read since now: %d records at %v", len(records), position)
	}
}

func checkReadOnce(k *kit) {
	d := k.draft(0)
	since := d.position.Cursor
	ino := d.text(vfs.RootIno, "a", "one")
	d.commit()
	for i := range 10 {
		d.edit(ino, func(r *vfs.InodeRecord) { r.Mtime = vfs.Time(i + 1) })
		d.commit()
	}
	d.remove(vfs.RootIno, "a")
	d.commit()
	again := d.text(vfs.RootIno, "a", "two")
	d.commit()
	live := make(map[vfs.Key]bool)
	records, _ := k.read(vfs.Query{Since: since, Range: vfs.AllInos})
	for _, r := range records {
		live[r.Key] = r.Value != nil
	}
	want := map[vfs.Key]bool{
		inodeKey(vfs.RootIno): true, direntKey(vfs.RootIno, "a"): true, inodeKey(ino): false, inodeKey(again): true,
	}
	if !maps.Equal(live, want) {
		k.fail("made, changed ten times, removed, made again: %v, want %v", live, want)
	}
	s, _ := k.snapshot()
	if _, ok := s[inodeKey(ino)]; ok {
		k.fail("a removed inode is in a snapshot")
	}
}

// What is pushed while a read runs, even by its yield function, is not in it and comes next.
func checkReadIsolation(k *kit) {
	d := k.draft(0)
	for i := range 20 {
		d.text(vfs.RootIno, fmt.Sprint("file", i), "text")
	}
	o := d.commit()
	before, s := maps.Clone(d.own), make(state)
	position, err := k.authority.Read(k.ctx, vfs.Query{Range: vfs.AllInos}, func(r vfs.Record) error {
		s.apply([]vfs.Record{{Key: r.Key, Value: slices.Clone(r.Value)}})
		if len(s) == 1 {
			d.remove(vfs.RootIno, "file7")
			d.text(vfs.RootIno, "later", "later")
			d.commit()
		}
		return nil
	})
	if k.must(err, "read"); !s.same(before) || !sameState(position, o.Position) {
		k.fail("a read that began at %v ends at %v, with %d records", o.Position.Cursor, position.Cursor, len(s))
	}
	records, _ := k.read(vfs.Query{Since: position.Cursor, Range: vfs.AllInos})
	if s.apply(records); !s.same(d.own) {
		k.fail("what was pushed during a read does not come next")
	}
}

func checkReadRange(k *kit) {
	d := k.draft(0)
	var inos []vfs.Ino
	for i := range 10 {
		inos = append(inos, d.text(vfs.RootIno, fmt.Sprint("file", i), "text"))
	}
	d.xattr(inos[4], "user.x", []byte("x"))
	since := d.position.Cursor
	d.commit()
	for _, in := range []vfs.InoRange{
		{First: vfs.RootIno, Last: vfs.RootIno}, {First: inos[3], Last: inos[5]}, {First: inos[9], Last: vfs.AllInos.Last},
		{First: 0, Last: 0}, {First: inos[9] + 1, Last: inos[9] + 1},
	} {
		want := 0
		for key := range d.own {
			if in.Contains(key.Ino) {
				want++
			}
		}
		all, _ := k.read(vfs.Query{Range: in})
		if len(all) != want {
			k.fail("read of %v: %d records, want %d", in, len(all), want)
		}
		if changed, _ := k.read(vfs.Query{Since: since, Range: in}); len(changed) != want {
			k.fail("read of %v since %d: %d records, want %d", in, since.Rev, len(changed), want)
		}
	}
	none := vfs.Query{Range: vfs.InoRange{First: 2, Last: 1}}
	_, err := k.authority.Read(k.ctx, none, func(vfs.Record) error { return nil })
	k.want(err, vfs.ErrInvalid, "read of an empty interval")
}

var errCut = errors.New("cut off")

func checkReadResume(k *kit) {
	d := k.draft(0)
	for i := range 20 {
		d.xattr(d.text(vfs.RootIno, fmt.Sprint("file", i), "text"), "user.x", []byte("x"))
	}
	d.commit()
	start, err := k.authority.Position(k.ctx)
	k.must(err, "position")
	s, last := make(state), vfs.Ino(0)
	_, err = k.authority.Read(k.ctx, vfs.Query{Range: vfs.AllInos}, func(r vfs.Record) error {
		if len(s) == 45 {
			return errCut
		}
		last = r.Ino
		s.apply([]vfs.Record{{Key: r.Key, Value: slices.Clone(r.Value)}})
		return nil
	})
	k.want(err, errCut, "read that is cut off")
	d.remove(vfs.RootIno, "file0")
	d.remove(vfs.RootIno, "file19")
	d.text(vfs.RootIno, "later", "later")
	d.commit()
	maps.DeleteFunc(s, func(key vfs.Key, _ vfs.Record) bool { return key.Ino >= last })
	rest, _ := k.read(vfs.Query{Range: vfs.InoRange{First: last, Last: vfs.AllInos.Last}})
	s.apply(rest)
	changed, position := k.read(vfs.Query{Since: start.Cursor, Range: vfs.AllInos})
	if s.apply(changed); !s.same(d.own) || s.digest() != position.Digest {
		k.fail("a snapshot that was cut off and taken up is not the workspace")
	}
}

func checkReadVoid(k *kit) {
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	d.commit()
	other := d.position.Cursor
	other.Epoch[5]++
	for name, since := range map[string]vfs.Cursor{
		"of another epoch":                 other,
		"of the future":                    {Epoch: d.position.Epoch, Rev: d.position.Rev + 1},
		"of the far future":                {Epoch: d.position.Epoch, Rev: 1<<64 - 1},
		"of revision zero in another life": {Epoch: other.Epoch},
	} {
		_, err := k.authority.Read(k.ctx, vfs.Query{Since: since, Range: vfs.AllInos}, func(r vfs.Record) error {
			return fmt.Errorf("yields %v", r.Key)
		})
		k.want(err, vfs.ErrVoidCursor, "read since a cursor "+name)
	}
}

func checkReadYield(k *kit) {
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	d.commit()
	calls := 0
	_, err := k.authority.Read(k.ctx, vfs.Query{Range: vfs.AllInos}, func(vfs.Record) error { calls++; return errCut })
	if !errors.Is(err, errCut) || calls != 1 {
		k.fail("yield failed after %d calls, and the read says %v", calls, err)
	}
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	_, err = k.authority.Read(ctx, vfs.Query{Range: vfs.AllInos}, func(vfs.Record) error { return nil })
	k.want(err, vfs.ErrInterrupted, "read with a context that has ended")
}

// checkReplica pushes at random, and has a replica follow, one or more revisions at a time.
func checkReplica(k *kit) {
	r := rand.New(rand.NewPCG(1, 2))
	d := k.draft(0)
	replica, position := k.snapshot()
	for range 60 {
		d.mutate(r)
		d.commit()
		if r.IntN(3) == 0 {
			continue
		}
		records, now := k.read(vfs.Query{Since: position.Cursor, Range: vfs.AllInos})
		if now.Rev < position.Rev {
			k.fail("the position goes from %d to %d", position.Rev, now.Rev)
		}
		replica.apply(records)
		if position = now; replica.digest() != position.Digest || !replica.same(d.own) {
			k.fail("a replica at revision %d is another than the workspace", position.Rev)
		}
	}
}

// mutate changes a draft by an operation at random.
func (d *draft) mutate(r *rand.Rand) {
	var files, dirs []vfs.Key
	for key, rec := range d.own {
		if key.Kind != vfs.KeyDirent {
			continue
		}
		if e, err := vfs.DecodeDirent(rec.Value); err == nil && e.Type == vfs.TypeDir {
			dirs = append(dirs, key)
		} else {
			files = append(files, key)
		}
	}
	slices.SortFunc(files, vfs.Key.Compare)
	slices.SortFunc(dirs, vfs.Key.Compare)
	dir := vfs.RootIno
	if len(dirs) > 0 {
		dir = d.leadsTo(dirs[r.IntN(len(dirs))])
	}
	name := fmt.Sprintf("n%d", r.Uint32())
	switch n := r.IntN(6); {
	case n == 0 && len(dirs) < 5:
		d.mkdir(dir, name)
	case n == 1 && len(files) > 5:
		key := files[r.IntN(len(files))]
		d.remove(key.Ino, key.Name)
	case n == 2 && len(files) > 0:
		d.xattr(d.leadsTo(files[r.IntN(len(files))]), name, []byte(name))
	case n == 3 && len(files) > 0:
		d.edit(d.leadsTo(files[r.IntN(len(files))]), func(rec *vfs.InodeRecord) { rec.Mtime = vfs.Time(r.Int64()) })
	default:
		d.text(dir, name, name)
	}
}

func (d *draft) leadsTo(key vfs.Key) vfs.Ino {
	e, err := vfs.DecodeDirent(d.own[key].Value)
	d.k.must(err, key.String())
	return e.Ino
}

func checkGet(k *kit) {
	d := k.draft(0)
	ino := d.text(vfs.RootIno, "a", "one")
	o := d.commit()
	keys := []vfs.Key{
		direntKey(vfs.RootIno, "a"), direntKey(vfs.RootIno, "b"), inodeKey(ino), inodeKey(1 << 50), inodeKey(ino),
	}
	records, rev, err := k.authority.Get(k.ctx, keys)
	if k.must(err, "get"); len(records) != len(keys) || rev != o.Position.Rev {
		k.fail("get %d keys at %d: %d records of %d", len(keys), o.Position.Rev, len(records), rev)
	}
	for i, r := range records {
		want, there := d.own[keys[i]]
		if r.Key != keys[i] || string(r.Value) != string(want.Value) || (r.Value != nil) != there {
			k.fail("get %v: %v %x, want %x", keys[i], r.Key, r.Value, want.Value)
		}
		if there && r.Rev != o.Position.Rev {
			k.fail("get %v: of revision %d, want %d", keys[i], r.Rev, o.Position.Rev)
		}
	}
	if records, _, err := k.authority.Get(k.ctx, nil); err != nil || len(records) != 0 {
		k.fail("get nothing: %v, %v", records, err)
	}
	many := make([]vfs.Key, vfs.MaxGetKeys+1)
	for i := range many {
		many[i] = inodeKey(vfs.Ino(i + 1))
	}
	_, _, err = k.authority.Get(k.ctx, many[1:])
	k.must(err, "get of as many keys as are allowed")
	_, _, err = k.authority.Get(k.ctx, many)
	k.want(err, vfs.ErrInvalid, "get of one key more than allowed")
}

func checkSums(k *kit) {
	d := k.draft(0)
	for i := range 10 {
		d.xattr(d.text(vfs.RootIno, fmt.Sprint("file", i), "text"), "user.x", []byte("x"))
	}
	o := d.commit()
	middle := d.free.First - 5
	ranges := []vfs.InoRange{
		{First: 0, Last: vfs.RootIno}, {First: vfs.RootIno + 1, Last: middle}, {First: middle + 1, Last: vfs.AllInos.Last},
		{First: 1 << 50, Last: 1 << 51},
	}
	digests, rev, err := k.authority.Sums(k.ctx, ranges)
	if k.must(err, "sums"); len(digests) != len(ranges) || rev != o.Position.Rev {
		k.fail("sums of %d intervals at %d: %d of %d", len(ranges), o.Position.Rev, len(digests), rev)
	}
	for i, in := range ranges {
		part := maps.Clone(d.own)
		maps.DeleteFunc(part, func(key vfs.Key, _ vfs.Record) bool { return !in.Contains(key.Ino) })
		if digests[i] != part.digest() {
			k.fail("sum of %v: %v, want %v", in, digests[i], part.digest())
		}
	}
	_, _, err = k.authority.Sums(k.ctx, []vfs.InoRange{{First: 2, Last: 1}})
	k.want(err, vfs.ErrInvalid, "sum of an empty interval")
	_, _, err = k.authority.Sums(k.ctx, slices.Repeat([]vfs.InoRange{vfs.AllInos}, vfs.MaxSumRanges+1))
	k.want(err, vfs.ErrInvalid, "sums of one interval more than allowed")
}

// otherChecks are positions, leases, chunks and restarts.
var otherChecks = []Check{
	{"wait returns with the next revision", checkWait},
	{"a barrier without anything new is no revision", checkBarrier},
	{"what is written beside a peer makes it stale", checkWriteBeside},
	{"leases do not overlap", checkLeases},
	{"chunks come back", checkChunks},
	{"a chunk that is not what its id says is not kept", checkChunksWrong},
	{"a push without its chunks is not applied", checkChunksMissing},
	{"a chunk of another length is not what the record says", checkChunksLength},
	{"a long file needs every node and every chunk", checkChunksTree},
	{"a restart forgets nothing", checkReopen},
}

func checkWait(k *kit) {
	d := k.draft(0)
	position, err := k.authority.Wait(k.ctx, d.position.Rev-1)
	if k.must(err, "wait for what is there"); !sameState(position, d.position) {
		k.fail("wait for what is there: %v, want %v", position, d.position)
	}
	type answer struct {
		position vfs.Position
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		position, err := k.authority.Wait(k.ctx, d.position.Rev)
		answers <- answer{position, err}
	}()
	select {
	case a := <-answers:
		k.fail("wait for revision %d: %v, %v", d.position.Rev+1, a.position, a.err)
	case <-time.After(20 * time.Millisecond): // long enough to catch who does not wait; who does needs not be caught
	}
	d.text(vfs.RootIno, "a", "one")
	o := d.commit()
	if a := <-answers; a.err != nil || !sameState(a.position, o.Position) {
		k.fail("wait: %v, %v, want %v", a.position, a.err, o.Position)
	}
	ctx, cancel := context.WithCancel(k.ctx)
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err = k.authority.Wait(ctx, o.Position.Rev)
	k.want(err, vfs.ErrInterrupted, "wait with a context that ends")
}

func checkBarrier(k *kit) {
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	o := d.commit()
	for range 2 {
		position, err := k.authority.Barrier(k.ctx)
		if k.must(err, "barrier"); !sameState(position, o.Position) {
			k.fail("barrier: %v, want %v", position, o.Position)
		}
	}
}

func checkWriteBeside(k *kit) {
	if k.Write == nil {
		panic(failed{errSkipped})
	}
	d := k.draft(0)
	k.must(k.Write(k.ctx, "beside", []byte("one")), "write")
	d.text(vfs.RootIno, "pushed", "two")
	o, err := d.send(d.push())
	k.must(err, "push")
	if o.Applied() || o.Position.Rev <= d.position.Rev {
		k.fail("a push based on what was before a write beside it: %v", o)
	}
	for _, r := range o.Stale {
		if r.Rev == 0 || r.Rev > o.Position.Rev {
			k.fail("stale %v is of revision %d, at %d", r.Key, r.Rev, o.Position.Rev)
		}
	}
	position, err := k.authority.Wait(k.ctx, d.position.Rev)
	k.must(err, "wait for what is written beside")
	k.must(k.Write(k.ctx, "later", []byte("three")), "write")
	if _, err = k.authority.Wait(k.ctx, position.Rev); err != nil {
		k.fail("wait for what is written beside: %w", err)
	}
	k.must(k.Write(k.ctx, "last", []byte("four")), "write")
	position, err = k.authority.Barrier(k.ctx)
	k.must(err, "barrier")
	if s, now := k.snapshot(); s[direntKey(vfs.RootIno, "last")].Value == nil || !sameState(now, position) {
		k.fail("a barrier at %v does not hold what was written before", position)
	}
}

func checkLeases(k *kit) {
	var all []vfs.InoRange
	for i := range 6 {
		authority, id := k.Peer(i % 2)
		in, err := authority.LeaseInos(k.ctx, id, uint64(1+i*100))
		if k.must(err, "lease"); in.First <= vfs.RootIno || !in.Valid() || uint64(in.Last-in.First) >= uint64(1+i*100) {
			k.fail("lease of %d: %v", 1+i*100, in)
		}
		for _, other := range all {
			if in.First <= other.Last && other.First <= in.Last {
				k.fail("leases %v and %v", other, in)
			}
		}
		all = append(all, in)
	}
	for _, n := range []uint64{0, vfs.MaxLease + 1} {
		_, err := k.authority.LeaseInos(k.ctx, k.id, n)
		k.want(err, vfs.ErrInvalid, fmt.Sprintf("lease of %d", n))
	}
}

func checkReopen(k *kit) {
	if k.Reopen == nil {
		panic(failed{errSkipped})
	}
	d := k.draft(0)
	d.text(vfs.RootIno, "a", "one")
	p := d.push()
	first, err := d.send(p)
	k.must(err, "push")
	d.base, d.position = maps.Clone(d.own), first.Position
	k.must(k.Reopen(), "reopen")
	k.authority, k.id = k.Peer(0)
	d.unchanged(first.Position, "a restart")
	again, err := d.send(p)
	if k.must(err, "push again"); !sameState(again.Position, first.Position) || again.Prev != first.Prev {
		k.fail("the answer was %v, and after a restart is %v", first, again)
	}
	d.text(vfs.RootIno, "b", "a number that was leased before")
	d.commit()
	in, err := k.authority.LeaseInos(k.ctx, k.id, 64)
	if k.must(err, "lease"); in.First <= d.free.Last && d.free.First <= in.Last {
		k.fail("leases before and after a restart: %v and %v", d.free, in)
	}
}
